//! The engine against an executor so plain that it can be checked by reading.
//!
//! On a paused clock a visit takes exactly as long as its script says, so the model
//! predicts not only who ends how, but when each visit begins and ends.

#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::{cell::RefCell, time::Duration};

use proptest::prelude::*;
use tokio::time::{Instant, sleep};
use windlass_graph::{Failure, Graph, GraphError, Outcome, Progress};

#[derive(Debug, Clone, Copy, PartialEq)]
enum End {
    Ready,
    Waiting,
    Failed,
    Panicked,
}

#[derive(Debug, Clone)]
struct Script {
    takes: u64,
    deadline: Option<u64>,
    end: End,
}

#[derive(Debug, Clone)]
struct Case {
    /// The dependencies of each node, in any order, without cycles.
    after: Vec<Vec<usize>>,
    scripts: Vec<Script>,
    concurrency: usize,
    reverse: bool,
    cancel: Option<u64>,
}

/// The outcome of a node in the model.
#[derive(Debug, Clone, PartialEq)]
enum Fate {
    Ready,
    Waiting,
    Failed(&'static str),
    Skipped { blocker: usize, culprit: usize },
    Cancelled,
}

/// Milliseconds of begin and end, if it was visited, and the fate.
type Row = (Option<(u64, u64)>, Fate);

fn script() -> impl Strategy<Value = Script> {
    let end = prop_oneof![
        7 => Just(End::Ready),
        1 => Just(End::Waiting),
        1 => Just(End::Failed),
        1 => Just(End::Panicked),
    ];
    let takes = prop_oneof![Just(0), 1..6u64, 1..500u64];
    let deadline = prop::option::weighted(0.2, 1..300u64);
    (takes, deadline, end).prop_map(|(takes, deadline, end)| Script { takes, deadline, end })
}

fn edges(nodes: usize, shuffled: bool) -> impl Strategy<Value = Vec<Vec<usize>>> {
    let places = Just((0..nodes).collect::<Vec<_>>());
    let places = if shuffled { places.prop_shuffle().boxed() } else { places.boxed() };
    let picks = prop::collection::vec(prop::collection::vec(any::<prop::sample::Index>(), 0..4), nodes);
    (places, picks).prop_map(move |(places, picks)| {
        let mut after = vec![Vec::new(); nodes];
        for (rank, picks) in picks.into_iter().enumerate().skip(1) {
            after[places[rank]] = picks.into_iter().map(|pick| places[pick.index(rank)]).collect();
        }
        after
    })
}

fn case() -> impl Strategy<Value = Case> {
    (0..24usize, any::<bool>()).prop_flat_map(|(nodes, shuffled)| {
        (
            edges(nodes, shuffled),
            prop::collection::vec(script(), nodes),
            prop_oneof![0..5usize, Just(usize::MAX)],
            any::<bool>(),
            prop::option::weighted(0.2, 1..800u64),
        )
            .prop_map(|(after, scripts, concurrency, reverse, cancel)| Case {
                after,
                scripts,
                concurrency,
                reverse,
                cancel,
            })
    })
}

/// The plain executor: at each moment it looks at all nodes, again and again.
fn model(case: &Case) -> Vec<Row> {
    let nodes = case.after.len();
    let before: Vec<Vec<usize>> = (0..nodes)
        .map(|node| {
            if case.reverse {
                (0..nodes).filter(|&other| case.after[other].contains(&node)).collect()
            } else {
                case.after[node].clone()
            }
        })
        .collect();
    let mut begins: Vec<Option<u64>> = vec![None; nodes];
    let mut fates: Vec<Option<Fate>> = vec![None; nodes];
    let mut ends: Vec<u64> = vec![0; nodes];
    let ends_at = |begin: u64, script: &Script| begin + script.takes.min(script.deadline.unwrap_or(u64::MAX));
    let mut now = 0;
    loop {
        let running = |begins: &[Option<u64>], fates: &[Option<Fate>]| -> Vec<usize> {
            (0..nodes).filter(|&node| begins[node].is_some() && fates[node].is_none()).collect()
        };
        if case.cancel == Some(now) {
            for node in running(&begins, &fates) {
                ends[node] = now;
            }
            break;
        }
        for node in running(&begins, &fates) {
            let script = &case.scripts[node];
            if ends_at(begins[node].unwrap(), script) == now {
                ends[node] = now;
                fates[node] = Some(match script.end {
                    _ if script.deadline.is_some_and(|deadline| script.takes > deadline) => {
                        Fate::Failed("deadline")
                    }
                    End::Ready => Fate::Ready,
                    End::Waiting => Fate::Waiting,
                    End::Failed => Fate::Failed("error"),
                    End::Panicked => Fate::Failed("panic"),
                });
            }
        }
        while skip_one(&before, &begins, &mut fates) {}
        let mut order: Vec<usize> = (0..nodes).collect();
        if case.reverse {
            order.reverse();
        }
        for node in order {
            let free = running(&begins, &fates).len() < case.concurrency.max(1);
            let may = before[node].iter().all(|&other| fates[other] == Some(Fate::Ready));
            if free && may && begins[node].is_none() {
                begins[node] = Some(now);
            }
        }
        let next = running(&begins, &fates)
            .into_iter()
            .map(|node| ends_at(begins[node].unwrap(), &case.scripts[node]))
            .min();
        match (next, case.cancel) {
            (None, _) => break,
            (Some(next), Some(cancel)) if now < cancel => now = next.min(cancel),
            (Some(next), _) => now = next,
        }
    }
    (0..nodes)
        .map(|node| {
            let times = begins[node].map(|begin| (begin, ends[node]));
            (times, fates[node].clone().unwrap_or(Fate::Cancelled))
        })
        .collect()
}

fn skip_one(before: &[Vec<usize>], begins: &[Option<u64>], fates: &mut [Option<Fate>]) -> bool {
    for node in 0..before.len() {
        let settled = before[node].iter().all(|&other| fates[other].is_some());
        if begins[node].is_some() || fates[node].is_some() || !settled {
            continue;
        }
        let root = |other: usize| match fates[other] {
            Some(Fate::Skipped { culprit, .. }) => culprit,
            _ => other,
        };
        let fails = |other: usize| matches!(fates[root(other)], Some(Fate::Failed(_)));
        let blocking: Vec<usize> =
            before[node].iter().copied().filter(|&other| fates[other] != Some(Fate::Ready)).collect();
        let blocker = blocking.iter().find(|&&other| fails(other)).or(blocking.first());
        if let Some(&blocker) = blocker {
            fates[node] = Some(Fate::Skipped { blocker, culprit: root(blocker) });
            return true;
        }
    }
    false
}

/// The same case, by the engine; and the order in which visits began.
async fn engine(case: &Case) -> (Vec<Row>, Vec<usize>) {
    let name = |node: usize| format!("node {node}");
    let declared = case.after.iter().enumerate().map(|(node, after)| {
        ((name(node), node), after.iter().map(|&other| name(other)).collect::<Vec<_>>())
    });
    let graph = Graph::from_declared(declared).unwrap();
    let zero = Instant::now();
    let log = RefCell::new(Vec::new());
    let visit = async |(_, node): &(String, usize)| {
        log.borrow_mut().push((*node, zero.elapsed()));
        let script = &case.scripts[*node];
        if script.takes > 0 {
            sleep(Duration::from_millis(script.takes)).await;
        }
        match script.end {
            End::Ready => Ok(Progress::Ready),
            End::Waiting => Ok(Progress::Waiting(*node)),
            End::Failed => Err(*node),
            End::Panicked => std::panic::resume_unwind(Box::new("on purpose")),
        }
    };
    let mut run = if case.reverse {
        // One type for both ways needs one closure.
        graph.run_reverse(case.concurrency, &visit)
    } else {
        graph.run(case.concurrency, &visit)
    }
    .deadline(|(_, node)| case.scripts[*node].deadline.map(Duration::from_millis));
    if let Some(cancel) = case.cancel {
        run = run.until(sleep(Duration::from_millis(cancel)));
    }
    let report = run.await;

    let order = log.into_inner();
    let number = |id: &str| id.strip_prefix("node ").unwrap().parse::<usize>().unwrap();
    let millis = |duration: Duration| u64::try_from(duration.as_millis()).unwrap();
    let rows = report.nodes().enumerate().map(|(node, row)| {
        let begin = order.iter().find(|(begun, _)| *begun == node).map(|(_, at)| millis(*at));
        assert_eq!(begin.is_some(), row.duration().is_some(), "a visit has a duration, others have none");
        let times = begin.zip(row.duration()).map(|(begin, took)| (begin, begin + millis(took)));
        let fate = match row.outcome() {
            Outcome::Ready => Fate::Ready,
            Outcome::Waiting(by) => {
                assert_eq!(*by, node);
                Fate::Waiting
            }
            Outcome::Failed(Failure::Error(by)) => {
                assert_eq!(*by, node);
                Fate::Failed("error")
            }
            Outcome::Failed(Failure::Panicked(message)) => {
                assert_eq!(message, "on purpose");
                Fate::Failed("panic")
            }
            Outcome::Planned(_) => panic!("a graph that was run has no node that is only planned"),
            Outcome::Failed(Failure::DeadlineExceeded(_)) => Fate::Failed("deadline"),
            Outcome::Skipped { because_of } => {
                let chain: Vec<usize> = row.blockers().map(|blocker| number(blocker.id())).collect();
                assert_eq!(chain.last(), Some(&number(because_of)), "the chain leads to the culprit");
                Fate::Skipped { blocker: chain[0], culprit: number(because_of) }
            }
            Outcome::Cancelled => Fate::Cancelled,
        };
        (times, fate)
    });
    (rows.collect(), order.into_iter().map(|(node, _)| node).collect())
}

/// Returns true if the simple algorithm finds an order: remove nodes without dependencies until none is left.
fn sortable(after: &[Vec<usize>]) -> bool {
    let mut left: Vec<usize> = (0..after.len()).collect();
    while let Some(place) =
        left.iter().position(|&node| after[node].iter().all(|other| !left.contains(other)))
    {
        left.remove(place);
    }
    left.is_empty()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn every_visit_begins_and_ends_when_and_how_the_plain_executor_says(case in case()) {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let (rows, order) = runtime.block_on(engine(&case));
        prop_assert_eq!(&rows, &model(&case));

        // Of visits that begin in one moment, with nothing ending in between, the
        // first in insertion order begins first.
        let instants = order.windows(2).filter(|pair| {
            let ends_at_once = rows.iter().any(|(times, _)| {
                times.is_some_and(|(begin, end)| begin == end && Some(begin) == rows[pair[0]].0.map(|t| t.0))
            });
            rows[pair[0]].0.unwrap().0 == rows[pair[1]].0.unwrap().0 && !ends_at_once
        });
        for pair in instants {
            prop_assert!((pair[0] < pair[1]) != case.reverse, "{order:?}");
        }
    }

    #[test]
    fn a_declaration_is_refused_exactly_if_it_has_a_cycle(
        after in (1..9usize).prop_flat_map(|nodes| {
            prop::collection::vec(prop::collection::vec(0..nodes, 0..3), nodes)
        })
    ) {
        let declared = after.iter().enumerate().map(|(node, after)| {
            (node.to_string(), after.iter().map(ToString::to_string))
        });
        match Graph::from_declared(declared) {
            Ok(graph) => {
                prop_assert!(sortable(&after));
                prop_assert_eq!(graph.len(), after.len());
            }
            Err(GraphError::Cycle { path }) => {
                prop_assert!(!sortable(&after));
                let path: Vec<usize> = path.iter().map(|id| id.parse().unwrap()).collect();
                for (at, node) in path.iter().enumerate() {
                    let next = path[(at + 1) % path.len()];
                    prop_assert!(after[*node].contains(&next), "{path:?} is not a cycle");
                    prop_assert!(!path[..at].contains(node), "{path:?} visits a node twice");
                    prop_assert!(path[0] <= *node, "{path:?} does not begin with the first declared");
                }
            }
            Err(other) => prop_assert!(false, "{other}"),
        }
    }
}
