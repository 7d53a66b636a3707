//! The client's side of the log.

use std::sync::Arc;

use super::super::log::Delivery;
use super::Control;

/// The client's side of one log entry. Dropped without a word, the client has left.
pub(in crate::proxy) struct Record {
    control: Arc<Control>,
    pub(in crate::proxy) sequence: u64,
    settled: bool,
}

impl Record {
    pub(super) fn new(control: Arc<Control>, sequence: u64) -> Self {
        Self { control, sequence, settled: false }
    }

    pub(in crate::proxy) fn settle(mut self, delivery: Delivery) {
        self.write(delivery);
    }

    fn write(&mut self, delivery: Delivery) {
        self.settled = true;
        self.control.change(|state| {
            if let Some(seen) = state.log.entry(self.sequence) {
                seen.client = delivery;
            }
        });
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        if !self.settled {
            self.write(Delivery::Left);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http::{HeaderMap, Method};

    use super::super::super::RequestSeen;
    use super::*;

    #[tokio::test]
    async fn a_client_that_leaves_is_written_down() {
        let control = Arc::new(Control::new(100, Duration::from_secs(30)));
        let version = RequestSeen::parse(&Method::GET, &"/version".parse().unwrap(), &HeaderMap::new());
        let (record, _) = control.arrived(&version);
        assert_eq!(control.seen()[0].client, Delivery::Waiting);
        drop(record);
        assert_eq!(control.seen()[0].client, Delivery::Left);
    }
}
