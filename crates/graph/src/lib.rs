//! Runs what depends on each other in order, side by side where it can, and says what
//! holds back what.
//!
//! ```
//! use windlass_graph::{Graph, Progress};
//!
//! # #[derive(Debug, PartialEq, thiserror::Error)]
//! # #[error("connection refused")]
//! # struct Refused;
//! # async fn bring_up(name: &str) -> Result<Progress, Refused> {
//! #     if name == "database" { Err(Refused) } else { Ok(Progress::Ready) }
//! # }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), windlass_graph::GraphError> {
//! let mut graph = Graph::new();
//! let config = graph.add("config")?;
//! let database = graph.add("database")?;
//! let core = graph.add_after("core", &[config, database])?;
//! graph.add_after("portal", &[core])?;
//! graph.add_after("cache", &[config])?;
//!
//! // At most four at a time. `bring_up` is refused by the database.
//! let report = graph.run(4, |name| bring_up(name)).await;
//!
//! assert_eq!(report.summary().to_string(), "2 of 5 ready, 1 failed, 2 skipped");
//! let portal = report.get("portal").expect("it is in the graph");
//! assert_eq!(portal.outcome().to_string(), "skipped because of database");
//! assert_eq!(portal.blockers().map(|node| node.id()).collect::<Vec<_>>(), ["core", "database"]);
//! # Ok(())
//! # }
//! ```
//!
//! `println!("{}", report.text())` shows such a report as
//!
//! ```text
//! 2 of 5 ready, 1 failed, 2 skipped (1.2s)
//! ├─ config: ready (8.1ms)
//! │  ├─ core: skipped because of database, also after database
//! │  │  └─ portal: skipped because of database, by way of core
//! │  └─ cache: ready (6.4ms)
//! └─ database: failed: connection refused (1.2s)
//! ```
//!
//! and [`dot`](Report::dot), [`mermaid`](Report::mermaid) and
//! [`Serialize`](serde::Serialize) give diagrams and JSON of it.
//!
//! # What it promises
//!
//! - **A graph that was built can be run.** A [`Key`] exists only after its node was
//!   added, so a cycle cannot be written; where edges are
//!   [declared by name](Graph::from_declared), a cycle is found and named. A duplicate
//!   identity and a key of another graph are errors and change nothing. An empty graph
//!   is a success.
//! - **Order.** A node is visited once all it comes after is ready, and then at once, if
//!   the limit of visits allows. Of those that may start, the first added goes first; with a
//!   limit of one, that is the order in which they were added. [`Graph::run_reverse`] is
//!   the mirror image.
//! - **A failure holds back only what depends on it**, and so does a wait. Every other
//!   branch goes on. Every error is kept, with its type.
//! - **The culprit is named**, and the chain to it. Of several, a failure comes before a
//!   wait, then the first declared: who was faster does not matter.
//! - **A panic is one node's failure**, wherever in its visit it happens; so is a missed
//!   [deadline](Run::deadline). (In a program built with `panic = "abort"`, a panic is the
//!   end.)
//! - **Stopping is clean.** Dropping a [`Run`] drops its visits; [`Run::until`] does so on
//!   a signal and still reports what was done.
//! - **Time and memory are linear** in nodes and edges, for building, running, rendering
//!   and dropping; nothing recurses. Only nodes that are being visited have a future.
//! - **A fair share.** A run returns to the executor after 128 steps, so a large graph
//!   of visits that never wait does not keep the thread.
//!
//! # What it does not do
//!
//! - It spawns nothing. Visits take turns in the caller's task, which is why they may
//!   borrow: they wait side by side, but do not compute in parallel. A visit that blocks
//!   its thread blocks them all, and no deadline can end it. A visit with much to compute
//!   spawns that itself and awaits it.
//! - It does not retry, poll or requeue. A waiting node is reported; when to run again is
//!   the caller's to decide.
//! - It carries no values from node to node: visits share what they borrow.
//! - It does not know what its nodes are. Nothing of Kubernetes is in here.
//! - It has no edges to remove: draw a new graph.
//!
//! [`Outcome`], [`Summary`] and [`Report`] do not need a graph: what works through a list
//! of steps or phases [reports](Report::from_steps) the same way.
//!
//! # What a node costs
//!
//! Processor time per node in nanoseconds, with visits that are ready at once, and memory
//! of graph and report together; `cargo bench -p windlass-graph` prints this table for
//! your machine.
//!
//! | shape (edges per node) | nodes | build | run | render as text | bytes |
//! | --- | ---: | ---: | ---: | ---: | ---: |
//! | chain (1) | 100,000 | 620 | 230 | 660 | |
//! | | 1,000,000 | 1,870 | 280 | 850 | 254 |
//! | fan-out (1) | 100,000 | 740 | 250 | 450 | |
//! | | 1,000,000 | 1,580 | 190 | 300 | 254 |
//! | fan-in (1) | 100,000 | 360 | 190 | 250 | |
//! | | 1,000,000 | 1,300 | 220 | 420 | 250 |
//! | layers of 100, random (3) | 100,000 | 450 | 220 | 1,140 | |
//! | | 1,000,000 | 1,600 | 250 | 1,560 | 269 |
//!
//! Measured in November 2026 on a two-core virtual machine (AMD EPYC) that had other work,
//! so take them as good to a factor of two. A run costs the same per node from 10,000
//! nodes to a million. Building does the same steps per node at every size, but its table
//! of identities leaves the processor's caches between 100,000 and a million, and that
//! shows.
//!
//! # What is shared between threads
//!
//! Nothing of a run: its state belongs to one future, which may move between threads but
//! is on one at a time, and the borrow checker holds it to that. Wakers of visits reach
//! other threads; their queue is that of `FuturesUnordered`, tested where it is written.
//! The one atomic is the counter that numbers graphs, a single `fetch_add` whose order to
//! anything else does not matter. So there are no interleavings of our own for a model
//! checker to explore; instead, `tests/threads.rs` runs graphs whose visits are woken and
//! cancelled from other threads.

mod declared;
mod error;
mod graph;
mod key;
mod node;
mod outcome;
mod ready;
mod render;
mod report;
mod run;
mod schedule;
mod shape;
mod visit;

pub use error::GraphError;
pub use graph::Graph;
pub use key::Key;
pub use node::Node;
pub use outcome::{Failure, Outcome, Progress, Summary};
pub use report::{NodeReport, Report};
pub use run::Run;
pub use schedule::Direction;
