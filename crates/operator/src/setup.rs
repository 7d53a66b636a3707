//! The context in which a part of an operator is set up.

use std::fmt;

use kube::Resource;
use serde::Serialize;
use serde::de::DeserializeOwned;
use windlass_runtime::access::{Access, Entry, Verb};
use windlass_runtime::cache::{Cache, Selection};
use windlass_runtime::client::Client;
use windlass_runtime::controller::Controller;
use windlass_runtime::events::{InvalidController, Publisher, Recorder, RecorderOptions};
use windlass_runtime::leader::Fence;
use windlass_runtime::manager::{DuplicateName, Manager, Readiness, Runnable, Stage};
use windlass_runtime::metrics::Metrics;
use windlass_runtime::webhook::{Converter, Defaulter, DuplicateHook, Validator, Webhooks};

use crate::hooks::Hook;
use crate::settings::Settings;

/// The context of a part of an operator: the part adds its controllers and webhooks here, and gets clients,
/// caches and metrics from here.
///
/// RBAC rules are collected as well: those for watches and events follow from the calls, those for writes are
/// declared with [`needs`](Self::needs).
pub struct Setup<'a> {
    name: &'static str,
    settings: &'a Settings,
    client: Client,
    leader_client: Client,
    fence: Fence,
    cache: Cache,
    recorder: Option<(Recorder, Publisher)>,
    access: Access,
    pub(crate) plans: Option<windlass::PlanMetrics>,
    pub(crate) keyring: Option<windlass::Keyring>,
    pub(crate) manager: Manager,
    pub(crate) webhooks: Webhooks,
    pub(crate) hooks: Vec<Hook>,
    pub(crate) converted: Vec<String>,
}

impl fmt::Debug for Setup<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Setup").field("operator", &self.name).finish_non_exhaustive()
    }
}

impl<'a> Setup<'a> {
    pub(crate) fn new(name: &'static str, client: &Client, fence: &Fence, settings: &'a Settings) -> Self {
        Self {
            name,
            settings,
            client: client.clone(),
            leader_client: client.fenced(fence),
            fence: fence.clone(),
            cache: Cache::new(client),
            recorder: None,
            access: Access::none(),
            plans: None,
            keyring: None,
            manager: Manager::new().grace(settings.grace),
            webhooks: Webhooks::new(),
            hooks: Vec::new(),
            converted: Vec::new(),
        }
    }

    /// Returns the operator's name, for a field manager or a label value.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the metrics of the process, to register metrics of your own.
    pub fn metrics(&self) -> &Metrics {
        self.manager.metrics()
    }

    /// Returns the readiness of the process, to add checks of your own.
    pub fn readiness(&self) -> &Readiness {
        self.manager.readiness()
    }

    /// Returns the client for live reads and all writes.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Returns the client of controllers. Its writes are sent only while this process leads: a process that
    /// was suspended and continues after another has become the leader writes nothing.
    pub fn leader_client(&self) -> &Client {
        &self.leader_client
    }

    /// Returns the same check for other work of a leader, such as a call to a database.
    pub fn fence(&self) -> &Fence {
        &self.fence
    }

    /// Returns the cache for readers. Pass them to a controller or keep them: a watch ends with its last
    /// reader.
    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    /// Returns the selection of objects that this process watches: all, or those of the configured
    /// namespaces.
    pub fn scope(&self) -> Selection {
        let namespaces = &self.settings.namespaces;
        if namespaces.is_empty() {
            Selection::all()
        } else {
            Selection::all().in_namespaces(namespaces.iter().map(String::as_str))
        }
    }

    /// Returns the settings of the process.
    pub fn settings(&self) -> &Settings {
        self.settings
    }

    /// Returns the number of workers that each controller is to have.
    pub fn workers(&self) -> usize {
        self.settings.workers
    }

    /// Returns the recorder of events in the operator's name. All parts share one.
    pub fn recorder(&mut self) -> Result<Recorder, InvalidController> {
        if let Some((recorder, _)) = &self.recorder {
            return Ok(recorder.clone());
        }
        let (recorder, publisher) = Recorder::new(&self.client, RecorderOptions::new(self.name))?;
        recorder.show_in(self.manager.metrics());
        self.recorder = Some((recorder.clone(), publisher));
        Ok(recorder)
    }

    /// Declares the kinds that are written, or read without a watch. The operator's RBAC rules are the sum of
    /// what all parts declare.
    pub fn needs(&mut self, access: Access) {
        self.access = std::mem::take(&mut self.access).and(access);
    }

    /// Adds a controller. It runs on the leader only.
    pub fn controller(&mut self, controller: Controller) -> Result<(), DuplicateName> {
        self.manager.controller(controller)
    }

    /// Adds a task that runs from start to stop.
    pub fn add(&mut self, stage: Stage, runnable: Runnable) -> Result<(), DuplicateName> {
        self.manager.add(stage, runnable)
    }

    /// Adds a webhook that fills in fields that a user left out. The returned hook can be changed.
    pub fn defaulter<D: Defaulter>(&mut self, defaulter: D) -> Result<&mut Hook, DuplicateHook> {
        self.webhooks = std::mem::take(&mut self.webhooks).defaulter(defaulter)?;
        Ok(self.declare(Hook::mutating::<D::Object>()))
    }

    /// Adds a webhook that refuses invalid objects. The returned hook can be changed.
    pub fn validator<V: Validator>(&mut self, validator: V) -> Result<&mut Hook, DuplicateHook> {
        self.webhooks = std::mem::take(&mut self.webhooks).validator(validator)?;
        Ok(self.declare(Hook::validating::<V::Object>()))
    }

    /// Adds the conversions between the versions of a kind.
    pub fn converter<H>(&mut self, converter: Converter<H>) -> Result<(), DuplicateHook>
    where
        H: Resource<DynamicType = ()> + DeserializeOwned + Serialize + Send + 'static,
    {
        self.webhooks = std::mem::take(&mut self.webhooks).converter(converter)?;
        self.converted.push(format!("{}.{}", H::plural(&()), H::group(&())));
        Ok(())
    }

    fn declare(&mut self, hook: Hook) -> &mut Hook {
        self.hooks.push(hook);
        let last = self.hooks.len() - 1;
        &mut self.hooks[last]
    }

    /// Returns whether the operator has a webhook or a converted kind.
    pub(crate) fn has_webhooks(&self) -> bool {
        !self.hooks.is_empty() || !self.converted.is_empty()
    }

    /// Returns the rights that the parts added so far need: the declared ones, and those that follow from
    /// calls.
    pub(crate) fn access(&self) -> Access {
        let events = if self.recorder.is_some() { Access::none().events() } else { Access::none() };
        let watched = self.cache.watches().into_iter().map(|watch| {
            // A watch of one object by its name needs the right to that object only.
            let fields = watch.fields.to_string();
            let name = fields.strip_prefix("metadata.name=").filter(|name| !name.contains(','));
            let namespace =
                watch.namespace.filter(|namespace| !self.settings.namespaces.contains(&**namespace));
            Entry {
                group: watch.resource.group.clone(),
                resource: watch.resource.plural.to_string(),
                namespaced: watch.resource.namespaced,
                namespace: namespace.map(|namespace| namespace.to_string()),
                name: name.map(str::to_owned),
                verbs: [Verb::Get, Verb::List, Verb::Watch].into(),
            }
        });
        watched.fold(self.access.clone().and(events), Access::with)
    }

    /// Adds the process's own tasks: caches, and the publisher of events.
    pub(crate) fn finish(mut self) -> Result<Manager, DuplicateName> {
        self.manager.cache(&self.cache)?;
        if let Some((_, publisher)) = self.recorder {
            self.manager.add(Stage::Everywhere, publisher.into_runnable())?;
        }
        Ok(self.manager)
    }
}
