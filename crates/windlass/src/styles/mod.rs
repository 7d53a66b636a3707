//! The styles of writing an operator, and their common part.

mod applied;
mod blueprint;
mod controller;
mod controls;
mod preview;

pub use self::applied::{Applied, AppliedNode, applied};
pub use self::blueprint::Blueprint;
pub use self::controller::{PlanController, PlanControllerError};
pub use self::controls::{Controls, Deletion, OwnerKind};
pub use self::preview::{Sketch, preview, sketch};
