//! Waiting for what the proxy sees. All of it is cancel safe: a dropped wait has changed nothing.

use super::super::error::WaitError;
use super::super::fault::Fault;
use super::super::log::LoggedRequest;
use super::super::matching::Match;
use super::super::sync::lock;
use super::{Control, Tally};

/// The number of recent requests that a [`WaitError`] shows.
const SHOWN: usize = 20;

impl Control {
    pub(in crate::proxy) async fn wait_for_request(
        &self,
        after: u64,
        wanted: &Match,
    ) -> Result<LoggedRequest, WaitError> {
        let what = || format!("a {wanted} after request #{after}");
        self.wait(what, || lock(&self.state).log.first_after(after, wanted).cloned()).await
    }

    pub(in crate::proxy) async fn wait_for_seen(
        &self,
        what: &str,
        holds: impl Fn(&LoggedRequest) -> bool,
    ) -> Result<LoggedRequest, WaitError> {
        self.wait(|| what.to_owned(), || lock(&self.state).log.entries().find(|seen| holds(seen)).cloned())
            .await
    }

    pub(in crate::proxy) async fn wait_for_hits(
        &self,
        tally: &Tally,
        fault: &Fault,
        hits: u64,
    ) -> Result<(), WaitError> {
        let what = || format!("{hits} hits of \"{fault}\" ({} so far)", tally.hits());
        self.wait(what, || (tally.hits() >= hits).then_some(())).await
    }

    pub(in crate::proxy) async fn wait_for_open_watches(
        &self,
        wanted: &Match,
        count: usize,
    ) -> Result<(), WaitError> {
        let what = || format!("{count} open: {wanted} ({} are)", self.open_watches(wanted));
        self.wait(what, || (self.open_watches(wanted) == count).then_some(())).await
    }

    async fn wait<T>(
        &self,
        what: impl Fn() -> String,
        check: impl Fn() -> Option<T>,
    ) -> Result<T, WaitError> {
        let mut happened = self.happened.subscribe();
        let wait = async {
            loop {
                // Marks as seen before it looks: what happens while it looks wakes it again.
                happened.borrow_and_update();
                if let Some(found) = check() {
                    return found;
                }
                if happened.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
            }
        };
        tokio::time::timeout(self.patience, wait).await.map_err(|_| {
            let state = lock(&self.state);
            let mut recent: Vec<String> =
                state.log.entries().rev().take(SHOWN).map(LoggedRequest::to_string).collect();
            recent.reverse();
            WaitError { what: what(), patience: self.patience, recent }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use http::{HeaderMap, Method};

    use super::super::super::{Action, Delivery, RequestSeen};
    use super::*;

    fn control() -> Arc<Control> {
        Arc::new(Control::new(100, Duration::from_secs(30)))
    }

    fn request(target: &str) -> RequestSeen {
        RequestSeen::parse(&Method::GET, &target.parse().unwrap(), &HeaderMap::new())
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_in_vain_says_what_came_instead() {
        let control = control();
        let fault = Fault::on(Match::writes()).first().then(Action::Hold);
        let (_, tally) = control.add(fault.clone());
        let (record, _) = control.arrived(&request("/version"));
        record.settle(Delivery::Answered(200));
        let error = control.wait_for_hits(&tally, &fault, 1).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "waited 30s in vain for 1 hits of \"1st write: hold it before the server sees it\" (0 so far); \
             the last requests were:\n  #1 get /version: no answer of the server, client 200"
        );
        let error = self::control().wait_for_request(0, &Match::writes()).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "waited 30s in vain for a write after request #0; no request has arrived at the proxy"
        );
    }
}
