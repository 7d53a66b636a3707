//! Changes of objects, and the synchronization state of a kind.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;

use crate::resource::ResourceType;

/// One change of one object. Every subscriber sees each change exactly once, in order, with the object as it
/// was before.
///
/// At least one of `old` and `new` is set. An object that is deleted and recreated under the same name causes
/// two changes: a removal, then an addition.
#[derive(Debug)]
pub struct Change<S> {
    /// The object that the cache held before; `None` for a new object.
    pub old: Option<Arc<S>>,
    /// The object that the cache holds now; `None` for an object that is gone.
    pub new: Option<Arc<S>>,
    /// The cause of the change.
    pub origin: Origin,
}

impl<S> Change<S> {
    /// Returns the newest known form of the object: its present form, or its last form if it is gone.
    ///
    /// The result is never `None` for a change that came from a cache.
    pub fn object(&self) -> Option<&Arc<S>> {
        self.new.as_ref().or(self.old.as_ref())
    }
}

// A derived impl would require `S: Clone`.
impl<S> Clone for Change<S> {
    fn clone(&self) -> Self {
        Self { old: self.old.clone(), new: self.new.clone(), origin: self.origin }
    }
}

/// The cause of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Origin {
    /// The first list of the kind, or the objects that were cached when a subscriber was added.
    InitialList,
    /// A later list, after the watch could not be resumed.
    Relist,
    /// A watch event.
    Watch,
    /// The response to a write of this process.
    Write,
}

/// The synchronization state of one watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SyncState {
    /// The first list has not finished yet.
    Starting,
    /// The cache is complete and follows changes.
    Synced,
    /// The cache cannot follow changes until something is repaired. Its content may be out of date. It
    /// retries by itself and becomes [`Synced`](Self::Synced) once the cause is gone.
    Blocked(Arc<Problem>),
}

impl SyncState {
    /// Returns true if the cache is complete and follows changes.
    pub fn is_synced(&self) -> bool {
        matches!(self, Self::Synced)
    }

    /// Returns the worst of several states: blocked before starting before synced.
    pub(crate) fn worst(states: impl IntoIterator<Item = Self>) -> Self {
        states.into_iter().fold(Self::Synced, |worst, state| match (&worst, &state) {
            (Self::Blocked(_), _) | (Self::Starting, Self::Synced | Self::Starting) => worst,
            _ => state,
        })
    }
}

/// The reason why a watch cannot continue, with a remedy. Displayed as one sentence for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The kind that is watched.
    pub resource: ResourceType,
    /// The cause, for programs.
    pub cause: Cause,
    /// The message of the server or of the connection.
    pub message: String,
    /// The time since which the watch is blocked.
    pub since: Timestamp,
}

/// The cause of a blocked watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// The API server does not know the kind: its CRD is not installed, or not in this version.
    Missing,
    /// The account of this process lacks this rule.
    Forbidden(RbacRule),
    /// The API server cannot be reached, or rejects the request without a reason.
    Unreachable,
}

/// An RBAC rule, as it would stand in a `Role` or `ClusterRole`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RbacRule {
    /// The API group; empty for the core group.
    pub api_group: String,
    /// The plural resource name.
    pub resource: String,
    /// The verbs that must be allowed.
    pub verbs: Vec<&'static str>,
    /// The namespace; `None` means all namespaces, which requires a `ClusterRole`.
    pub namespace: Option<String>,
}

impl fmt::Display for RbacRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verbs: Vec<String> = self.verbs.iter().map(|verb| format!("{verb:?}")).collect();
        write!(
            f,
            "{{apiGroups: [{:?}], resources: [{:?}], verbs: [{}]}}",
            self.api_group,
            self.resource,
            verbs.join(", ")
        )?;
        match &self.namespace {
            Some(namespace) => write!(f, " in a Role of namespace {namespace}"),
            None => f.write_str(" in a ClusterRole"),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let resource = &self.resource;
        match &self.cause {
            Cause::Missing => write!(
                f,
                "{resource} is not served: install the CRD {}, in version {}",
                resource.group_resource(),
                resource.version
            ),
            Cause::Forbidden(rule) => write!(f, "{resource} may not be read: grant {rule}"),
            Cause::Unreachable => write!(f, "{resource} cannot be watched: {}", self.message),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::apps::v1::Deployment;

    fn problem(cause: Cause) -> String {
        let resource = ResourceType::of::<Deployment>();
        Problem { resource, cause, message: "connection refused".into(), since: Timestamp::UNIX_EPOCH }
            .to_string()
    }

    #[test]
    fn a_problem_is_displayed_with_its_remedy() {
        assert_eq!(
            problem(Cause::Missing),
            "Deployment (apps/v1) is not served: install the CRD deployments.apps, in version v1"
        );
        assert_eq!(
            problem(Cause::Forbidden(RbacRule {
                api_group: "apps".into(),
                resource: "deployments".into(),
                verbs: vec!["list", "watch"],
                namespace: Some("shop".into()),
            })),
            "Deployment (apps/v1) may not be read: grant {apiGroups: [\"apps\"], resources: [\"deployments\"], \
             verbs: [\"list\", \"watch\"]} in a Role of namespace shop"
        );
        assert_eq!(problem(Cause::Unreachable), "Deployment (apps/v1) cannot be watched: connection refused");
    }
}
