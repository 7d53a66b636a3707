//! A real Kubernetes control plane for tests, demos and benchmarks.
//!
//! etcd, kube-apiserver, kube-controller-manager and kube-scheduler are the real
//! ones, built once from their Go modules; [KWOK](https://kwok.sigs.k8s.io) plays
//! nodes and pods. So admission, defaulting, CRD schemas and CEL, server-side apply,
//! garbage collection, RBAC, watches and rollouts are what they are in a cluster;
//! only the containers do not run.
//!
//! ```no_run
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use windlass_testenv::TestEnv;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let env = TestEnv::shared().await?;
//! let namespace = env.namespace("my-test").await?;
//! let maps = namespace.api::<ConfigMap>();
//!
//! let before = env.requests()?.mark()?;
//! maps.create(&Default::default(), &serde_json::from_value(serde_json::json!({
//!     "metadata": {"name": "a"}
//! }))?).await?;
//! let requests = env.requests()?.since(before)?;
//! assert_eq!(requests.in_namespace(namespace.name()).writes().count(), 1, "{requests}");
//! # Ok(())
//! # }
//! ```
//!
//! # Which one to take
//!
//! | | what it is | what a test may do there |
//! | --- | --- | --- |
//! | [`TestEnv::shared`] | one for the whole test run, also across test binaries and under nextest | anything in a [namespace](TestEnv::namespace) of its own, as a [user](TestNamespace::client_for) of its own; webhooks carry the namespace's [selector](TestNamespace::selector); CRDs may be added, not changed |
//! | [`TestEnv::private`] | one of its own, [a few](control_plane::PRIVATE_AT_A_TIME) at a time on a machine | anything; only here can components be stopped |
//! | [`TestEnv::portable`] | the shared one, or the cluster that `WINDLASS_TEST_CONTEXT` names | what every Kubernetes has |
//!
//! A test whose environment lacks what it needs gets [`Error::NotRun`];
//! [`or_not_run!`] reports that visibly and ends the test.
//!
//! # What it does not do
//!
//! Nothing runs in the pods: no probes, no logs, no network, and no commands (except with
//! [`exec`](control_plane::Options::exec)). A Service has an address, but no server
//! answers there; webhooks are called by URL on 127.0.0.1. Only Linux is supported:
//! the supervisor relies on the kernel to end its children when it is killed.

pub mod assets;
pub mod audit;
pub mod control_plane;
mod crds;
mod digest;
pub mod dirs;
mod env;
mod error;
mod eventually;
mod heartbeat;
pub mod mutation;
mod namespace;
pub mod pods;
mod port;
mod progress;
pub mod proxy;
pub mod relay;
mod slots;
pub mod torture;
mod user;
pub mod world;

pub use audit::{AuditLog, Mark, Requests};
pub use control_plane::{Component, Options};
pub use env::{PrivateEnv, TestEnv};
pub use error::{Error, Result};
pub use eventually::{eventually, within};
pub use namespace::TestNamespace;
pub use pods::Story;
pub use port::HeldPort;
pub use progress::{Progress, Reporter};
pub use relay::Relay;
pub use user::{Rules, TestUser, rule};
pub use world::World;

/// Unwraps a result of this crate in a test that returns a `Result<(), _>`: a test
/// that cannot run here reports that on standard error, where the harness does not hide
/// it, and passes, or fails if [`must_run`] returns true; any other error is returned.
///
/// ```
/// # fn main() -> Result<(), windlass_testenv::Error> {
/// # async fn a_test() -> Result<(), windlass_testenv::Error> {
/// use windlass_testenv::{TestEnv, or_not_run};
///
/// let env = or_not_run!(TestEnv::shared().await);
/// # drop(env);
/// # Ok(())
/// # }
/// # Ok(())
/// # }
/// ```
#[macro_export]
macro_rules! or_not_run {
    ($result:expr) => {
        match $result {
            Ok(value) => value,
            Err(error) if error.is_not_run() && !$crate::must_run() => {
                $crate::report_not_run(&error);
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        }
    };
}

/// Returns true if a test that cannot run counts as a failure: `WINDLASS_TESTS_MUST_RUN` is set, as it should
/// be in CI, where nobody reads the output of tests that pass.
pub fn must_run() -> bool {
    std::env::var_os("WINDLASS_TESTS_MUST_RUN").is_some_and(|value| !value.is_empty())
}

/// Says on standard error that the present test was not run, and why.
pub fn report_not_run(error: &Error) {
    let thread = std::thread::current();
    progress::say(&format!("test {} {error}", thread.name().unwrap_or("?")));
}
