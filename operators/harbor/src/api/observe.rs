//! Metrics and traces.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::choice::choice;
use super::pattern;

/// Metrics of one component, for Prometheus.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Metrics {
    /// Whether there are any.
    pub enabled: bool,
    /// The port on which they are read.
    #[schemars(range(min = 1))]
    pub port: i32,
    /// The path under which they are read.
    #[schemars(regex(pattern = pattern::PATH))]
    pub path: String,
}

impl Default for Metrics {
    fn default() -> Self {
        Self { enabled: false, port: 8001, path: "/metrics".into() }
    }
}

choice! {
    /// Where traces go.
    TraceProvider { Jaeger = "jaeger", Otel = "otel" }
}

choice! {
    /// How Jaeger is reached.
    JaegerMode { Collector = "collector", Agent = "agent" }
}

/// Traces of requests.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "!self.enabled || (self.provider == 'jaeger' ? has(self.jaeger) : has(self.otel))",
        "messageExpression": "'traces go to provider ' + self.provider + ', of which nothing is said: fill in ' + self.provider",
    },
    {
        "rule": "!self.enabled || self.provider != 'jaeger' || !has(self.jaeger) || (self.jaeger.mode == 'agent' ? has(self.jaeger.agent) : has(self.jaeger.collector))",
        "messageExpression": "'jaeger.mode is ' + self.jaeger.mode + ', of which nothing is said: fill in jaeger.' + self.jaeger.mode",
    },
]))]
pub struct Trace {
    /// Whether there are any.
    #[serde(default)]
    pub enabled: bool,
    /// Tells the traces of several Harbors apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Which share of requests is traced: 1 is all of them.
    #[serde(default = "all_requests")]
    pub sample_rate: i64,
    /// Added to every trace.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, String>,
    /// Where they go.
    pub provider: TraceProvider,
    /// How they reach Jaeger.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jaeger: Option<Jaeger>,
    /// How they reach an OpenTelemetry collector.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub otel: Option<Otel>,
}

fn all_requests() -> i64 {
    1
}

/// How traces reach Jaeger.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Jaeger {
    /// By its collector or its agent.
    pub mode: JaegerMode,
    /// The collector.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collector: Option<JaegerCollector>,
    /// The agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<JaegerAgent>,
}

/// Jaeger's collector.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JaegerCollector {
    /// Its URL.
    pub endpoint: String,
    /// The user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub username: Option<String>,
    /// The Secret with the password.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password_ref: Option<String>,
}

/// Jaeger's agent.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct JaegerAgent {
    /// Its host name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Its port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<i64>,
}

/// An OpenTelemetry collector.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Otel {
    /// Its host and port.
    pub endpoint: String,
    /// The path there.
    pub url_path: String,
    /// Whether what is sent is compressed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compression: Option<bool>,
    /// Whether it is sent in the clear.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub insecure: Option<bool>,
    /// How long an export may take.
    #[serde(default = "ten_seconds")]
    #[schemars(with = "String")]
    pub timeout: super::duration::GoDuration,
}

fn ten_seconds() -> super::duration::GoDuration {
    "10s".into()
}
