//! What a part of an operator is given, and what it says in return.

use std::fmt;

use kube::Resource;
use serde::Serialize;
use serde::de::DeserializeOwned;
use windlass_runtime::access::{Access, Entry, Verb};
use windlass_runtime::cache::{Cache, Selection};
use windlass_runtime::client::Client;
use windlass_runtime::controller::Controller;
use windlass_runtime::events::{InvalidController, Publisher, Recorder, RecorderOptions};
use windlass_runtime::manager::{DuplicateName, Manager, Part, Readiness, Stage};
use windlass_runtime::metrics::Metrics;
use windlass_runtime::webhook::{Converter, Defaulter, DuplicateHook, Validator, Webhooks};

use crate::hooks::Hook;
use crate::settings::Settings;

/// Where a part of an operator adds what it is made of, and finds what it is made with.
///
/// Rights are counted along: what is watched, and that events are recorded, is known; what is written is said with
/// [`needs`](Self::needs).
pub struct Setup<'a> {
    name: &'static str,
    settings: &'a Settings,
    client: Client,
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
    pub(crate) fn new(name: &'static str, client: &Client, settings: &'a Settings) -> Self {
        Self {
            name,
            settings,
            client: client.clone(),
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

    /// The operator's name: good for a field manager, and for the owner of labels.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// What the process counts, for counts of your own.
    pub fn metrics(&self) -> &Metrics {
        self.manager.metrics()
    }

    /// Whether the process is ready, for checks of your own.
    pub fn readiness(&self) -> &Readiness {
        self.manager.readiness()
    }

    /// For live reads and all writes.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// For readers. They must be given to a controller or kept otherwise: a watch ends with its last reader.
    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    /// The objects that this process is to look at: all, or those of the namespaces that its user named.
    pub fn scope(&self) -> Selection {
        let namespaces = &self.settings.namespaces;
        if namespaces.is_empty() {
            Selection::all()
        } else {
            Selection::all().in_namespaces(namespaces.iter().map(String::as_str))
        }
    }

    /// How it runs.
    pub fn settings(&self) -> &Settings {
        self.settings
    }

    /// How many workers the user wants for each controller.
    pub fn workers(&self) -> usize {
        self.settings.workers
    }

    /// Records events in the operator's name. All parts share one.
    pub fn recorder(&mut self) -> Result<Recorder, InvalidController> {
        if let Some((recorder, _)) = &self.recorder {
            return Ok(recorder.clone());
        }
        let (recorder, publisher) = Recorder::new(&self.client, RecorderOptions::new(self.name))?;
        recorder.show_in(self.manager.metrics());
        self.recorder = Some((recorder.clone(), publisher));
        Ok(recorder)
    }

    /// Says what is written, and what is read without a watch. Least privilege is the sum of what all parts say.
    pub fn needs(&mut self, access: Access) {
        self.access = std::mem::take(&mut self.access).and(access);
    }

    /// Adds a controller. It runs on the leader only.
    pub fn controller(&mut self, controller: Controller) -> Result<(), DuplicateName> {
        self.manager.controller(controller)
    }

    /// Adds anything else that runs, from start to stop.
    pub fn add(&mut self, stage: Stage, part: Part) -> Result<(), DuplicateName> {
        self.manager.add(stage, part)
    }

    /// Adds a webhook that fills in what a user left out. What is returned can be changed.
    pub fn defaulter<D: Defaulter>(&mut self, defaulter: D) -> Result<&mut Hook, DuplicateHook> {
        self.webhooks = std::mem::take(&mut self.webhooks).defaulter(defaulter)?;
        Ok(self.declare(Hook::mutating::<D::Object>()))
    }

    /// Adds a webhook that refuses what is wrong. What is returned can be changed.
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

    /// Whether there is anything that the API server asks.
    pub(crate) fn has_webhooks(&self) -> bool {
        !self.hooks.is_empty() || !self.converted.is_empty()
    }

    /// What the parts added so far need: what they said, and what can be seen.
    pub(crate) fn access(&self) -> Access {
        let events = if self.recorder.is_some() { Access::none().events() } else { Access::none() };
        let watched = self.cache.watches().into_iter().map(|watch| {
            // A watch of one object, by its name, is a right to that object only.
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

    /// The process's own parts: caches, and what writes events.
    pub(crate) fn finish(mut self) -> Result<Manager, DuplicateName> {
        self.manager.cache(&self.cache)?;
        if let Some((_, publisher)) = self.recorder {
            self.manager.add(Stage::Everywhere, publisher.into_part())?;
        }
        Ok(self.manager)
    }
}
