//! Kills an operator at every one of its writes, and sees whether it recovers.
//!
//! An operator that works is not yet one that works when its process ends between two writes, when an answer
//! gets lost, or when its view of the cluster is old. Such moments are rare, so developers do not meet them
//! while they write the operator. There are only as many of them as writes, so all of them can be tried.
//!
//! # What it promises
//!
//! A scenario (an owner is created, changed, deleted) is first run undisturbed, and every write of the
//! operator is recorded. Then it is run again once per *point*, from the beginning, in a namespace of
//! its own:
//!
//! | family | what happens at the point | points |
//! | --- | --- | --- |
//! | [`before`](Family::Before) | killed just before the write: it never reaches the server | every write |
//! | [`after`](Family::After) | killed just after the write: it has the answer, and its next request does not reach the server | every write |
//! | [`lost`](Family::Lost) | killed while it waits for the answer, after the server committed | every write |
//! | [`twice`](Family::Twice) | killed just before the write, and its next life just before its first write | every write |
//! | [`unanswered`](Family::Unanswered) | not killed, but the connection breaks instead of the answer, after the server committed | every write |
//! | [`stale`](Family::Stale) | its watches stand still from before the write until it has nothing more to do | every write |
//! | [`handover`](Family::Handover) | the leader is killed just before the write, and a warm standby takes over | every write, with a [Lease](Torture::lease) |
//! | [`frozen`](Family::Frozen) | the leader is suspended after the write, goes on when a standby leads, and must not write any more | every write, with a [Lease](Torture::lease) |
//! | [`unobserved`](Family::Unobserved) | cut off; something is changed and changed back; connected again | every [reversal](Torture::reversal) |
//!
//! A killed operator is restarted at once, and the scenario goes on to its end. At the end of every step
//!
//! - the operator comes to rest: it sends nothing but lists and watches;
//! - the state is that of the undisturbed run: names, labels, annotations, finalizers, owners, specs, data;
//!   nothing is missing, and nothing left over. Uids, times, allocated addresses and the like are not
//!   compared, nor is the status, unless a kind is watched [with](Kind::with_status) it;
//! - nothing was created more often than undisturbed, even if it was deleted again;
//! - what is [created once](Kind::created_once) has the content that it was created with;
//! - what was [available](Kind::stays_available_where) stayed so in every step that is not
//!   [disruptive](Torture::disruptive);
//! - nothing was deleted that an [owner](Torture::owners) read since its creation does not allow;
//! - no more writes were made than undisturbed and a stated [allowance](Torture::allowance).
//!
//! # A torture
//!
//! ```no_run
//! use k8s_openapi::api::apps::v1::Deployment;
//! use k8s_openapi::api::core::v1::{ConfigMap, Secret};
//! use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
//! use serde_json::json;
//! use windlass_testenv::TestEnv;
//! use windlass_testenv::torture::{Kind, OperatorRun, Torture};
//!
//! # async fn my_operator(_: kube::Config, _: String) -> Result<(), kube::Error> { Ok(()) }
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let env = TestEnv::shared().await?;
//! let report = Torture::new("my-operator", |run: OperatorRun| {
//!     my_operator(run.config(), run.namespace().to_owned())
//! })
//! .watch(Kind::of::<Deployment>())
//! .watch(Kind::of::<ConfigMap>())
//! .watch(Kind::of::<Secret>().created_once())
//! .step(
//!     "create",
//!     |scene| async move {
//!         let owner = json!({"metadata": {"name": "shop"}, "data": {"replicas": "1"}});
//!         let owner = serde_json::from_value(owner)?;
//!         scene.api::<ConfigMap>().create(&PostParams::default(), &owner).await?;
//!         Ok(())
//!     },
//!     |scene| async move { Ok(scene.api::<Deployment>().get_opt("shop").await?.is_some()) },
//! )
//! .step(
//!     "scale",
//!     |scene| async move {
//!         let change = Patch::Merge(json!({"data": {"replicas": "2"}}));
//!         scene.api::<ConfigMap>().patch("shop", &PatchParams::default(), &change).await?;
//!         Ok(())
//!     },
//!     |scene| async move {
//!         let shop = scene.api::<Deployment>().get("shop").await?;
//!         Ok(shop.spec.and_then(|spec| spec.replicas) == Some(2))
//!     },
//! )
//! .step(
//!     "delete",
//!     |scene| async move {
//!         scene.api::<ConfigMap>().delete("shop", &DeleteParams::default()).await?;
//!         Ok(())
//!     },
//!     // Garbage collection takes its time, so it is waited for.
//!     |scene| async move { Ok(scene.api::<Deployment>().get_opt("shop").await?.is_none()) },
//! )
//! .run(&env)
//! .await?;
//! println!("{report}");
//! report.assert_passed();
//! # Ok(())
//! # }
//! ```
//!
//! ```text
//! torture of my-operator: 7 writes when undisturbed
//! family        points  failures  not reached   seconds
//! before             7         0            0       7.1
//! after              7         1            0       9.4
//! …
//! FAILED after:create:secrets/shop-password#1
//!   step create: Secret shop-password is created once, and its content was changed later
//!   alone: WINDLASS_TORTURE_POINT='after:create:secrets/shop-password#1' cargo test -p my-operator --test torture -- …
//! ```
//!
//! # Points
//!
//! A point is named by what is written (verb, resource, name, subresource, and which of these it is), not by
//! its place in the order of all writes, so that it means the same in every run, also of an operator that
//! writes several objects at once. If a point does not come up in its repetition, say because two updates of
//! a status became one, it is tried once more and then reported as not reached, which is neither a pass nor a
//! failure. Events and leases are [excluded](Torture::exclude).
//!
//! | variable | |
//! | --- | --- |
//! | `WINDLASS_TORTURE_POINT=<point>` | runs this point alone; tests that have none of that name are not run, and say so |
//! | `WINDLASS_TORTURE=all` | runs all points, whatever the author [chose](Torture::slice) |
//! | `WINDLASS_TORTURE=slice:<k>/<n>` | runs the k-th of n slices, counted from 0; a commit's hash will do as k, so that every commit runs a part and all of them the whole |
//! | `WINDLASS_TORTURE_SIDE_BY_SIDE=<n>` | runs so many repetitions at a time, whatever the author [chose](Torture::side_by_side) |
//!
//! # What it does not do
//!
//! - Judge anything but Kubernetes objects in the namespace of the repetition: an operator's effects
//!   elsewhere, and cluster-scoped objects, are not compared (writes to the latter are points, though).
//! - Kill an operator in the middle of its start.
//! - End a thread that never yields. It is cut off from the API server, and that is all.
//! - Start the operator as a process of its own. A future that starts one with [`OperatorRun::kubeconfig`]
//!   and `kill_on_drop` will do.

mod handover;
mod kind;
mod ledger;
mod normal;
mod operator;
mod performance;
mod plan;
mod point;
mod quiet;
mod repetition;
mod report;
mod run;
mod scenario;
mod selection;
mod snapshot;
mod stage;
mod suspension;
mod undisturbed;

pub use kind::Kind;
pub use operator::OperatorRun;
pub use plan::Torture;
pub use point::{Family, Point};
pub use report::{Failure, Report};
pub use scenario::{Scene, StepResult};

// The property mutation runs operators and compares objects in the same way.
pub(crate) use ledger::{Ledger, Normaliser, Scope};
pub(crate) use operator::{Life, Operator};
pub(crate) use report::command;
pub(crate) use scenario::{Action, Condition, action, condition};
pub(crate) use snapshot::Snapshot;
