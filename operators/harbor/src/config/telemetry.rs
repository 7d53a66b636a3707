//! Metrics and traces.

use std::collections::BTreeMap;
use std::time::Duration;

use super::env::{Environment, SecretKey};

/// The metrics endpoint of a component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Metrics {
    /// The port; plain HTTP, also with internal TLS.
    pub port: u16,
    /// The path of the URL.
    pub path: String,
}

impl Metrics {
    /// Adds the variables that Core reads.
    pub(crate) fn environment(&self, environment: &mut Environment, subsystem: &str) {
        environment.set("METRIC_ENABLE", true).set("METRIC_PORT", self.port).set("METRIC_PATH", &self.path);
        Self::names(environment, subsystem);
    }

    /// Adds the prefixes of the metrics' names.
    pub(crate) fn names(environment: &mut Environment, subsystem: &str) {
        environment.set("METRIC_NAMESPACE", "harbor").set("METRIC_SUBSYSTEM", subsystem);
    }
}

/// Settings of tracing.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Trace {
    /// Namespace that distinguishes several Harbors.
    pub namespace: Option<String>,
    /// Share of requests that are traced, 0 to 1.
    pub sample_rate: f64,
    /// Attributes of each trace.
    pub attributes: BTreeMap<String, String>,
    /// The receiver of traces.
    pub to: TraceReceiver,
}

/// A receiver of traces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TraceReceiver {
    /// The Jaeger collector.
    JaegerCollector {
        /// URL of the Jaeger collector.
        endpoint: String,
        /// User name for the collector.
        username: Option<String>,
        /// The user's password.
        password: Option<SecretKey>,
    },
    /// The Jaeger agent.
    JaegerAgent {
        /// Host name of the Jaeger agent.
        host: String,
        /// Port of the Jaeger agent.
        port: u16,
    },
    /// An OpenTelemetry collector, over HTTP.
    Otel {
        /// The address of the collector, as `host:port`.
        endpoint: String,
        /// The path of the URL.
        url_path: String,
        /// Compresses the data.
        compression: bool,
        /// Connects without TLS.
        insecure: bool,
        /// Timeout of a request.
        timeout: Duration,
    },
}

impl Trace {
    pub(crate) fn environment(&self, environment: &mut Environment, component: &str) {
        environment
            .set("TRACE_ENABLED", true)
            .set("TRACE_SERVICE_NAME", format!("harbor-{component}"))
            .set("TRACE_SAMPLE_RATE", self.sample_rate)
            .set_some("TRACE_NAMESPACE", self.namespace.as_ref());
        if !self.attributes.is_empty() {
            environment.set("TRACE_ATTRIBUTES", serde_json::json!(self.attributes));
        }
        match &self.to {
            TraceReceiver::JaegerCollector { endpoint, username, password } => {
                environment
                    .set("TRACE_JAEGER_ENDPOINT", endpoint)
                    .set_some("TRACE_JAEGER_USERNAME", username.as_ref())
                    .secret_some("TRACE_JAEGER_PASSWORD", password.as_ref());
            }
            TraceReceiver::JaegerAgent { host, port } => {
                environment.set("TRACE_JAEGER_AGENT_HOSTNAME", host).set("TRACE_JAEGER_AGENT_PORT", port);
            }
            TraceReceiver::Otel { endpoint, url_path, compression, insecure, timeout } => {
                environment
                    .set("TRACE_OTEL_ENDPOINT", endpoint)
                    .set("TRACE_OTEL_URL_PATH", url_path)
                    .set("TRACE_OTEL_COMPRESSION", compression)
                    .set("TRACE_OTEL_INSECURE", insecure)
                    // Harbor counts in whole seconds.
                    .set("TRACE_OTEL_TIMEOUT", timeout.as_secs().max(1));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::env::{Env, EnvValue};
    use super::*;

    fn variables(to: TraceReceiver) -> BTreeMap<String, EnvValue> {
        let attributes = BTreeMap::from([("zone".to_owned(), "a\"b".to_owned())]);
        let trace = Trace { namespace: None, sample_rate: 0.5, attributes, to };
        let mut environment = Environment::default();
        trace.environment(&mut environment, "core");
        environment.finish().into_iter().map(|Env { name, value }| (name, value)).collect()
    }

    fn literal(text: &str) -> EnvValue {
        EnvValue::Literal(text.to_owned())
    }

    #[test]
    fn the_password_of_jaeger_is_a_reference() {
        let password = SecretKey::new("jaeger", "jaeger-password");
        let variables = variables(TraceReceiver::JaegerCollector {
            endpoint: "http://jaeger:14268/api/traces".to_owned(),
            username: Some("harbor".to_owned()),
            password: Some(password.clone()),
        });
        assert_eq!(variables["TRACE_JAEGER_PASSWORD"], EnvValue::Secret(password));
        assert_eq!(variables["TRACE_SAMPLE_RATE"], literal("0.5"));
        assert_eq!(variables["TRACE_ATTRIBUTES"], literal(r#"{"zone":"a\"b"}"#));
    }

    #[test]
    fn only_the_chosen_receiver_is_named() {
        let agent = variables(TraceReceiver::JaegerAgent { host: "agent".to_owned(), port: 6831 });
        assert_eq!(agent["TRACE_JAEGER_AGENT_PORT"], literal("6831"));
        assert!(!agent.contains_key("TRACE_JAEGER_ENDPOINT") && !agent.contains_key("TRACE_OTEL_ENDPOINT"));
        let otel = variables(TraceReceiver::Otel {
            endpoint: "otel:4318".to_owned(),
            url_path: "/v1/traces".to_owned(),
            compression: false,
            insecure: true,
            timeout: Duration::from_millis(10_400),
        });
        assert_eq!(otel["TRACE_OTEL_TIMEOUT"], literal("10"));
    }
}
