//! Owner references, which decide about garbage collection.
//!
//! An owner reference that the garbage collector cannot resolve loses data: it deletes a child whose owner is
//! not found in the child's own namespace. Such references are errors here.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::Resource;

/// An object that can own others: the fields of a reference to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    api_version: String,
    kind: String,
    name: String,
    uid: String,
    namespace: Option<String>,
}

impl Owner {
    /// Creates an owner from a typed object.
    ///
    /// # Errors
    /// Fails for an object that was never read from the API: it has no uid, and cannot own anything.
    pub fn of<K: Resource<DynamicType = ()>>(object: &K) -> Result<Self, OwnerError> {
        let meta = object.meta();
        Self::new(
            K::api_version(&()),
            K::kind(&()),
            meta.namespace.as_deref(),
            meta.name.as_deref(),
            meta.uid.as_deref(),
        )
    }

    /// Creates an owner from its fields.
    ///
    /// # Errors
    /// Fails like [`of`](Self::of) if name or uid is missing or empty.
    pub fn new(
        api_version: impl Into<String>,
        kind: impl Into<String>,
        namespace: Option<&str>,
        name: Option<&str>,
        uid: Option<&str>,
    ) -> Result<Self, OwnerError> {
        let kind = kind.into();
        match (name.filter(|name| !name.is_empty()), uid.filter(|uid| !uid.is_empty())) {
            (Some(name), Some(uid)) => Ok(Self {
                api_version: api_version.into(),
                kind,
                name: name.to_owned(),
                uid: uid.to_owned(),
                namespace: namespace.map(str::to_owned),
            }),
            _ => Err(OwnerError::NotStored { kind, name: name.unwrap_or_default().to_owned() }),
        }
    }

    /// Returns the reference of the controlling owner of a child in `child_namespace` (`None`:
    /// cluster-scoped).
    ///
    /// # Errors
    /// Fails if a namespaced owner and its child are not in the same namespace.
    pub fn controller_reference(&self, child_namespace: Option<&str>) -> Result<OwnerReference, OwnerError> {
        self.reference(child_namespace, true)
    }

    /// Returns the reference of one of several owners of a child in `child_namespace` (`None`:
    /// cluster-scoped).
    ///
    /// # Errors
    /// Fails like [`controller_reference`](Self::controller_reference).
    pub fn plain_reference(&self, child_namespace: Option<&str>) -> Result<OwnerReference, OwnerError> {
        self.reference(child_namespace, false)
    }

    /// Makes this the controlling owner of a child, and returns true if that changed the child.
    ///
    /// A reference to the same owner (group, kind and name) is updated in place.
    ///
    /// # Errors
    /// Fails like [`controller_reference`](Self::controller_reference), and if another controller owns the
    /// child.
    pub fn control(&self, child: &mut ObjectMeta) -> Result<bool, OwnerError> {
        let reference = self.controller_reference(child.namespace.as_deref())?;
        let owners = child.owner_references.as_deref().unwrap_or_default();
        if let Some(other) =
            owners.iter().find(|other| other.controller == Some(true) && !self.is_meant_by(other))
        {
            return Err(OwnerError::AlreadyControlled {
                child: child.name.clone().unwrap_or_default(),
                controller: format!("{} {}", other.kind, other.name),
            });
        }
        match owners.iter().position(|other| self.is_meant_by(other)) {
            Some(index) if owners[index] == reference => Ok(false),
            Some(index) => {
                if let Some(owners) = &mut child.owner_references {
                    owners[index] = reference;
                }
                Ok(true)
            }
            None => {
                child.owner_references.get_or_insert_default().push(reference);
                Ok(true)
            }
        }
    }

    /// Removes every reference to this owner, and returns true if there was one.
    pub fn release(&self, child: &mut ObjectMeta) -> bool {
        let Some(owners) = &mut child.owner_references else {
            return false;
        };
        let length = owners.len();
        owners.retain(|other| !self.is_meant_by(other));
        let changed = owners.len() != length;
        if owners.is_empty() {
            child.owner_references = None;
        }
        changed
    }

    fn reference(
        &self,
        child_namespace: Option<&str>,
        controller: bool,
    ) -> Result<OwnerReference, OwnerError> {
        match (self.namespace.as_deref(), child_namespace) {
            (Some(_), None) => Err(OwnerError::NamespacedOwnerOfClusterChild { owner: self.to_string() }),
            (Some(mine), Some(theirs)) if mine != theirs => Err(OwnerError::AcrossNamespaces {
                owner: self.to_string(),
                child_namespace: theirs.to_owned(),
            }),
            _ => Ok(OwnerReference {
                api_version: self.api_version.clone(),
                kind: self.kind.clone(),
                name: self.name.clone(),
                uid: self.uid.clone(),
                controller: controller.then_some(true),
                block_owner_deletion: controller.then_some(true),
            }),
        }
    }

    /// Returns true if a reference is to this owner: version and uid may be outdated.
    fn is_meant_by(&self, reference: &OwnerReference) -> bool {
        group(&reference.api_version) == group(&self.api_version)
            && reference.kind == self.kind
            && reference.name == self.name
    }
}

impl std::fmt::Display for Owner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{} {namespace}/{}", self.kind, self.name),
            None => write!(f, "{} {}", self.kind, self.name),
        }
    }
}

/// Returns the group of an `apiVersion`; empty for the core group.
pub(crate) fn group(api_version: &str) -> &str {
    api_version.rsplit_once('/').map_or("", |(group, _)| group)
}

/// The reason why an object cannot own another.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OwnerError {
    /// The owner was never stored in the API.
    #[error("{kind} {name} cannot own anything: it has no name and uid yet, create it first")]
    NotStored {
        /// The owner's kind.
        kind: String,
        /// The owner's name, if it has one.
        name: String,
    },
    /// The child is in another namespace, where the garbage collector does not find the owner.
    #[error(
        "{owner} cannot own an object in namespace {child_namespace}: the garbage collector would delete it"
    )]
    AcrossNamespaces {
        /// The kind and name of the owner.
        owner: String,
        /// The child's namespace.
        child_namespace: String,
    },
    /// The child is cluster-scoped, but the owner is namespaced.
    #[error("{owner} is namespaced and cannot own a cluster-scoped object: label it and use a finalizer")]
    NamespacedOwnerOfClusterChild {
        /// The kind and name of the owner.
        owner: String,
    },
    /// Another controller owns the child; two controllers would undo each other's work.
    #[error("{child} is controlled by {controller}")]
    AlreadyControlled {
        /// The child's name.
        child: String,
        /// Kind and name of its controller.
        controller: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::apps::v1::Deployment;

    fn owner(namespace: Option<&str>) -> Owner {
        Owner::new("apps/v1", "Deployment", namespace, Some("web"), Some("u-1")).unwrap()
    }

    fn child(namespace: Option<&str>) -> ObjectMeta {
        ObjectMeta {
            name: Some("child".into()),
            namespace: namespace.map(str::to_owned),
            ..ObjectMeta::default()
        }
    }

    #[test]
    fn a_controller_reference_names_the_owner_and_blocks_its_deletion() {
        let reference = owner(Some("shop")).controller_reference(Some("shop")).unwrap();
        assert_eq!((reference.controller, reference.block_owner_deletion), (Some(true), Some(true)));
        assert_eq!((reference.api_version.as_str(), reference.uid.as_str()), ("apps/v1", "u-1"));
        let plain = owner(None).plain_reference(Some("shop")).unwrap();
        assert_eq!((plain.controller, plain.block_owner_deletion), (None, None));
    }

    #[test]
    fn an_owner_owns_only_where_the_garbage_collector_finds_it() {
        let namespaced = owner(Some("shop"));
        assert!(matches!(
            namespaced.controller_reference(Some("other")),
            Err(OwnerError::AcrossNamespaces { .. })
        ));
        assert!(matches!(
            namespaced.controller_reference(None),
            Err(OwnerError::NamespacedOwnerOfClusterChild { .. })
        ));
        let cluster = owner(None);
        assert!(
            cluster.controller_reference(Some("shop")).is_ok() && cluster.controller_reference(None).is_ok()
        );
    }

    #[test]
    fn an_object_that_was_never_stored_owns_nothing() {
        let error = Owner::of(&Deployment::default()).unwrap_err();
        assert!(matches!(error, OwnerError::NotStored { .. }));
    }

    #[test]
    fn taking_control_twice_changes_the_child_once() {
        let mut object = child(Some("shop"));
        let owner = owner(Some("shop"));
        assert_eq!((owner.control(&mut object), owner.control(&mut object)), (Ok(true), Ok(false)));
        assert!(owner.release(&mut object) && object.owner_references.is_none());
        assert!(!owner.release(&mut object));
    }

    #[test]
    fn a_reference_with_an_older_version_or_uid_is_updated() {
        let mut object = child(Some("shop"));
        let old = Owner::new("apps/v1beta1", "Deployment", Some("shop"), Some("web"), Some("u-0")).unwrap();
        old.control(&mut object).unwrap();
        assert_eq!(owner(Some("shop")).control(&mut object), Ok(true));
        let owners = object.owner_references.unwrap();
        assert_eq!(
            (owners.len(), owners[0].uid.as_str(), owners[0].api_version.as_str()),
            (1, "u-1", "apps/v1")
        );
    }

    #[test]
    fn a_child_has_one_controller() {
        let mut object = child(Some("shop"));
        let other = Owner::new("apps/v1", "Deployment", Some("shop"), Some("other"), Some("u-9")).unwrap();
        other.control(&mut object).unwrap();
        let before = object.clone();
        let error = owner(Some("shop")).control(&mut object).unwrap_err();
        assert_eq!(error.to_string(), "child is controlled by Deployment other");
        assert_eq!(object, before);
    }
}
