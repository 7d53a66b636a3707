//! A node while it is drawn.

use std::sync::Arc;

use jiff::Timestamp;
use windlass_runtime::key::ObjectKey;
use windlass_runtime::resource::ResourceType;

use crate::desired::Desired;
use crate::error::DrawError;
use crate::inputs::Given;
use crate::live::Live;
use crate::naming;
use crate::readiness::Readiness;
use crate::renewal::Making;
use crate::secrecy::Random;
use crate::step::AnyStep;

pub(crate) type Generator = Box<dyn Fn(&mut Random) -> Result<Desired, DrawError> + Send + Sync>;
pub(crate) type Maker = Box<dyn Fn(&mut Making<'_>) -> Result<(Desired, Timestamp), DrawError> + Send + Sync>;
pub(crate) type Check = Box<dyn Fn(&Live) -> Readiness + Send + Sync>;
pub(crate) type Mutation = Box<dyn Fn(&mut Desired) -> Result<(), DrawError> + Send + Sync>;

/// What a node is.
pub(crate) enum Verb {
    Apply(Desired),
    CreateOnce {
        resource: ResourceType,
        key: ObjectKey,
        generate: Generator,
    },
    Renew {
        resource: ResourceType,
        key: ObjectKey,
        recipe: String,
        make: Maker,
    },
    Pending {
        resource: ResourceType,
        key: ObjectKey,
        why: String,
    },
    Step(Arc<dyn AnyStep>),
    Input(Given),
    /// Something that could not even be written down; its error is kept apart.
    Broken,
}

/// What to do where another field manager holds a field that the plan sets to another value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Conflicts {
    /// Take the field. The default: the owner's spec is where to change things.
    #[default]
    Take,
    /// Touch nothing, and say in the status who holds what.
    Report,
}

/// What to do where a field differs that the API does not allow to be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Immutable {
    /// Touch nothing, and say in the status which field it is. The default, but for the kinds below.
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

pub(crate) struct Draft {
    pub(crate) id: String,
    pub(crate) verb: Verb,
    pub(crate) after: Vec<usize>,
    pub(crate) check: Option<Check>,
    pub(crate) mutations: Vec<Mutation>,
    pub(crate) conflicts: Conflicts,
    pub(crate) immutable: Option<Immutable>,
    pub(crate) retain: Option<bool>,
    /// What had it before us.
    pub(crate) before_us: Vec<BeforeUs>,
    pub(crate) enabled: bool,
}

/// An object of the owner's, in the same namespace, that had another one before us.
pub(crate) struct BeforeUs {
    pub(crate) resource: ResourceType,
    pub(crate) name: String,
    /// Whether it stays when we have it: it does not write it.
    pub(crate) stays: bool,
}

impl Draft {
    pub(crate) fn new(id: String, verb: Verb) -> Self {
        Self {
            id,
            verb,
            after: Vec::new(),
            check: None,
            mutations: Vec::new(),
            conflicts: Conflicts::default(),
            immutable: None,
            retain: None,
            before_us: Vec::new(),
            enabled: true,
        }
    }
}

/// A Job under a name that changes with its spec.
pub(crate) fn named_by_content(job: &Desired) -> Result<Desired, DrawError> {
    let mut named = job.clone();
    let spec = windlass_runtime::cache::Digest::of(&job.body["spec"])?;
    let name = naming::by_content(job.key.name(), spec.as_bytes(), naming::JOB);
    named.body["metadata"]["name"] = name.clone().into();
    named.key = ObjectKey::new(job.key.namespace().map(Into::into), name);
    Ok(named)
}
