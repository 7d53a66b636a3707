//! A proxy between a Kubernetes client and a kube-apiserver that does, on command, what networks and servers
//! do on bad days.
//!
//! # What it promises
//!
//! - It speaks HTTP, so a fault can be about *the second patch of this object*, and can come between the
//!   server's commit and the client's knowledge of it. Without faults it is transparent: bodies are streamed
//!   frame by frame in both directions, headers pass (the bearer token with them), upgraded connections
//!   (exec, port-forward) are tunnelled.
//! - Faults are values: built, compared, printed as one line each, written down and read again. The same
//!   script and the same requests in the same order give the same faults.
//! - Every request is written down in order of arrival with the server's answer, the client's, and the fault
//!   that hit it ([`FaultProxy::seen`]).
//! - It survives the API server. A server that cannot be reached, or breaks off before its answer, looks to
//!   the client like a connection that is closed without an answer; there is no 502. When the server is back,
//!   so is the proxy.
//! - Everything is bounded, and dropping the [`FaultProxy`] ends all of it.
//!
//! # A script
//!
//! ```
//! use std::time::Duration;
//! use windlass_testenv::proxy::{Action, Answer, Fault, Match, Script, RequestVerb, WatchFault};
//!
//! let configs = || Match::verb(RequestVerb::Apply).resource("configmaps").namespace("x");
//! let script = Script::from([
//!     Fault::on(configs()).first().then(Answer::conflict()),
//!     Fault::on(configs()).nth(2).then(Action::DropAfter),
//!     Fault::on(Match::watches().resource("pods")).first().then(WatchFault::Cut.after_events(3)),
//!     Fault::on(Match::any()).times(2).then(Answer::too_many_requests(Duration::from_secs(1))),
//! ]);
//! assert_eq!(
//!     script.to_string(),
//!     "1st apply of configmaps in x: answer 409 Conflict
//! 2nd apply of configmaps in x: drop the connection after the server committed
//! 1st watch of pods: cut the connection after 3 events
//! every request, 2 times: answer 429 TooManyRequests, retry after 1 s
//! "
//! );
//! ```
//!
//! # Stopping the world at the n-th write
//!
//! [`Action::Hold`] stops before the server sees the write, [`Action::HoldAnswer`] after it committed. Both
//! wait, and the handle tells when they do:
//!
//! ```no_run
//! # use windlass_testenv::proxy::{Action, Fault, FaultProxy, Match, WaitError};
//! # async fn torture(proxy: FaultProxy, n: u64) -> Result<(), WaitError> {
//! let work = Match::writes().except("leases").except("events");
//! let stopped = proxy.add(Fault::on(work).nth(n).then(Action::HoldAnswer));
//! stopped.wait_for_hits(1).await?;
//! // The n-th write is committed and its author does not know. Kill the author here.
//! stopped.discard();
//! # Ok(())
//! # }
//! ```
//!
//! A held request belongs to the network: released, it reaches the server even if its client is gone by then,
//! as the late write of a leader that was deposed would. [Discarded](FaultHandle::discard), it never does.
//!
//! # Cutting one replica off
//!
//! ```no_run
//! # use windlass_testenv::proxy::{Action, Fault, FaultProxy, Match};
//! # fn cut_off(proxy: &FaultProxy) {
//! let replica = Match::any().user_agent("replica-a");
//! let partition = proxy.add(Fault::on(replica.clone()).then(Action::DropBefore));
//! proxy.cut_watches(&replica); // or `half_open`, and it will not even notice
//! // …
//! partition.remove();
//! # }
//! ```
//!
//! # What it does not do
//!
//! - HTTP/2, and client certificates: clients must authenticate by a header.
//! - Read bodies, except for the [names of new objects](FaultProxy::name_creates) on request: without it, a
//!   create has no name to match. The events of a stream are its lines: JSON, not compressed.
//! - Faults inside of a tunnel, once the protocol was switched; they can hit the request that opens it.
//! - Faults below HTTP (lost packets, slow bytes). A frozen or half-open connection is still acknowledged by
//!   the kernel, so TCP keep-alive does not notice it; only a deadline of the client's does.
//! - Refuse connections. The port is open as long as the proxy lives; [`Action::DropBefore`] on
//!   [`Match::any`] is as near as it gets.

mod answer;
mod control;
mod endpoint;
mod error;
mod exchange;
mod fault;
mod handles;
mod log;
mod matching;
mod request;
mod script;
mod server;
mod shared;
mod sync;
mod tls;
mod tunnel;
mod upstream;
mod valve;
mod watch;

#[cfg(test)]
mod tests;

pub use answer::Answer;
pub use endpoint::{FaultProxy, ProxyOptions};
pub use error::{ProxyError, WaitError};
pub use fault::{Action, Fault, Occasion, WatchFault, When};
pub use handles::{FaultHandle, FreezeGuard};
pub use log::{Delivery, LoggedRequest};
pub use matching::Match;
pub use request::{RequestSeen, RequestVerb};
pub use script::Script;
