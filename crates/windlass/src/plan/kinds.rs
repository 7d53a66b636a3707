//! Declaration of the kinds that a controller uses: the watches and the RBAC rules follow from it.

use k8s_openapi::api::core::v1::Pod;
use windlass_runtime::access::{Access, Verb};
use windlass_runtime::cache::Shape;
use windlass_runtime::resource::ResourceType;

use crate::live::Kind;
use crate::live::kind::has_content;
use crate::live::watched::{self, OwnedKind};
use crate::needs::labelled::LabelledKind;
use crate::needs::made::MadeKind;

/// The kinds that a controller uses; see [`Controls::kinds`](crate::Controls::kinds).
#[derive(Default)]
pub struct Kinds {
    pub(crate) owned: Vec<Box<dyn OwnedKind>>,
    pub(crate) required: Vec<ResourceType>,
    pub(crate) made: Vec<MadeKind>,
    pub(crate) labelled: Vec<LabelledKind>,
    /// Kinds with objects that effects delete, and the subresource if they are evicted.
    deleted: Vec<(ResourceType, &'static str, Verb)>,
}

impl Kinds {
    /// Declares that objects of this kind are planned: applied and owned.
    pub fn owns<K: Kind>(&mut self) -> &mut Self {
        self.declare::<K>(false)
    }

    /// Declares that objects of this kind are planned for some owners, and that the kind need not be
    /// installed: a kind of another operator. The controller works without it; an owner that has such an
    /// object in its plan waits, and continues after the kind was installed.
    pub fn owns_if_installed<K: Kind>(&mut self) -> &mut Self {
        self.declare::<K>(true)
    }

    fn declare<K: Kind>(&mut self, optional: bool) -> &mut Self {
        let resource = ResourceType::of::<K>();
        if self.owned.iter().any(|owned| owned.resource() == resource) {
            return self;
        }
        self.owned.push(watched::declare(resource, optional));
        self
    }

    /// Declares that objects of this kind are asked for: [`Needs`](crate::Needs) can read them by name.
    pub fn requires<K: Kind>(&mut self) -> &mut Self {
        let resource = ResourceType::of::<K>();
        if !self.required.contains(&resource) {
            self.required.push(resource);
        }
        self
    }

    /// Declares that objects of this kind are [read](crate::Needs::read), and that most of them are created
    /// by another controller of the same operator with this [name](crate::Controls::NAME): one watch of
    /// everything that it creates serves all of them, instead of one watch for each object. Other objects of
    /// the kind are watched by name.
    pub fn reads_made_by<K: Kind>(&mut self, maker: &'static str) -> &mut Self {
        self.made::<K>(MadeKind::read::<K>(maker))
    }

    /// Declares the same for objects that are read [as a whole](crate::Needs::object).
    pub fn looks_at_made_by<K: Kind>(&mut self, maker: &'static str) -> &mut Self {
        self.made::<K>(MadeKind::looked_at::<K>(maker))
    }

    fn made<K: Kind>(&mut self, made: MadeKind) -> &mut Self {
        if !self.made.iter().any(|other| other.is_like(&made)) {
            self.made.push(made);
        }
        self.requires::<K>()
    }

    /// Declares that objects of this kind with a label are [listed](crate::Needs::labelled) by the label's
    /// value, in the shape `S`.
    ///
    /// There is one watch per kind and label key for all owners, however many values are asked for.
    pub fn lists<K: Kind, S: Shape>(&mut self, label: &'static str) -> &mut Self {
        let labelled = LabelledKind::new::<S>(ResourceType::of::<K>(), label);
        if !self.labelled.iter().any(|other| other.is_like(&labelled)) {
            self.labelled.push(labelled);
        }
        self.requires::<K>()
    }

    /// Declares that effects [delete](crate::Effect::delete) objects of this kind that are not planned, such
    /// as pods.
    pub fn deletes<K: Kind>(&mut self) -> &mut Self {
        self.deleted.push((ResourceType::of::<K>(), "", Verb::Delete));
        self
    }

    /// Declares that effects [evict](crate::Effect::evict) pods.
    pub fn evicts(&mut self) -> &mut Self {
        self.deleted.push((ResourceType::of::<Pod>(), "eviction", Verb::Create));
        self
    }

    /// Returns whether any of the planned kinds creates pods.
    pub(crate) fn makes_pods(&self) -> bool {
        self.owned.iter().any(|owned| {
            let resource = owned.resource();
            matches!((&*resource.group, &*resource.kind), ("apps", _) | ("batch", "Job"))
        })
    }

    /// Returns whether a node can depend on the content of another, so that digests of content are needed.
    pub(crate) fn has_content(&self) -> bool {
        !self.required.is_empty() || self.owned.iter().any(|owned| has_content(&owned.resource()))
    }

    pub(crate) fn access(&self) -> Access {
        const FOLLOW: [Verb; 3] = [Verb::Get, Verb::List, Verb::Watch];
        let owned = self.owned.iter().fold(Access::none(), |access, owned| {
            access.on(
                &owned.resource(),
                "",
                FOLLOW.into_iter().chain([Verb::Create, Verb::Patch, Verb::Delete]),
            )
        });
        let required = self.required.iter().fold(owned, |access, required| access.on(required, "", FOLLOW));
        self.deleted.iter().fold(required, |access, (kind, sub, verb)| access.on(kind, sub, [*verb]))
    }
}
