//! Results of a reconcile.

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use kube::core::Status;

use crate::client::{ClientError, Failure};

/// The time of the next run of a key after a successful reconcile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "the controller must return it"]
pub enum Requeue {
    /// The key runs again when something changes.
    OnChange,
    /// The key runs again after this time, even if nothing changes: for state that cannot be watched.
    ///
    /// A change before that time runs the key at once, and the result of that run replaces this one.
    After(Duration),
}

/// The class of a failure, which decides when the key runs again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// The next attempt may succeed: run again with exponential backoff.
    Transient,
    /// The reconcile acted on outdated state: run again at once, without an error. Repeated conflicts of one
    /// key slow down to one attempt per second.
    Conflict,
    /// The reconcile cannot succeed before something changes: run again only then.
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

/// The error of a failed reconcile, with its [`Class`].
///
/// The `?` operator converts any error. It is *transient*, unless it or one of its sources is a `409` of the
/// API: that is a *conflict*. Nothing is classified by its text. *Terminal* errors must be marked by the code
/// that knows:
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
// Not a `std::error::Error` itself: that would forbid the conversion from all of them.
pub struct Error {
    class: Class,
    source: Box<dyn StdError + Send + Sync>,
    longest: Option<Duration>,
}

/// The longest backoff while the server refuses or does not answer: neither a missing right that is granted
/// nor a server that comes back is reported by a watch.
const REFUSED: Duration = Duration::from_mins(1);

impl Error {
    /// Creates a transient error: the next attempt may succeed.
    pub fn transient(source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self { class: Class::Transient, source: source.into(), longest: None }
    }

    /// Creates a conflict: something changed concurrently.
    pub fn conflict(source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self { class: Class::Conflict, source: source.into(), longest: None }
    }

    /// Creates a terminal error: it persists until something changes.
    pub fn terminal(source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self { class: Class::Terminal, source: source.into(), longest: None }
    }

    /// Limits the backoff after this error to a minute, for a right that is missing or a server that does not
    /// answer: the controller need not wait for a quarter of an hour after the cause is gone. Errors of the
    /// client that say so are limited already.
    #[must_use]
    pub fn refused(self) -> Self {
        Self { longest: Some(REFUSED), ..self }
    }

    /// The longest backoff after this error, if it is limited.
    pub fn longest(&self) -> Option<Duration> {
        self.longest
    }

    /// The class of the error.
    pub fn class(&self) -> Class {
        self.class
    }

    /// The underlying error.
    pub fn source(&self) -> &(dyn StdError + Send + Sync + 'static) {
        &*self.source
    }
}

impl<E: StdError + Send + Sync + 'static> From<E> for Error {
    fn from(error: E) -> Self {
        let class = if chain(&error).any(is_conflict) { Class::Conflict } else { Class::Transient };
        let longest = chain(&error).any(is_refused).then_some(REFUSED);
        Self { class, source: Box::new(error), longest }
    }
}

/// Displays the error and its sources on one line.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = String::new();
        // kube displays an API error in its debug form; its source has the readable message.
        let readable =
            |error: &&(dyn StdError + 'static)| !matches!(error.downcast_ref(), Some(kube::Error::Api(_)));
        for text in chain(&*self.source).filter(readable).map(ToString::to_string) {
            // Many errors repeat their source in their own text.
            if shown.contains(&text) {
                continue;
            }
            f.write_str(if shown.is_empty() { "" } else { ": " })?;
            f.write_str(&text)?;
            shown = text;
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

/// Returns whether the server refused a call for lack of a right, or did not answer it.
fn is_refused(error: &(dyn StdError + 'static)) -> bool {
    error.downcast_ref::<ClientError>().is_some_and(|error| {
        matches!(
            error.failure(),
            Failure::Forbidden
                | Failure::Unauthorized
                | Failure::Unavailable
                | Failure::Timeout
                | Failure::Throttled { .. }
        )
    })
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
    use crate::client::Operation;
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
    fn the_question_mark_operator_finds_a_conflict_at_any_depth() {
        assert_eq!(by_question_mark(api(409, "Conflict")).class(), Class::Conflict);
        assert_eq!(by_question_mark(Wrapped(api(409, "AlreadyExists"))).class(), Class::Conflict);
        assert_eq!(by_question_mark(Wrapped(api(500, "InternalError"))).class(), Class::Transient);
    }

    #[test]
    fn a_conflict_of_our_client_has_the_class_conflict() {
        let error = |failure| {
            let operation = Operation { verb: "apply", resource: ResourceType::of::<ConfigMap>(), key: None };
            by_question_mark(ClientError::new(operation, failure, "")).class()
        };
        assert_eq!(error(Failure::Conflict), Class::Conflict);
        assert_eq!(error(Failure::AlreadyExists), Class::Conflict);
        assert_eq!(error(Failure::Forbidden), Class::Transient);
    }

    #[test]
    fn an_error_is_not_a_conflict_because_of_its_text() {
        assert_eq!(by_question_mark(std::io::Error::other("409 Conflict")).class(), Class::Transient);
    }

    #[test]
    fn an_error_displays_each_source_once() {
        let text = by_question_mark(Wrapped(api(500, "InternalError"))).to_string();
        assert!(text.starts_with("could not apply the ConfigMap: "), "{text}");
        assert_eq!(text.matches("the server said no").count(), 1, "{text}");
    }
}
