//! What was asked of the API server, read when it is asked for.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;

/// How often the API server answered one kind of request in one way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestCount {
    /// The HTTP method.
    pub method: String,
    /// Host and port of the server.
    pub host: String,
    /// The HTTP status, or `<error>` where there was no answer.
    pub code: String,
    /// How often.
    pub count: u64,
}

type Source = Arc<dyn Fn() -> Vec<RequestCount> + Send + Sync>;

#[derive(Clone, Default)]
pub(super) struct RequestCollector {
    sources: Arc<Mutex<Vec<Source>>>,
}

impl fmt::Debug for RequestCollector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestCollector").finish_non_exhaustive()
    }
}

impl RequestCollector {
    pub(super) fn enlist(&self, counts: Source) {
        self.sources.lock().push(counts);
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByAnswer {
    code: String,
    method: String,
    host: String,
}

impl Collector for RequestCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let sources = self.sources.lock().clone();
        let mut family = encoder.encode_descriptor(
            "rest_client_requests",
            "Requests to the API server by method, host and answer",
            None,
            MetricType::Counter,
        )?;
        for RequestCount {
            method,
            host,
            code,
            count,
        } in sources.iter().flat_map(|counts| counts())
        {
            let labels = ByAnswer { code, method, host };
            ConstCounter::new(count).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }
}
