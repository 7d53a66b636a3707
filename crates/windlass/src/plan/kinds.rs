//! The kinds that a controller deals with, declared: what is watched, and what the operator needs the right to do.

use windlass_runtime::access::{Access, Verb};
use windlass_runtime::cache::Shape;
use windlass_runtime::resource::ResourceType;

use crate::live::Kind;
use crate::live::kind::has_content;
use crate::live::watched::{self, OwnedKind};
use crate::needs::labelled::LabelledKind;
use crate::needs::made::MadeKind;

/// The kinds that a controller deals with; see [`Controls::kinds`](crate::Controls::kinds).
#[derive(Default)]
pub struct Kinds {
    pub(crate) owned: Vec<Box<dyn OwnedKind>>,
    pub(crate) required: Vec<ResourceType>,
    pub(crate) made: Vec<MadeKind>,
    pub(crate) labelled: Vec<LabelledKind>,
}

impl Kinds {
    /// Objects of this kind are planned: applied and owned.
    pub fn owns<K: Kind>(&mut self) -> &mut Self {
        self.declare::<K>(false)
    }

    /// Objects of this kind are planned for some owners, and it may be missing: a kind of another operator. The controller works
    /// without it; whoever has one in the plan waits, and goes on when the kind was installed.
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

    /// Objects of this kind are asked for: [`Needs`](crate::Needs) can read them by name.
    pub fn requires<K: Kind>(&mut self) -> &mut Self {
        let resource = ResourceType::of::<K>();
        if !self.required.contains(&resource) {
            self.required.push(resource);
        }
        self
    }

    /// Objects of this kind are [read](crate::Needs::read), and most of them are created by another controller of the same
    /// operator, whose [name](crate::Controls::NAME) this is: one watch of everything that it creates serves all of them,
    /// instead of one watch each. Other objects of the kind are watched by name, as ever.
    pub fn reads_made_by<K: Kind>(&mut self, maker: &'static str) -> &mut Self {
        self.made::<K>(MadeKind::read::<K>(maker))
    }

    /// The same for objects that are read [as a whole](crate::Needs::object).
    pub fn looks_at_made_by<K: Kind>(&mut self, maker: &'static str) -> &mut Self {
        self.made::<K>(MadeKind::looked_at::<K>(maker))
    }

    fn made<K: Kind>(&mut self, made: MadeKind) -> &mut Self {
        if !self.made.iter().any(|other| other.is_like(&made)) {
            self.made.push(made);
        }
        self.requires::<K>()
    }

    /// Objects of this kind that carry a label are [listed](crate::Needs::labelled) by its value, in the shape `S`.
    ///
    /// There is one watch per kind and label key for all owners, however many values are asked for.
    pub fn lists<K: Kind, S: Shape>(&mut self, label: &'static str) -> &mut Self {
        let labelled = LabelledKind::new::<S>(ResourceType::of::<K>(), label);
        if !self.labelled.iter().any(|other| other.is_like(&labelled)) {
            self.labelled.push(labelled);
        }
        self.requires::<K>()
    }

    /// Returns whether any of the planned kinds makes pods.
    pub(crate) fn makes_pods(&self) -> bool {
        self.owned.iter().any(|owned| {
            let resource = owned.resource();
            matches!((&*resource.group, &*resource.kind), ("apps", _) | ("batch", "Job"))
        })
    }

    /// Returns whether anything can depend on a content, so that digests of it are made.
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
        self.required.iter().fold(owned, |access, required| access.on(required, "", FOLLOW))
    }
}
