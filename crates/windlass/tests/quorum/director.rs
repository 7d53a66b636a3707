//! The director of the store: join, grow, shrink and roll, each rule in one place.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::StatefulSet;
use kube::{CustomResource, ResourceExt as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use windlass::{
    Actor, Controls, Decision, Depth, Director, Field, Finding, Kinds, Known, Needs, Observed, Pass, Plan,
    PlanError, Snapshot,
};
use windlass_runtime::controller::Error;

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "test.windlass.dev", version = "v1", kind = "Quorum", namespaced, status = "windlass::Status")]
pub(crate) struct QuorumSpec {
    pub(crate) members: u32,
    pub(crate) template: u32,
}

/// A rule that is deliberately broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sabotage {
    /// Unknown members are taken for none.
    UnknownIsEmpty,
    /// The next member is restarted before the last one is healthy again.
    TwoAtOnce,
    /// Replicas are lowered before the member has left.
    LowerEarly,
    /// Decisions are made from an observation that began before the last effect ended.
    OldObservation,
    /// A claim is deleted by its ordinal, whatever it holds by now.
    ClaimByOrdinal,
    /// A member is restarted while another one moves its data away.
    RestartWhileLeaving,
    /// A changed template restarts pods by itself.
    OpenGate,
    /// Effects are sent without checking their preconditions again.
    NoPrecondition,
}

impl Sabotage {
    pub(crate) const ALL: [Self; 8] = [
        Self::UnknownIsEmpty,
        Self::TwoAtOnce,
        Self::LowerEarly,
        Self::OldObservation,
        Self::ClaimByOrdinal,
        Self::RestartWhileLeaving,
        Self::OpenGate,
        Self::NoPrecondition,
    ];
}

/// The objects of the cluster, as the cache of the operator has them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Facts {
    pub(crate) replicas: Option<u32>,
    /// Pods by their ordinal.
    pub(crate) pods: BTreeMap<u32, PodFact>,
    /// The uids of claims by the ordinal of their pod.
    pub(crate) claims: BTreeMap<u32, u64>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PodFact {
    pub(crate) uid: u64,
    pub(crate) template: u32,
    pub(crate) ready: bool,
}

/// The store's own view.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Seen {
    pub(crate) members: Known<Members>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Members {
    /// Members by their ordinal: true if the member is up and has all of its data.
    pub(crate) healthy: BTreeMap<u32, bool>,
    /// The member that moves its data away.
    pub(crate) leaving: Option<u32>,
}

impl Members {
    fn unhealthy(&self) -> Option<u32> {
        self.healthy.iter().find(|(_, healthy)| !**healthy).map(|(ordinal, _)| *ordinal)
    }
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) enum Call {
    Join(u32),
    Leave(u32),
    /// Restarts the pod with this uid.
    Restart(u32, u64),
    /// Deletes the claim with this uid.
    DeleteClaim(u32, u64),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Intent {
    pub(crate) raise_to: Field<Grow, u32>,
    pub(crate) lower_to: Field<Shrink, u32>,
}

pub(crate) struct QuorumDirector {
    pub(crate) sabotage: Option<Sabotage>,
}

pub(crate) struct Join(());
pub(crate) struct Grow(());
pub(crate) struct Shrink(());
pub(crate) struct Roll(());

static JOIN: Join = Join(());
static GROW: Grow = Grow(());
static SHRINK: Shrink = Shrink(());
static ROLL: Roll = Roll(());

type Asked<'a> = Pass<'a, QuorumDirector>;

/// Returns the members, or the decision to wait.
fn members(pass: &Asked<'_>, sabotage: Option<Sabotage>) -> Result<Members, Decision<Call>> {
    let known = match pass.snapshot.observation().map(|seen| seen.members.clone()) {
        Known::Known(members) => members,
        Known::Unknown(why) => Known::Unknown(why),
    };
    match known {
        Known::Known(members) => Ok(members),
        Known::Unknown(_) if sabotage == Some(Sabotage::UnknownIsEmpty) => Ok(Members::default()),
        Known::Unknown(why) => Err(Decision::waiting("the members of the store are unknown")
            .finding(Finding::held("members", "known members", why))),
    }
}

/// The sabotage travels in an annotation of the owner, because actors have no state of their own.
fn sabotage(pass: &Asked<'_>) -> Option<Sabotage> {
    let name = pass.snapshot.owner.annotations().get("sabotage")?;
    Sabotage::ALL.into_iter().find(|sabotage| format!("{sabotage:?}") == *name)
}

impl Actor<QuorumDirector> for Join {
    fn name(&self) -> &'static str {
        "join"
    }

    fn decide(&self, pass: &Asked<'_>, _: &mut Intent) -> Decision<Call> {
        let facts = pass.snapshot.facts;
        let members = match members(pass, sabotage(pass)) {
            Ok(members) => members,
            Err(waiting) => return waiting,
        };
        // A pod beyond the replicas is about to go, even if the spec asks for its ordinal again.
        let wanted = pass.snapshot.owner.spec.members.min(facts.replicas.unwrap_or(0));
        let missing = facts
            .pods
            .iter()
            .find(|(ordinal, pod)| pod.ready && **ordinal < wanted && !members.healthy.contains_key(ordinal));
        match missing {
            Some((ordinal, _)) => Decision::working("a member joins")
                .finding(Finding::acted(format!("member {ordinal}"), "joins"))
                .effect(Call::Join(*ordinal)),
            None => Decision::idle(),
        }
    }
}

impl Actor<QuorumDirector> for Grow {
    fn name(&self) -> &'static str {
        "grow"
    }

    fn decide(&self, pass: &Asked<'_>, intent: &mut Intent) -> Decision<Call> {
        let (wanted, has) = (pass.snapshot.owner.spec.members, pass.snapshot.facts.replicas);
        if wanted == 0 {
            return Decision::refused("a store has at least one member", "set spec.members to 1 or more");
        }
        if has.is_some_and(|has| has >= wanted) {
            return Decision::idle();
        }
        intent.raise_to.set(self, wanted);
        Decision::working("members are added").finding(Finding::acted("replicas", "raised")).and_continue()
    }
}

impl Actor<QuorumDirector> for Shrink {
    fn name(&self) -> &'static str {
        "shrink"
    }

    fn decide(&self, pass: &Asked<'_>, intent: &mut Intent) -> Decision<Call> {
        let (facts, broken) = (pass.snapshot.facts, sabotage(pass));
        let wanted = pass.snapshot.owner.spec.members;
        let Some(has) = facts.replicas else { return Decision::idle() };
        let members = match members(pass, broken) {
            Ok(members) => members,
            Err(waiting) => return waiting,
        };
        // A claim of an ordinal that is scaled away is deleted when nothing uses it any more.
        let unused = facts.claims.iter().find(|(ordinal, _)| {
            **ordinal >= has && !facts.pods.contains_key(ordinal) && !members.healthy.contains_key(ordinal)
        });
        if wanted == 0 || wanted >= has {
            return match unused {
                Some((ordinal, uid)) => {
                    Decision::working("an unused claim is deleted").effect(Call::DeleteClaim(*ordinal, *uid))
                }
                None => Decision::idle(),
            };
        }
        let last = has - 1;
        let subject = format!("member {last}");
        if broken == Some(Sabotage::LowerEarly) || !members.healthy.contains_key(&last) {
            intent.lower_to.set(self, last);
            return Decision::working("replicas are lowered by one")
                .finding(Finding::acted(subject, "removed"));
        }
        if members.leaving == Some(last) {
            let held = Finding::held(subject, "data has moved", "it still has data");
            return Decision::waiting("a member moves its data away").finding(held);
        }
        if let Some(ill) = members.unhealthy() {
            let held = Finding::held(subject, "all members healthy", format!("member {ill} is not healthy"));
            return Decision::waiting("a member is not healthy").finding(held);
        }
        Decision::working("a member leaves")
            .finding(Finding::acted(subject, "leaves"))
            .effect(Call::Leave(last))
    }
}

impl Actor<QuorumDirector> for Roll {
    fn name(&self) -> &'static str {
        "roll"
    }

    fn decide(&self, pass: &Asked<'_>, _: &mut Intent) -> Decision<Call> {
        let (facts, broken) = (pass.snapshot.facts, sabotage(pass));
        let template = pass.snapshot.owner.spec.template;
        let old: Vec<(u32, u64)> = facts
            .pods
            .iter()
            .filter(|(_, pod)| pod.template != template)
            .map(|(ordinal, pod)| (*ordinal, pod.uid))
            .collect();
        let Some((ordinal, uid)) = old.last().copied() else { return Decision::idle() };
        let members = match members(pass, broken) {
            Ok(members) => members,
            Err(waiting) => return waiting,
        };
        let held = |rule: &'static str, why: String| {
            let held = |(ordinal, _): &(u32, u64)| Finding::held(format!("pod {ordinal}"), rule, why.clone());
            Decision::waiting("a pod may not be restarted yet").findings(old.iter().map(held))
        };
        if members.leaving.is_some() && broken != Some(Sabotage::RestartWhileLeaving) {
            return held("nobody leaves", "a member moves its data away".to_owned());
        }
        let ill = members.unhealthy().filter(|ill| *ill != ordinal || members.healthy.len() > 1);
        if let Some(ill) = ill.filter(|_| broken != Some(Sabotage::TwoAtOnce)) {
            return held("one at a time", format!("member {ill} is not healthy"));
        }
        Decision::working("a pod is restarted").effect(Call::Restart(ordinal, uid))
    }
}

impl Controls for QuorumDirector {
    type Owner = Quorum;
    const NAME: &'static str = "quorum.test.windlass.dev";

    fn kinds(&self, kinds: &mut Kinds) {
        kinds.owns::<StatefulSet>();
    }
}

impl Director for QuorumDirector {
    type Facts = Facts;
    type Target = ();
    type Observation = Seen;
    type Effect = Call;
    type Intent = Intent;

    fn facts(&self, _: &Quorum, _: &mut Needs<'_>) -> Result<Facts, PlanError> {
        Ok(Facts::default())
    }

    fn target(&self, _: &Quorum, _: &Facts) -> Known<()> {
        Known::Known(())
    }

    async fn observe(&self, (): &(), _: Depth, _: Option<&Observed<Seen>>) -> Seen {
        Seen { members: Known::Unknown("the model observes by itself".to_owned()) }
    }

    fn begin(&self, snapshot: &Snapshot<'_, Self>) -> Intent {
        let live = snapshot.facts.replicas.unwrap_or(0);
        Intent { raise_to: Field::new(live), lower_to: Field::new(live) }
    }

    fn actors(&self) -> &[&dyn Actor<Self>] {
        static ALL: [&dyn Actor<QuorumDirector>; 4] = [&JOIN, &GROW, &SHRINK, &ROLL];
        &ALL
    }

    fn draw(
        &self,
        snapshot: &Snapshot<'_, Self>,
        intent: &Intent,
        _: &mut Needs<'_>,
        plan: &mut Plan,
    ) -> Result<(), PlanError> {
        let replicas = replicas(snapshot.facts.replicas, intent);
        let set = json!({"metadata": {"name": "store"}, "spec": {
            "replicas": replicas, "serviceName": "store", "updateStrategy": {"type": "OnDelete"},
            "selector": {"matchLabels": {"app": "store"}},
            "template": {"metadata": {"labels": {"app": "store"}}, "spec": {"containers": []}}}});
        plan.add(serde_json::from_value::<StatefulSet>(set)?);
        Ok(())
    }

    async fn perform(&self, (): &(), _: &Call) -> Result<(), Error> {
        Err(Error::terminal("the model performs by itself"))
    }
}

/// Returns the replicas to apply: the one place where two directions meet.
pub(crate) fn replicas(live: Option<u32>, intent: &Intent) -> u32 {
    let (raise, lower) = (*intent.raise_to.get(), *intent.lower_to.get());
    if live.is_none_or(|live| raise > live) { raise } else { lower }
}
