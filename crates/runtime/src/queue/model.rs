//! The queue compared with a naive model: same rules, simple structure.

use std::time::Duration;

use proptest::prelude::*;

use super::state::QueueState;
use super::{Add, Backoff, Next, Priority};

const KEYS: usize = 5;
const BACKOFF: Backoff =
    Backoff { base: Duration::from_millis(5), cap: Duration::from_millis(80), jitter: 0.0 };

#[derive(Clone, Debug)]
enum QueueOp {
    Add { key: usize, add: Add },
    Take,
    Finish { pick: usize, next: Next },
    Advance(u64),
}

/// One key of the naive queue, and what was promised about it.
#[derive(Clone, Debug, Default)]
struct Naive {
    wanted: Option<(Priority, u64)>,
    appointment: Option<(u64, Priority, u64)>,
    retry: Option<(u64, Priority, u64)>,
    running: Option<(u64, Priority)>,
    failures: u32,
    patience: Option<u64>,
    /// True if a run was requested and has not started.
    owed: bool,
}

#[derive(Default)]
struct Model {
    keys: [Naive; KEYS],
    now: u64,
    order: u64,
}

impl Model {
    fn tick(&mut self) -> u64 {
        self.order += 1;
        self.order
    }

    fn want(&mut self, key: usize, priority: Priority) {
        let order = self.tick();
        let naive = &mut self.keys[key];
        let priority = naive.retry.take().map_or(priority, |(_, other, _)| other.max(priority));
        if naive.wanted.is_none_or(|(present, _)| present < priority) {
            naive.wanted = Some((priority, order));
        }
    }

    fn add(&mut self, key: usize, add: Add) {
        if add.fresh {
            self.keys[key].failures = 0;
            self.keys[key].patience = None;
        }
        let at = self.now + millis(add.after);
        if add.after.is_zero() {
            self.keys[key].owed = true;
            self.want(key, add.priority);
            return;
        }
        let order = self.tick();
        let slot = &mut self.keys[key].appointment;
        *slot = Some(match *slot {
            None => (at, add.priority, order),
            Some((early, priority, order)) if early <= at => (early, priority.max(add.priority), order),
            Some((_, priority, _)) => (at, priority.max(add.priority), order),
        });
    }

    fn ring(&mut self) {
        loop {
            let now = self.now;
            let due = |timer: Option<(u64, Priority, u64)>| timer.filter(|(at, _, _)| *at <= now);
            let next = (0..KEYS)
                .flat_map(|key| [(key, true), (key, false)])
                .filter_map(|(key, own)| {
                    let naive = &self.keys[key];
                    let (at, priority, order) = due(if own { naive.retry } else { naive.appointment })?;
                    Some((at, order, key, own, priority))
                })
                .min();
            let Some((_, _, key, own, priority)) = next else {
                return;
            };
            if own {
                self.keys[key].retry = None;
            } else {
                self.keys[key].appointment = None;
                self.keys[key].owed = true;
            }
            self.want(key, priority);
        }
    }

    fn take(&mut self) -> Option<(usize, Priority, u32)> {
        self.ring();
        let (priority, _, key) = (0..KEYS)
            .filter(|key| self.keys[*key].running.is_none())
            .filter_map(|key| self.keys[key].wanted.map(|(priority, order)| (priority, order, key)))
            .min_by_key(|(priority, order, _)| (std::cmp::Reverse(*priority), *order))?;
        let now = self.now;
        let naive = &mut self.keys[key];
        naive.wanted = None;
        naive.running = Some((now, priority));
        naive.owed = false;
        Some((key, priority, naive.failures))
    }

    fn finish(&mut self, key: usize, next: Next) {
        let now = self.now;
        let order = self.tick();
        let naive = &mut self.keys[key];
        let (since, priority) = naive.running.take().expect("it ran");
        let again = match next {
            Next::Release => Some(now),
            Next::Forget | Next::After(_) => {
                naive.failures = 0;
                naive.patience = None;
                if let Next::After(delay) = next { Some(now + millis(delay)) } else { None }
            }
            Next::Retry { at_most } => match naive.patience {
                Some(patience) if since < patience => Some(patience.max(now)),
                _ => {
                    naive.failures += 1;
                    let delay = (5_u64 << (naive.failures - 1).min(20)).min(80);
                    naive.patience = Some(now + delay.min(at_most.map_or(delay, millis)));
                    naive.patience
                }
            },
        };
        match again {
            Some(at) if at <= now || naive.wanted.is_some() => self.want(key, priority),
            Some(at) => naive.retry = Some((at, priority, order)),
            None => {}
        }
    }

    fn depth(&mut self) -> usize {
        self.ring();
        self.keys.iter().filter(|naive| naive.wanted.is_some()).count()
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).expect("a small duration")
}

fn steps() -> impl Strategy<Value = Vec<QueueOp>> {
    let delay = prop_oneof![3 => Just(0_u64), 2 => 1..40_u64].prop_map(Duration::from_millis);
    let add = (delay, prop_oneof![Just(-100), Just(0), Just(7)], prop::bool::weighted(0.1))
        .prop_map(|(after, priority, fresh)| Add { after, priority: Priority(priority), fresh });
    let next = prop_oneof![
        Just(Next::Forget),
        (0..40_u64).prop_map(|delay| Next::After(Duration::from_millis(delay))),
        Just(Next::Retry { at_most: None }),
        Just(Next::Retry { at_most: Some(Duration::from_millis(12)) }),
        Just(Next::Release),
    ];
    let step = prop_oneof![
        4 => (0..KEYS, add).prop_map(|(key, add)| QueueOp::Add { key, add }),
        3 => Just(QueueOp::Take),
        3 => (0..KEYS, next).prop_map(|(pick, next)| QueueOp::Finish { pick, next }),
        2 => (0..30_u64).prop_map(QueueOp::Advance),
    ];
    prop::collection::vec(step, 1..120)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn the_queue_behaves_like_a_naive_one(steps in steps()) {
        let mut queue = QueueState::new(BACKOFF);
        let mut model = Model::default();
        let mut running: Vec<usize> = Vec::new();
        for step in steps {
            let now = Duration::from_millis(model.now);
            match step {
                QueueOp::Add { key, add } => {
                    queue.add(key, add, now);
                    model.add(key, add);
                }
                QueueOp::Take => {
                    let handed = queue.take(now).map(|handed| (handed.key, handed.priority, handed.failures));
                    prop_assert_eq!(handed, model.take());
                    if let Some((key, _, _)) = handed {
                        prop_assert!(!running.contains(&key), "{} was handed out twice", key);
                        running.push(key);
                    }
                }
                QueueOp::Finish { pick, next } if !running.is_empty() => {
                    let key = running.swap_remove(pick % running.len());
                    queue.finish(&key, next, now);
                    model.finish(key, next);
                }
                QueueOp::Finish { .. } => {}
                QueueOp::Advance(by) => model.now += by,
            }
            prop_assert_eq!(queue.in_flight(), running.len());
            prop_assert_eq!(queue.depth(Duration::from_millis(model.now)), model.depth());
        }

        // Whatever happened: finish what runs, let all time pass, and no request may be lost.
        for key in running {
            queue.finish(&key, Next::Forget, Duration::from_millis(model.now));
        }
        model.now += 1000;
        model.ring();
        let now = Duration::from_millis(model.now);
        while let Some(handed) = queue.take(now) {
            model.keys[handed.key].owed = false;
            queue.finish(&handed.key, Next::Forget, now);
        }
        prop_assert!(!model.keys.iter().any(|naive| naive.owed));
        prop_assert_eq!(queue.stats(now).depth.total(), 0);
        prop_assert!(!queue.has_more());
    }
}
