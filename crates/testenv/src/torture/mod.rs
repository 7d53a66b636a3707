//! Kills an operator at every one of its writes.

mod kind;
mod ledger;
mod normal;
mod operator;
mod plan;
mod point;
mod repetition;
mod report;
mod run;
mod scenario;
mod selection;
mod snapshot;
mod stage;

pub use kind::Kind;
pub use operator::OperatorRun;
pub use plan::Torture;
pub use point::{Family, Point};
pub use report::{Failure, Report};
pub use scenario::{Scene, StepResult};
