//! The kinds of nodes, one file each: the verb that declares it, its description, its visit, its removal.
//!
//! A new kind of node is a file here and a line below. It implements `plan::node::Node`, adds its verb to
//! [`Plan`](crate::Plan) (or to [`Needs`](crate::Needs)), and asks the run for everything it needs of the cluster.

mod apply;
pub(crate) mod create_once;
mod input;
mod keep;
mod pending;
pub(crate) mod renew;
#[cfg(test)]
mod sample;
mod step;
mod task;

pub use self::input::{Object, Values};
pub use self::renew::{RenewContext, Renewed};
pub use self::step::{Step, StepState};
