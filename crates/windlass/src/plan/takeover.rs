//! Taking over from another operator: everything that is needed only while an installation is migrated.
//!
//! An operator that replaces no other operator needs none of this.

use windlass_runtime::access::{Access, Verb};
use windlass_runtime::resource::ResourceType;

use crate::live::Kind;

type Wait<O> = Box<dyn Fn(&O) -> Option<String> + Send + Sync>;

/// The objects and fields that a controller takes over from the operator that it replaces; see
/// [`Controls::takeover`](crate::Controls::takeover).
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use windlass::Takeover;
///
/// let takeover: Takeover<ConfigMap> = Takeover::none()
///     .managers(["former-operator"])
///     .wait_while(|owner: &ConfigMap| owner.immutable.map(|_| "the former operator is still at work".to_owned()));
/// ```
#[must_use = "a takeover does nothing unless `Controls::takeover` returns it"]
pub struct Takeover<O> {
    managers: Vec<String>,
    writers: Vec<ResourceType>,
    wait: Option<Wait<O>>,
}

impl<O> Takeover<O> {
    /// Returns an empty takeover: nothing is taken over.
    pub fn none() -> Self {
        Self { managers: Vec::new(), writers: Vec::new(), wait: None }
    }

    /// Sets the field managers of the former operator: the fields that they wrote become ours when an object
    /// is adopted, and those that the plan does not declare are dropped. Fields of other managers stay.
    pub fn managers(mut self, managers: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.managers.extend(managers.into_iter().map(Into::into));
        self
    }

    /// Declares that objects of this kind [wrote planned objects](Predecessor::written_by) for the former
    /// operator. The kind need not be installed, and it is not watched; the operator gets the rights to get
    /// and to delete its objects.
    pub fn writers<K: Kind>(mut self) -> Self {
        let resource = ResourceType::of::<K>();
        if !self.writers.contains(&resource) {
            self.writers.push(resource);
        }
        self
    }

    /// Pauses the work for an owner as long as this function returns a reason; the owner's status shows the
    /// reason. The function is pure, and it is called in every reconcile.
    ///
    /// For owners that another controller writes: what the former operator wrote there should not cause a
    /// rollout of pods.
    pub fn wait_while(mut self, wait: impl Fn(&O) -> Option<String> + Send + Sync + 'static) -> Self {
        self.wait = Some(Box::new(wait));
        self
    }

    /// Returns the field managers of the former operator.
    pub(crate) fn into_managers(self) -> Vec<String> {
        self.managers
    }

    /// Returns the reason why nothing is done for an owner yet.
    pub(crate) fn why_wait(&self, owner: &O) -> Option<String> {
        self.wait.as_ref().and_then(|wait| wait(owner))
    }

    /// Returns the rights that a takeover needs.
    pub(crate) fn access(&self) -> Access {
        self.writers
            .iter()
            .fold(Access::none(), |access, kind| access.on(kind, "", [Verb::Get, Verb::Delete]))
    }
}

impl<O> std::fmt::Debug for Takeover<O> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Takeover").field("managers", &self.managers).finish_non_exhaustive()
    }
}

/// An object of the former operator that wrote or controlled a planned object; see
/// [`Planned::takes_over`](crate::Planned::takes_over).
///
/// It is looked up when an object of the planned name exists that is not ours yet, and when somebody has
/// changed a [renewed](crate::Plan::renew) object: so it costs nothing after the migration.
#[derive(Clone, Debug)]
pub struct Predecessor {
    pub(crate) resource: ResourceType,
    pub(crate) name: String,
    /// True if the former object stays after the takeover, because it does not write the planned object.
    pub(crate) stays: bool,
}

impl Predecessor {
    /// Declares that the planned object was written by an object of this kind and name in the same namespace
    /// (a certificate by a `Certificate`, for example). If that object belongs to the owner, the objects that
    /// it wrote belong to the owner too: they are taken over unchanged, and the writer is deleted, since
    /// otherwise two writers would compete. Declare the kind with [`Takeover::writers`].
    pub fn written_by<K: Kind>(name: impl Into<String>) -> Self {
        Self { resource: ResourceType::of::<K>(), name: name.into(), stays: false }
    }

    /// Declares that the former operator gave the planned object to an object of this kind and name in the
    /// same namespace (a Secret to the `Tenant` that uses it, for example), which is planned as well. If that
    /// object belongs to the owner, so do the objects that it controls, and those that its spec names and
    /// nobody controls: the planned object is taken over, and the other object stays.
    pub fn held_by<K: Kind>(name: impl Into<String>) -> Self {
        Self { resource: ResourceType::of::<K>(), name: name.into(), stays: true }
    }
}
