//! Cost of one node: building, running and rendering graphs of 10,000 to 1,000,000 nodes. The table comes
//! first, then criterion's statistics for 100,000 nodes.
//!
//! `cargo bench -p windlass-graph` for both, with `-- --table` for the table alone.

#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout, reason = "a program for developers")]
#![allow(clippy::cast_precision_loss, reason = "figures for people")]

use std::{
    convert::Infallible,
    hint::black_box,
    time::{Duration, Instant},
};

use criterion::{BenchmarkId, Criterion, Throughput};
use windlass_graph::{Graph, Key, Progress, Report};

type Build = fn(u32) -> Graph<String>;

const SHAPES: [(&str, Build); 4] =
    [("chain", chain), ("fan-out", fan_out), ("fan-in", fan_in), ("layered random", layered)];

fn name(index: u32) -> String {
    format!("node-{index}")
}

fn chain(nodes: u32) -> Graph<String> {
    let mut graph = Graph::new();
    let mut last = Vec::new();
    for index in 0..nodes {
        last = vec![graph.add_after(name(index), &last).unwrap()];
    }
    graph
}

fn fan_out(nodes: u32) -> Graph<String> {
    let mut graph = Graph::new();
    let root = graph.add(name(0)).unwrap();
    for index in 1..nodes {
        graph.add_after(name(index), &[root]).unwrap();
    }
    graph
}

fn fan_in(nodes: u32) -> Graph<String> {
    let mut graph = Graph::new();
    let keys: Vec<Key> = (1..nodes).map(|index| graph.add(name(index)).unwrap()).collect();
    graph.add_after(name(0), &keys).unwrap();
    graph
}

/// Layers of 100, each node after three of the layer before it.
fn layered(nodes: u32) -> Graph<String> {
    let mut graph = Graph::new();
    let mut keys: Vec<Key> = Vec::new();
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    for index in 0..nodes {
        let layer = (index / 100 * 100) as usize;
        let after: Vec<Key> = if layer == 0 {
            Vec::new()
        } else {
            std::iter::repeat_with(|| {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                keys[layer - 100 + (random % 100) as usize]
            })
            .take(3)
            .collect()
        };
        keys.push(graph.add_after(name(index), &after).unwrap());
    }
    graph
}

fn run(graph: &Graph<String>) -> Report<Infallible> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(graph.run(64, |_| std::future::ready(Ok(Progress::Ready))))
}

/// Time this thread spent on a processor, where the system tells; else the clock.
///
/// On a machine with other work, the clock measures that too.
fn processor_time(epoch: Instant) -> Duration {
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let time = statistics.and_then(|text| text.split(' ').next()?.parse().ok().map(Duration::from_nanos));
    time.unwrap_or_else(|| epoch.elapsed())
}

/// Nanoseconds per node, the best of three rounds. The system's count of processor time
/// is coarse, so a round is as many repetitions as make a million nodes.
fn per_node<T>(nodes: u32, mut work: impl FnMut() -> T) -> f64 {
    const ROUND: u32 = 1_000_000;
    let epoch = Instant::now();
    let round = |_| {
        let start = processor_time(epoch);
        for _ in 0..ROUND / nodes {
            black_box(work());
        }
        processor_time(epoch).saturating_sub(start)
    };
    let best = (0..3).map(round).min().unwrap();
    best.as_nanos() as f64 / f64::from(ROUND)
}

/// Resident memory of this process, where the system tells.
fn resident() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").ok();
    let pages = pages.and_then(|text| text.split(' ').nth(1)?.parse::<u64>().ok());
    pages.unwrap_or(0) * 4096
}

/// Bytes per node of a graph and its report. In a process of its own, since memory that
/// earlier work gave back would hide what this takes.
fn bytes_per_node(shape: &str) -> String {
    let child =
        std::process::Command::new(std::env::current_exe().unwrap()).args(["--bytes", shape]).output();
    String::from_utf8(child.unwrap().stdout).unwrap().trim().to_owned()
}

fn print_bytes(shape: &str) {
    const NODES: u32 = 1_000_000;
    let (_, build) = SHAPES.into_iter().find(|(name, _)| *name == shape).unwrap();
    let before = resident();
    let graph = build(NODES);
    let report = run(&graph);
    println!("{}", resident().saturating_sub(before) / u64::from(NODES));
    drop(report);
}

fn table() {
    println!("nanoseconds of processor time per node, best of 3; bytes per node of graph and report\n");
    println!(
        "{:<16}{:>10}{:>8}{:>8}{:>8}{:>8}{:>8}",
        "shape", "nodes", "build", "run", "text", "bytes", "edges"
    );
    for (shape, build) in SHAPES {
        let bytes = bytes_per_node(shape);
        for nodes in [10_000, 100_000, 1_000_000] {
            let graph = build(nodes);
            let report = run(&graph);
            assert!(report.is_ready());
            let edges: usize = graph.iter().map(|(key, _)| graph.dependencies(key).count()).sum();
            println!(
                "{shape:<16}{nodes:>10}{:>8.0}{:>8.0}{:>8.0}{bytes:>8}{:>8.1}",
                per_node(nodes, || build(nodes)),
                per_node(nodes, || run(&graph)),
                per_node(nodes, || report.text().to_string()),
                edges as f64 / f64::from(nodes),
            );
        }
    }
}

fn statistics(criterion: &mut Criterion) {
    const NODES: u32 = 100_000;
    let mut group = criterion.benchmark_group("run");
    group.throughput(Throughput::Elements(NODES.into())).sample_size(20);
    for (shape, build) in SHAPES {
        let graph = build(NODES);
        group.bench_with_input(BenchmarkId::from_parameter(shape), &graph, |bencher, graph| {
            bencher.iter(|| black_box(run(graph)));
        });
    }
    group.finish();
}

fn main() {
    // Under `cargo test` benches only prove that they build and start.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    if let Some(shape) = std::env::args().skip_while(|argument| argument != "--bytes").nth(1) {
        return print_bytes(&shape);
    }
    table();
    if !std::env::args().any(|argument| argument == "--table") {
        let mut criterion = Criterion::default().configure_from_args();
        statistics(&mut criterion);
        criterion.final_summary();
    }
}
