//! The interface that answers the requests of a plan.

use super::ask::{Answer, Ask};
use super::labelled::{AnyObjects, ListAsk};
use crate::live::Known;

/// Answers the requests of a plan.
pub(crate) trait Answers: Send + Sync {
    /// Answers at once, from the objects known now.
    fn answer(&self, ask: &Ask) -> Answer;

    /// Returns all objects of a kind that carry a label with a value.
    fn list(&self, ask: &ListAsk) -> Known<AnyObjects>;

    /// Returns whether objects are assumed to exist, without values: in a preview.
    fn is_assumed(&self) -> bool {
        false
    }
}
