//! Prometheus metrics and distributed tracing.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::choice::choice;
use super::pattern;

/// Prometheus metrics of a component.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Metrics {
    /// Serve Prometheus metrics. Default: false.
    pub enabled: bool,
    /// Port of the metrics, always plain HTTP (`METRIC_PORT` of Harbor). Default: 8001.
    #[schemars(range(min = 1))]
    pub port: i32,
    /// HTTP path of the metrics (`METRIC_PATH` of Harbor). Default: `/metrics`.
    #[schemars(regex(pattern = pattern::PATH))]
    pub path: String,
}

impl Default for Metrics {
    fn default() -> Self {
        Self { enabled: false, port: 8001, path: "/metrics".into() }
    }
}

choice! {
    /// Backend that receives traces.
    TraceProvider { Jaeger = "jaeger", Otel = "otel" }
}

choice! {
    /// Protocol for sending traces to Jaeger.
    JaegerMode { Collector = "collector", Agent = "agent" }
}

/// Distributed tracing of requests.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "!self.enabled || (self.provider == 'jaeger' ? has(self.jaeger) : has(self.otel))",
        "messageExpression": "'trace.provider is ' + self.provider + ', but its settings are missing: set ' + self.provider",
    },
    {
        "rule": "!self.enabled || self.provider != 'jaeger' || !has(self.jaeger) || (self.jaeger.mode == 'agent' ? has(self.jaeger.agent) : has(self.jaeger.collector))",
        "messageExpression": "'jaeger.mode is ' + self.jaeger.mode + ', but its settings are missing: set jaeger.' + self.jaeger.mode",
    },
]))]
pub struct Trace {
    /// Send traces (`TRACE_ENABLED` of Harbor). Default: false.
    #[serde(default)]
    pub enabled: bool,
    /// Namespace of the traces, to tell several Harbors apart (`TRACE_NAMESPACE` of Harbor). If unset, none
    /// is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Share of requests that are traced: 1 traces all, 0 none (`TRACE_SAMPLE_RATE` of Harbor). Default: 1.
    #[serde(default = "all_requests")]
    pub sample_rate: i64,
    /// Attributes added to every trace (`TRACE_ATTRIBUTES` of Harbor). Default: none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, String>,
    /// Backend that receives the traces: `jaeger` or `otel`. Required, has no default.
    pub provider: TraceProvider,
    /// Jaeger backend. Required if traces are enabled with provider `jaeger`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jaeger: Option<Jaeger>,
    /// OpenTelemetry collector. Required if traces are enabled with provider `otel`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub otel: Option<Otel>,
}

fn all_requests() -> i64 {
    1
}

/// Jaeger backend for traces.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Jaeger {
    /// Protocol for sending traces: `collector` or `agent`.
    pub mode: JaegerMode,
    /// Jaeger collector. Required in mode `collector`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collector: Option<JaegerCollector>,
    /// Jaeger agent. Required in mode `agent`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<JaegerAgent>,
}

/// Jaeger collector that receives traces over HTTP.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JaegerCollector {
    /// URL of the Jaeger collector (`TRACE_JAEGER_ENDPOINT` of Harbor).
    pub endpoint: String,
    /// User name for the collector (`TRACE_JAEGER_USERNAME` of Harbor). If unset, no credentials are sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub username: Option<String>,
    /// Name of the Secret with the password for the collector, in key `jaeger-password`, `password` or
    /// `postgres-password` (`TRACE_JAEGER_PASSWORD` of Harbor). If unset, no password is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password_ref: Option<String>,
}

/// Jaeger agent that receives traces over UDP.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct JaegerAgent {
    /// Host name of the Jaeger agent (`TRACE_JAEGER_AGENT_HOSTNAME` of Harbor). Required in mode `agent`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Port of the Jaeger agent (`TRACE_JAEGER_AGENT_PORT` of Harbor). Default: 6831.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<i64>,
}

/// OpenTelemetry collector that receives traces over HTTP.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Otel {
    /// Address of the collector as `host:port` (`TRACE_OTEL_ENDPOINT` of Harbor).
    pub endpoint: String,
    /// URL path of the collector, such as `/v1/traces` (`TRACE_OTEL_URL_PATH` of Harbor).
    pub url_path: String,
    /// Compress exported traces (`TRACE_OTEL_COMPRESSION` of Harbor). Default: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compression: Option<bool>,
    /// Send traces without TLS (`TRACE_OTEL_INSECURE` of Harbor). Default: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub insecure: Option<bool>,
    /// Timeout of an export, as a Go duration in whole seconds (`TRACE_OTEL_TIMEOUT` of Harbor). Default:
    /// `10s`.
    #[serde(default = "ten_seconds")]
    #[schemars(with = "String")]
    pub timeout: super::duration::GoDuration,
}

fn ten_seconds() -> super::duration::GoDuration {
    "10s".into()
}
