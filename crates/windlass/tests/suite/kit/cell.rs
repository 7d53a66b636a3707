//! A kind with state, and its director: members of a store that join, leave, and are replaced one at a time.
//!
//! The store is a stand-in inside of the test: it knows its members, refuses to lose its majority, counts
//! calls, and fails on demand.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use kube::{CustomResource, ResourceExt as _};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use windlass::{
    Actor, Controls, Decision, DecisionStatus, Depth, Director, Effect, Field, Finding, Kinds, Known, Needs,
    Observed, Pass, Plan, PlanError, Snapshot, Status, Timing, WorkloadFacts,
};
use windlass_runtime::cache::Shape;
use windlass_runtime::controller::Error;
use windlass_runtime::intern::Str;
use windlass_runtime::meta::Meta;

pub(crate) const LABEL: &str = "test.windlass.dev/cell";

#[derive(CustomResource, Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[kube(group = "test.windlass.dev", version = "v1", kind = "Cell", namespaced, status = "CellStatus")]
pub(crate) struct CellSpec {
    /// The number of members.
    pub(crate) members: i32,
    /// The version of the store.
    #[serde(default)]
    pub(crate) version: String,
    /// Plans a Secret that the server refuses.
    #[serde(default)]
    pub(crate) broken: bool,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
pub(crate) struct CellStatus {
    #[serde(flatten)]
    pub(crate) standard: Status,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) decisions: Vec<DecisionStatus>,
}

/// The stand-in for the store.
#[derive(Default)]
pub(crate) struct Store {
    pub(crate) members: Mutex<BTreeSet<String>>,
    /// Every call that changed something, in order.
    pub(crate) calls: Mutex<Vec<Call>>,
    pub(crate) observations: AtomicUsize,
    /// The store does not answer.
    pub(crate) silent: AtomicBool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum Call {
    Join(String),
    Leave(String),
}

pub(crate) struct CellDirector {
    pub(crate) store: Arc<Store>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct SetShape {
    metadata: Meta,
    spec: SetSpec,
    #[serde(default)]
    status: SetStatus,
}

#[derive(Debug, Deserialize)]
struct SetSpec {
    replicas: i32,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct SetStatus {
    observed_generation: Option<i64>,
    update_revision: Option<Str>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct PodShape {
    metadata: Meta,
    #[serde(default)]
    status: PodStatus,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PodStatus {
    conditions: Vec<Condition>,
}

#[derive(Debug, Deserialize)]
struct Condition {
    #[serde(rename = "type")]
    kind: Str,
    status: Str,
}

impl Shape for SetShape {
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

impl Shape for PodShape {
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

impl PodShape {
    fn is_ready(&self) -> bool {
        !self.metadata.deleting
            && self.status.conditions.iter().any(|one| &*one.kind == "Ready" && &*one.status == "True")
    }

    fn revision(&self) -> Option<&str> {
        self.metadata.labels.get("controller-revision-hash").map(|hash| &**hash)
    }
}

pub(crate) struct Facts {
    set: Option<Arc<SetShape>>,
    pods: Vec<Arc<PodShape>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Seen {
    members: Known<BTreeSet<String>>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Intent {
    raise_to: Field<Grow, i32>,
    lower_to: Field<Shrink, i32>,
}

pub(crate) struct Join(());
pub(crate) struct Grow(());
pub(crate) struct Shrink(());
pub(crate) struct Roll(());

static JOIN: Join = Join(());
static GROW: Grow = Grow(());
static SHRINK: Shrink = Shrink(());
static ROLL: Roll = Roll(());

type Asked<'a> = Pass<'a, CellDirector>;

fn members(pass: &Asked<'_>) -> Known<BTreeSet<String>> {
    match pass.snapshot.observation().map(|seen| seen.members.clone()) {
        Known::Known(members) => members,
        Known::Unknown(why) => Known::Unknown(why),
    }
}

fn replicas(pass: &Asked<'_>) -> i32 {
    pass.snapshot.facts.set.as_ref().map_or(0, |set| set.spec.replicas)
}

impl Actor<CellDirector> for Join {
    fn name(&self) -> &'static str {
        "join"
    }

    fn decide(&self, pass: &Asked<'_>, _: &mut Intent) -> Decision<Call> {
        let name = pass.snapshot.owner.name_any();
        let members = match members(pass) {
            Known::Known(members) => members,
            Known::Unknown(why) => {
                let held = Finding::held("members", "known members", why);
                return Decision::waiting("the members of the store are unknown").finding(held);
            }
        };
        // A pod beyond the replicas is about to go, even if the spec asks for its ordinal again.
        let wanted = pass.snapshot.owner.spec.members.min(replicas(pass));
        let missing =
            (0..wanted).map(|ordinal| format!("{name}-{ordinal}")).find(|pod| !members.contains(pod));
        let Some(missing) = missing else { return Decision::idle() };
        let is_ready = |pod: &Arc<PodShape>| pod.metadata.name() == missing && pod.is_ready();
        if pass.snapshot.facts.pods.iter().any(is_ready) {
            return Decision::working("a member joins")
                .finding(Finding::acted(&*missing, "joins"))
                .effect(Effect::from(Call::Join(missing)).after::<StatefulSet>(name));
        }
        let held = Finding::held(missing, "pod is ready", "its pod is not ready, or has not been seen yet");
        Decision::waiting("a member has not joined").finding(held).and_continue()
    }
}

/// Returns the reason why the set and its pods do not agree yet.
fn unsettled(set: &SetShape, pods: &[Arc<PodShape>]) -> Option<String> {
    let facts = WorkloadFacts {
        generation: set.metadata.generation,
        observed_generation: set.status.observed_generation,
        replicas: set.spec.replicas.into(),
        pods: pods.iter().filter(|pod| !pod.metadata.deleting).count(),
    };
    facts.why_unsettled()
}

impl Actor<CellDirector> for Grow {
    fn name(&self) -> &'static str {
        "grow"
    }

    fn decide(&self, pass: &Asked<'_>, intent: &mut Intent) -> Decision<Call> {
        let wanted = pass.snapshot.owner.spec.members;
        if wanted < 1 {
            return Decision::refused("a cell has at least one member", "set spec.members to 1 or more");
        }
        if wanted > replicas(pass) {
            intent.raise_to.set(self, wanted);
            return Decision::working("members are added").finding(Finding::acted("replicas", "raised"));
        }
        Decision::idle()
    }
}

impl Actor<CellDirector> for Shrink {
    fn name(&self) -> &'static str {
        "shrink"
    }

    fn decide(&self, pass: &Asked<'_>, intent: &mut Intent) -> Decision<Call> {
        let (wanted, has) = (pass.snapshot.owner.spec.members, replicas(pass));
        if wanted < 1 || wanted >= has {
            return Decision::idle();
        }
        let last = format!("{}-{}", pass.snapshot.owner.name_any(), has - 1);
        match members(pass) {
            Known::Unknown(why) => Decision::waiting("the members of the store are unknown")
                .finding(Finding::held(last, "known members", why)),
            Known::Known(members) if members.contains(&last) => Decision::working("a member leaves")
                .finding(Finding::acted(&*last, "leaves"))
                .effect(Call::Leave(last)),
            Known::Known(_) => {
                intent.lower_to.set(self, has - 1);
                Decision::working("replicas are lowered by one").finding(Finding::acted(last, "removed"))
            }
        }
    }
}

impl Actor<CellDirector> for Roll {
    fn name(&self) -> &'static str {
        "roll"
    }

    fn decide(&self, pass: &Asked<'_>, _: &mut Intent) -> Decision<Call> {
        let Facts { set, pods } = pass.snapshot.facts;
        let Some(set) = set else { return Decision::idle() };
        let revision = set.status.update_revision.as_deref();
        if let Some(why) = unsettled(set, pods) {
            return Decision::waiting("the pods have not followed the set")
                .finding(Finding::held("set", "settled", why));
        }
        let old: Vec<&Arc<PodShape>> = pods.iter().filter(|pod| pod.revision() != revision).collect();
        let Some(next) = old.last() else { return Decision::idle() };
        let unready = pods.iter().find(|pod| !pod.is_ready());
        if let Some(unready) = unready.filter(|unready| unready.metadata.name() != next.metadata.name()) {
            let why = format!("{} is not ready", unready.metadata.name());
            let held =
                |pod: &&Arc<PodShape>| Finding::held(pod.metadata.name(), "one pod at a time", why.clone());
            return Decision::waiting("a pod is being replaced").findings(old.iter().map(held));
        }
        Decision::working("a pod with an old template is replaced")
            .finding(Finding::acted(next.metadata.name(), "deleted"))
            .effect(
                Effect::delete::<Pod>(&next.metadata).after::<StatefulSet>(pass.snapshot.owner.name_any()),
            )
    }
}

impl Controls for CellDirector {
    type Owner = Cell;
    const NAME: &'static str = "cell.test.windlass.dev";

    fn kinds(&self, kinds: &mut Kinds) {
        kinds.owns::<StatefulSet>().owns::<Secret>().owns::<ConfigMap>();
        kinds.lists::<StatefulSet, SetShape>(LABEL).lists::<Pod, PodShape>(LABEL).deletes::<Pod>();
    }
}

impl Director for CellDirector {
    type Facts = Facts;
    type Target = String;
    type Observation = Seen;
    type Effect = Call;
    type Intent = Intent;

    fn facts(&self, cell: &Cell, needs: &mut Needs<'_>) -> Result<Facts, PlanError> {
        let name = cell.name_any();
        let sets = needs.labelled::<StatefulSet, SetShape>(LABEL, &*name);
        let pods = needs.labelled::<Pod, PodShape>(LABEL, &*name);
        let set = sets.or_wait()?.into_iter().find(|set| set.metadata.name() == name);
        let mut pods = pods.or_wait()?;
        pods.sort_by(|one, other| one.metadata.name().cmp(other.metadata.name()));
        Ok(Facts { set, pods })
    }

    fn target(&self, cell: &Cell, _: &Facts) -> Known<String> {
        Known::Known(cell.name_any())
    }

    async fn observe(&self, _: &String, _: Depth, _: Option<&Observed<Seen>>) -> Seen {
        self.store.observations.fetch_add(1, Ordering::SeqCst);
        if self.store.silent.load(Ordering::SeqCst) {
            return Seen { members: Known::Unknown("the store does not answer".to_owned()) };
        }
        Seen { members: Known::Known(self.store.members.lock().clone()) }
    }

    fn begin(&self, snapshot: &Snapshot<'_, Self>) -> Intent {
        let live =
            snapshot.facts.set.as_ref().map_or(snapshot.owner.spec.members.max(0), |set| set.spec.replicas);
        Intent { raise_to: Field::new(live), lower_to: Field::new(live) }
    }

    fn actors(&self) -> &[&dyn Actor<Self>] {
        static ALL: [&dyn Actor<CellDirector>; 4] = [&JOIN, &GROW, &SHRINK, &ROLL];
        &ALL
    }

    fn draw(
        &self,
        snapshot: &Snapshot<'_, Self>,
        intent: &Intent,
        _: &mut Needs<'_>,
        plan: &mut Plan,
    ) -> Result<(), PlanError> {
        let (name, spec) = (snapshot.owner.name_any(), &snapshot.owner.spec);
        let labels = json!({LABEL: name});
        if spec.broken {
            // The server refuses this type for a Secret without a certificate.
            let broken = json!({"metadata": {"name": format!("{name}-broken")}, "type": "kubernetes.io/tls"});
            plan.add(serde_json::from_value::<Secret>(broken)?);
        }
        let live = snapshot.facts.set.as_ref().map_or(0, |set| set.spec.replicas);
        let (raise, lower) = (*intent.raise_to.get(), *intent.lower_to.get());
        let replicas = if raise > live { raise } else { lower };
        let set = json!({
            "metadata": {"name": name, "labels": labels},
            "spec": {
                "serviceName": name, "replicas": replicas, "podManagementPolicy": "Parallel",
                "updateStrategy": {"type": "OnDelete"}, "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": {"containers": [
                    {"name": "store", "image": format!("store:{}", spec.version)}]}},
            },
        });
        plan.add(serde_json::from_value::<StatefulSet>(set)?);
        Ok(())
    }

    async fn perform(&self, _: &String, effect: &Call) -> Result<(), Error> {
        if self.store.silent.load(Ordering::SeqCst) {
            return Err(Error::transient("the store does not answer"));
        }
        let mut members = self.store.members.lock();
        let changed = match effect {
            Call::Join(member) => members.insert(member.clone()),
            Call::Leave(member) => members.remove(member),
        };
        if changed {
            self.store.calls.lock().push(effect.clone());
        }
        Ok(())
    }

    fn timing(&self, _: &Cell) -> Timing {
        let second = Duration::from_secs(1);
        Timing { at_rest: None, moving: 2 * second, decisions_apart: second, ..Timing::default() }
    }
}
