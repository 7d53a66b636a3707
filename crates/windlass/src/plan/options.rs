//! What the author says about a node beside what it is.

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
    /// Take the field. The default: the owner's spec is where to change things.
    #[default]
    Take,
    /// Write nothing, and say in the status who holds what.
    Report,
}

/// The policy for a field that differs and that the API does not allow to be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Immutable {
    /// Write nothing, and say in the status which field it is. The default, but for the kinds below.
    Report,
    /// Delete the object, leaving what it owns in place (pods go on), and create it again. The default for RoleBindings and
    /// ClusterRoleBindings, which own nothing.
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

/// What the author said about a node beside what it is.
#[derive(Default)]
pub(crate) struct Options {
    pub(crate) check: Option<Check>,
    pub(crate) mutations: Vec<Mutation>,
    pub(crate) conflicts: Conflicts,
    pub(crate) immutable: Option<Immutable>,
    pub(crate) retain: Option<bool>,
    pub(crate) predecessors: Vec<Predecessor>,
}
