//! The declaration of a torture: the operator, the scenario, the kinds of its state, the allowances.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use kube::api::DynamicObject;

use super::kind::Kind;
use super::ledger::Normaliser;
use super::operator::{Operator, OperatorRun};
use super::point::Family;
use super::scenario::{Reversal, ScenarioStep, Scene, StepResult, action, condition};
use super::selection::Selection;
use crate::user::Rules;

/// An operator, a scenario, and what must hold. The [module's page](super) has an example.
#[must_use = "nothing happens until it is run"]
pub struct Torture {
    pub(super) plan: Plan,
}

/// The declared settings.
pub(super) struct Plan {
    pub(super) name: String,
    pub(super) operator: Operator,
    pub(super) kinds: Vec<Kind>,
    pub(super) normalisers: Vec<Normaliser>,
    pub(super) steps: Vec<ScenarioStep>,
    pub(super) reversals: Vec<Reversal>,
    /// The name of the Lease by which the operator elects its leader.
    pub(super) lease: Option<String>,
    /// The plural of the kind whose objects decide what is deleted.
    pub(super) owners: Option<String>,
    /// The steps that may take available objects away.
    pub(super) disruptive: BTreeSet<String>,
    pub(super) families: BTreeSet<Family>,
    pub(super) excluded: BTreeSet<String>,
    pub(super) rules: Option<Rules>,
    /// Writes above those of the undisturbed run; by default as many again.
    pub(super) allowance: Option<usize>,
    pub(super) patience: Duration,
    pub(super) calm: Duration,
    pub(super) side_by_side: usize,
    pub(super) selection: Selection,
}

impl Plan {
    /// Mistakes of the author: missing or repeated declarations.
    pub(super) fn mistakes(&self) -> Vec<String> {
        let mut mistakes = Vec::new();
        if self.kinds.is_empty() {
            mistakes.push("no kind is watched, so every state would be right: add `.watch(…)`".to_owned());
        }
        if self.steps.is_empty() {
            mistakes.push("the scenario has no step: add `.step(…)`".to_owned());
        }
        let mut steps = BTreeSet::new();
        for step in &self.steps {
            if !steps.insert(&step.name) {
                mistakes.push(format!("two steps are named {:?}", step.name));
            }
        }
        for step in self.disruptive.iter().filter(|step| !steps.contains(step)) {
            mistakes.push(format!("{step:?} is declared disruptive, and is no step"));
        }
        let mut reversals = BTreeSet::new();
        for reversal in &self.reversals {
            if !steps.contains(&reversal.after) {
                let Reversal { name, after, .. } = reversal;
                mistakes.push(format!("the reversal {name:?} comes after {after:?}, which is no step"));
            }
            if !reversals.insert(&reversal.name) {
                mistakes.push(format!("two reversals are named {:?}", reversal.name));
            }
        }
        mistakes
    }
}

impl Torture {
    /// Begins with the operator. `operator` is called for every life of it, on a thread and in a tokio
    /// runtime of its own, and its future runs until it is killed: one that ends by itself is a failure.
    ///
    /// The operator must keep to [`OperatorRun::namespace`], since repetitions run side by side. One with
    /// leader election must not wait for the lease of its former life for longer than the
    /// [`patience`](Self::patience).
    pub fn new<F, Fut>(name: impl Into<String>, operator: F) -> Self
    where
        F: Fn(OperatorRun) -> Fut + Send + Sync + 'static,
        Fut: Future + 'static,
        Fut::Output: Debug,
    {
        let operator: Operator = Arc::new(move |run| {
            let life = operator(run);
            Box::pin(async move { format!("{:?}", life.await) })
        });
        Self {
            plan: Plan {
                name: name.into(),
                operator,
                kinds: Vec::new(),
                normalisers: Vec::new(),
                steps: Vec::new(),
                reversals: Vec::new(),
                lease: None,
                owners: None,
                disruptive: BTreeSet::new(),
                families: Family::ALL.into(),
                excluded: ["events", "leases"].map(str::to_owned).into(),
                rules: None,
                allowance: None,
                patience: Duration::from_mins(1),
                calm: Duration::from_millis(300),
                side_by_side: 4,
                selection: Selection::All,
            },
        }
    }

    /// Adds a kind whose objects belong to the state.
    pub fn watch(mut self, kind: impl Into<Kind>) -> Self {
        self.plan.kinds.push(kind.into());
        self
    }

    /// Adds a step: `action` is done, then `until` must come true (asked again and again; an error is a no
    /// with words), the operator must come to rest, and the state must be that of the undisturbed run.
    ///
    /// `until` should cover what others do, too, such as the garbage collection of children: what is still
    /// there at the end of a step of the undisturbed run is expected to be there in every other one.
    pub fn step<A, AFut, U, UFut>(mut self, name: impl Into<String>, act: A, until: U) -> Self
    where
        A: Fn(Scene) -> AFut + Send + Sync + 'static,
        AFut: Future<Output = StepResult> + Send + 'static,
        U: Fn(Scene) -> UFut + Send + Sync + 'static,
        UFut: Future<Output = StepResult<bool>> + Send + 'static,
    {
        self.plan.steps.push(ScenarioStep {
            name: name.into(),
            action: action(act),
            until: condition(until),
        });
        self
    }

    /// Adds a change and its way back, for [`Family::Unobserved`]: after the step of this name the operator
    /// is cut off, both are done, and the operator is connected again. They must leave the state as they
    /// found it.
    pub fn reversal<A, AFut, B, BFut>(
        mut self,
        after_step: impl Into<String>,
        name: impl Into<String>,
        there: A,
        back: B,
    ) -> Self
    where
        A: Fn(Scene) -> AFut + Send + Sync + 'static,
        AFut: Future<Output = StepResult> + Send + 'static,
        B: Fn(Scene) -> BFut + Send + Sync + 'static,
        BFut: Future<Output = StepResult> + Send + 'static,
    {
        self.plan.reversals.push(Reversal {
            name: name.into(),
            after: after_step.into(),
            there: action(there),
            back: action(back),
        });
        self
    }

    /// Names the Lease by which the operator elects its leader, in the namespace of the repetition. With it
    /// the families [`Handover`](Family::Handover) and [`Frozen`](Family::Frozen) have points: the operator
    /// runs twice in them, and the second one stands by. Every point waits for an expiry of the Lease, so its
    /// duration should be a few seconds.
    pub fn lease(mut self, name: impl Into<String>) -> Self {
        self.plan.lease = Some(name.into());
        self
    }

    /// Names the kind (its plural, `harbors`) whose objects decide what the operator deletes. With it the
    /// audit log of every repetition is checked: before the operator deletes an object that was created in
    /// the repetition, it has read an owner from the server since that creation. A cached owner may be older
    /// than the object, and not ask for it yet.
    pub fn owners(mut self, plural: impl Into<String>) -> Self {
        self.plan.owners = Some(plural.into());
        self
    }

    /// Declares that the step of this name may make objects unavailable that
    /// [stay available](Kind::stays_available_where) otherwise, as a deletion does.
    pub fn disruptive(mut self, step: impl Into<String>) -> Self {
        self.plan.disruptive.insert(step.into());
        self
    }

    /// Adds a change that is made to every object before it is compared: takes out what differs from run to
    /// run for good reasons, such as a checksum of something random.
    pub fn normalise(mut self, change: impl Fn(&mut DynamicObject) + Send + Sync + 'static) -> Self {
        self.plan.normalisers.push(Arc::new(change));
        self
    }

    /// Runs only these families. Default: [all](Family::ALL).
    pub fn families(mut self, families: impl IntoIterator<Item = Family>) -> Self {
        self.plan.families = families.into_iter().collect();
        self
    }

    /// Requests to this resource (its plural, `events`) are no points, are not counted, and do not disturb
    /// the rest. Events and leases are excluded from the start.
    pub fn exclude(mut self, resource: impl Into<String>) -> Self {
        self.plan.excluded.insert(resource.into());
        self
    }

    /// Counts writes to this resource after all.
    pub fn include(mut self, resource: &str) -> Self {
        self.plan.excluded.remove(resource);
        self
    }

    /// The operator has exactly these rights. Default: all.
    pub fn rights(mut self, rules: Rules) -> Self {
        self.plan.rules = Some(rules);
        self
    }

    /// A disturbed run may make so many writes more than the undisturbed one. Default: as many again.
    pub fn allowance(mut self, writes: usize) -> Self {
        self.plan.allowance = Some(writes);
        self
    }

    /// The time that a step may take, from its action to the state that is expected. Default: one minute.
    /// Spent as a whole only when something is wrong.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.plan.patience = patience;
        self
    }

    /// Sets the time without activity after which the operator is at rest: no request but lists and watches,
    /// and no change of a watched kind. Default: 300 ms; up to five times longer for an operator that pauses
    /// long between its requests (as on a busy machine), and three times as long in the undisturbed run. It
    /// should be longer than the operator's first retry delay.
    pub fn calm(mut self, calm: Duration) -> Self {
        self.plan.calm = calm;
        self
    }

    /// Sets the number of repetitions that run side by side. Default: 4.
    pub fn side_by_side(mut self, repetitions: usize) -> Self {
        self.plan.side_by_side = repetitions.max(1);
        self
    }

    /// Runs only a part of the points unless `WINDLASS_TORTURE` says otherwise: the `slice`-th of `of`,
    /// counted from 0.
    pub fn slice(mut self, slice: u64, of: u64) -> Self {
        let of = of.max(1);
        self.plan.selection = Selection::Slice { slice: slice % of, of };
        self
    }

    /// Runs one of `of` slices, chosen by the commit in the present directory, unless `WINDLASS_TORTURE` says
    /// otherwise: every commit runs a part, and all of them together the whole.
    pub fn slice_by_commit(mut self, of: u64) -> Self {
        self.plan.selection = Selection::by_commit(of);
        self
    }
}

impl Debug for Torture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Torture").field("name", &self.plan.name).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Secret;

    use super::*;
    use crate::env::TestEnv;

    async fn nothing(_: Scene) -> StepResult {
        Ok(())
    }

    async fn yes(_: Scene) -> StepResult<bool> {
        Ok(true)
    }

    fn torture() -> Torture {
        Torture::new("t", |_| async {})
    }

    #[test]
    fn a_torture_that_cannot_find_anything_is_a_mistake() {
        assert_eq!(torture().plan.mistakes().len(), 2);
        let whole = || torture().watch(Kind::of::<Secret>()).step("a", nothing, yes);
        assert_eq!(whole().plan.mistakes(), [""; 0]);
        assert_eq!(whole().step("a", nothing, yes).plan.mistakes(), ["two steps are named \"a\""]);
        let reversal = |after: &str| whole().reversal(after, "r", nothing, nothing);
        assert_eq!(reversal("a").plan.mistakes(), [""; 0]);
        assert_eq!(reversal("b").plan.mistakes(), ["the reversal \"r\" comes after \"b\", which is no step"]);
        let twice = reversal("a").reversal("a", "r", nothing, nothing);
        assert_eq!(twice.plan.mistakes(), ["two reversals are named \"r\""]);
    }

    #[test]
    fn a_run_can_be_spawned() {
        fn is_send<T: Send>(_: impl FnOnce(Torture, TestEnv) -> T) {}
        is_send(|torture, env| async move { torture.run(&env).await });
    }
}
