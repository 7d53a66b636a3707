//! Declared access: what a process does to which kinds, as data, and the RBAC rules that let it do exactly that.
//!
//! It promises: rules are a pure function of what is declared: merged, sorted and the same every time, so that a generated manifest
//! changes only when the declaration does; and they suffice, also where they are easily forgotten: an apply that creates
//! needs `create` beside `patch`; who sets `blockOwnerDeletion` on a child needs `update` on the owner's `finalizers`.
//!
//! It does not find out by itself what reconcilers do: watched kinds come from the [controllers](Access::watched_by), what is
//! written is declared beside the code that writes it.
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

/// What may be done, in the order in which rules list it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    /// Read one.
    Get,
    /// Read all.
    List,
    /// Follow.
    Watch,
    /// Make.
    Create,
    /// Replace.
    Update,
    /// Change, and apply.
    Patch,
    /// Remove.
    Delete,
}

impl Verb {
    /// As RBAC writes it.
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
    /// The plural name, with the subresource: `games`, `games/status`.
    pub resource: String,
    /// Whether objects of it live in namespaces.
    pub namespaced: bool,
    /// In which namespace, where it is always the same: the process's own.
    pub namespace: Option<String>,
    /// Which object, where it is always the same.
    pub name: Option<String>,
    /// What is done.
    pub verbs: BTreeSet<Verb>,
}

/// What a process does to which kinds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use = "it is data: make roles of it"]
pub struct Access {
    entries: Vec<Entry>,
}

const FOLLOW: [Verb; 3] = [Verb::Get, Verb::List, Verb::Watch];

impl Access {
    /// Nothing.
    pub fn none() -> Self {
        Self::default()
    }

    /// The entries, as they were declared.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Adds an entry of one's own.
    pub fn with(mut self, entry: Entry) -> Self {
        self.entries.push(entry);
        self
    }

    /// Both.
    pub fn and(mut self, other: Self) -> Self {
        self.entries.extend(other.entries);
        self
    }

    /// Any verbs on a kind, or on its subresource (`""` for none).
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

    /// Cached: followed by a watch.
    pub fn watches<K: Resource<DynamicType = (), Scope: ScopeKind>>(self) -> Self {
        self.of::<K>("", FOLLOW)
    }

    /// All kinds that a controller follows.
    pub fn watched_by(self, controller: &Controller) -> Self {
        controller.follows().fold(self, |access, followed| access.on(&followed.resource, "", FOLLOW))
    }

    /// Read live, one by one.
    pub fn reads<K: Resource<DynamicType = (), Scope: ScopeKind>>(self) -> Self {
        self.of::<K>("", [Verb::Get])
    }

    /// Applied: an apply that creates needs both.
    pub fn applies<K: Resource<DynamicType = (), Scope: ScopeKind>>(self) -> Self {
        self.of::<K>("", [Verb::Create, Verb::Patch])
    }

    /// Created, and never changed.
    pub fn creates<K: Resource<DynamicType = (), Scope: ScopeKind>>(self) -> Self {
        self.of::<K>("", [Verb::Create])
    }

    /// Patched, and never created.
    pub fn patches<K: Resource<DynamicType = (), Scope: ScopeKind>>(self) -> Self {
        self.of::<K>("", [Verb::Patch])
    }

    /// Deleted.
    pub fn deletes<K: Resource<DynamicType = (), Scope: ScopeKind>>(self) -> Self {
        self.of::<K>("", [Verb::Delete])
    }

    /// Whose status is applied.
    pub fn status<K: Resource<DynamicType = (), Scope: ScopeKind>>(self) -> Self {
        self.of::<K>("status", [Verb::Patch])
    }

    /// Scaled by its subresource.
    pub fn scales<K: Resource<DynamicType = (), Scope: ScopeKind>>(self) -> Self {
        self.of::<K>("scale", [Verb::Patch])
    }

    /// Made the owner of other objects: a child with `blockOwnerDeletion` needs leave to finalize its owner.
    pub fn owns<K: Resource<DynamicType = (), Scope: ScopeKind>>(self) -> Self {
        self.of::<K>("finalizers", [Verb::Update])
    }

    /// Given a finalizer, and rid of it.
    pub fn finalizes<K: Resource<DynamicType = (), Scope: ScopeKind>>(self) -> Self {
        self.patches::<K>()
    }

    /// Pods are evicted.
    pub fn evicts(self) -> Self {
        self.of::<Pod>("eviction", [Verb::Create])
    }

    /// Commands are run in pods. Over a websocket that is a `get`, and newer servers want `create` too.
    pub fn executes(self) -> Self {
        self.of::<Pod>("exec", [Verb::Get, Verb::Create])
    }

    /// Events are recorded, and counted up.
    pub fn events(self) -> Self {
        self.of::<Event>("", [Verb::Create, Verb::Patch])
    }

    /// A leader is elected by this Lease.
    pub fn elects(self, lease: &ObjectKey) -> Self {
        self.named::<Lease>(lease, FOLLOW.into_iter().chain([Verb::Create, Verb::Patch]))
    }

    /// Webhook certificates are kept in this Secret.
    pub fn certificates(self, secret: &ObjectKey) -> Self {
        self.named::<Secret>(secret, FOLLOW.into_iter().chain([Verb::Create, Verb::Patch]))
    }

    /// Authorities are injected into these configurations, by name.
    pub fn injects<'a>(self, targets: impl IntoIterator<Item = &'a crate::webhook::Target>) -> Self {
        let verbs = || FOLLOW.into_iter().chain([Verb::Patch]);
        targets.into_iter().fold(self, |access, target| {
            access.named_of(&target.resource(), &ObjectKey::cluster(target.name()), verbs())
        })
    }

    /// Requests are guarded by a [`Guard`](crate::admin::Guard).
    pub fn guard(self) -> Self {
        self.creates::<TokenReview>().creates::<SubjectAccessReview>()
    }

    /// These verbs on one object.
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

    /// The rules for everything, as a ClusterRole has them: merged and sorted.
    pub fn rules(&self) -> Vec<PolicyRule> {
        rules::merged(&self.entries)
    }

    /// One role for a process that works in all namespaces.
    ///
    /// What lives in one namespace (its Lease, its certificates) is granted in all of them: bind [`roles`](Self::roles) where that
    /// is too much.
    pub fn cluster_role(&self, name: &str) -> ClusterRole {
        cluster_role(name, self.rules())
    }

    /// The roles of a process that works in these namespaces: one for cluster-scoped kinds, if there are any, and one in each
    /// namespace. What belongs to one object's namespace is granted only there, also where it is none of these.
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
