//! The operator under test: started, killed, started again.
//!
//! Promise: a killed operator is dead. Each life has a thread, a runtime and a [`FaultProxy`] of its own. The
//! kill takes the proxy away first, so that from that moment nothing it sends reaches the server, then ends
//! the runtime with every task that it started.

use std::any::Any;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::FutureExt as _;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::suspension::Suspension;
use crate::env::TestEnv;
use crate::error::{Error, Result};
use crate::proxy::{FaultProxy, LoggedRequest};
use crate::user::TestUser;

/// The time that a kill waits for the thread to end. A thread that does not end is left behind; it is cut off
/// from the server anyway.
const BURIAL: Duration = Duration::from_secs(2);

/// The arguments of one life of the operator: from its start to the next kill.
#[derive(Clone)]
pub struct OperatorRun {
    config: kube::Config,
    kubeconfig: String,
    namespace: String,
    life: u32,
}

impl OperatorRun {
    /// The configuration of a client: through the proxy of this life, which ends with it.
    pub fn config(&self) -> kube::Config {
        self.config.clone()
    }

    /// A client made of [`config`](Self::config).
    pub fn client(&self) -> Result<kube::Client> {
        kube::Client::try_from(self.config()).map_err(Error::api("making a client"))
    }

    /// The same as a kubeconfig, for an operator that is a process of its own. The future should start it
    /// with `kill_on_drop`.
    pub fn kubeconfig(&self) -> &str {
        &self.kubeconfig
    }

    /// The only namespace that the operator may work in: others belong to other repetitions.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The number of this life, counted from 1.
    pub fn life(&self) -> u32 {
        self.life
    }
}

impl std::fmt::Debug for OperatorRun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OperatorRun")
            .field("namespace", &self.namespace)
            .field("life", &self.life)
            .finish_non_exhaustive()
    }
}

/// Runs an operator until it ends by itself, and gives its last words. Called on the operator's own thread.
pub(crate) type Operator = Arc<dyn Fn(OperatorRun) -> Pin<Box<dyn Future<Output = String>>> + Send + Sync>;

/// One life of the operator. Dropping it kills it.
pub(crate) struct Life {
    pub(crate) proxy: FaultProxy,
    /// The reason, if the operator ended by itself.
    last_words: Arc<OnceLock<String>>,
    kill: oneshot::Sender<()>,
    ended: oneshot::Receiver<()>,
    suspension: Suspension,
    handle: Handle,
}

impl Life {
    /// Starts the operator; `prepare` may script the proxy before its first request.
    pub(crate) async fn start<T>(
        env: &TestEnv,
        user: &TestUser,
        operator: &Operator,
        namespace: &str,
        number: u32,
        prepare: impl FnOnce(&FaultProxy) -> T,
    ) -> Result<(Self, T)> {
        let proxy = env.fault_proxy().await?;
        proxy.name_creates();
        proxy.name_replica(format!("life-{number}"));
        let prepared = prepare(&proxy);
        let run = OperatorRun {
            config: user.config_through(&proxy.url())?,
            kubeconfig: user.kubeconfig_through(&proxy.url())?,
            namespace: namespace.to_owned(),
            life: number,
        };
        let suspension = Suspension::default();
        let gate = suspension.gate();
        let (kill, killed) = oneshot::channel();
        let (ends, ended) = oneshot::channel();
        let last_words = Arc::new(OnceLock::new());
        let (words, operator) = (Arc::clone(&last_words), Arc::clone(operator));
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("operator")
            .enable_all()
            .build()
            .map_err(|error| Error::Start(format!("no runtime for the operator: {error}")))?;
        let handle = runtime.handle().clone();
        std::thread::Builder::new()
            .name("operator".to_owned())
            .spawn(move || {
                runtime.block_on(async {
                    let life = AssertUnwindSafe(gate.guard(async { operator(run).await })).catch_unwind();
                    tokio::select! {
                        biased;
                        _ = killed => {}
                        end = life => {
                            let _ = words.set(end.unwrap_or_else(|panic| format!("panicked: {}", panic_message(&*panic))));
                        }
                    }
                });
                runtime.shutdown_background();
                let _ = ends.send(());
            })
            .map_err(|error| Error::Start(format!("no thread for the operator: {error}")))?;
        Ok((Self { proxy, last_words, kill, ended, suspension, handle }, prepared))
    }

    /// Suspends the operator as SIGSTOP does a process: no task of it runs, its connections stay open, and
    /// the clock goes on.
    pub(super) fn suspend(&self) {
        self.suspension.begin();
        // The runtime has one worker: while this task holds it, no other runs.
        let held = self.suspension.gate();
        self.handle.spawn(async move { held.wait() });
    }

    /// Lets a suspended operator go on.
    pub(super) fn resume(&self) {
        self.suspension.end();
    }

    /// The reason that the operator gave when it ended by itself.
    pub(crate) fn last_words(&self) -> Option<&String> {
        self.last_words.get()
    }

    /// Kills it and gives the requests that it made. Dropped midway, it is dead all the same.
    pub(crate) async fn kill(self) -> Vec<LoggedRequest> {
        let seen = self.proxy.seen();
        drop(self.proxy);
        self.suspension.end();
        // It may have ended by itself.
        let _ = self.kill.send(());
        let _ = tokio::time::timeout(BURIAL, self.ended).await;
        seen
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("without a word")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_words_of_a_panic_are_kept() {
        let words = |panic: Box<dyn Any + Send>| panic_message(&*panic).to_owned();
        assert_eq!(words(Box::new("a")), "a");
        assert_eq!(words(Box::new("b".to_owned())), "b");
        assert_eq!(words(Box::new(1)), "without a word");
    }
}
