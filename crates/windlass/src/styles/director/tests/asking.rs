//! Asking actors in order, and previews of a pass.

use std::sync::Arc;

use jiff::Timestamp;

use super::toy::{Pump, Seen, TankDirector, Water, tank};
use crate::Known;
use crate::styles::director::{Action, Answer, Decided, Depth, Observed, Snapshot, decide, rehearse};

fn director() -> TankDirector {
    TankDirector { water: Arc::new(Water::default()) }
}

fn seen(level: Known<i32>) -> Observed<Seen> {
    Observed { facts: Seen { level }, depth: Depth::Health, began: Timestamp::UNIX_EPOCH }
}

fn decided(wanted: i32, observed: Known<&Observed<Seen>>) -> Decided<TankDirector> {
    let owner = tank(wanted);
    decide(&director(), &Snapshot::new(&owner, &(), observed, Timestamp::UNIX_EPOCH))
}

fn states(decided: &Decided<TankDirector>) -> Vec<(&'static str, &'static str)> {
    decided.trace.actors.iter().map(|trace| (trace.name, trace.state())).collect()
}

#[test]
fn a_working_actor_stops_the_pass_and_the_fields_of_those_behind_stay() {
    let decided = decided(5, Known::Known(&seen(Known::Known(2))));
    assert_eq!(states(&decided), [("fill", "Working"), ("drain", "NotAsked"), ("paint", "Idle")]);
    assert_eq!((*decided.intent.mark.get(), *decided.intent.valve.get()), (5, false));
    assert!(decided.is_moving());
}

#[test]
fn only_the_effects_of_the_first_actor_that_has_any_run() {
    let decided = decided(5, Known::Known(&seen(Known::Known(2))));
    let actions: Vec<_> = decided.effects.iter().map(|effect| effect.action.clone()).collect();
    assert_eq!(actions, [Action::Software(Pump::Add(3))]);
    let Answer::Decided { held_back_by, effects, .. } = &decided.trace.actors[2].answer else {
        panic!("an actor that is always asked was not asked")
    };
    assert_eq!((*held_back_by, &effects[..]), (Some("fill"), &["Drop(1)".to_owned()][..]));
}

#[test]
fn an_idle_actor_lets_those_behind_it_go_on() {
    let decided = decided(2, Known::Known(&seen(Known::Known(2))));
    assert_eq!(states(&decided), [("fill", "Idle"), ("drain", "Idle"), ("paint", "Idle")]);
    assert!(*decided.intent.valve.get());
    let actions: Vec<_> = decided.effects.iter().map(|effect| effect.action.clone()).collect();
    assert_eq!(actions, [Action::Software(Pump::Drop(1))], "the third actor is the first with effects");
}

#[test]
fn a_refusal_does_not_stop_the_pass_and_carries_its_remedy() {
    let decided = decided(-1, Known::Known(&seen(Known::Known(0))));
    assert_eq!(states(&decided), [("fill", "Idle"), ("drain", "Refused"), ("paint", "Idle")]);
    let line = decided.trace.actors[1].line();
    assert_eq!(line, "refused: a tank has no level below 0: set spec.level to 0 or more");
}

#[test]
fn an_unknown_fact_moves_nothing_and_names_the_rule() {
    for observed in
        [Known::Unknown("no answer".to_owned()), Known::Known(&seen(Known::Unknown("no answer".into())))]
    {
        let decided = decided(5, observed);
        assert_eq!(decided.trace.actors[0].state(), "Waiting");
        assert_eq!(decided.trace.actors[0].rules().collect::<Vec<_>>(), ["known level"]);
        assert_eq!(*decided.intent.mark.get(), 0);
    }
}

#[test]
fn the_same_snapshot_gives_the_same_decisions() {
    let observed = seen(Known::Known(2));
    let (one, other) = (decided(5, Known::Known(&observed)), decided(5, Known::Known(&observed)));
    assert_eq!((one.intent, one.trace), (other.intent, other.trace));
}

#[test]
fn a_rehearsal_shows_decisions_objects_and_effects_in_one_graph() {
    let observed = seen(Known::Known(2));
    let rehearsal =
        rehearse(&director(), &tank(5), &[], Known::Known(&observed), Timestamp::UNIX_EPOCH).unwrap();
    assert_eq!(
        rehearsal.report.text().to_string(),
        "\
5 planned
├─ actor fill: planned: working: the tank is filled
├─ actor drain: planned: not asked: fill stopped the pass
├─ actor paint: planned: idle
├─ ConfigMap mark: planned: apply
└─ effect of fill: Add(3): planned: effect
"
    );
    assert_eq!(rehearsal.objects[0].body()["data"]["level"], "5");
}
