//! How a reconcile ends.

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use kube::core::Status;

use crate::client::ClientError;

/// How a reconcile that succeeded ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "the controller needs to know"]
pub enum Outcome {
    /// Nothing to do until something changes.
    Done,
    /// Run again after this time, even if nothing changes: for what cannot be watched.
    ///
    /// A change that comes first runs the key at once, and that run's outcome replaces this one.
    After(Duration),
}

/// What kind of failure it was: decides when the key runs again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// It may work next time: run again with exponential backoff.
    Transient,
    /// We acted on something outdated: run again at once, and do not alarm anybody. A storm of them slows down to one
    /// try per second and key.
    Conflict,
    /// It cannot work before something changes: run again only then.
    Terminal,
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Transient => "transient",
            Self::Conflict => "conflict",
            Self::Terminal => "terminal",
        })
    }
}

/// Why a reconcile failed, and of which [`Class`] that failure is.
///
/// The `?` operator makes one of any error. It is then *transient*, unless the error, or one that it comes from, is a
/// `409` of the API: that is a *conflict*. Nothing is classified by its text. What is *terminal* only its author knows:
///
/// ```
/// use windlass_runtime::controller::{Class, Error};
///
/// fn port(text: &str) -> Result<u16, Error> {
///     text.parse().map_err(Error::terminal)
/// }
/// let error = port("many").unwrap_err();
/// assert_eq!(error.class(), Class::Terminal);
/// assert_eq!(error.to_string(), "invalid digit found in string");
/// ```
// Not a `std::error::Error` itself: that would forbid the conversion from every one of them.
pub struct Error {
    class: Class,
    source: Box<dyn StdError + Send + Sync>,
}

impl Error {
    /// A failure that may be gone next time.
    pub fn transient(source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self { class: Class::Transient, source: source.into() }
    }

    /// A failure because something changed under our hands.
    pub fn conflict(source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self { class: Class::Conflict, source: source.into() }
    }

    /// A failure that stays until something changes.
    pub fn terminal(source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self { class: Class::Terminal, source: source.into() }
    }

    /// Its class.
    pub fn class(&self) -> Class {
        self.class
    }

    /// What happened.
    pub fn source(&self) -> &(dyn StdError + Send + Sync + 'static) {
        &*self.source
    }
}

impl<E: StdError + Send + Sync + 'static> From<E> for Error {
    fn from(error: E) -> Self {
        let class = if chain(&error).any(is_conflict) { Class::Conflict } else { Class::Transient };
        Self { class, source: Box::new(error) }
    }
}

/// The error and everything that it comes from, as one line.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut said = String::new();
        // kube's own words for an answer of the API are its debug form; the answer itself says it better.
        let told =
            |error: &&(dyn StdError + 'static)| !matches!(error.downcast_ref(), Some(kube::Error::Api(_)));
        for text in chain(&*self.source).filter(told).map(ToString::to_string) {
            // Many errors repeat their source in their own text.
            if said.contains(&text) {
                continue;
            }
            f.write_str(if said.is_empty() { "" } else { ": " })?;
            f.write_str(&text)?;
            said = text;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self, self.class)
    }
}

fn chain<'a>(error: &'a (dyn StdError + 'static)) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |error: &&'a (dyn StdError + 'static)| (*error).source())
}

fn is_conflict(error: &(dyn StdError + 'static)) -> bool {
    if let Some(error) = error.downcast_ref::<ClientError>() {
        return error.is_conflict() || error.is_already_exists();
    }
    let status = error.downcast_ref::<Status>();
    let status = status.or_else(|| error.downcast_ref::<Box<Status>>().map(|status| &**status));
    status.is_some_and(|status| status.code == 409)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::{Failure, Operation};
    use crate::resource::ResourceType;
    use k8s_openapi::api::core::v1::ConfigMap;

    #[derive(Debug, thiserror::Error)]
    #[error("could not apply the ConfigMap")]
    struct Wrapped(#[source] kube::Error);

    fn api(code: u16, reason: &str) -> kube::Error {
        kube::Error::Api(Box::new(Status::failure("the server said no", reason).with_code(code)))
    }

    fn by_question_mark(error: impl StdError + Send + Sync + 'static) -> Error {
        fn inner(error: impl StdError + Send + Sync + 'static) -> Result<(), Error> {
            Err(error)?;
            Ok(())
        }
        inner(error).unwrap_err()
    }

    #[test]
    fn the_question_mark_finds_a_conflict_however_deep() {
        assert_eq!(by_question_mark(api(409, "Conflict")).class(), Class::Conflict);
        assert_eq!(by_question_mark(Wrapped(api(409, "AlreadyExists"))).class(), Class::Conflict);
        assert_eq!(by_question_mark(Wrapped(api(500, "InternalError"))).class(), Class::Transient);
    }

    #[test]
    fn a_conflict_that_our_client_met_is_one() {
        let error = |failure| {
            let operation = Operation { verb: "apply", resource: ResourceType::of::<ConfigMap>(), key: None };
            by_question_mark(ClientError::new(operation, failure, "")).class()
        };
        assert_eq!(error(Failure::Conflict), Class::Conflict);
        assert_eq!(error(Failure::AlreadyExists), Class::Conflict);
        assert_eq!(error(Failure::Forbidden), Class::Transient);
    }

    #[test]
    fn a_conflict_by_its_text_only_is_none() {
        assert_eq!(by_question_mark(std::io::Error::other("409 Conflict")).class(), Class::Transient);
    }

    #[test]
    fn the_text_tells_the_whole_story_once() {
        let text = by_question_mark(Wrapped(api(500, "InternalError"))).to_string();
        assert!(text.starts_with("could not apply the ConfigMap: "), "{text}");
        assert_eq!(text.matches("the server said no").count(), 1, "{text}");
    }
}
