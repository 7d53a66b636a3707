//! 100,000 nodes are no problem: not for the run, nor for building, rendering or
//! dropping. All of it happens on a stack too small for anything that recurses.

#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::cell::Cell;

use windlass_graph::{Graph, GraphError, Key, Outcome, Progress, Report};

const NODES: usize = 100_000;

/// A thousandth of it for each node would already be too much.
const STACK: usize = 256 * 1024;

fn on_a_small_stack(work: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().stack_size(STACK).spawn(work).unwrap().join().unwrap();
}

fn name(index: usize) -> String {
    format!("node-{index}")
}

fn chain() -> Graph<String> {
    let mut graph = Graph::new();
    let mut last = Vec::new();
    for index in 0..NODES {
        last = vec![graph.add_after(name(index), &last).unwrap()];
    }
    graph
}

fn fan_out() -> Graph<String> {
    let mut graph = Graph::new();
    let root = graph.add(name(0)).unwrap();
    for index in 1..NODES {
        graph.add_after(name(index), &[root]).unwrap();
    }
    graph
}

fn fan_in() -> Graph<String> {
    let mut graph = Graph::new();
    let keys: Vec<Key> = (1..NODES).map(|index| graph.add(name(index)).unwrap()).collect();
    graph.add_after(name(0), &keys).unwrap();
    graph
}

/// Layers of 250, each node after up to four of the layer before it.
fn layered() -> Graph<String> {
    let mut graph = Graph::new();
    let mut keys: Vec<Key> = Vec::new();
    let mut random = 88_172_645_463_325_252_u64;
    for index in 0..NODES {
        let layer = index / 250 * 250;
        let mut after = Vec::new();
        for _ in 0..(if layer == 0 { 0 } else { 4 }) {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            after.push(keys[layer - 250 + usize::try_from(random % 250).unwrap()]);
        }
        keys.push(graph.add_after(name(index), &after).unwrap());
    }
    graph
}

/// Runs with visits that sometimes wait, and checks that each finds what it needs done.
fn run(graph: &Graph<String>, concurrency: usize, reverse: bool) -> Report<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let done: Vec<Cell<bool>> = vec![Cell::new(false); graph.len()];
    let visit = async |node: &String| {
        let key = graph.key(node).unwrap();
        if key.index().is_multiple_of(3) {
            tokio::task::yield_now().await;
        }
        if graph.dependencies(key).any(|before| done[before.index()].get() == reverse) {
            return Err("out of order".to_owned());
        }
        done[key.index()].set(true);
        Ok(Progress::Ready)
    };
    if reverse {
        runtime.block_on(graph.run_reverse(concurrency, visit))
    } else {
        runtime.block_on(graph.run(concurrency, visit))
    }
}

fn render_everything(report: &Report<String>, edges: usize) {
    let bound = 250 * (NODES + edges);
    let text = report.text().to_string();
    assert_eq!(text.lines().count(), NODES + 1);
    for rendering in
        [text, report.dot().to_string(), report.mermaid().to_string(), serde_json::to_string(report).unwrap()]
    {
        assert!(rendering.len() < bound, "{} bytes is not linear", rendering.len());
    }
}

fn holds_up(build: fn() -> Graph<String>) {
    on_a_small_stack(move || {
        let graph = build();
        let edges = graph.iter().map(|(key, _)| graph.dependencies(key).count()).sum();
        for (concurrency, reverse) in [(1, false), (64, false), (usize::MAX, false), (64, true)] {
            let report = run(&graph, concurrency, reverse);
            assert!(report.is_ready(), "{:?}", report.failures().next());
        }
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let broken: Report<String> = runtime.block_on(graph.run(8, async |_| Err("no".to_owned())));
        assert_eq!(broken.summary().failed + broken.summary().skipped, NODES);
        render_everything(&broken, edges);
        drop(graph);
        drop(broken);
    });
}

#[test]
fn a_chain_of_100_000_nodes() {
    holds_up(chain);
}

#[test]
fn a_fan_out_of_100_000_nodes() {
    holds_up(fan_out);
}

#[test]
fn a_fan_in_of_100_000_nodes() {
    holds_up(fan_in);
}

#[test]
fn a_layered_random_graph_of_100_000_nodes() {
    holds_up(layered);
}

#[test]
fn the_blocker_chain_of_a_long_chain_leads_to_its_beginning() {
    on_a_small_stack(|| {
        let graph = chain();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let report: Report<String> =
            runtime.block_on(graph.run(8, async |_| Ok(Progress::Waiting("not yet".to_owned()))));
        let last = report.get(&name(NODES - 1)).unwrap();
        assert_eq!(*last.outcome(), Outcome::Skipped { because_of: name(0).into() });
        assert_eq!(last.blockers().count(), NODES - 1);
        assert_eq!(last.blockers().last().unwrap().id(), name(0));
    });
}

#[test]
fn a_declared_cycle_of_100_000_nodes_is_found() {
    on_a_small_stack(|| {
        let declared = (0..NODES).map(|index| (name(index), [name((index + 1) % NODES)]));
        let Err(GraphError::Cycle { path }) = Graph::from_declared(declared) else {
            panic!("a ring has a cycle");
        };
        assert_eq!(path.len(), NODES);
        assert_eq!(&*path[0], name(0));
    });
}
