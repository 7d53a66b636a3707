//! The kinds that a blueprint deals with, declared: what is watched, and what the operator needs the right to do.

use std::sync::Arc;

use windlass_runtime::access::{Access, Verb};
use windlass_runtime::cache::{Cache, InvalidSelector, Reader, Selection, Shape, SyncState};
use windlass_runtime::controller::{Builder, Owning, Watch};
use windlass_runtime::key::ObjectKey;
use windlass_runtime::meta::{Keep, Meta, Uid};
use windlass_runtime::resource::ResourceType;

use crate::desired::{Kind, has_content};
use crate::inputs::made::MadeKind;
use crate::live::{AsLive, Bare, LiveRef, Watched};
use crate::names::{label, mark};

/// The kinds that a blueprint deals with; see [`Blueprint::kinds`](crate::Blueprint::kinds).
#[derive(Default)]
pub struct Kinds {
    pub(crate) owned: Vec<Box<dyn OwnedKind>>,
    pub(crate) required: Vec<ResourceType>,
    pub(crate) made: Vec<MadeKind>,
    superseded: Vec<ResourceType>,
}

impl Kinds {
    /// Objects of this kind are planned.
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
        if is_ready_by_existing(&resource) {
            self.owned.push(Box::new(Declared::<Bare>::new(resource, optional)));
        } else {
            self.owned.push(Box::new(Declared::<Watched>::new(resource, optional)));
        }
        self
    }

    /// Objects of this kind are inputs.
    pub fn requires<K: Kind>(&mut self) -> &mut Self {
        let resource = ResourceType::of::<K>();
        if !self.required.contains(&resource) {
            self.required.push(resource);
        }
        self
    }

    /// Objects of this kind are inputs that are [read](crate::Inputs::read), and most of them are made by another blueprint, whose
    /// [name](crate::Blueprint::NAME) this is: those are kept by one watch of all that it makes, and not by one watch each. What else
    /// is read of this kind is followed by its name, as ever.
    pub fn reads_made_by<K: Kind>(&mut self, maker: &'static str) -> &mut Self {
        self.made::<K>(MadeKind::read::<K>(maker))
    }

    /// The same for inputs that are [looked at](crate::Inputs::read_object) as a whole.
    pub fn looks_at_made_by<K: Kind>(&mut self, maker: &'static str) -> &mut Self {
        self.made::<K>(MadeKind::looked_at::<K>(maker))
    }

    fn made<K: Kind>(&mut self, made: MadeKind) -> &mut Self {
        if !self.made.iter().any(|other| other.is_like(&made)) {
            self.made.push(made);
        }
        self.requires::<K>()
    }

    /// Objects of this kind [wrote planned objects](crate::Planned::supersedes) for an operator that this one succeeds. It may be
    /// missing, and it is not watched.
    pub fn supersedes<K: Kind>(&mut self) -> &mut Self {
        let resource = ResourceType::of::<K>();
        if !self.superseded.contains(&resource) {
            self.superseded.push(resource);
        }
        self
    }

    /// Whether any of the planned kinds makes pods.
    pub(crate) fn makes_pods(&self) -> bool {
        self.owned.iter().any(|owned| {
            let resource = owned.resource();
            matches!((&*resource.group, &*resource.kind), ("apps", _) | ("batch", "Job"))
        })
    }

    /// Whether anything can depend on a content, so that digests of it are made.
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
        self.superseded
            .iter()
            .fold(required, |access, superseded| access.on(superseded, "", [Verb::Get, Verb::Delete]))
    }
}

/// Kinds of which metadata is all we need. Their content, which may be secret, then never enters the process.
fn is_ready_by_existing(resource: &ResourceType) -> bool {
    matches!(
        (&*resource.group, &*resource.kind),
        ("", "ConfigMap" | "Secret" | "ServiceAccount" | "Endpoints" | "LimitRange" | "ResourceQuota")
            | ("rbac.authorization.k8s.io", _)
            | ("networking.k8s.io", "Ingress" | "IngressClass" | "NetworkPolicy")
            | ("scheduling.k8s.io", "PriorityClass")
            | ("policy", "PodDisruptionBudget")
            | ("autoscaling", "HorizontalPodAutoscaler")
    )
}

/// A kind that is planned.
pub(crate) trait OwnedKind: Send + Sync {
    fn resource(&self) -> ResourceType;
    fn open(&self, cache: &Cache, selection: &Selection) -> Arc<dyn OpenKind>;
}

/// A kind that is planned, with its cache.
pub(crate) trait OpenKind: Send + Sync {
    fn resource(&self) -> &ResourceType;
    /// Why objects of this kind cannot be had now, where that is to be expected.
    fn missing(&self) -> Option<String>;
    fn get(&self, key: &ObjectKey) -> Option<LiveRef>;
    /// Everything that belongs to the owner, by label or by reference; each object once.
    fn belonging_to(&self, owner: &Uid) -> Vec<LiveRef>;
    /// Lets a controller follow it. `by_label` names the owners of what carries no reference.
    fn wire(&self, builder: Builder<Owning>, by_label: ByLabel) -> Builder<Owning>;
}

pub(crate) type ByLabel = Arc<dyn Fn(&Meta) -> Vec<ObjectKey> + Send + Sync>;

struct Declared<S> {
    resource: ResourceType,
    optional: bool,
    shape: std::marker::PhantomData<fn() -> S>,
}

impl<S> Declared<S> {
    fn new(resource: ResourceType, optional: bool) -> Self {
        Self { resource, optional, shape: std::marker::PhantomData }
    }
}

impl<S: Shape + AsLive> OwnedKind for Declared<S> {
    fn resource(&self) -> ResourceType {
        self.resource.clone()
    }

    fn open(&self, cache: &Cache, selection: &Selection) -> Arc<dyn OpenKind> {
        let reader: Reader<S> = cache.reader_of(&self.resource, selection);
        reader.index_label(label::OWNER);
        Arc::new(Opened { resource: self.resource.clone(), optional: self.optional, reader })
    }
}

struct Opened<S> {
    resource: ResourceType,
    optional: bool,
    reader: Reader<S>,
}

impl<S: Shape + AsLive> OpenKind for Opened<S> {
    fn resource(&self) -> &ResourceType {
        &self.resource
    }

    fn missing(&self) -> Option<String> {
        match &*self.reader.state().borrow() {
            SyncState::Blocked(problem) if self.optional => Some(problem.to_string()),
            _ => None,
        }
    }

    fn get(&self, key: &ObjectKey) -> Option<LiveRef> {
        self.reader.get(key).map(|object| object as LiveRef)
    }

    fn belonging_to(&self, owner: &Uid) -> Vec<LiveRef> {
        let controlled =
            |object: &Arc<S>| object.meta().controller().is_some_and(|controller| controller.uid == *owner);
        let labelled = self.reader.by_label(label::OWNER, &owner.to_string());
        // Somebody may have taken the label away: the reference is as good.
        let unlabelled = |object: &Arc<S>| labelled.iter().all(|other| other.meta().key != object.meta().key);
        let referring =
            self.reader.by_owner(owner).into_iter().filter(controlled).filter(unlabelled).collect::<Vec<_>>();
        labelled.iter().cloned().chain(referring).map(|object| object as LiveRef).collect()
    }

    fn wire(&self, builder: Builder<Owning>, by_label: ByLabel) -> Builder<Owning> {
        let watch = || {
            let watch = Watch::of(&self.reader);
            if self.optional { watch.optional() } else { watch }
        };
        builder.owns(watch()).watches(watch(), move |object: &S| by_label(object.meta()))
    }
}

/// Which objects of the planned kinds a controller watches, and what it keeps of them.
pub(crate) fn selection(name: &str, namespaces: Option<&[String]>) -> Result<Selection, InvalidSelector> {
    let keep = [mark::DIGEST, mark::DEPENDENCIES, mark::ORDER, mark::RETAIN, mark::DUE, mark::MADE_FROM]
        .into_iter()
        .fold(Keep::default().manager(name), Keep::annotation);
    Ok(made_by(name, namespaces)?.keep(keep))
}

/// Everything that the controller of a blueprint makes.
pub(crate) fn made_by(name: &str, namespaces: Option<&[String]>) -> Result<Selection, InvalidSelector> {
    everything(namespaces).labels(&format!("{}={name}", label::CONTROLLER))
}

/// Everything in these namespaces, or in all.
pub(crate) fn everything(namespaces: Option<&[String]>) -> Selection {
    match namespaces {
        Some(namespaces) => Selection::all().in_namespaces(namespaces.iter().map(String::as_str)),
        None => Selection::all(),
    }
}
