//! Metrics of webhooks, under controller-runtime's names.

use std::time::Instant;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};

use super::certificates::Serving;
use crate::metrics::Metrics;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByWebhook {
    webhook: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByCode {
    webhook: String,
    code: u16,
}

#[derive(Clone)]
pub(super) struct WebhookMetrics {
    latency: Family<ByWebhook, Histogram, fn() -> Histogram>,
    requests: Family<ByCode, Counter>,
    in_flight: Family<ByWebhook, Gauge>,
    panics: Counter,
    conversion_panics: Counter,
}

impl WebhookMetrics {
    pub(super) fn register(metrics: &Metrics) -> Self {
        let families = Self {
            latency: Family::new_with_constructor(|| Histogram::new(exponential_buckets(1e-8, 10.0, 12))),
            requests: Family::default(),
            in_flight: Family::default(),
            panics: Counter::default(),
            conversion_panics: Counter::default(),
        };
        metrics.with_registry(|registry| {
            let name = |suffix: &str| format!("controller_runtime_{suffix}");
            let help = "Duration of webhook requests";
            registry.register(name("webhook_latency_seconds"), help, families.latency.clone());
            let help = "Webhook requests by HTTP status code";
            registry.register(name("webhook_requests"), help, families.requests.clone());
            let help = "Webhook requests being answered";
            registry.register(name("webhook_requests_in_flight"), help, families.in_flight.clone());
            let help = "Admission handlers that panicked";
            registry.register(name("webhook_panics"), help, families.panics.clone());
            let help = "Conversions that panicked";
            registry.register(name("conversion_webhook_panics"), help, families.conversion_panics.clone());
        });
        families
    }

    /// Returns the metrics of one webhook, which are visible from now on.
    pub(super) fn of(&self, path: &str) -> HookMetrics {
        let labels = ByWebhook { webhook: path.to_owned() };
        let hook = HookMetrics {
            latency: self.latency.get_or_create_owned(&labels),
            in_flight: self.in_flight.get_or_create_owned(&labels),
            all: self.clone(),
            path: path.to_owned(),
        };
        for code in [200, 500] {
            hook.answered(code);
        }
        hook
    }
}

#[derive(Clone)]
pub(super) struct HookMetrics {
    latency: Histogram,
    in_flight: Gauge,
    all: WebhookMetrics,
    path: String,
}

impl HookMetrics {
    fn answered(&self, code: u16) -> Counter {
        self.all.requests.get_or_create_owned(&ByCode { webhook: self.path.clone(), code })
    }

    pub(super) fn begin(&self) -> InFlight {
        self.in_flight.inc();
        InFlight { hook: self.clone(), began: Instant::now() }
    }

    pub(super) fn panicked(&self) {
        self.all.panics.inc();
    }

    pub(super) fn conversion_panicked(&self) {
        self.all.conversion_panics.inc();
    }
}

/// The expiry time of the serving certificate, for alerts; read at scrape time.
#[derive(Debug)]
pub(super) struct CertificateEnd(pub(super) Serving);

impl Collector for CertificateEnd {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let Some(ends) = self.0.ends() else { return Ok(()) };
        let name = "windlass_webhook_certificate_end_timestamp_seconds";
        let help = "Expiry time of the webhooks' serving certificate";
        let gauge = ConstGauge::new(ends.as_second());
        gauge.encode(encoder.encode_descriptor(name, help, None, MetricType::Gauge)?)
    }
}

/// A request in flight, until this is dropped.
pub(super) struct InFlight {
    hook: HookMetrics,
    began: Instant,
}

impl InFlight {
    pub(super) fn end(self, code: u16) {
        self.hook.latency.observe(self.began.elapsed().as_secs_f64());
        self.hook.answered(code).inc();
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.hook.in_flight.dec();
    }
}
