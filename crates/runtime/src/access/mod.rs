//! Declared access: the operations of a process on each kind, as data, and the RBAC rules that allow exactly
//! these operations.
//!
//! It promises: rules are a pure function of the declaration: merged, sorted and the same every time, so that
//! a generated manifest changes only when the declaration does. The rules suffice, also where a permission is
//! easily forgotten: an apply that creates needs `create` beside `patch`; setting `blockOwnerDeletion` on a
//! child needs `update` on the owner's `finalizers`.
//!
//! It does not analyse reconcilers: watched kinds come from the [controllers](Access::watched_by), and
//! written kinds are declared beside the code that writes them.
//!
//! ```
//! use k8s_openapi::api::apps::v1::Deployment;
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use windlass_runtime::access::Access;
//!
//! let access = Access::none()
//!     .watches::<Deployment>()
//!     .owns::<Deployment>()
//!     .watches::<ConfigMap>()
//!     .applies::<ConfigMap>();
//! let role = access.cluster_role("shop-operator");
//! let (cluster, namespaced) = access.roles("shop-operator", ["shop"]);
//! assert!(cluster.is_none(), "nothing that it touches is cluster-wide");
//! # let _ = (role, namespaced);
//! ```

mod rules;

use std::borrow::Cow;
use std::collections::BTreeSet;

use k8s_openapi::api::authentication::v1::TokenReview;
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Pod, Secret};
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule, Role};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;

use crate::controller::Controller;
use crate::key::ObjectKey;
use crate::resource::{ResourceType, ScopeKind};

/// An RBAC verb. The variants are in the order in which rules list them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    /// Reads one object.
    Get,
    /// Lists objects of a kind.
    List,
    /// Watches objects of a kind.
    Watch,
    /// Creates objects of a kind.
    Create,
    /// Replaces objects of a kind.
    Update,
    /// Patches objects; also needed for server-side apply.
    Patch,
    /// Deletes objects of a kind.
    Delete,
}

impl Verb {
    /// Returns the verb as RBAC spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
        }
    }
}

/// One declared access: these verbs on this resource.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// The API group; empty for the core group.
    pub group: Cow<'static, str>,
    /// The plural resource name, with the subresource: `games`, `games/status`.
    pub resource: String,
    /// True if objects of this resource live in namespaces.
    pub namespaced: bool,
    /// The namespace, if access is needed in one namespace only: the process's own.
    pub namespace: Option<String>,
    /// The object name, if access is needed to one object only.
    pub name: Option<String>,
    /// The verbs that are allowed.
    pub verbs: BTreeSet<Verb>,
}

/// The operations of a process on each kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use = "it is only data: create roles from it"]
pub struct Access {
    entries: Vec<Entry>,
}

const FOLLOW: [Verb; 3] = [Verb::Get, Verb::List, Verb::Watch];

impl Access {
    /// Returns an empty declaration.
    pub fn none() -> Self {
        Self::default()
    }

    /// The declared entries, in order of declaration.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Adds a custom entry.
    pub fn with(mut self, entry: Entry) -> Self {
        self.entries.push(entry);
        self
    }

    /// Adds all entries of another declaration.
    pub fn and(mut self, other: Self) -> Self {
        self.entries.extend(other.entries);
        self
    }

    /// Adds verbs on a kind, or on its subresource (`""` for none).
    pub fn on(self, kind: &ResourceType, subresource: &str, verbs: impl IntoIterator<Item = Verb>) -> Self {
        let slash = if subresource.is_empty() { "" } else { "/" };
        self.with(Entry {
            group: kind.group.clone(),
            resource: format!("{}{slash}{subresource}", kind.plural),
            namespaced: kind.namespaced,
            namespace: None,
            name: None,
            verbs: verbs.into_iter().collect(),
        })
    }

    fn of<K>(self, subresource: &str, verbs: impl IntoIterator<Item = Verb>) -> Self
    where
        K: Resource<DynamicType = (), Scope: ScopeKind>,
    {
        self.on(&ResourceType::of::<K>(), subresource, verbs)
    }

    /// Adds what a cached kind needs: `get`, `list` and `watch`.
    pub fn watches<K: Resource<DynamicType = (), Scope: ScopeKind>>(self) -> Self {
        self.of::<K>("", FOLLOW)
    }

    /// Adds all kinds that a controller watches.
    pub fn watched_by(self, controller: &Controller) -> Self {
        controller.follows().fold(self, |access, followed| access.on(&followed.resource, "", FOLLOW))
    }

    /// Adds live reads of single objects.
    pub fn reads<K: Resource<DynamicType = (), Scope: ScopeKind>>(self) -> Self {
        self.of::<K>("", [Verb::Get])
    }

    /// Adds server-side apply: `patch`, and `create` for objects that do not exist yet.
    pub fn applies<K: Resource<DynamicType = (), Scope: ScopeKind>>(self) -> Self {
        self.of::<K>("", [Verb::Create, Verb::Patch])
    }

    /// Adds creation without later changes.
    pub fn creates<K: Resource<DynamicType = (), Scope: ScopeKind>>(self) -> Self {
        self.of::<K>("", [Verb::Create])
    }

    /// Adds patches without creation.
    pub fn patches<K: Resource<DynamicType = (), Scope: ScopeKind>>(self) -> Self {
        self.of::<K>("", [Verb::Patch])
    }

    /// Adds deletion of objects.
    pub fn deletes<K: Resource<DynamicType = (), Scope: ScopeKind>>(self) -> Self {
        self.of::<K>("", [Verb::Delete])
    }

    /// Adds server-side apply of the status subresource.
    pub fn status<K: Resource<DynamicType = (), Scope: ScopeKind>>(self) -> Self {
        self.of::<K>("status", [Verb::Patch])
    }

    /// Adds changes of the scale subresource.
    pub fn scales<K: Resource<DynamicType = (), Scope: ScopeKind>>(self) -> Self {
        self.of::<K>("scale", [Verb::Patch])
    }

    /// Adds ownership of other objects: a child with `blockOwnerDeletion` needs `update` on its owner's
    /// `finalizers`.
    pub fn owns<K: Resource<DynamicType = (), Scope: ScopeKind>>(self) -> Self {
        self.of::<K>("finalizers", [Verb::Update])
    }

    /// Adds setting and removing finalizers.
    pub fn finalizes<K: Resource<DynamicType = (), Scope: ScopeKind>>(self) -> Self {
        self.patches::<K>()
    }

    /// Adds eviction of pods.
    pub fn evicts(self) -> Self {
        self.of::<Pod>("eviction", [Verb::Create])
    }

    /// Adds `exec` in pods. Over a websocket that is a `get`; newer servers require `create` too.
    pub fn executes(self) -> Self {
        self.of::<Pod>("exec", [Verb::Get, Verb::Create])
    }

    /// Adds recording of events, and updates of their counts.
    pub fn events(self) -> Self {
        self.of::<Event>("", [Verb::Create, Verb::Patch])
    }

    /// Adds leader election with this Lease.
    pub fn elects(self, lease: &ObjectKey) -> Self {
        self.named::<Lease>(lease, FOLLOW.into_iter().chain([Verb::Create, Verb::Patch]))
    }

    /// Adds webhook certificates kept in this Secret.
    pub fn certificates(self, secret: &ObjectKey) -> Self {
        self.named::<Secret>(secret, FOLLOW.into_iter().chain([Verb::Create, Verb::Patch]))
    }

    /// Adds the injection of CA bundles into these webhook configurations, by name.
    pub fn injects<'a>(self, targets: impl IntoIterator<Item = &'a crate::webhook::Target>) -> Self {
        let verbs = || FOLLOW.into_iter().chain([Verb::Patch]);
        targets.into_iter().fold(self, |access, target| {
            access.named_of(&target.resource(), &ObjectKey::cluster(target.name()), verbs())
        })
    }

    /// Adds what a [`Guard`](crate::admin::Guard) needs to authenticate and authorize requests.
    pub fn guard(self) -> Self {
        self.creates::<TokenReview>().creates::<SubjectAccessReview>()
    }

    /// Adds verbs on one named object.
    pub fn named<K>(self, key: &ObjectKey, verbs: impl IntoIterator<Item = Verb>) -> Self
    where
        K: Resource<DynamicType = (), Scope: ScopeKind>,
    {
        self.named_of(&ResourceType::of::<K>(), key, verbs)
    }

    fn named_of(self, kind: &ResourceType, key: &ObjectKey, verbs: impl IntoIterator<Item = Verb>) -> Self {
        let mut access = self.on(kind, "", verbs);
        if let Some(entry) = access.entries.last_mut() {
            entry.namespace = key.namespace().map(str::to_owned);
            entry.name = Some(key.name().to_owned());
        }
        access
    }

    /// Returns the rules of all entries as a ClusterRole has them: merged and sorted.
    pub fn rules(&self) -> Vec<PolicyRule> {
        rules::merged(&self.entries)
    }

    /// Returns one ClusterRole for a process that works in all namespaces.
    ///
    /// Access to one namespace (the Lease, the certificates) becomes access to all of them here; use
    /// [`roles`](Self::roles) where that is too much.
    pub fn cluster_role(&self, name: &str) -> ClusterRole {
        cluster_role(name, self.rules())
    }

    /// Returns the roles of a process that works in these namespaces: one ClusterRole for cluster-scoped
    /// kinds, if there are any, and one Role in each namespace. Access to one object is granted only in that
    /// object's namespace, even if it is not one of these.
    pub fn roles(
        &self,
        name: &str,
        namespaces: impl IntoIterator<Item = impl Into<String>>,
    ) -> (Option<ClusterRole>, Vec<Role>) {
        let (local, cluster): (Vec<_>, Vec<_>) =
            self.entries.iter().cloned().partition(|entry| entry.namespaced);
        let cluster = (!cluster.is_empty()).then(|| cluster_role(name, rules::merged(&cluster)));
        let everywhere: BTreeSet<String> = namespaces.into_iter().map(Into::into).collect();
        let own = local.iter().filter_map(|entry| entry.namespace.clone());
        let all: BTreeSet<String> = everywhere.iter().cloned().chain(own).collect();
        let role = |namespace: String| {
            let here = |entry: &&Entry| match &entry.namespace {
                Some(own) => *own == namespace,
                None => everywhere.contains(&namespace),
            };
            let entries: Vec<_> = local.iter().filter(here).cloned().collect();
            Role {
                metadata: ObjectMeta {
                    name: Some(name.to_owned()),
                    namespace: Some(namespace),
                    ..ObjectMeta::default()
                },
                rules: Some(rules::merged(&entries)),
            }
        };
        let roles = all
            .into_iter()
            .map(role)
            .filter(|role| role.rules.as_ref().is_some_and(|rules| !rules.is_empty()));
        (cluster, roles.collect())
    }
}

fn cluster_role(name: &str, rules: Vec<PolicyRule>) -> ClusterRole {
    ClusterRole {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        rules: Some(rules),
        ..ClusterRole::default()
    }
}
