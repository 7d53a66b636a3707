//! What was asked of the API server, read when it is asked for.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
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
struct ByHost {
    host: String,
}

impl Collector for RequestCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let clients = self.clients.lock().clone();
        let mut family = encoder.encode_descriptor(
            "rest_client_requests",
            "Requests to the API server by method, host and answer",
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
        let mut counter = |name: &str, help: &str, count: &dyn Fn(&ClientStats) -> u64| {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            for Enlisted { client, host } in &clients {
                let labels = ByHost { host: host.clone() };
                ConstCounter::new(count(client.stats())).encode(family.encode_family(&labels)?)?;
            }
            Ok(())
        };
        counter("windlass_client_retries", "Attempts after a first one", &ClientStats::retries)?;
        counter("windlass_client_timeouts", "Calls that met their deadline", &ClientStats::timeouts)
    }
}
