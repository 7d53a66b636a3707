//! Builds the controller of a blueprint or of a director.

use std::sync::Arc;
use std::time::Duration;

use kube::Resource;
use kube::api::ObjectMeta;
use serde_json::Value;
use windlass_runtime::access::Access;
use windlass_runtime::cache::{Cache, InvalidSelector, Reader, Shape as _};
use windlass_runtime::client::Client;
use windlass_runtime::controller::predicate::changed;
use windlass_runtime::controller::{BuildError, Builder, Controller, Owning, Watch};
use windlass_runtime::events::Recorder;
use windlass_runtime::key::ObjectKey;
use windlass_runtime::leader::Fence;
use windlass_runtime::meta::{Keep, Meta};
use windlass_runtime::object::owner::OwnerError;
use windlass_runtime::resource::ResourceType;

use super::blueprint::Blueprint;
use super::controls::Controls;
use super::director::{Directing, Director};
use super::style::{Drawing, Style};
use crate::apply::{Applier, Keyring, WRITES, WriteHistory, Writer};
use crate::error::PlanError;
use crate::live::pods::{self, PodShape};
use crate::live::watched::{ByLabel, OpenKind, everything, made_by, selection};
use crate::metrics::PlanMetrics;
use crate::names::{ask, label};
use crate::needs::{Registry, Wake};
use crate::owner::{Debounce, Envelope, OwnerHandle, OwnerText, Owners, PlanState, Unreadable};
use crate::plan::options::Mutation;
use crate::plan::owner::OwnerView;
use crate::plan::{Desired, DigestKey, Kinds, Needs, Plan, Takeover};

/// Turns a [`Blueprint`] or a [`Director`] into a controller.
///
/// ```no_run
/// # use windlass::{Blueprint, PlanMetrics, PlanController};
/// # use windlass_runtime::{cache::Cache, client::Client, events::Recorder, manager::Manager};
/// # fn example<B: Blueprint>(shop: B, client: Client, cache: Cache, recorder: Recorder) -> Result<(), Box<dyn std::error::Error>> {
/// let mut manager = Manager::new();
/// let metrics = PlanMetrics::shown_in(manager.metrics());
/// let controller = PlanController::of(shop)
///     .operator_namespace("shop-system")
///     .workers(4)
///     .metrics(&metrics)
///     .build(&client, &cache, &recorder)?;
/// manager.cache(&cache)?;
/// manager.controller(controller)?;
/// # Ok(())
/// # }
/// ```
#[must_use = "it does nothing before `build`"]
pub struct PlanController<C: Controls> {
    controls: Arc<C>,
    options: Options,
    /// Returns the owners in the style of the controller.
    owners: OwnersIn<C>,
}

type OwnersIn<C> = fn(Parts<C>) -> Arc<dyn Owners>;

/// The parts of a controller that its style is made from.
struct Parts<C: Controls> {
    controls: Arc<C>,
    owners: Reader<OwnerText>,
    fence: Fence,
    wake: Wake,
    metrics: PlanMetrics,
}

impl<C: Controls> Parts<C> {
    fn owners_in<S: Style<C>>(self, style: S) -> Arc<dyn Owners> {
        let takeover = self.controls.takeover();
        Arc::new(OwnersOf { controls: self.controls, style, takeover, owners: self.owners })
    }
}

/// Options of a controller that do not depend on the blueprint.
struct Options {
    namespaces: Option<Vec<String>>,
    class: Option<String>,
    class_annotation: &'static str,
    workers: usize,
    concurrency: usize,
    operator_namespace: String,
    key: Option<DigestKey>,
    keyring: Option<Keyring>,
    metrics: PlanMetrics,
    mutations: Vec<Mutation>,
    writes: u32,
    status_debounce: Duration,
}

/// The reason why a controller cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum PlanControllerError {
    /// The controller's name cannot be the value of a label.
    #[error(
        "{0:?} cannot be the name of a controller: take at most 63 letters, digits, '-', '_' and '.', the first and the last a \
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

impl<B: Blueprint> PlanController<B> {
    /// Returns the controller of a blueprint, for all namespaces.
    pub fn of(blueprint: B) -> Self {
        Self::in_style(blueprint, |parts| parts.owners_in(Drawing))
    }
}

impl<D: Director> PlanController<D> {
    /// Returns the controller of a director, for all namespaces.
    pub fn directed_by(director: D) -> Self {
        Self::in_style(director, |parts| {
            let (fence, wake, metrics) = (parts.fence.clone(), parts.wake.clone(), parts.metrics.clone());
            let style = Directing::new(&parts.controls, fence, wake, metrics);
            parts.owners_in(style)
        })
    }
}

impl<C: Controls> PlanController<C> {
    fn in_style(controls: C, owners: OwnersIn<C>) -> Self {
        let options = Options {
            namespaces: None,
            class: None,
            class_annotation: ask::CLASS,
            workers: 16,
            concurrency: 8,
            operator_namespace: "default".into(),
            key: None,
            keyring: None,
            metrics: PlanMetrics::hidden(),
            mutations: Vec::new(),
            writes: WRITES,
            status_debounce: Duration::from_secs(1),
        };
        Self { controls: Arc::new(controls), options, owners }
    }

    fn with(self, change: impl FnOnce(Options) -> Options) -> Self {
        Self { controls: self.controls, options: change(self.options), owners: self.owners }
    }

    /// Restricts the controller to owners in these namespaces.
    pub fn in_namespaces(self, namespaces: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.with(|options| Options {
            namespaces: Some(namespaces.into_iter().map(Into::into).collect()),
            ..options
        })
    }

    /// Restricts the controller to owners of this [class](crate::names::ask::CLASS); by default it handles
    /// owners without a class.
    pub fn class(self, class: impl Into<String>) -> Self {
        self.with(|options| Options { class: Some(class.into()), ..options })
    }

    /// Sets the annotation that names an owner's class, if it is not [ours](ask::CLASS): that of the operator
    /// which this one replaces.
    pub fn class_annotation(self, annotation: &'static str) -> Self {
        self.with(|options| Options { class_annotation: annotation, ..options })
    }

    /// Sets the number of owners that are reconciled at the same time. Default: 16. A worker is a future, not
    /// a thread: a waiting worker costs nothing, and an owner with hanging requests delays no other owner.
    pub fn workers(self, workers: usize) -> Self {
        self.with(|options| Options { workers, ..options })
    }

    /// Sets the number of nodes of one plan that are visited at the same time. Default: 8.
    pub fn concurrency(self, concurrency: usize) -> Self {
        self.with(|options| Options { concurrency, ..options })
    }

    /// Sets the operator's own namespace, in which its digest key is kept (in a Secret named
    /// `<name>-digest-key`). Default: `default`.
    pub fn operator_namespace(self, namespace: impl Into<String>) -> Self {
        self.with(|options| Options { operator_namespace: namespace.into(), ..options })
    }

    /// Sets the digest key, instead of keeping it in a Secret of the cluster.
    pub fn digest_key(self, key: DigestKey) -> Self {
        self.with(|options| Options { key: Some(key), ..options })
    }

    /// Sets the source of the digest key, shared with other blueprints; by default each blueprint has its
    /// own. Starting to share changes the key, and this restarts no pods.
    pub fn keyring(self, keyring: &Keyring) -> Self {
        self.with(|options| Options { keyring: Some(keyring.clone()), ..options })
    }

    /// Sets the metrics of the controller. By default they are not served.
    pub fn metrics(self, metrics: &PlanMetrics) -> Self {
        self.with(|options| Options { metrics: metrics.clone(), ..options })
    }

    /// Changes every object of every plan before it is applied: labels of a company, a pull secret. Several
    /// mutations run in the order in which they were added, after those of the node itself; the first error
    /// stops.
    pub fn mutate(
        mut self,
        mutation: impl Fn(&mut Desired) -> Result<(), PlanError> + Send + Sync + 'static,
    ) -> Self {
        self.options.mutations.push(Box::new(mutation));
        self
    }

    /// Sets the number of times that one object may be written with the same content before the writes count
    /// as a fight. Default: 20, and one more each minute.
    pub fn writes(self, writes: u32) -> Self {
        self.with(|options| Options { writes: writes.max(1), ..options })
    }

    /// Sets the status debounce: short-lived status changes are delayed by up to this long, so that quick
    /// work costs one write. Default: 1 s.
    pub fn status_debounce(self, within: Duration) -> Self {
        self.with(|options| Options { status_debounce: within, ..options })
    }

    /// Returns the verbs that the controller uses on each kind, for its RBAC rules.
    pub fn access(&self) -> Access {
        let mut kinds = Kinds::default();
        self.controls.kinds(&mut kinds);
        let access = Access::none()
            .watches::<C::Owner>()
            .status::<C::Owner>()
            .owns::<C::Owner>()
            .events()
            .and(kinds.access());
        let access = access.and(self.controls.takeover().access());
        let access = if C::DELETION.writes_finalizers() { access.finalizes::<C::Owner>() } else { access };
        let access = if kinds.has_content() { access.certificates(&self.key_place()) } else { access };
        if kinds.makes_pods() { access.watches::<k8s_openapi::api::core::v1::Pod>() } else { access }
    }

    fn key_place(&self) -> ObjectKey {
        let own = || Keyring::place_of(&self.options.operator_namespace, C::NAME);
        self.options.keyring.as_ref().map_or_else(own, |shared| shared.place().clone())
    }

    /// Builds the controller.
    pub fn build(
        self,
        client: &Client,
        cache: &Cache,
        recorder: &Recorder,
    ) -> Result<Controller, PlanControllerError> {
        if !is_label_value(C::NAME) {
            return Err(PlanControllerError::Name(C::NAME));
        }
        let mut declared = Kinds::default();
        self.controls.kinds(&mut declared);
        let scope = everything(self.options.namespaces.as_deref());
        let owners: Reader<OwnerText> = cache.reader_of(&ResourceType::of::<C::Owner>(), &scope);
        owners.index(BY_UID, |owner, found| found(&owner.meta().uid.to_string()));
        let news = changed(|old: &OwnerText, new: &OwnerText| new.is_news_after(old));
        let builder = Controller::for_(Watch::of(&owners).when(news)).name(C::NAME);
        let managers = self.controls.takeover().into_managers();
        let (wake, woken) = Wake::channel();
        let parts = Parts {
            controls: self.controls,
            owners,
            fence: client.fence().cloned().unwrap_or_else(Fence::unlimited),
            wake: wake.clone(),
            metrics: self.options.metrics.clone(),
        };
        let owners = (self.owners)(parts);
        let builder = builder.channel(woken);
        let writer = Writer { client: client.clone(), manager: C::NAME.to_owned(), predecessors: managers };
        let wiring = Wiring { builder, owners, writer, wake, cache, recorder };
        self.options.assemble(C::NAME, declared, wiring)
    }
}

/// The parts that a controller is assembled from.
struct Wiring<'a> {
    builder: Builder<Owning>,
    owners: Arc<dyn Owners>,
    writer: Writer,
    wake: Wake,
    cache: &'a Cache,
    recorder: &'a Recorder,
}

impl Options {
    fn assemble(
        self,
        name: &'static str,
        declared: Kinds,
        wiring: Wiring<'_>,
    ) -> Result<Controller, PlanControllerError> {
        let Wiring { builder, owners, writer, wake, cache, recorder } = wiring;
        let namespaces = self.namespaces.as_deref();
        let selection = selection(name, namespaces)?;
        let kinds: Vec<Arc<dyn OpenKind>> =
            declared.owned.iter().map(|kind| kind.open(cache, &selection)).collect();
        let made = declared.made.iter();
        let made = made.map(|kind| Ok(kind.open(cache, &made_by(kind.maker(), namespaces)?)));
        let made = made.collect::<Result<Vec<_>, InvalidSelector>>()?;
        // Decisions about live values depend on the fields that this controller owns.
        let scope = everything(namespaces).keep(Keep::default().manager(name));
        let lists = declared.labelled.iter().map(|kind| kind.open(cache, &scope));
        let lists = lists.collect::<Result<Vec<_>, InvalidSelector>>()?;
        let pods: Option<Reader<PodShape>> = declared.makes_pods().then(|| cache.reader(&selection));

        let by_label: ByLabel = {
            let owners = Arc::clone(&owners);
            Arc::new(move |meta: &Meta| {
                meta.labels.get(label::OWNER).map(|uid| owners.of_uid(uid)).unwrap_or_default()
            })
        };
        let mut builder = builder.workers(self.workers);
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
            (Some(key), _) => Keyring::given(&writer.client, cache, key),
            (None, Some(shared)) => shared,
            (None, None) => Keyring::new(&writer.client, cache, &self.operator_namespace, name),
        };
        let known = Arc::clone(&owners);
        let applier = Applier {
            name,
            kinds,
            pods,
            writer,
            needs: Registry::new(cache, wake, made, lists),
            keyring,
            history: WriteHistory::default(),
            mutations: self.mutations,
            metrics: self.metrics,
            recorder: recorder.clone(),
            concurrency: self.concurrency,
            writes: self.writes,
            has_owner: Box::new(move |uid| !known.of_uid(uid).is_empty()),
        };
        let debounce = Debounce::new(self.status_debounce);
        let (class, class_annotation) = (self.class, self.class_annotation);
        let envelope = Envelope { owners, kinds: declared, applier, debounce, class, class_annotation };
        Ok(builder.build(envelope)?)
    }
}

const BY_UID: &str = "windlass uid";

/// The owners of a controller: the only type that knows the types of its author.
struct OwnersOf<C: Controls, S> {
    controls: Arc<C>,
    style: S,
    takeover: Takeover<C::Owner>,
    owners: Reader<OwnerText>,
}

struct HandleOf<'b, C: Controls, S: Style<C>> {
    of: &'b OwnersOf<C, S>,
    text: Arc<OwnerText>,
    owner: C::Owner,
    pass: S::Pass,
}

impl<C: Controls, S: Style<C>> Owners for OwnersOf<C, S> {
    fn get(&self, key: &ObjectKey) -> Option<Result<Box<dyn OwnerHandle + '_>, Unreadable>> {
        let text = self.owners.get(key)?;
        let handle = |owner| -> Box<dyn OwnerHandle + '_> {
            let pass = self.style.begin(text.meta());
            Box::new(HandleOf { of: self, text: Arc::clone(&text), owner, pass })
        };
        Some(text.read::<C::Owner>().map(handle))
    }

    fn of_uid(&self, uid: &str) -> Vec<ObjectKey> {
        self.owners.by_index(BY_UID, uid).iter().map(|owner| owner.meta().key.clone()).collect()
    }

    fn forget(&self, key: &ObjectKey) {
        self.style.forget(key);
    }
}

impl<C: Controls, S: Style<C>> OwnerHandle for HandleOf<'_, C, S> {
    fn view(&self) -> Result<OwnerView, OwnerError> {
        OwnerView::of(&self.owner, self.text.meta(), self.text.status_fields(C::NAME))
    }

    fn meta(&self) -> &Meta {
        self.text.meta()
    }

    fn object_meta(&self) -> &ObjectMeta {
        Resource::meta(&self.owner)
    }

    fn is_deleted_in_order(&self) -> bool {
        C::DELETION.is_ordered(&self.owner)
    }

    fn was_deleted_in_order(&self) -> bool {
        C::DELETION.was_ordered()
    }

    fn is_torn_down_by_inventory(&self) -> bool {
        self.of.style.is_torn_down_by_inventory()
    }

    fn why_wait(&self) -> Option<String> {
        self.of.takeover.why_wait(&self.owner)
    }

    fn draw(&self, needs: &mut Needs<'_>, plan: &mut Plan) -> Result<(), PlanError> {
        self.of.style.draw(&self.of.controls, &self.owner, &self.pass, needs, plan)
    }

    fn drawn(&self) {
        self.of.style.drawn(C::NAME, &self.pass);
    }

    fn is_undecided(&self) -> bool {
        self.of.style.is_undecided(&self.pass)
    }

    fn status(&self, state: &PlanState<'_>) -> Option<Value> {
        self.of.style.status(&self.of.controls, &self.owner, &self.pass, state)
    }

    fn due(&self) -> Option<Duration> {
        self.of.style.due(&self.pass)
    }
}

fn is_label_value(name: &str) -> bool {
    let inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    (1..=63).contains(&name.len())
        && name.chars().all(inner)
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.ends_with(|c: char| c.is_ascii_alphanumeric())
}
