//! Visits that are woken from other threads, in a run that moves between threads.
//!
//! The engine itself shares nothing between threads (the front page says why), so there
//! is no interleaving of its own to explore. What can go wrong is at its edge: a wake-up
//! from elsewhere that is lost, or that lets something start too early.

#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use tokio::sync::oneshot;
use windlass_graph::{Graph, Key, Progress, Report};

const NODES: usize = 3_000;

fn graph() -> Graph<String> {
    let mut graph = Graph::new();
    let mut keys: Vec<Key> = Vec::new();
    for index in 0..NODES {
        let after: Vec<Key> =
            [7, 31, 64].iter().filter_map(|back| keys.get(index.checked_sub(*back)?).copied()).collect();
        keys.push(graph.add_after(format!("node-{index}"), &after).unwrap());
    }
    graph
}

#[derive(Default)]
struct Watch {
    running: AtomicUsize,
    most: AtomicUsize,
    done: Vec<AtomicBool>,
}

/// The whole run as a task of its own, which is allowed only if it is `Send`.
async fn run_elsewhere(concurrency: usize) -> (Report<String>, Arc<Watch>) {
    let watch =
        Arc::new(Watch { done: (0..NODES).map(|_| AtomicBool::new(false)).collect(), ..Watch::default() });
    let seen = Arc::clone(&watch);
    let report = tokio::spawn(async move {
        let graph = graph();
        let (graph, watch) = (&graph, &watch);
        graph
            .run(concurrency, |node| async move {
                let running = watch.running.fetch_add(1, Ordering::SeqCst) + 1;
                watch.most.fetch_max(running, Ordering::SeqCst);
                let key = graph.key(node).ok_or("unknown")?;
                if graph.dependencies(key).any(|before| !watch.done[before.index()].load(Ordering::SeqCst)) {
                    return Err("out of order".to_owned());
                }
                let (done, ended) = oneshot::channel();
                tokio::spawn(async move {
                    for _ in 0..key.index() % 4 {
                        tokio::task::yield_now().await;
                    }
                    done.send(())
                });
                ended.await.map_err(|error| error.to_string())?;
                watch.done[key.index()].store(true, Ordering::SeqCst);
                watch.running.fetch_sub(1, Ordering::SeqCst);
                Ok(Progress::Ready)
            })
            .await
    });
    (report.await.unwrap(), seen)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn wake_ups_from_other_threads_are_neither_lost_nor_early() {
    for concurrency in [1, 5, usize::MAX] {
        let (report, watch) = run_elsewhere(concurrency).await;
        assert!(report.is_ready(), "{:?}", report.failures().next());
        assert!(watch.most.load(Ordering::SeqCst) <= concurrency);
        assert!(watch.done.iter().all(|done| done.load(Ordering::SeqCst)));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_signal_from_another_thread_ends_a_run_at_any_point() {
    for cut in (1..NODES).step_by(157) {
        let graph = graph();
        let started = AtomicUsize::new(0);
        let (cancel, cancelled) = oneshot::channel::<()>();
        let cancel = std::sync::Mutex::new(Some(cancel));
        let report: Report<String> = graph
            .run(16, |_| {
                // Counted in the call: a visit may be cut before its future is first polled.
                let number = started.fetch_add(1, Ordering::SeqCst);
                let cancel = &cancel;
                async move {
                    if number == cut {
                        let cancel = cancel.lock().unwrap().take();
                        tokio::spawn(async move { cancel.map(|cancel| cancel.send(())) });
                        std::future::pending::<()>().await;
                    }
                    tokio::spawn(tokio::task::yield_now()).await.map_err(|error| error.to_string())?;
                    Ok(Progress::Ready)
                }
            })
            .until(async {
                let _ = cancelled.await;
            })
            .await;
        let summary = report.summary();
        assert_eq!(summary.ready + summary.cancelled, NODES);
        assert!(summary.cancelled > 0, "the visit that never ends was cut");
        let begun = report.nodes().filter(|node| node.duration().is_some()).count();
        assert_eq!(begun, started.load(Ordering::SeqCst));
    }
}
