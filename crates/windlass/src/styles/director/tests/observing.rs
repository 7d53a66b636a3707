//! The observers, in paused time.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::mpsc::Receiver;
use tokio::time::{Instant, advance, timeout};
use windlass_runtime::key::ObjectKey;
use windlass_runtime::leader::Fence;
use windlass_runtime::meta::Uid;

use super::toy::{Pump, Seen, TankDirector, Water};
use crate::Known;
use crate::needs::Wake;
use crate::styles::director::observers::{Observers, View, Wanted};
use crate::styles::director::{Depth, Timing};

const UID: Uid = Uid::from_bytes([1; 16]);

struct Bench {
    observers: Observers<TankDirector>,
    water: Arc<Water>,
    woken: Receiver<ObjectKey>,
}

/// Lets time pass. The clock of these tests is paused: it jumps, and nobody waits.
async fn pass_time(time: Duration) {
    tokio::time::sleep(time).await;
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced("shop", name)
}

fn at_rest() -> Wanted {
    Wanted { timing: Timing::default(), depth: Depth::Health, moving: false }
}

impl Bench {
    fn new() -> Self {
        let (wake, woken) = Wake::channel();
        let water = Arc::new(Water::default());
        let director = Arc::new(TankDirector { water: Arc::clone(&water) });
        Self { observers: Observers::new(director, Fence::unlimited(), wake), water, woken }
    }

    fn follow(&self, wanted: Wanted) {
        self.observers.follow(&key("tank"), UID, 1, "tank".to_owned(), wanted);
    }

    fn view(&self, generation: i64) -> View<Seen> {
        self.observers.view(&key("tank"), UID, generation, &"tank".to_owned())
    }

    /// Returns the observed level, or the reason why it is unknown.
    fn level(&self) -> Option<Known<i32>> {
        match self.view(1) {
            View::Never => None,
            View::Ended(Known::Known(seen)) => Some(seen.facts.level.clone()),
            View::Ended(Known::Unknown(why)) => Some(Known::Unknown(why)),
        }
    }

    /// Waits until the owner is woken.
    async fn woken(&mut self) {
        let woken = timeout(Duration::from_hours(1), self.woken.recv()).await;
        assert_eq!(woken.ok().flatten(), Some(key("tank")));
    }

    fn is_quiet(&mut self) -> bool {
        self.woken.try_recv().is_err()
    }

    fn observations(&self) -> usize {
        self.water.observations.load(Ordering::SeqCst)
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_observation_begins_at_once_and_wakes_the_owner() {
    let mut bench = Bench::new();
    assert_eq!(bench.level(), None, "never observed is not unknown");
    bench.follow(at_rest());
    bench.woken().await;
    assert_eq!(bench.level(), Some(Known::Known(0)));
}

#[tokio::test(start_paused = true)]
async fn software_at_rest_is_observed_at_the_interval_and_wakes_nobody_without_a_change() {
    let mut bench = Bench::new();
    bench.follow(at_rest());
    bench.woken().await;
    pass_time(Duration::from_mins(10)).await;
    let many = bench.observations();
    assert!((9..=12).contains(&many), "{many} observations in ten minutes");
    assert!(bench.is_quiet());
    *bench.water.level.lock() = 7;
    bench.woken().await;
    assert_eq!(bench.level(), Some(Known::Known(7)));
}

#[tokio::test(start_paused = true)]
async fn an_interval_of_none_means_on_change_only() {
    let mut bench = Bench::new();
    let silent = Wanted { timing: Timing { at_rest: None, ..Timing::default() }, ..at_rest() };
    bench.follow(silent);
    bench.woken().await;
    pass_time(Duration::from_hours(5)).await;
    assert_eq!(bench.observations(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_observation_from_before_an_effect_is_not_used() {
    let mut bench = Bench::new();
    bench.follow(at_rest());
    bench.woken().await;
    pass_time(Duration::from_secs(5)).await;
    {
        let _end = bench.observers.effect(&key("tank"), "Add(3)");
        let target = "tank".to_owned();
        bench.observers.perform(&target, &Pump::Add(3), Duration::from_secs(9)).await.unwrap();
    }
    let why = "Add(3) was sent after the last observation began".to_owned();
    assert_eq!(bench.level(), Some(Known::Unknown(why)));
    bench.woken().await;
    assert_eq!(bench.level(), Some(Known::Known(3)));
}

#[tokio::test(start_paused = true)]
async fn an_observation_under_way_during_an_effect_is_not_used_either() {
    let mut bench = Bench::new();
    *bench.water.slow.lock() = Duration::from_secs(4);
    bench.follow(at_rest());
    advance(Duration::from_secs(1)).await;
    tokio::task::yield_now().await;
    assert_eq!(bench.water.began.lock().len(), 1, "it has begun, and read a level of 0");
    *bench.water.level.lock() = 3;
    drop(bench.observers.effect(&key("tank"), "Add(3)"));
    bench.woken().await;
    assert!(matches!(bench.level(), Some(Known::Unknown(_))), "{:?}", bench.level());
    bench.woken().await;
    assert_eq!(bench.level(), Some(Known::Known(3)));
}

#[tokio::test(start_paused = true)]
async fn a_new_generation_is_not_judged_by_an_older_observation() {
    let mut bench = Bench::new();
    bench.follow(at_rest());
    bench.woken().await;
    pass_time(Duration::from_secs(5)).await;
    let View::Ended(Known::Unknown(why)) = bench.view(2) else { panic!("an old observation was used") };
    assert_eq!(why, "generation 2 has not been observed yet");
    bench.woken().await;
    assert!(matches!(bench.view(2), View::Ended(Known::Known(_))));
}

#[tokio::test(start_paused = true)]
async fn there_is_at_most_one_observation_a_second_however_many_effects_there_are() {
    let mut bench = Bench::new();
    bench.follow(at_rest());
    bench.woken().await;
    for _ in 0..50 {
        drop(bench.observers.effect(&key("tank"), "Add(1)"));
        pass_time(Duration::from_millis(100)).await;
    }
    let began = bench.water.began.lock().clone();
    assert!(began.len() >= 5, "{began:?}");
    assert!(began.windows(2).all(|pair| pair[1].0 - pair[0].0 >= Duration::from_secs(1)), "{began:?}");
}

#[tokio::test(start_paused = true)]
async fn a_hanging_observation_is_given_up_and_repeated_less_and_less_often() {
    let mut bench = Bench::new();
    *bench.water.slow.lock() = Duration::from_hours(9);
    bench.follow(Wanted { moving: true, ..at_rest() });
    bench.woken().await;
    let why = "the software was not observed within 10 s".to_owned();
    assert_eq!(bench.level(), Some(Known::Unknown(why)));
    pass_time(Duration::from_hours(1)).await;
    let began = bench.water.began.lock().clone();
    assert!((12..30).contains(&began.len()), "{} attempts in an hour", began.len());
    *bench.water.slow.lock() = Duration::ZERO;
    bench.woken().await;
    assert_eq!(bench.level(), Some(Known::Known(0)), "it is used again as soon as it answers");
}

#[tokio::test(start_paused = true)]
async fn owners_that_hang_do_not_delay_the_others() {
    let bench = Bench::new();
    *bench.water.slow.lock() = Duration::from_secs(9);
    for at in 0..300 {
        bench.observers.follow(&key(&format!("bad-{at}")), UID, 1, "tank".to_owned(), at_rest());
    }
    pass_time(Duration::from_millis(10)).await;
    let began = Instant::now();
    bench.follow(at_rest());
    let own = || matches!(bench.view(1), View::Ended(_));
    while !own() {
        pass_time(Duration::from_millis(100)).await;
    }
    // Five groups of 64 start a second apart, and its own observation takes nine.
    assert!(began.elapsed() < Duration::from_secs(16), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_full_observation_is_made_at_once_when_it_is_asked_for() {
    let mut bench = Bench::new();
    bench.follow(at_rest());
    bench.woken().await;
    pass_time(Duration::from_secs(3)).await;
    bench.follow(Wanted { depth: Depth::Full, moving: true, ..at_rest() });
    bench.woken().await;
    let depths: Vec<Depth> = bench.water.began.lock().iter().map(|(_, depth)| *depth).collect();
    assert_eq!(depths, [Depth::Health, Depth::Full]);
}

#[tokio::test(start_paused = true)]
async fn another_target_and_another_owner_of_the_name_start_from_nothing() {
    let mut bench = Bench::new();
    bench.follow(at_rest());
    bench.woken().await;
    let other = "other".to_owned();
    assert!(matches!(bench.observers.view(&key("tank"), UID, 1, &other), View::Never));
    assert!(matches!(
        bench.observers.view(&key("tank"), Uid::from_bytes([2; 16]), 1, &"tank".to_owned()),
        View::Never
    ));
    bench.observers.follow(&key("tank"), UID, 1, other.clone(), at_rest());
    assert!(matches!(bench.observers.view(&key("tank"), UID, 1, &other), View::Never));
    bench.woken().await;
    assert!(matches!(bench.observers.view(&key("tank"), UID, 1, &other), View::Ended(_)));
}

#[tokio::test(start_paused = true)]
async fn a_forgotten_owner_is_not_observed_any_more() {
    let mut bench = Bench::new();
    bench.follow(at_rest());
    bench.woken().await;
    bench.observers.forget(&key("tank"));
    pass_time(Duration::from_hours(1)).await;
    assert_eq!(bench.observations(), 1);
    assert_eq!(bench.level(), None);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_effect_counts_as_sent() {
    let mut bench = Bench::new();
    bench.follow(at_rest());
    bench.woken().await;
    pass_time(Duration::from_secs(2)).await;
    let sending = async {
        let _end = bench.observers.effect(&key("tank"), "Add(1)");
        std::future::pending::<()>().await;
    };
    assert!(timeout(Duration::from_secs(1), sending).await.is_err());
    assert!(matches!(bench.level(), Some(Known::Unknown(_))));
}

#[tokio::test(start_paused = true)]
async fn a_change_of_decisions_is_shown_at_most_once_a_minute() {
    let mut bench = Bench::new();
    bench.follow(at_rest());
    bench.woken().await;
    let decision = |state: &str| {
        vec![crate::DecisionStatus {
            actor: "fill".into(),
            state: state.into(),
            ..crate::DecisionStatus::default()
        }]
    };
    let shown = |state: &str| bench.observers.shown(&key("tank"), decision(state));
    assert_eq!(shown("Working"), (decision("Working"), None));
    assert_eq!(shown("Idle"), (decision("Working"), Some(Duration::from_mins(1))));
    pass_time(Duration::from_mins(1)).await;
    assert_eq!(shown("Idle"), (decision("Idle"), None));
}
