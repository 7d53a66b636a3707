//! Every object of the declared kinds that lived during a run, from its first sight to its end.
//!
//! It watches from before the operator starts, and a watch tells of every object, however short its life is.
//! Only if the server has forgotten where the watch was does it list again, and may miss what lived and died
//! in between. Objects that every namespace has are left out.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::{StreamExt as _, TryStreamExt as _};
use kube::api::{DynamicObject, ListParams, WatchEvent, WatchParams};
use kube::{Client, ResourceExt as _};
use serde_json::Value;
use tokio::task::JoinSet;

use super::kind::Kind;
use super::normal;
use super::snapshot::Snapshot;
use crate::error::{Error, Result};
use crate::eventually::eventually;

/// Objects that every namespace has, by kind and name.
const EVERYWHERE: [(&str, &str); 2] = [("ConfigMap", "kube-root-ca.crt"), ("ServiceAccount", "default")];

/// Changes objects before they are compared.
pub(crate) type Normaliser = Arc<dyn Fn(&mut DynamicObject) + Send + Sync>;

/// The kinds and the namespace that are watched.
pub(crate) struct Scope {
    pub(crate) client: Client,
    pub(crate) namespace: String,
    pub(crate) kinds: Vec<Kind>,
    pub(crate) normalisers: Vec<Normaliser>,
    /// The service account of the operator is the harness's, not the scenario's.
    pub(crate) account: String,
}

/// The life of one object.
struct Life {
    name: String,
    raw_name: String,
    generated: bool,
    /// The content when the object was first seen, if it is created once.
    first: Option<Value>,
    /// The resource version, as long as the object exists.
    version: Option<String>,
    /// True if the object changed although it must not.
    changed: bool,
    availability: Availability,
}

/// The availability of an object so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Availability {
    /// Not available, or nothing is declared about that.
    No,
    Yes,
    /// It was available and then was not, in a step that is not disruptive.
    Interrupted,
}

impl Availability {
    fn next(self, available: bool, disruptive: bool) -> Self {
        match self {
            Self::Interrupted => Self::Interrupted,
            Self::Yes if !available && !disruptive => Self::Interrupted,
            _ if available => Self::Yes,
            _ => Self::No,
        }
    }
}

/// Lives by kind (its place in the scope) and uid.
#[derive(Default)]
struct Lives {
    by_uid: BTreeMap<(usize, String), Life>,
    events: u64,
    /// True during a step that may make objects unavailable.
    disruptive: bool,
}

/// Watches as long as it lives.
pub(crate) struct Ledger {
    scope: Arc<Scope>,
    lives: Arc<Mutex<Lives>>,
    _watches: JoinSet<()>,
}

impl Ledger {
    /// Lists every kind once and watches from there.
    pub(crate) async fn open(scope: Scope) -> Result<Self> {
        let scope = Arc::new(scope);
        let lives = Arc::new(Mutex::new(Lives::default()));
        let mut watches = JoinSet::new();
        for index in 0..scope.kinds.len() {
            let one = Watcher { scope: Arc::clone(&scope), lives: Arc::clone(&lives), index };
            let version = one.list().await?;
            watches.spawn(one.watch(version));
        }
        Ok(Self { scope, lives, _watches: watches })
    }

    /// The number of events so far: a measure of activity.
    pub(crate) fn events(&self) -> u64 {
        lock(&self.lives).events
    }

    /// The names that the server made up, with their patterns.
    pub(super) fn generated(&self) -> BTreeMap<String, String> {
        let lives = lock(&self.lives);
        let generated = lives.by_uid.values().filter(|life| life.generated);
        generated.map(|life| (life.raw_name.clone(), life.name.clone())).collect()
    }

    /// The objects that are created once and were changed nevertheless.
    pub(super) fn changed(&self) -> Vec<String> {
        let lives = lock(&self.lives);
        let changed = lives.by_uid.iter().filter(|(_, life)| life.changed);
        changed
            .map(|((kind, _), life)| {
                let kind = self.scope.kinds[*kind].name();
                format!("{kind} {} is created once, and its content was changed later", life.name)
            })
            .collect()
    }

    /// Says whether the present step may make objects unavailable.
    pub(super) fn set_disruptive(&self, disruptive: bool) {
        lock(&self.lives).disruptive = disruptive;
    }

    /// The objects that were available and then were not, though no step asked for that.
    pub(super) fn interrupted(&self) -> Vec<String> {
        let lives = lock(&self.lives);
        let interrupted =
            lives.by_uid.iter().filter(|(_, life)| life.availability == Availability::Interrupted);
        interrupted
            .map(|((kind, _), life)| {
                let kind = self.scope.kinds[*kind].name();
                format!("{kind} {} was available, and then it was not", life.name)
            })
            .collect()
    }

    /// The present state as the server lists it; `Err` as long as the watches are behind.
    pub(crate) async fn snapshot(&self) -> Result<Snapshot, String> {
        let mut snapshot = Snapshot::default();
        for (index, kind) in self.scope.kinds.iter().enumerate() {
            let listed = self.scope.list(index).await.map_err(|error| error.to_string())?.0;
            for object in &listed {
                let name = format!("{} {}", kind.name(), normal::name(object, &self.scope.namespace));
                snapshot.add(name, normal::object(kind, object, &self.scope.namespace));
            }
            let listed: BTreeMap<String, Option<String>> = listed
                .into_iter()
                .map(|object| (object.uid().unwrap_or_default(), object.resource_version()))
                .collect();
            let lives = lock(&self.lives);
            let of_kind = lives.by_uid.iter().filter(|((kind, _), _)| *kind == index);
            let alive = of_kind.clone().filter(|(_, life)| life.version.is_some());
            let alive: BTreeMap<String, Option<String>> =
                alive.map(|((_, uid), life)| (uid.clone(), life.version.clone())).collect();
            if alive != listed {
                return Err(format!("the watch of {kind} is behind the list"));
            }
            for (_, life) in of_kind {
                *snapshot.created.entry(format!("{} {}", kind.name(), life.name)).or_default() += 1;
            }
        }
        Ok(snapshot)
    }
}

impl Scope {
    /// The objects of a kind, and the version of the list.
    async fn list(&self, index: usize) -> Result<(Vec<DynamicObject>, String)> {
        let kind = &self.kinds[index];
        let params = ListParams { label_selector: kind.selector.clone(), ..ListParams::default() };
        let (api, what) =
            (kind.api(&self.client, &self.namespace), format!("listing {kind} in {}", self.namespace));
        // A connection that the server closed as we took it says nothing about the operator.
        let listed = eventually(what.clone(), || async {
            match api.list(&params).await {
                Err(error) if !matches!(error, kube::Error::Api(_)) => Err(error.to_string()),
                answer => Ok(answer),
            }
        });
        let list = listed.await?.map_err(Error::api(what))?;
        let version = list.metadata.resource_version.unwrap_or_default();
        let objects = list.items.into_iter().filter_map(|object| self.admit(kind, object));
        Ok((objects.collect(), version))
    }

    /// Leaves out what does not belong to the scenario, and lets the author's normalisers work on the rest.
    fn admit(&self, kind: &Kind, mut object: DynamicObject) -> Option<DynamicObject> {
        let name = object.name_any();
        let ours = kind.name() == "ServiceAccount" && name == self.account;
        if ours || EVERYWHERE.contains(&(kind.name(), name.as_str())) {
            return None;
        }
        self.normalisers.iter().for_each(|normalise| normalise(&mut object));
        Some(object)
    }
}

struct Watcher {
    scope: Arc<Scope>,
    lives: Arc<Mutex<Lives>>,
    index: usize,
}

impl Watcher {
    async fn list(&self) -> Result<String> {
        let (objects, version) = self.scope.list(self.index).await?;
        let mut lives = lock(&self.lives);
        for ((kind, _), life) in &mut lives.by_uid {
            if *kind == self.index {
                life.version = None;
            }
        }
        for object in &objects {
            self.saw(&mut lives, object);
        }
        Ok(version)
    }

    async fn watch(self, mut version: String) {
        loop {
            version = match self.follow(&version).await {
                Some(version) => version,
                // The place in the history is lost; the list has at least what is there now.
                None => match self.list().await {
                    Ok(version) => version,
                    Err(error) => {
                        tracing::debug!(%error, "the ledger cannot list");
                        tokio::time::sleep(Duration::from_millis(100)).await;
                        continue;
                    }
                },
            };
        }
    }

    /// Follows one watch to its end and says from where to go on, if that is known.
    async fn follow(&self, version: &str) -> Option<String> {
        let kind = &self.scope.kinds[self.index];
        let params = WatchParams { label_selector: kind.selector.clone(), ..WatchParams::default() };
        let api = kind.api(&self.scope.client, &self.scope.namespace);
        let mut events = api.watch(&params, version).await.ok()?.boxed();
        let mut version = version.to_owned();
        while let Some(event) = events.try_next().await.ok()? {
            let (object, alive) = match event {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => (object, true),
                WatchEvent::Deleted(object) => (object, false),
                WatchEvent::Bookmark(bookmark) => {
                    version = bookmark.metadata.resource_version;
                    continue;
                }
                WatchEvent::Error(_) => return None,
            };
            version = object.resource_version().unwrap_or_default();
            let Some(object) = self.scope.admit(kind, object) else {
                continue;
            };
            let mut lives = lock(&self.lives);
            lives.events += 1;
            self.saw(&mut lives, &object);
            let disruptive = lives.disruptive;
            if !alive && let Some(life) = lives.by_uid.get_mut(&self.key(&object)) {
                life.version = None;
                life.availability = life.availability.next(false, disruptive);
            }
        }
        Some(version)
    }

    fn key(&self, object: &DynamicObject) -> (usize, String) {
        (self.index, object.uid().unwrap_or_default())
    }

    fn saw(&self, lives: &mut Lives, object: &DynamicObject) {
        let kind = &self.scope.kinds[self.index];
        let content = || kind.is_once(object).then(|| normal::content(kind, object, &self.scope.namespace));
        let disruptive = lives.disruptive;
        let life = lives.by_uid.entry(self.key(object)).or_insert_with(|| Life {
            name: normal::name(object, &self.scope.namespace),
            raw_name: object.name_any(),
            generated: object.metadata.generate_name.is_some(),
            first: content(),
            version: None,
            changed: false,
            availability: Availability::No,
        });
        life.version = object.resource_version();
        life.changed |= life.first.is_some() && life.first != content();
        if let Some(available) = kind.is_available(object) {
            life.availability = life.availability.next(available, disruptive);
        }
    }
}

fn lock(lives: &Mutex<Lives>) -> MutexGuard<'_, Lives> {
    lives.lock().unwrap_or_else(PoisonError::into_inner)
}
