//! The kinds of nodes, one file each: the method that declares it, its description, its visit, its removal.
//!
//! A new kind of node is a file here and a line below. It implements `plan::node::Node`, adds its method to
//! [`Plan`](crate::Plan) (or to [`Needs`](crate::Needs)), and reaches the cluster only through the run.

mod apply;
mod blocking;
pub(crate) mod create_once;
mod decision;
mod effect;
mod input;
mod keep;
mod pending;
mod record;
pub(crate) mod renew;
#[cfg(test)]
mod sample;
mod step;
mod task;

pub(crate) use self::decision::ActorState;
pub(crate) use self::effect::Perform;
pub use self::input::{Object, Values};
pub use self::record::recorded_version;
pub use self::renew::{RenewContext, Renewed};
pub use self::step::{Step, StepState};
