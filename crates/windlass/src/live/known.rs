//! A fact that may be unknown.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::PlanError;

/// A fact, or the reason why it is not known.
///
/// There is no default for an unknown fact, and no `unwrap_or`: nothing must be decided as if an unknown
/// object were absent, or an unknown list empty.
///
/// ```
/// use windlass::Known;
///
/// let replicas: Known<i64> = Known::Unknown("the StatefulSet has not been read yet".into());
/// assert_eq!(replicas.known(), None);
/// assert_eq!(Known::Known(3).map(|replicas| replicas + 1), Known::Known(4));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Known<T> {
    /// The fact, as it was read.
    Known(T),
    /// The reason why it is not known.
    Unknown(String),
}

impl<T> Known<T> {
    /// Returns the fact, if it is known.
    pub fn known(self) -> Option<T> {
        match self {
            Self::Known(fact) => Some(fact),
            Self::Unknown(_) => None,
        }
    }

    /// Returns the fact by reference.
    pub fn as_ref(&self) -> Known<&T> {
        match self {
            Self::Known(fact) => Known::Known(fact),
            Self::Unknown(why) => Known::Unknown(why.clone()),
        }
    }

    /// Returns whether the fact is known.
    pub fn is_known(&self) -> bool {
        matches!(self, Self::Known(_))
    }

    /// Applies a function to the fact, if it is known.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Known<U> {
        match self {
            Self::Known(fact) => Known::Known(change(fact)),
            Self::Unknown(why) => Known::Unknown(why),
        }
    }

    /// Returns the fact; an unknown fact ends the draw, and the owner waits.
    ///
    /// Ask for everything before the first `?`: a draw that ends early asks for the rest only in its next
    /// round.
    ///
    /// # Errors
    /// The fact is not known.
    pub fn or_wait(self) -> Result<T, PlanError> {
        match self {
            Self::Known(fact) => Ok(fact),
            Self::Unknown(why) => Err(PlanError::unknown(why)),
        }
    }

    /// Returns the reason why the fact is not known.
    pub fn why_unknown(&self) -> Option<&str> {
        match self {
            Self::Known(_) => None,
            Self::Unknown(why) => Some(why),
        }
    }
}

impl<T: fmt::Display> fmt::Display for Known<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(fact) => fact.fmt(f),
            Self::Unknown(why) => write!(f, "unknown: {why}"),
        }
    }
}
