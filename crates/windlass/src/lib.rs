//! Declare the resources that make up an owner, and the order between them; one generic controller does the
//! rest.
//!
//! # A blueprint
//!
//! This is the core of an operator for a server with a database password, a key of its own and a
//! configuration:
//!
//! ```
//! # use k8s_openapi::api::{apps::v1::Deployment, core::v1::{ConfigMap, Secret, Service}};
//! # use kube::{CustomResource, ResourceExt as _};
//! # use schemars::JsonSchema;
//! # use serde::{Deserialize, Serialize, de::DeserializeOwned};
//! # use serde_json::{Value, json};
//! use windlass::{Blueprint, Controls, Kinds, Needs, Plan, PlanError};
//! # #[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
//! # #[kube(group = "example.com", version = "v1", kind = "Core", namespaced, status = "windlass::Status")]
//! # #[serde(rename_all = "camelCase")]
//! # pub struct CoreSpec { image: String, password_ref: String }
//! # fn object<K: DeserializeOwned>(object: Value) -> Result<K, PlanError> { Ok(serde_json::from_value(object)?) }
//! # fn named(core: &Core) -> Value { json!({"name": core.name_any()}) }
//! # fn service(core: &Core) -> Result<Service, PlanError> { object(json!({"metadata": named(core), "spec": {"ports": [{"port": 80}]}})) }
//! # fn config_map(core: &Core) -> Result<ConfigMap, PlanError> { object(json!({"metadata": named(core), "data": {"app.conf": "x"}})) }
//! # fn deployment(core: &Core) -> Result<Deployment, PlanError> {
//! #     object(json!({"metadata": named(core), "spec": {"selector": {}, "template": {"spec": {"containers": []}}}}))
//! # }
//! # fn key_secret(name: &str, key: String) -> Result<Secret, PlanError> {
//! #     object(json!({"metadata": {"name": name}, "stringData": {"key": key}}))
//! # }
//!
//! #[derive(Clone)]
//! struct CoreBlueprint;
//!
//! impl Controls for CoreBlueprint {
//!     type Owner = Core; // each Core has a plan; a kind made with #[derive(CustomResource)]
//!     const NAME: &'static str = "core.example.com"; // field manager and label: never change it
//!
//!     fn kinds(&self, kinds: &mut Kinds) {
//!         // The watches and the RBAC rules of the operator follow from this.
//!         kinds.owns::<Service>().owns::<ConfigMap>().owns::<Secret>().owns::<Deployment>();
//!         kinds.requires::<Secret>();
//!     }
//! }
//!
//! impl Blueprint for CoreBlueprint {
//!     fn draw(&self, core: &Core, needs: &mut Needs<'_>, plan: &mut Plan) -> Result<(), PlanError> {
//!         // Somebody else's Secret: waited for by name, and watched.
//!         let password = needs.require::<Secret>(&core.spec.password_ref);
//!         plan.add(service(core)?); // applied, owned, repaired; pruned when it leaves the plan
//!         let config = plan.add(config_map(core)?);
//!         let name = format!("{}-key", core.name_any());
//!         let key = plan.create_once(name.clone(), move |random| {
//!             key_secret(&name, random.alphanumeric(32)?) // runs once in the life of the Core
//!         });
//!         // Waits for all three, and rolls when the content of any of them changes.
//!         plan.add(deployment(core)?).after([config, key, password]);
//!         Ok(())
//!     }
//! }
//!
//! // The plan of an owner, without a cluster:
//! # let mut core = Core::new("shop", CoreSpec { image: "i".into(), password_ref: "db".into() });
//! # core.metadata.namespace = Some("prod".into());
//! let plan = windlass::preview(&CoreBlueprint, &core)?;
//! assert_eq!(plan.text().to_string(), "\
//! 5 planned
//! ├─ Secret db: planned: required
//! ├─ Service shop: planned: apply
//! ├─ ConfigMap shop: planned: apply
//! │  └─ Deployment shop: planned: apply, also after Secret shop-key, Secret db
//! └─ Secret shop-key: planned: generate once
//! ");
//! # Ok::<(), PlanError>(())
//! ```
//!
//! [`PlanController::of`]`(CoreBlueprint)` makes it a controller for a [manager](windlass_runtime::manager);
//! `windlass_operator` makes it a program with a command line and manifests.
//!
//! # A director
//!
//! For software with state, where the next step depends on what the software says, implement [`Director`]
//! instead of [`Blueprint`]: actors decide from a [`Snapshot`], `draw` turns their intent into a plan, and
//! effects on the software are nodes of it. [`PlanController::directed_by`] makes it a controller.
//!
//! # Guarantees
//!
//! - **Zero waste.** A converged cluster costs no write and no polling, also after a restart. Whether an
//!   object has to be written is decided *by digest and ownership, not by value*: an annotation holds the
//!   digest of the applied object, and the server's own records (`managedFields`) show whether anybody has
//!   changed one of its fields since. So defaults, normalised quantities and images that admission rewrote
//!   are no drift, and fields that others add are theirs. ([`ownership`])
//! - **Drift is repaired** within one event, by one server-side apply. The pod template of a workload carries
//!   a token of the content of its dependencies: a changed Secret or ConfigMap rolls exactly the workloads
//!   that come after it, once.
//! - **Objects of others are not touched.** A creation succeeds only if no object of that name exists; a
//!   later apply succeeds only if it is still the object that was read. An object that has the name of a
//!   planned one is reported with the remedy ([`names::ask::ADOPT`] lets it be taken over, with the fields of
//!   its former managers).
//! - **Nothing is deleted by mistake.** An object is pruned only if it has left a *complete* plan: every
//!   object that the plan asked for is known and exists, and nothing is pending. Dependents are deleted
//!   first; PersistentVolumeClaims and generated objects are kept, unless the plan says otherwise; and more
//!   than half of an owner's objects are not deleted without a change of its spec.
//! - **Generated credentials are generated once.** If one is lost, the node fails with a message that says
//!   what to do, instead of generating another.
//! - **Waiting is not failing.** The [status](Status) names the node that blocks, the reason, and for a
//!   workload the problem of its pods. A refused content is not sent again until it changes; repeated writes
//!   of one object are recognised as a fight with another writer.
//! - **Secrets stay secret.** Digests of secret content are keyed with a secret of the installation
//!   ([`DigestKey`]); losing that key restarts nothing.
//! - **The process may die between any two steps.** Completed steps stay done, and the next run goes on.
//!
//! # Nodes of a plan
//!
//! | method | meaning |
//! | --- | --- |
//! | [`add`](Plan::add) | apply and own; repaired when it drifts, pruned when it leaves the plan |
//! | [`create_once`](Plan::create_once) | generated credentials and keys |
//! | [`renew`](Plan::renew) | certificates: renewed before they expire |
//! | [`task`](Plan::task) | a Job that runs to completion once per content |
//! | [`step`](Plan::step) | an action on the outside world, with its own check |
//! | [`pending`](Plan::pending) | an object that cannot be drawn yet keeps its place, and nothing is pruned |
//! | [`record`](Plan::record), [`record_if_absent`](Plan::record_if_absent) | the version of the data that a retained object holds, written on it |
//! | [`keep`](Plan::keep) | an object that is deliberately left as it is |
//! | [`after`](Planned::after), [`behind`](Planned::behind) | order, with or without the flow of content |
//! | [`ready_when`](Planned::ready_when), [`mutate`](Planned::mutate), [`when`](Planned::when) | readiness, changes, a condition |
//! | [`conflicts`](Planned::conflicts), [`immutable`](Planned::immutable), [`retain`](Planned::retain), [`delete`](Planned::delete) | policies, per object |
//!
//! # Objects that a plan asks for
//!
//! | method | answer |
//! | --- | --- |
//! | [`require`](Needs::require), [`require_in`](Needs::require_in), [`require_ready`](Needs::require_ready) | a node that must exist, owned by someone else; its content flows, as a digest, into the nodes after it |
//! | [`read`](Needs::read), [`read_if_there`](Needs::read_if_there) | the values of a ConfigMap or Secret |
//! | [`object`](Needs::object) | a whole object that must exist |
//! | [`exists`](Needs::exists) | whether an object exists |
//! | [`observe`](Needs::observe), [`observed`](Needs::observed) | an object as it is now, absent or unknown |
//! | [`look`](Needs::look) | the same, without a node |
//! | [`labelled`](Needs::labelled) | all objects of a kind with a label, in a shape of your choice |
//!
//! # Limits
//!
//! The operator does not detect that others reorder lists of items with keys (containers, ports), or fill a
//! list that is empty in the plan: the server does not record the owner of such changes. And if somebody
//! empties `managedFields`, one apply restores our entry, but the fields that existed before then also belong
//! to `before-first-apply`: a field that a later plan drops stays.
//!
//! # Modules
//!
//! Each module uses only those below it.
//!
//! | module | contents |
//! | --- | --- |
//! | `styles` | [`Controls`], [`Blueprint`], [`Director`], the [controller](PlanController), [previews](preview) |
//! | `owner` | the envelope around every reconcile: class, pause, finalizer, deletion, status, events |
//! | `apply` | the applier: change detection, adoption, write budget, pruning, teardown |
//! | `nodes` | one file per kind of node: its method, its visit, its removal |
//! | `plan` | [`Plan`], [`Planned`], [`Needs`], and the traits between nodes and applier |
//! | `needs` | watching and reading objects that a plan does not own |
//! | [`live`] | the cached part of live objects, [`readiness`], [`ownership`] of fields |
//! | [`names`] | everything that is written into clusters and never changes; [`naming`] of children |

mod apply;
mod error;
pub mod live;
mod metrics;
pub mod names;
mod needs;
mod nodes;
mod owner;
mod plan;
mod styles;

pub use apply::Keyring;
pub use error::{NodeError, PlanError, Reason};
pub use live::readiness::Readiness;
pub use live::{Kind, Known, ownership, readiness};
pub use metrics::PlanMetrics;
pub use names::naming;
pub use nodes::{Object, RenewContext, Renewed, Step, StepState, Values, recorded_version};
pub use owner::{PlanState, Status, condition};
pub use plan::{
    Conflicts, Desired, DigestKey, Immutable, Kinds, Needs, Plan, Planned, Predecessor, Random, Takeover,
    Wait,
};
pub use styles::{
    Action, Actor, ActorTrace, Answer, Applied, AppliedNode, Blueprint, Controls, Decided, Decision,
    DecisionState, DecisionStatus, Deletion, Depth, Director, Effect, Field, Finding, FindingResult,
    HeldStatus, Next, ObjectAction, Observed, OwnerKind, Pass, PlanController, PlanControllerError,
    Rehearsal, Sketch, Snapshot, Timing, Trace, WorkloadFacts, applied, decide, preview, rehearse, sketch,
};
