//! Tests of what a run promises, one promise per test.

#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::{
    cell::{Cell, RefCell},
    future::{pending, ready},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

use tokio::{sync::oneshot, time::sleep};
use windlass_graph::{Direction, Failure, Graph, NodeReport, Outcome, Progress, Report};

type Visited = Result<Progress, Error>;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum Error {
    #[error("refused with {0}")]
    Refused(u16),
    #[error("gone")]
    Gone,
}

const READY: Visited = Ok(Progress::Ready);

fn failed(error: Error) -> Outcome<Error> {
    Outcome::Failed(Failure::Error(error))
}

fn skipped(because_of: &str) -> Outcome<Error> {
    Outcome::Skipped { because_of: because_of.into() }
}

/// A graph of words: `"c: a b"` is `c` after `a` and `b`.
fn graph(nodes: &[&'static str]) -> Graph<&'static str> {
    let declared = nodes.iter().map(|line| line.split_once(':').unwrap_or((line, "")));
    Graph::from_declared(declared.map(|(id, after)| (id, after.split_whitespace()))).unwrap()
}

fn outcome<'r>(report: &'r Report<Error>, id: &str) -> &'r Outcome<Error> {
    report.get(id).unwrap().outcome()
}

/// Stands for what a visit holds: counts how often it was let go.
struct Held<'a>(&'a Cell<usize>);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

#[tokio::test]
async fn an_empty_graph_is_a_success() {
    let graph = Graph::<&str>::new();
    let report = graph.run(1, |_| ready(READY)).await;
    assert!(report.is_ready());
    assert!(report.is_empty());
    assert!(graph.run_reverse(1, |_| ready(READY)).await.is_ready());
}

#[tokio::test]
async fn with_a_concurrency_of_one_nodes_are_visited_in_insertion_order() {
    let mut graph = Graph::new();
    let a = graph.add("a").unwrap();
    graph.add_after("b", &[a]).unwrap();
    graph.add("c").unwrap();
    let mut order = Vec::new();
    let report = graph
        .run(1, |node| {
            order.push(*node);
            ready(READY)
        })
        .await;
    assert_eq!(order, ["a", "b", "c"]);
    assert!(report.is_ready());
    assert_eq!(report.direction(), Direction::Forward);
}

#[tokio::test]
async fn a_reverse_run_is_the_mirror_image() {
    let graph = graph(&["a", "b: a", "c: a", "d: b c", "e"]);
    let mut order = Vec::new();
    let report = graph
        .run_reverse(1, |node| {
            order.push(*node);
            ready(READY)
        })
        .await;
    assert_eq!(order, ["e", "d", "c", "b", "a"]);
    assert_eq!(report.direction(), Direction::Reverse);
}

#[tokio::test]
async fn in_a_reverse_run_what_fails_holds_back_its_dependencies() {
    let graph = graph(&["volume", "pod: volume", "alone"]);
    let visit = async |node: &&str| if *node == "pod" { Err(Error::Gone) } else { READY };
    let report = graph.run_reverse(4, visit).await;
    assert_eq!(*outcome(&report, "volume"), skipped("pod"));
    assert_eq!(*outcome(&report, "alone"), Outcome::Ready);
    assert_eq!(report.get("volume").unwrap().after().map(NodeReport::id).collect::<Vec<_>>(), ["pod"]);
}

#[tokio::test]
async fn a_failed_node_skips_only_its_dependents_and_names_itself() {
    let graph = graph(&["db", "core: db", "portal: core", "cache", "jobs: cache"]);
    let visit = async |node: &&str| if *node == "db" { Err(Error::Refused(503)) } else { READY };
    let report = graph.run(2, visit).await;

    assert_eq!(*outcome(&report, "core"), skipped("db"));
    assert_eq!(*outcome(&report, "portal"), skipped("db"));
    assert_eq!(*outcome(&report, "jobs"), Outcome::Ready, "an independent branch goes on");
    let chain: Vec<&str> = report.get("portal").unwrap().blockers().map(NodeReport::id).collect();
    assert_eq!(chain, ["core", "db"]);
    assert_eq!(report.get("jobs").unwrap().blockers().count(), 0);
    assert_eq!(report.get("portal").unwrap().duration(), None, "it was never visited");
}

#[tokio::test]
async fn a_waiting_node_holds_back_its_dependents_without_being_a_failure() {
    let graph = graph(&["db", "core: db"]);
    let report = graph.run(2, async |_| Ok(Progress::Waiting("0 of 1 replicas ready".into()))).await;
    assert_eq!(*outcome(&report, "db"), Outcome::Waiting("0 of 1 replicas ready".into()));
    assert_eq!(*outcome(&report, "core"), skipped("db"));
    assert!(!report.is_ready());
    assert_eq!(report.failures().count(), 0);
}

#[tokio::test]
async fn every_error_is_kept_with_its_type() {
    let graph = graph(&["a", "b", "c", "d"]);
    let visit = async |node: &&str| match *node {
        "a" => Err(Error::Refused(404)),
        "c" => Err(Error::Gone),
        _ => READY,
    };
    let report = graph.run(4, visit).await;
    let failures: Vec<_> = report.failures().map(|(id, failure)| (id, failure.error().unwrap())).collect();
    assert_eq!(failures, [("a", &Error::Refused(404)), ("c", &Error::Gone)]);

    let owned: Vec<_> = report.into_outcomes().filter(|(_, outcome)| !outcome.is_ready()).collect();
    assert_eq!(owned, [("a".into(), failed(Error::Refused(404))), ("c".into(), failed(Error::Gone))]);
}

#[tokio::test]
async fn reasons_to_wait_keep_their_type_too() {
    let graph = graph(&["a"]);
    let report: Report<Error, Duration> =
        graph.run(1, async |_| Ok(Progress::Waiting(Duration::from_secs(3)))).await;
    assert_eq!(*report.get("a").unwrap().outcome(), Outcome::Waiting(Duration::from_secs(3)));
}

#[tokio::test]
async fn visits_borrow_from_the_caller_and_need_not_be_send() {
    let graph = graph(&["a", "b: a"]);
    let seen = RefCell::new(Vec::new());
    let note = String::from("seen ");
    let report = graph
        .run(2, async |node| {
            tokio::task::yield_now().await;
            seen.borrow_mut().push(format!("{note}{node}"));
            READY
        })
        .await;
    assert!(report.is_ready());
    assert_eq!(*seen.borrow(), ["seen a", "seen b"]);
}

/// Runs ten independent nodes that each take a while; gives the most that ran at once.
async fn most_at_once(concurrency: usize) -> usize {
    let mut graph = Graph::new();
    for i in 0..10 {
        graph.add(i.to_string()).unwrap();
    }
    let (running, most) = (Cell::new(0), Cell::new(0));
    let visit = async |_: &String| {
        running.set(running.get() + 1);
        most.set(most.get().max(running.get()));
        sleep(Duration::from_millis(5)).await;
        running.set(running.get() - 1);
        READY
    };
    assert!(graph.run(concurrency, visit).await.is_ready());
    most.get()
}

#[tokio::test(start_paused = true)]
async fn as_many_visits_run_at_once_as_allowed_and_no_more() {
    assert_eq!(most_at_once(3).await, 3);
    assert_eq!(most_at_once(usize::MAX).await, 10);
    assert_eq!(most_at_once(0).await, 1, "zero counts as one");
}

#[tokio::test(start_paused = true)]
async fn a_node_starts_at_once_when_what_it_needs_is_ready() {
    let graph = graph(&["slow", "quick", "after: quick"]);
    let start = tokio::time::Instant::now();
    let begun = Cell::new(None);
    let visit = async |node: &&str| {
        match *node {
            "slow" => sleep(Duration::from_mins(1)).await,
            "quick" => sleep(Duration::from_secs(1)).await,
            _ => begun.set(Some(start.elapsed())),
        }
        READY
    };
    let report: Report<Error> = graph.run(4, visit).await;
    assert_eq!(begun.get(), Some(Duration::from_secs(1)), "it does not wait for the slow one");
    assert_eq!(report.elapsed(), Duration::from_mins(1));
    assert_eq!(report.get("quick").unwrap().duration(), Some(Duration::from_secs(1)));
}

#[tokio::test(start_paused = true)]
async fn a_visit_past_its_deadline_is_dropped_and_has_failed() {
    let graph = graph(&["stuck", "after: stuck", "slow", "free"]);
    let dropped = Cell::new(0);
    let limit = Duration::from_secs(2);
    let visit = async |node: &&str| {
        let _held = Held(&dropped);
        match *node {
            "stuck" => pending().await,
            "slow" => sleep(limit).await,
            _ => sleep(limit * 9).await,
        }
        READY
    };
    let report = graph.run(4, visit).deadline(|node| (*node != "free").then_some(limit)).await;
    assert_eq!(*outcome(&report, "stuck"), Outcome::Failed(Failure::DeadlineExceeded(limit)));
    assert_eq!(report.get("stuck").unwrap().duration(), Some(limit));
    assert_eq!(*outcome(&report, "after"), skipped("stuck"));
    assert_eq!(*outcome(&report, "slow"), Outcome::Ready, "ended just in time");
    assert_eq!(*outcome(&report, "free"), Outcome::Ready, "a node may have none");
    assert_eq!(dropped.get(), 3);
}

#[test]
fn a_deadline_without_a_timer_is_the_nodes_failure() {
    let graph = graph(&["a"]);
    let run = graph.run(1, |_| ready(READY)).deadline(|_| Some(Duration::from_secs(1)));
    let Poll::Ready(report) = pin!(run).poll(&mut Context::from_waker(Waker::noop())) else {
        panic!("nothing to wait for");
    };
    let Outcome::Failed(Failure::Panicked(message)) = outcome(&report, "a") else {
        panic!("{report:?}");
    };
    assert!(message.contains("runtime"), "{message}");
}

/// A panic that leaves out the hook, to keep the tests' output readable.
fn quiet_panic(message: &'static str) -> ! {
    std::panic::resume_unwind(Box::new(message))
}

struct PanicsOnDrop;

impl Drop for PanicsOnDrop {
    fn drop(&mut self) {
        quiet_panic("in drop");
    }
}

/// A hand-written future: the destructor of an async block would run inside its last poll.
struct DropsLate(Option<PanicsOnDrop>);

impl Future for DropsLate {
    type Output = Visited;
    fn poll(self: std::pin::Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Visited> {
        if self.0.is_some() { Poll::Ready(READY) } else { Poll::Pending }
    }
}

fn panicked(message: &str) -> Outcome<Error> {
    Outcome::Failed(Failure::Panicked(message.to_owned()))
}

#[tokio::test]
async fn a_panic_in_a_visit_is_that_nodes_failure() {
    let graph = graph(&["call", "poll", "later", "text", "odd", "fine", "after: poll"]);
    let visit = |node: &&'static str| {
        let node = *node;
        if node == "call" {
            quiet_panic("in the call");
        }
        async move {
            match node {
                "poll" => quiet_panic("in a poll"),
                "later" => {
                    tokio::task::yield_now().await;
                    quiet_panic("in a later poll")
                }
                "text" => std::panic::resume_unwind(Box::new(format!("with {node}"))),
                "odd" => std::panic::resume_unwind(Box::new(7)),
                _ => READY,
            }
        }
    };
    let report = graph.run(3, visit).await;
    assert_eq!(*outcome(&report, "call"), panicked("in the call"));
    assert_eq!(*outcome(&report, "poll"), panicked("in a poll"));
    assert_eq!(*outcome(&report, "later"), panicked("in a later poll"));
    assert_eq!(*outcome(&report, "text"), panicked("with text"));
    assert_eq!(*outcome(&report, "odd"), panicked("with something that is not text"));
    assert_eq!(*outcome(&report, "fine"), Outcome::Ready);
    assert_eq!(*outcome(&report, "after"), skipped("poll"));
}

#[tokio::test]
async fn a_panic_in_a_visits_destructor_is_that_nodes_failure() {
    let graph = graph(&["a", "b: a", "c"]);
    let report = graph.run(1, |_| DropsLate(Some(PanicsOnDrop))).await;
    assert_eq!(*outcome(&report, "a"), panicked("in drop"));
    assert_eq!(*outcome(&report, "b"), skipped("a"));
    assert_eq!(*outcome(&report, "c"), panicked("in drop"));
}

#[tokio::test]
async fn a_panic_while_cancelled_visits_are_dropped_reaches_nobody() {
    let graph = graph(&["a", "b"]);
    let dropped = Cell::new(0);
    let visit = async |_: &&str| -> Visited {
        let _counted = Held(&dropped);
        let _panics = PanicsOnDrop;
        pending().await
    };
    let run = graph.run(2, visit).until(tokio::task::yield_now());
    assert_eq!(run.await.summary().cancelled, 2);
    assert_eq!(dropped.get(), 2, "both were dropped to the end");
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_run_reports_what_was_done() {
    let graph = graph(&["done", "bad", "running", "behind: running", "held: bad"]);
    let dropped = Cell::new(0);
    let visit = async |node: &&str| match *node {
        "done" => READY,
        "bad" => Err(Error::Gone),
        _ => {
            let _held = Held(&dropped);
            pending().await
        }
    };
    let report = graph.run(9, visit).until(sleep(Duration::from_secs(3))).await;
    assert_eq!(dropped.get(), 1, "the visit in flight was dropped");
    assert_eq!(*outcome(&report, "done"), Outcome::Ready);
    assert_eq!(*outcome(&report, "bad"), failed(Error::Gone));
    assert_eq!(*outcome(&report, "held"), skipped("bad"));
    assert_eq!(*outcome(&report, "running"), Outcome::Cancelled);
    assert_eq!(report.get("running").unwrap().duration(), Some(Duration::from_secs(3)));
    assert_eq!(*outcome(&report, "behind"), Outcome::Cancelled);
    assert_eq!(report.get("behind").unwrap().duration(), None, "it never began");
}

#[tokio::test]
async fn a_run_that_is_cancelled_before_it_begins_visits_nothing() {
    let graph = graph(&["a", "b"]);
    let mut visited = 0;
    let run = graph.run(2, |_| {
        visited += 1;
        ready(READY)
    });
    assert_eq!(run.until(ready(())).await.summary().cancelled, 2);
    assert_eq!(visited, 0);
}

#[tokio::test]
async fn a_dropped_run_drops_its_visits_and_starts_no_more() {
    let graph = graph(&["a", "b", "c", "d: a"]);
    let (started, dropped) = (Cell::new(0), Cell::new(0));
    let visit = async |_: &&str| -> Visited {
        started.set(started.get() + 1);
        let _held = Held(&dropped);
        pending().await
    };
    {
        let mut run = pin!(graph.run(2, visit));
        assert!(run.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        assert_eq!((started.get(), dropped.get()), (2, 0));
    }
    assert_eq!((started.get(), dropped.get()), (2, 2));
}

#[tokio::test]
async fn a_visit_lets_go_of_what_it_holds_before_dependents_start() {
    let graph = graph(&["a", "b: a"]);
    let dropped = Cell::new(0);
    let visit = |node: &&'static str| {
        assert_eq!(dropped.get(), usize::from(*node == "b"));
        let held = Held(&dropped);
        async move {
            let _held = held;
            READY
        }
    };
    assert!(graph.run(2, visit).await.is_ready());
}

#[derive(Default)]
struct CountsWakes(AtomicUsize);

impl Wake for CountsWakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn visits_that_never_wait_do_not_keep_the_thread() {
    let mut graph = Graph::new();
    for i in 0..10_000 {
        graph.add(i.to_string()).unwrap();
    }
    for concurrency in [1, 7, usize::MAX] {
        let visited = Cell::new(0);
        let visit = |_: &String| {
            visited.set(visited.get() + 1);
            ready(READY)
        };
        let woken = Arc::new(CountsWakes::default());
        let waker = Waker::from(Arc::clone(&woken));
        let mut run = pin!(graph.run(concurrency, visit));
        let mut polls = 0;
        let report = loop {
            polls += 1;
            let before = visited.get();
            match run.as_mut().poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(report) => break report,
                Poll::Pending => assert!(woken.0.swap(0, Ordering::Relaxed) > 0, "it would sleep for ever"),
            }
            assert!(visited.get() - before <= 128);
        };
        assert!(report.is_ready());
        assert!(polls > 10_000 / 128, "{polls}");
    }
}

#[tokio::test]
async fn a_run_that_is_polled_after_its_end_stays_pending() {
    let graph = graph(&["a"]);
    let mut run = graph.run(1, |_| ready(READY));
    assert!((&mut run).await.is_ready());
    assert!(pin!(run).poll(&mut Context::from_waker(Waker::noop())).is_pending());
}

#[tokio::test]
async fn a_report_is_as_of_its_run_and_outlives_its_graph() {
    let mut graph = Graph::new();
    let a = graph.add("a").unwrap();
    let report = graph.run(1, |_| ready(READY)).await;
    let b = graph.add_after("b", &[a]).unwrap();
    assert_eq!(graph.run(1, |_| ready(READY)).await.len(), 2);
    drop(graph);

    assert_eq!(report.len(), 1);
    assert_eq!(report.at(a).unwrap().id(), "a");
    assert!(report.at(b).is_none(), "added later");
    let foreign = Graph::new().add("a").unwrap();
    assert!(report.at(foreign).is_none());
    assert!(report.get("b").is_none());
}

#[tokio::test]
async fn a_graph_can_be_run_again_while_it_runs() {
    let graph = graph(&["a", "b: a"]);
    let (go, gone) = oneshot::channel::<()>();
    let gone = RefCell::new(Some(gone));
    let outer = graph.run(1, async |node| {
        if *node == "a" {
            let gone = gone.borrow_mut().take().unwrap();
            gone.await.unwrap();
        }
        READY
    });
    let inner = async {
        let report = graph.run_reverse(1, |_| ready(READY)).await;
        go.send(()).unwrap();
        report
    };
    let (outer, inner) = tokio::join!(outer, inner);
    assert!(outer.is_ready() && inner.is_ready());
}

#[test]
fn steps_without_a_graph_fill_the_same_report() {
    let steps = |second: &str| {
        Report::<Error>::from_steps([
            ("drain", Outcome::Waiting("2 left".to_owned()), Some(Duration::from_millis(5))),
            ("shrink", skipped("drain"), None),
            ("odd", skipped("shrink"), None),
            (second, skipped("elsewhere"), None),
        ])
    };
    let report = steps("last").unwrap();
    assert_eq!(report.elapsed(), Duration::from_millis(5));
    let chain = |id: &str| report.get(id).unwrap().blockers().map(NodeReport::id).collect::<Vec<_>>();
    assert_eq!(chain("shrink"), ["drain"]);
    assert!(chain("odd").is_empty(), "a skipped step is nobody's culprit");
    assert!(chain("last").is_empty());
    assert_eq!(
        report.text().to_string(),
        "\
0 of 4 ready, 1 waiting, 3 skipped (5.0ms)
├─ drain: waiting: 2 left (5.0ms)
├─ shrink: skipped because of drain
├─ odd: skipped because of shrink
└─ last: skipped because of elsewhere
"
    );
    assert!(steps("drain").is_err(), "two steps of one name");
}
