//! How a unified controller is put together.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use windlass_runtime::access::Access;
use windlass_runtime::cache::{Cache, InvalidSelector, Reader, Shape as _};
use windlass_runtime::client::Client;
use windlass_runtime::controller::predicate::changed;
use windlass_runtime::controller::{BuildError, Builder, Controller, Owning, Watch};
use windlass_runtime::events::{EventType, Recorder};
use windlass_runtime::key::ObjectKey;
use windlass_runtime::meta::Meta;
use windlass_runtime::resource::ResourceType;

use super::desk::Desk;
use super::keyring::Keyring;
use super::owner::OwnerView;
use super::reconcile::Reconciler;
use super::subject::{Owners, OwnersOf};
use super::text::OwnerText;
use crate::blueprint::Blueprint;
use crate::desired::Desired;
use crate::error::{DrawError, NodeError, Reason};
use crate::inputs::Registry;
use crate::kinds::{self, ByLabel, Kinds, OpenKind};
use crate::memory::{self, Memory};
use crate::metrics::PlanMetrics;
use crate::names::{ask, label};
use crate::plan::Mutation;
use crate::pods::{self, PodShape};
use crate::secrecy::DigestKey;

/// Turns a [`Blueprint`] into a controller.
///
/// ```no_run
/// # use windlass::{Blueprint, PlanMetrics, Unified};
/// # use windlass_runtime::{cache::Cache, client::Client, events::Recorder, manager::Manager};
/// # fn example<B: Blueprint>(shop: B, client: Client, cache: Cache, recorder: Recorder) -> Result<(), Box<dyn std::error::Error>> {
/// let mut manager = Manager::new();
/// let metrics = PlanMetrics::shown_in(manager.metrics());
/// let controller = Unified::of(shop)
///     .home("shop-system")
///     .workers(4)
///     .metrics(&metrics)
///     .build(&client, &cache, &recorder)?;
/// manager.cache(&cache)?;
/// manager.controller(controller)?;
/// # Ok(())
/// # }
/// ```
#[must_use = "it does nothing before `build`"]
pub struct Unified<B> {
    blueprint: B,
    options: Options,
}

/// What can be chosen, whatever the blueprint.
struct Options {
    namespaces: Option<Vec<String>>,
    class: Option<String>,
    class_annotation: &'static str,
    workers: usize,
    concurrency: usize,
    home: String,
    key: Option<DigestKey>,
    keyring: Option<Keyring>,
    metrics: PlanMetrics,
    mutations: Vec<Mutation>,
    predecessors: Vec<String>,
    writes: u32,
    told_within: Duration,
}

/// Why a unified controller cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum UnifiedError {
    /// The blueprint's name cannot be the value of a label.
    #[error(
        "{0:?} cannot be the name of a blueprint: take at most 63 letters, digits, '-', '_' and '.', the first and the last a \
         letter or a digit"
    )]
    Name(&'static str),
    /// The watches cannot be declared.
    #[error(transparent)]
    Selector(#[from] InvalidSelector),
    /// The controller cannot be built.
    #[error(transparent)]
    Build(#[from] BuildError),
}

impl<B: Blueprint> Unified<B> {
    /// The controller of a blueprint, for all namespaces.
    pub fn of(blueprint: B) -> Self {
        let options = Options {
            namespaces: None,
            class: None,
            class_annotation: ask::CLASS,
            workers: 4,
            concurrency: 8,
            home: "default".into(),
            key: None,
            keyring: None,
            metrics: PlanMetrics::hidden(),
            mutations: Vec::new(),
            predecessors: Vec::new(),
            writes: memory::WRITES,
            told_within: Duration::from_secs(1),
        };
        Self { blueprint, options }
    }

    fn with(self, change: impl FnOnce(Options) -> Options) -> Self {
        Self { blueprint: self.blueprint, options: change(self.options) }
    }

    /// Only owners in these namespaces.
    pub fn in_namespaces(self, namespaces: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.with(|options| Options {
            namespaces: Some(namespaces.into_iter().map(Into::into).collect()),
            ..options
        })
    }

    /// Only owners of this [class](crate::names::ask::CLASS); without it, only owners that have none.
    pub fn class(self, class: impl Into<String>) -> Self {
        self.with(|options| Options { class: Some(class.into()), ..options })
    }

    /// The annotation that names an owner's class, where it is not [ours](ask::CLASS): that of an operator which this one
    /// succeeds.
    pub fn class_annotation(self, annotation: &'static str) -> Self {
        self.with(|options| Options { class_annotation: annotation, ..options })
    }

    /// How many owners are reconciled at the same time. Default: 4.
    pub fn workers(self, workers: usize) -> Self {
        self.with(|options| Options { workers, ..options })
    }

    /// How many nodes of one plan are visited at the same time. Default: 8.
    pub fn concurrency(self, concurrency: usize) -> Self {
        self.with(|options| Options { concurrency, ..options })
    }

    /// The operator's own namespace, where its digest key is kept (in a Secret named `<name>-digest-key`). Default: `default`.
    pub fn home(self, namespace: impl Into<String>) -> Self {
        self.with(|options| Options { home: namespace.into(), ..options })
    }

    /// The digest key, if it is not to be kept in a Secret of the cluster.
    pub fn digest_key(self, key: DigestKey) -> Self {
        self.with(|options| Options { key: Some(key), ..options })
    }

    /// Where the digest key comes from, shared with other blueprints; otherwise it has one of its own. To begin sharing changes the key,
    /// and that restarts nothing.
    pub fn keyring(self, keyring: &Keyring) -> Self {
        self.with(|options| Options { keyring: Some(keyring.clone()), ..options })
    }

    /// Shows what is counted.
    pub fn metrics(self, metrics: &PlanMetrics) -> Self {
        self.with(|options| Options { metrics: metrics.clone(), ..options })
    }

    /// Changes every object of every plan before it is applied: labels of a company, a pull secret. Several run in the order
    /// given, after those of the node itself; the first error stops.
    pub fn mutate(
        mut self,
        mutation: impl Fn(&mut Desired) -> Result<(), DrawError> + Send + Sync + 'static,
    ) -> Self {
        self.options.mutations.push(Box::new(mutation));
        self
    }

    /// Field managers of an operator that this one succeeds: what they applied is taken over when an object is adopted.
    pub fn succeeds(self, managers: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.with(|options| Options {
            predecessors: managers.into_iter().map(Into::into).collect(),
            ..options
        })
    }

    /// How often one object may be written with the same content before that is called a fight. Default: 20, and one more
    /// each minute.
    pub fn writes(self, writes: u32) -> Self {
        self.with(|options| Options { writes: writes.max(1), ..options })
    }

    /// How long a status that would change in a moment may be held back: the first one, each further word on the same wait, and that
    /// what was ready is at work again. So quick work costs
    /// one write. Default: 1 s.
    pub fn told_within(self, within: Duration) -> Self {
        self.with(|options| Options { told_within: within, ..options })
    }

    /// What the controller does to which kinds, for its RBAC rules.
    pub fn access(&self) -> Access {
        let mut kinds = Kinds::default();
        self.blueprint.kinds(&mut kinds);
        let access = Access::none()
            .watches::<B::Owner>()
            .status::<B::Owner>()
            .owns::<B::Owner>()
            .events()
            .and(kinds.access());
        let access = if B::FINALIZES { access.finalizes::<B::Owner>() } else { access };
        let access = if kinds.has_content() { access.certificates(&self.key_place()) } else { access };
        if kinds.makes_pods() { access.watches::<k8s_openapi::api::core::v1::Pod>() } else { access }
    }

    fn key_place(&self) -> ObjectKey {
        let own = || Keyring::place_of(&self.options.home, B::NAME);
        self.options.keyring.as_ref().map_or_else(own, |shared| shared.place().clone())
    }

    /// The controller.
    pub fn build(
        self,
        client: &Client,
        cache: &Cache,
        recorder: &Recorder,
    ) -> Result<Controller, UnifiedError> {
        if !is_label_value(B::NAME) {
            return Err(UnifiedError::Name(B::NAME));
        }
        let mut declared = Kinds::default();
        self.blueprint.kinds(&mut declared);
        let everything = kinds::everything(self.options.namespaces.as_deref());
        let owners: Reader<OwnerText> = cache.reader_of(&ResourceType::of::<B::Owner>(), &everything);
        owners.index(BY_UID, |owner, found| found(&owner.meta().uid.to_string()));
        let news = changed(|old: &OwnerText, new: &OwnerText| new.is_news_after(old));
        let builder = Controller::for_(Watch::of(&owners).when(news)).name(B::NAME);
        let owners: Arc<dyn Owners> = Arc::new(OwnersOf { blueprint: self.blueprint, owners });
        self.options.assemble(B::NAME, &declared, builder, owners, (client, cache, recorder))
    }
}

impl Options {
    fn assemble(
        self,
        name: &'static str,
        declared: &Kinds,
        builder: Builder<Owning>,
        owners: Arc<dyn Owners>,
        (client, cache, recorder): (&Client, &Cache, &Recorder),
    ) -> Result<Controller, UnifiedError> {
        let namespaces = self.namespaces.as_deref();
        let selection = kinds::selection(name, namespaces)?;
        let kinds: Vec<Arc<dyn OpenKind>> =
            declared.owned.iter().map(|kind| kind.open(cache, &selection)).collect();
        let made = declared.made.iter();
        let made = made.map(|kind| Ok(kind.open(cache, &kinds::made_by(kind.maker(), namespaces)?)));
        let made = made.collect::<Result<Vec<_>, InvalidSelector>>()?;
        let pods: Option<Reader<PodShape>> = declared.makes_pods().then(|| cache.reader(&selection));

        let by_label: ByLabel = {
            let owners = Arc::clone(&owners);
            Arc::new(move |meta: &Meta| {
                meta.labels.get(label::OWNER).map(|uid| owners.of_uid(uid)).unwrap_or_default()
            })
        };
        let (wake, woken) = mpsc::channel(1024);
        let mut builder = builder.workers(self.workers).channel(woken);
        for kind in &kinds {
            builder = kind.wire(builder, Arc::clone(&by_label));
        }
        if let Some(pods) = &pods {
            pods::index(pods);
            let all = kinds.clone();
            let problem = changed(|old: &PodShape, new: &PodShape| old.problem() != new.problem());
            builder = builder.watches(Watch::of(pods).when(problem), move |pod: &PodShape| {
                let workload = pod.workload().filter(|_| pod.problem().is_some());
                let live = workload.and_then(|(kind, key)| {
                    all.iter().find(|open| open.resource().kind == kind).and_then(|open| open.get(&key))
                });
                live.map(|live| by_label(&live.live().metadata)).unwrap_or_default()
            });
        }

        let keyring = match (self.key, self.keyring) {
            (Some(key), _) => Keyring::given(client, cache, key),
            (None, Some(shared)) => shared,
            (None, None) => Keyring::new(client, cache, &self.home, name),
        };
        let machine = Machine {
            name,
            owners,
            kinds,
            pods,
            required: declared.required.clone(),
            desk: Desk { client: client.clone(), manager: name.to_owned(), predecessors: self.predecessors },
            registry: Registry::new(cache, wake, made),
            keyring,
            memory: Memory::default(),
            metrics: self.metrics,
            recorder: recorder.clone(),
            mutations: self.mutations,
            class: self.class,
            class_annotation: self.class_annotation,
            concurrency: self.concurrency,
            writes: self.writes,
            told_within: self.told_within,
        };
        Ok(builder.build(Reconciler(machine))?)
    }
}

pub(super) const BY_UID: &str = "windlass uid";

/// Everything that a unified controller works with.
pub(crate) struct Machine {
    /// That of the blueprint.
    pub(crate) name: &'static str,
    pub(crate) owners: Arc<dyn Owners>,
    pub(crate) kinds: Vec<Arc<dyn OpenKind>>,
    pub(crate) pods: Option<Reader<PodShape>>,
    pub(crate) required: Vec<ResourceType>,
    pub(crate) desk: Desk,
    pub(crate) registry: Registry,
    pub(crate) keyring: Keyring,
    pub(crate) memory: Memory,
    pub(crate) metrics: PlanMetrics,
    pub(crate) recorder: Recorder,
    pub(crate) mutations: Vec<Mutation>,
    pub(crate) class: Option<String>,
    pub(crate) class_annotation: &'static str,
    pub(crate) concurrency: usize,
    pub(crate) writes: u32,
    pub(crate) told_within: Duration,
}

impl Machine {
    /// The cache of a planned kind.
    pub(crate) fn kind(&self, resource: &ResourceType) -> Result<Arc<dyn OpenKind>, NodeError> {
        self.kinds.iter().find(|kind| kind.resource() == resource).cloned().ok_or_else(|| {
            let said = format!(
                "the kind {resource} is not declared: add `kinds.owns::<{}>()` to Blueprint::kinds",
                resource.kind
            );
            NodeError::terminal(Reason::DrawFailed, said)
        })
    }

    pub(crate) fn event(&self, owner: &OwnerView, kind: EventType, reason: Reason, note: &str) {
        self.recorder.event(&owner.regarding(), kind, reason.as_str(), "Reconcile", note);
    }
}

fn is_label_value(name: &str) -> bool {
    let inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    (1..=63).contains(&name.len())
        && name.chars().all(inner)
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.ends_with(|c: char| c.is_ascii_alphanumeric())
}
