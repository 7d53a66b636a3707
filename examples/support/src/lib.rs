//! What the acceptance tests of the examples share: an operator in three forms, and how to see what it is doing.
//!
//! | | what it is |
//! | --- | --- |
//! | [`Running`] | a task of the test, with its readiness and metrics at hand |
//! | [`Program`] | a child process, seen through its ports as a kubelet sees it |
//! | [`install`], [`rights`] | an installation: its manifests applied, its account, and whether what it may do is what it does |
//!
//! It promises: waiting is for conditions, never for time; no process outlives its test.

mod counts;
pub mod install;
mod program;
pub mod rights;
mod running;

pub use counts::sum;
pub use program::Program;
pub use running::Running;
