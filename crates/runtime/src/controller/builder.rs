//! How a controller is put together.

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

/// A controller of a kind: it can own others.
#[derive(Debug)]
pub struct Owning(ResourceType);

/// A controller of no kind of its own.
#[derive(Debug)]
pub struct Nothing;

/// Puts a controller together.
///
/// What cannot be meant cannot be written: there is one kind that it is *for*, said first; only a controller that is for
/// a kind *owns* others; there is one reconciler, said last.
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

/// Why a controller cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// Its name is empty.
    #[error("a controller needs a name: logs and metrics go by it")]
    Unnamed,
    /// It follows nothing.
    #[error("controller {0} would never run: give it something to watch, or a channel")]
    Deaf(String),
    /// It has no workers.
    #[error("controller {0} would never run: it has no workers")]
    Idle(String),
}

impl Controller {
    /// A controller of a kind: reconciles the key of each object that changes. Its name is the kind in lower case, unless
    /// [`name`](Builder::name) says another.
    pub fn for_<S: Shape>(watch: impl Into<Watch<S>>) -> Builder<Owning> {
        let watch = watch.into();
        let resource = watch.resource().clone();
        let source = Wired { forgiving: watch.forgives(), watch, mapping: itself() };
        let mut builder = Builder::new(resource.kind.to_lowercase(), Owning(resource));
        builder.sources.push(Box::new(source));
        builder
    }

    /// A controller of no kind of its own: its keys come from [`watches`](Builder::watches) and
    /// [`channel`](Builder::channel)s, and mean what its reconciler takes them to mean.
    pub fn named(name: impl Into<String>) -> Builder<Nothing> {
        Builder::new(name.into(), Nothing)
    }
}

impl Builder<Owning> {
    /// Reconciles the controlling owner of each object of this kind that changes: the old one and the new one, should
    /// they differ. Owners are recognised by group and kind, in any version.
    pub fn owns<S: Shape>(self, watch: impl Into<Watch<S>>) -> Self {
        let mapping = owners(self.of.0.clone(), false);
        self.follow(watch.into(), mapping)
    }

    /// Like [`owns`](Self::owns), for every owner of our kind and not only for the controlling one.
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

    /// Reconciles the keys that `map` names for each object of this kind that changes. It is asked about the old and the
    /// new object, so that those who are no longer concerned learn of it.
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

    /// Reconciles every key that comes through a channel: for what happens outside of the cluster. A closed channel is
    /// no error; it has nothing more to say.
    pub fn channel(self, keys: mpsc::Receiver<ObjectKey>) -> Self {
        self.hear(keys, Priority::NORMAL)
    }

    /// Like [`channel`](Self::channel), for what nobody waits for: these keys are reconciled when no fresh change is.
    pub fn background(self, keys: mpsc::Receiver<ObjectKey>) -> Self {
        self.hear(keys, Priority::LOW)
    }

    fn hear(mut self, keys: mpsc::Receiver<ObjectKey>, priority: Priority) -> Self {
        self.channels.push((Arc::new(Mutex::new(Some(keys))), priority));
        self
    }

    /// Its name in logs and metrics. No two controllers of a manager have the same.
    pub fn name(self, name: impl Into<String>) -> Self {
        Self { name: name.into(), ..self }
    }

    /// How many keys are reconciled at the same time. Default: 1.
    pub fn workers(self, workers: usize) -> Self {
        Self { workers, ..self }
    }

    /// How long a reconcile may take before it is cancelled and retried; `None`: for ever. Default: five minutes, far
    /// more than a reconcile should take, so that one that hangs does not hold its worker for good.
    pub fn deadline(self, deadline: impl Into<Option<Duration>>) -> Self {
        Self { deadline: deadline.into(), ..self }
    }

    /// How failing keys are retried.
    pub fn backoff(self, backoff: Backoff) -> Self {
        Self { backoff, ..self }
    }

    /// The controller.
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
