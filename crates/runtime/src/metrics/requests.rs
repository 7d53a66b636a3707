//! Metrics of requests to the API server, read at scrape time.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;

use crate::client::{Client, ClientStats};

#[derive(Clone)]
struct Enlisted {
    client: Client,
    host: String,
}

#[derive(Clone, Default)]
pub(super) struct RequestCollector {
    clients: Arc<Mutex<Vec<Enlisted>>>,
}

impl fmt::Debug for RequestCollector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestCollector").finish_non_exhaustive()
    }
}

impl RequestCollector {
    pub(super) fn enlist(&self, client: Client, host: String) {
        self.clients.lock().push(Enlisted { client, host });
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByAnswer {
    code: String,
    method: String,
    host: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByVerb {
    verb: String,
    host: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByHost {
    host: String,
}

impl Collector for RequestCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let clients = self.clients.lock().clone();
        let mut family = encoder.encode_descriptor(
            "rest_client_requests",
            "Requests to the API server by method, host and status code",
            None,
            MetricType::Counter,
        )?;
        for Enlisted { client, host } in &clients {
            for (method, code, count) in client.stats().requests() {
                let code = if code == 0 { "<error>".to_owned() } else { code.to_string() };
                let labels = ByAnswer { code, method, host: host.clone() };
                ConstCounter::new(count).encode(family.encode_family(&labels)?)?;
            }
        }
        let mut family = encoder.encode_descriptor(
            "rest_client_request_duration_seconds",
            "Time until the response headers, by method and host",
            None,
            MetricType::Histogram,
        )?;
        for Enlisted { client, host } in &clients {
            for (verb, durations) in client.stats().durations() {
                let labels = ByVerb { verb, host: host.clone() };
                let mut encoder = family.encode_family(&labels)?;
                let (sum, count) = (durations.sum(), durations.count());
                encoder.encode_histogram::<NoLabelSet>(sum, count, &durations.buckets(), None)?;
            }
        }
        let mut counter = |name: &str, help: &str, count: &dyn Fn(&ClientStats) -> u64| {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            for Enlisted { client, host } in &clients {
                let labels = ByHost { host: host.clone() };
                ConstCounter::new(count(client.stats())).encode(family.encode_family(&labels)?)?;
            }
            Ok(())
        };
        counter("windlass_client_retries", "Retries of requests to the API server", &ClientStats::retries)?;
        counter(
            "windlass_client_timeouts",
            "Calls to the API server that exceeded their deadline",
            &ClientStats::timeouts,
        )
    }
}
