//! What happened to an object, and where a kind's readers stand.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;

use crate::resource::ResourceType;

/// One change of one object, as every subscriber sees it: exactly once, in order, with the true old object.
///
/// At least one of `old` and `new` is there. An object deleted and made again under the same name is two changes:
/// the old one goes, then the new one comes.
#[derive(Debug)]
pub struct Change<S> {
    /// What the cache held before; `None` for an object that is new.
    pub old: Option<Arc<S>>,
    /// What it holds now; `None` for an object that is gone.
    pub new: Option<Arc<S>>,
    /// What brought the change.
    pub origin: Origin,
}

impl<S> Change<S> {
    /// The newest known form of the object: what it is now, or what it was when it went.
    ///
    /// `None` never happens for a change that came from a cache.
    pub fn object(&self) -> Option<&Arc<S>> {
        self.new.as_ref().or(self.old.as_ref())
    }
}

// Derived, it would ask for `S: Clone`.
impl<S> Clone for Change<S> {
    fn clone(&self) -> Self {
        Self { old: self.old.clone(), new: self.new.clone(), origin: self.origin }
    }
}

/// What brought a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Origin {
    /// The first list of the kind, or the objects already there when a subscriber came late.
    InitialList,
    /// A later list, after the watch could not be resumed.
    Relist,
    /// The watch: someone changed something.
    Watch,
    /// The answer to a write of this process.
    Write,
}

/// Where the readers of one watch stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SyncState {
    /// The first list has not ended.
    Starting,
    /// The cache has seen everything, and follows.
    Synced,
    /// Something must change before the cache can (again) follow. What it holds may be out of date. It tries
    /// again by itself, and becomes [`Synced`](Self::Synced) once the cause is gone.
    Blocked(Arc<Problem>),
}

impl SyncState {
    /// Whether the cache has seen everything, and follows.
    pub fn is_synced(&self) -> bool {
        matches!(self, Self::Synced)
    }

    /// The worst of several: blocked before starting before synced.
    pub(crate) fn worst(states: impl IntoIterator<Item = Self>) -> Self {
        states.into_iter().fold(Self::Synced, |worst, state| match (&worst, &state) {
            (Self::Blocked(_), _) | (Self::Starting, Self::Synced | Self::Starting) => worst,
            _ => state,
        })
    }
}

/// Why a watch cannot go on, and what to do about it. Displayed as one sentence for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Which kind.
    pub resource: ResourceType,
    /// What is wrong.
    pub cause: Cause,
    /// What the server or the connection said.
    pub message: String,
    /// Since when.
    pub since: Timestamp,
}

/// What keeps a watch from going on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// The API server does not know the kind: its CRD is not installed, or not in this version.
    Missing,
    /// The rule that our account lacks.
    Forbidden(RbacRule),
    /// The API server cannot be reached, or refuses without saying why.
    Unreachable,
}

/// An RBAC rule, as it would stand in a `Role` or `ClusterRole`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RbacRule {
    /// API group, empty for the core group.
    pub api_group: String,
    /// Plural resource name.
    pub resource: String,
    /// What must be allowed.
    pub verbs: Vec<&'static str>,
    /// In which namespace; `None` means across the cluster, which takes a `ClusterRole`.
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
            Cause::Unreachable => write!(f, "{resource} cannot be followed: {}", self.message),
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
    fn a_problem_says_what_to_do() {
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
        assert_eq!(
            problem(Cause::Unreachable),
            "Deployment (apps/v1) cannot be followed: connection refused"
        );
    }
}
