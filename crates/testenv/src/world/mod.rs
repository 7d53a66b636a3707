//! The test world: one namespace, the account of the operator under test, and the vocabulary that acceptance
//! tests share.
//!
//! An acceptance test of an operator creates objects as a user does, waits until the operator has done its
//! part, changes or deletes something, and counts from the audit log what the operator has asked for.
//! [`World`] has the verbs for that. Tests of one operator wrap it in a type of their own with their own
//! vocabulary (the sample object, what "ready" means for it) and let that type [`Deref`](std::ops::Deref) to
//! the world.
//!
//! | | what it is |
//! | --- | --- |
//! | [`World`] | objects of a namespace: create, change, wait for, delete; requests of the operator |
//! | [`Running`] | an operator as a task of the test, with its readiness and metrics |
//! | [`Program`] | an operator as a child process, seen through its ports as a kubelet sees it |
//! | [`rights`] | the rights that manifests grant, and those that were missing or not used |
//! | [`install`] | manifests applied as an administrator does, and the kubeconfig of their service account |
//! | [`Scraper`] | a reader of an installed operator's metrics, over TLS and with a token |
//!
//! Waiting is for conditions, never for time, and no process outlives its test. A world knows nothing of a
//! particular operator library: what starts an operator is passed to [`Running::new`].
//!
//! ```no_run
//! use k8s_openapi::api::apps::v1::Deployment;
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use serde_json::json;
//! use windlass_testenv::world::World;
//! use windlass_testenv::{Rules, TestEnv};
//!
//! # async fn start_my_operator(_: kube::Config) -> windlass_testenv::world::Running { std::future::pending().await }
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let env = TestEnv::shared().await?;
//! let namespace = env.namespace("my-test").await?;
//! let world = World::in_namespace(namespace, "my-operator", &Rules::everything()).await?;
//! let operator = start_my_operator(world.user.config()).await;
//!
//! world.put::<ConfigMap>(json!({"metadata": {"name": "shop"}, "data": {"replicas": "2"}})).await?;
//! let ready = |found: &Deployment| found.status.as_ref().and_then(|status| status.ready_replicas) == Some(2);
//! world.see("shop", "two replicas are ready", ready).await?;
//!
//! let mark = world.mark()?;
//! world.delete::<ConfigMap>("shop").await?;
//! world.gone::<Deployment>("shop").await?;
//! assert_eq!(world.requests(mark)?.verb("delete").count(), 1);
//! world.end(operator).await?;
//! # Ok(())
//! # }
//! ```

pub mod install;
mod metrics;
mod objects;
mod program;
mod requests;
pub mod rights;
mod running;
mod scrape;

use std::fmt;

pub use metrics::sum;
pub use objects::{Namespaced, condition};
pub use program::Program;
pub use requests::Written;
pub use running::{BoxError, Running};
pub use scrape::Scraper;

use crate::audit::Mark;
use crate::env::TestEnv;
use crate::error::Result;
use crate::namespace::TestNamespace;
use crate::user::{Rules, TestUser};

/// A namespace, and an account with exactly the given rights for the operator under test. The [module's
/// page](self) has an example.
pub struct World {
    /// The control plane.
    pub env: TestEnv,
    /// The namespace, deleted when the world is dropped.
    pub namespace: TestNamespace,
    /// The account that the operator runs as. [`requests`](Self::requests) counts its requests.
    pub user: TestUser,
    begun: Mark,
}

impl World {
    /// A world in this namespace, with an account for the operator. Rights can depend on the name of the
    /// namespace, as those of generated manifests do: therefore the namespace comes first.
    pub async fn in_namespace(namespace: TestNamespace, account: &str, rules: &Rules) -> Result<Self> {
        let user = namespace.client_for(account, rules).await?;
        let env = namespace.env().clone();
        let begun = env.requests()?.mark()?;
        Ok(Self { env, namespace, user, begun })
    }

    /// The place in the audit log at which this world began: before the operator did anything.
    pub fn begun(&self) -> Mark {
        self.begun
    }
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World").field("namespace", &self.namespace.name()).finish_non_exhaustive()
    }
}
