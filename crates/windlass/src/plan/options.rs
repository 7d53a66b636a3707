//! Options of a node, set by the author of the plan.

use windlass_runtime::resource::ResourceType;

use super::desired::Desired;
use super::takeover::Predecessor;
use crate::error::PlanError;
use crate::live::Live;
use crate::live::readiness::Readiness;

pub(crate) type Check = Box<dyn Fn(&Live) -> Readiness + Send + Sync>;
pub(crate) type Mutation = Box<dyn Fn(&mut Desired) -> Result<(), PlanError> + Send + Sync>;

/// The policy for a field that another field manager holds with another value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Conflicts {
    /// Take the field. This is the default: changes belong into the owner's spec.
    #[default]
    Take,
    /// Write nothing, and name the field and its manager in the status.
    Report,
}

/// The policy for a field that differs and that the API does not allow to change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Immutable {
    /// Write nothing, and name the field in the status. This is the default, except for the kinds below.
    Report,
    /// Delete the object without its dependents (pods keep running), and create it again. This is the default
    /// for RoleBindings and ClusterRoleBindings, which own nothing.
    Recreate,
}

impl Immutable {
    pub(crate) fn of(resource: &ResourceType) -> Self {
        match (&*resource.group, &*resource.kind) {
            ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => Self::Recreate,
            _ => Self::Report,
        }
    }
}

/// Options of a node, set by the author of the plan.
#[derive(Default)]
pub(crate) struct Options {
    pub(crate) check: Option<Check>,
    pub(crate) mutations: Vec<Mutation>,
    pub(crate) conflicts: Conflicts,
    pub(crate) immutable: Option<Immutable>,
    pub(crate) retain: Option<bool>,
    /// True if the object is deleted as soon as it leaves the plan, without waiting for the rest of the plan
    /// to be ready.
    pub(crate) pruned_first: bool,
    pub(crate) predecessors: Vec<Predecessor>,
}
