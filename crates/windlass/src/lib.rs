//! Blueprints: declare which resources make up a thing and what each of them waits for.

mod adopt;
mod blueprint;
mod content;
mod desired;
mod error;
mod inputs;
mod kinds;
pub mod live;
mod memory;
mod metrics;
pub mod names;
pub mod naming;
pub mod ownership;
mod plan;
mod pods;
mod prune;
pub mod readiness;
mod secrecy;
mod seen;
mod status;
mod step;
mod unified;

pub use blueprint::{Blueprint, OwnerKind};
pub use desired::{Desired, Kind};
pub use error::{DrawError, NodeError, Reason};
pub use inputs::{Inputs, Resolved};
pub use kinds::Kinds;
pub use metrics::PlanMetrics;
pub use plan::{Conflicts, Immutable, Plan, Planned};
pub use readiness::Readiness;
pub use secrecy::{DigestKey, Random};
pub use seen::{Seen, Wait};
pub use status::{Status, condition};
pub use step::{Step, StepState};
pub use unified::{Unified, UnifiedError};
