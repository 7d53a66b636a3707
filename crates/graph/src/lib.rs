//! Runs what depends on each other in order.
mod declared;
mod error;
mod graph;
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
pub use graph::{Graph, Key};
pub use node::Node;
pub use outcome::{Failure, Outcome, Progress, Summary};
pub use report::{NodeReport, Report};
pub use run::Run;
pub use schedule::Direction;
