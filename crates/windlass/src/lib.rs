//! Declare which resources make up a thing and what each of them waits for; one controller, the same for every kind, does the
//! rest.
//!
//! # A blueprint
//!
//! This is the heart of an operator for a server with a database password, a key of its own and a configuration:
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
//!         // What is watched, and what the operator gets rights for.
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
//! // What it would do, without a cluster:
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
//! [`PlanController::of`]`(CoreBlueprint)` makes it a controller for a [manager](windlass_runtime::manager); `windlass_operator` makes it a
//! program with a command line and manifests.
//!
//! # What every line of it inherits
//!
//! - **Zero waste.** A converged cluster costs no write and no polling, also after a restart. Whether something has to be written is
//!   told *by digest and ownership, not by value*: an annotation holds the digest of what was applied, and the server's own
//!   book-keeping (`managedFields`) says whether anybody has touched a field of it since. So defaults, normalised quantities
//!   and images that admission rewrote are no drift, and what others add beside ours is theirs. ([`ownership`])
//! - **Drift is repaired** within one event, by one server-side apply. Of a workload, the pod template carries a token of what its
//!   dependencies contain: a changed Secret or ConfigMap rolls exactly what comes after it, once.
//! - **Nobody else's object is touched.** A creation succeeds only where nothing of that name exists; a later apply only if it is
//!   still the object that was read. What is in the way is reported with the remedy
//!   ([`names::ask::ADOPT`] lets it be taken over, with the fields of its former managers).
//! - **Nothing is deleted by mistake.** Pruned is only what left a *complete* plan: everything that it asked for is known and there, and
//!   nothing is pending; dependents first; never claims and generated objects, unless the plan says so; and not more than half of an owner's objects without a
//!   change of its spec.
//! - **Generated credentials are generated once.** One that is lost is a failure that says what to do, not a reason for another.
//! - **Waiting is not failing.** The [status](Status) names the node that blocks, why, and for a workload what its pods say. What
//!   the server refused is not sent again until it changes; what is written again and again is recognised as a fight.
//! - **Secrets stay secret.** Digests of them are keyed with a secret of the installation ([`DigestKey`]), and should that key be
//!   lost, nothing restarts.
//! - **The process may die between any two steps.** What is done is done, and the next run goes on.
//!
//! # The verbs
//!
//! | verb | meaning |
//! | --- | --- |
//! | [`add`](Plan::add) | apply and own; repaired when it drifts, pruned when it leaves the plan |
//! | [`create_once`](Plan::create_once) | generated credentials and keys |
//! | [`renew`](Plan::renew) | certificates: made, and made anew before they are too old |
//! | [`task`](Plan::task) | a Job that runs to completion once per content |
//! | [`step`](Plan::step) | an action on the outside world, with its own check |
//! | [`pending`](Plan::pending) | an object that cannot be drawn yet keeps its place, and nothing is pruned |
//! | [`keep`](Plan::keep) | an object that is left as it is on purpose |
//! | [`after`](Planned::after), [`behind`](Planned::behind) | order, with or without the flow of content |
//! | [`ready_when`](Planned::ready_when), [`mutate`](Planned::mutate), [`when`](Planned::when) | readiness, changes, a condition |
//! | [`conflicts`](Planned::conflicts), [`immutable`](Planned::immutable), [`retain`](Planned::retain), [`delete`](Planned::delete) | policies, per object |
//!
//! # Asking is declaring
//!
//! | ask | answer |
//! | --- | --- |
//! | [`require`](Needs::require), [`require_in`](Needs::require_in), [`require_ready`](Needs::require_ready) | a node that must exist, owned by someone else; its content flows, as a digest, into what comes after it |
//! | [`read`](Needs::read), [`read_if_there`](Needs::read_if_there) | the values of a ConfigMap or Secret |
//! | [`object`](Needs::object) | a whole object that must exist |
//! | [`exists`](Needs::exists) | whether an object exists |
//! | [`observe`](Needs::observe), [`observed`](Needs::observed) | an object as it is now, absent or unknown |
//! | [`labelled`](Needs::labelled) | all objects of a kind with a label, in a shape of your choice |
//!
//! # What it does not see
//!
//! Others may reorder lists whose items have keys (containers, ports), or fill a list that the plan has empty: the server does not
//! write down whose that was. And where somebody empties `managedFields`, one apply puts our entry back, but what was there
//! before it then also belongs to `before-first-apply`: a field that a later plan drops stays.
//!
//! # The rooms
//!
//! Each room uses only those below it.
//!
//! | room | contents |
//! | --- | --- |
//! | `styles` | [`Controls`], [`Blueprint`], the [controller](PlanController), [previews](preview) |
//! | `owner` | the envelope around every reconcile: class, pause, finalizer, deletion, status, events |
//! | `apply` | the applier: change detection, adoption, write budget, pruning, teardown |
//! | `nodes` | one file per kind of node: its verb, its visit, its removal |
//! | `plan` | [`Plan`], [`Planned`], [`Needs`], and the traits between nodes and applier |
//! | `needs` | watching and reading objects that a plan does not own |
//! | [`live`] | what is kept of live objects, [`readiness`], [`ownership`] of fields |
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
pub use nodes::{Object, RenewContext, Renewed, Step, StepState, Values};
pub use owner::{PlanState, Status, condition};
pub use plan::{
    Conflicts, Desired, DigestKey, Immutable, Kinds, Needs, Plan, Planned, Predecessor, Random, Takeover,
    Wait,
};
pub use styles::{
    Applied, AppliedNode, Blueprint, Controls, Deletion, OwnerKind, PlanController, PlanControllerError,
    Sketch, applied, preview, sketch,
};
