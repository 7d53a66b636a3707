//! A reference from an object to its owner.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde::Deserialize;

use super::Uid;
use crate::intern::Str;

/// A reference to the owner of an object.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OwnerRef {
    /// The owner's `group/version`.
    pub api_version: Str,
    /// The owner's kind.
    pub kind: Str,
    /// The owner's name, in the object's own namespace or cluster-scoped.
    pub name: Str,
    /// The owner's uid.
    pub uid: Uid,
    /// True if the owner is the controlling one.
    #[serde(default)]
    pub controller: bool,
}

impl From<&OwnerReference> for OwnerRef {
    fn from(owner: &OwnerReference) -> Self {
        Self {
            api_version: Str::from(&owner.api_version),
            kind: Str::from(&owner.kind),
            name: Str::from(&owner.name),
            uid: owner.uid.parse().unwrap_or_default(),
            controller: owner.controller.unwrap_or_default(),
        }
    }
}
