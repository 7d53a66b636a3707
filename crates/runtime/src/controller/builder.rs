//! The builder of a controller.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::mpsc;

use super::watch::{Mapping, Source, Watch, Wired, itself, owners};
use super::worker::Worker;
use super::{Channel, Controller, Inner, Reconcile};
use crate::cache::Shape;
use crate::key::ObjectKey;
use crate::queue::{Backoff, Priority};
use crate::resource::ResourceType;

/// The state of a builder for a controller of a kind, which can own other kinds.
#[derive(Debug)]
pub struct Owning(ResourceType);

/// The state of a builder for a controller without a kind of its own.
#[derive(Debug)]
pub struct Nothing;

/// Builds a controller.
///
/// Mistakes do not compile: the kind that the controller is *for* comes first; only a controller for a kind
/// *owns* others; there is exactly one reconciler, and it comes last.
#[must_use = "a builder does nothing before `build`"]
pub struct Builder<O> {
    name: String,
    of: O,
    sources: Vec<Box<dyn Source>>,
    channels: Vec<(Channel, Priority)>,
    workers: usize,
    deadline: Option<Duration>,
    backoff: Backoff,
}

/// The reason why a controller cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// The name is empty.
    #[error("the controller has no name; logs and metrics need one")]
    Unnamed,
    /// The controller watches nothing.
    #[error("controller {0} would never run: add a watch or a channel")]
    Deaf(String),
    /// The controller has no workers.
    #[error("controller {0} would never run: it has no workers")]
    Idle(String),
}

impl Controller {
    /// Starts a controller of a kind: it reconciles the key of each object that changes. Its name is the kind
    /// in lower case, unless [`name`](Builder::name) sets another.
    pub fn for_<S: Shape>(watch: impl Into<Watch<S>>) -> Builder<Owning> {
        let watch = watch.into();
        let resource = watch.resource().clone();
        let source = Wired { forgiving: watch.forgives(), watch, mapping: itself() };
        let mut builder = Builder::new(resource.kind.to_lowercase(), Owning(resource));
        builder.sources.push(Box::new(source));
        builder
    }

    /// Starts a controller without a kind of its own: its keys come from [`watches`](Builder::watches) and
    /// [`channel`](Builder::channel)s, and only its reconciler interprets them.
    pub fn named(name: impl Into<String>) -> Builder<Nothing> {
        Builder::new(name.into(), Nothing)
    }
}

impl Builder<Owning> {
    /// Reconciles the controlling owner of each object of this kind that changes: the old and the new owner,
    /// if they differ. Owners are matched by group and kind, in any version.
    pub fn owns<S: Shape>(self, watch: impl Into<Watch<S>>) -> Self {
        let mapping = owners(self.of.0.clone(), false);
        self.follow(watch.into(), mapping)
    }

    /// Like [`owns`](Self::owns), for every owner of our kind instead of only the controlling one.
    pub fn owns_jointly<S: Shape>(self, watch: impl Into<Watch<S>>) -> Self {
        let mapping = owners(self.of.0.clone(), true);
        self.follow(watch.into(), mapping)
    }
}

impl<O> Builder<O> {
    fn new(name: String, of: O) -> Self {
        Self {
            name,
            of,
            sources: Vec::new(),
            channels: Vec::new(),
            workers: 1,
            deadline: Some(Duration::from_mins(5)),
            backoff: Backoff::default(),
        }
    }

    /// Reconciles the keys that `map` returns for each object of this kind that changes. It is called with
    /// the old and the new object, so that keys that are no longer affected are reconciled too.
    ///
    /// `map` is called while the cache delivers the change: it must be quick. It may read caches.
    pub fn watches<S: Shape, K: IntoIterator<Item = ObjectKey>>(
        self,
        watch: impl Into<Watch<S>>,
        map: impl Fn(&S) -> K + Send + Sync + 'static,
    ) -> Self {
        let mapping = Arc::new(move |object: &S, found: &mut dyn FnMut(ObjectKey)| {
            map(object).into_iter().for_each(found);
        });
        self.follow(watch.into(), mapping)
    }

    /// Reconciles every key that is sent through a channel: for events outside of the cluster. Closing the
    /// channel is not an error.
    pub fn channel(self, keys: mpsc::Receiver<ObjectKey>) -> Self {
        self.hear(keys, Priority::NORMAL)
    }

    /// Like [`channel`](Self::channel), at low priority: these keys are reconciled when there are no fresh
    /// changes.
    pub fn background(self, keys: mpsc::Receiver<ObjectKey>) -> Self {
        self.hear(keys, Priority::LOW)
    }

    fn hear(mut self, keys: mpsc::Receiver<ObjectKey>, priority: Priority) -> Self {
        self.channels.push((Arc::new(Mutex::new(Some(keys))), priority));
        self
    }

    /// Sets the name in logs and metrics. It must be unique within a manager.
    pub fn name(self, name: impl Into<String>) -> Self {
        Self { name: name.into(), ..self }
    }

    /// Sets the number of keys that are reconciled concurrently (default 1).
    pub fn workers(self, workers: usize) -> Self {
        Self { workers, ..self }
    }

    /// Sets the deadline after which a reconcile is cancelled and retried; `None` disables it. The default is
    /// five minutes, far more than a reconcile should take, so that one that hangs does not block its worker
    /// permanently.
    pub fn deadline(self, deadline: impl Into<Option<Duration>>) -> Self {
        Self { deadline: deadline.into(), ..self }
    }

    /// Sets the backoff of failing keys.
    pub fn backoff(self, backoff: Backoff) -> Self {
        Self { backoff, ..self }
    }

    /// Builds the controller.
    pub fn build(self, reconciler: impl Reconcile) -> Result<Controller, BuildError> {
        if self.name.is_empty() {
            return Err(BuildError::Unnamed);
        }
        if self.sources.is_empty() && self.channels.is_empty() {
            return Err(BuildError::Deaf(self.name));
        }
        if self.workers == 0 {
            return Err(BuildError::Idle(self.name));
        }
        let name: Arc<str> = self.name.into();
        let (controller, reconciler, deadline) = (Arc::clone(&name), Arc::new(reconciler), self.deadline);
        let work = Box::new(move |queue, metrics| -> futures::future::BoxFuture<'static, ()> {
            let (controller, reconciler) = (Arc::clone(&controller), Arc::clone(&reconciler));
            Box::pin(Worker { controller, reconciler, queue, deadline, metrics }.work())
        });
        let Self { sources, channels, workers, backoff, .. } = self;
        Ok(Controller { inner: Arc::new(Inner { name, sources, channels, workers, backoff, work }) })
    }

    fn follow<S: Shape>(mut self, watch: Watch<S>, mapping: Mapping<S>) -> Self {
        self.sources.push(Box::new(Wired { watch, mapping, forgiving: false }));
        self
    }
}

impl<O> std::fmt::Debug for Builder<O> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builder").field("name", &self.name).finish_non_exhaustive()
    }
}
