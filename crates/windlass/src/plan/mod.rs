//! The plan: which resources, in which order.
//!
//! It promises: drawing twice gives the same plan; what is wrong with it (a duplicate, an object without a name, an order that
//! goes in circles) is found when it is [finished](Plan::finish), before anything is written; nothing in here does I/O.

mod draft;
mod drawn;
mod planned;

use std::sync::Arc;

use parking_lot::Mutex;
use serde::Serialize;
use windlass_runtime::intern::Str;
use windlass_runtime::key::ObjectKey;
use windlass_runtime::resource::ResourceType;

pub(crate) use self::draft::{BeforeUs, Draft, Generator, Maker, Mutation, Verb};
pub use self::draft::{Conflicts, Immutable};
pub(crate) use self::drawn::{Drawn, Node, is_data};
pub use self::planned::Planned;
use crate::desired::{Desired, Kind, id};
use crate::error::DrawError;
use crate::renewal::{Made, Making};
use crate::secrecy::Random;
use crate::step::Step;

/// What a blueprint draws: nodes, and what each comes after.
///
/// Every verb returns a handle, for [ordering](Planned::after) and for the node's options.
pub struct Plan {
    drafts: Arc<Mutex<Drafts>>,
    namespace: Option<String>,
}

#[derive(Default)]
pub(crate) struct Drafts {
    pub(crate) nodes: Vec<Draft>,
    /// What is wrong, in the order in which it was found.
    pub(crate) errors: Vec<DrawError>,
    /// What works, and should be otherwise.
    pub(crate) advice: Vec<String>,
}

impl Plan {
    /// An empty plan; objects that name no namespace are in this one. Blueprints get theirs from the controller.
    pub fn new(namespace: Option<&str>) -> Self {
        Self { drafts: Arc::default(), namespace: namespace.map(str::to_owned) }
    }

    /// An object that is applied and owned: repaired when it drifts, pruned when it leaves the plan.
    pub fn add<K: Kind + Serialize>(&mut self, object: K) -> Planned {
        self.object(Desired::of(&object, self.namespace.as_deref()), Verb::Apply)
    }

    /// The same, of an object that is JSON, of a kind known only at run time.
    pub fn add_json(&mut self, resource: ResourceType, object: serde_json::Value) -> Planned {
        self.object(Desired::from_value(resource, object, self.namespace.as_deref()), Verb::Apply)
    }

    /// A Job that runs to completion once per content: its name gets a digest of its spec, so a changed Job is a new one, and
    /// the old one is pruned.
    ///
    /// Do not set `ttlSecondsAfterFinished`: a Job that is gone is run again.
    pub fn task(&mut self, job: k8s_openapi::api::batch::v1::Job) -> Planned {
        let desired = Desired::of(&job, self.namespace.as_deref())
            .and_then(|desired| draft::named_by_content(&desired));
        self.object(desired, Verb::Apply)
    }

    /// An object that is generated once, of this name: credentials and keys. `generate` runs only when it is created; from then
    /// on nothing of it is ever changed.
    ///
    /// Is it lost, that is a failure and not a reason to make another: what was protected by the old one would be lost too. The
    /// message of that failure says how to allow it.
    pub fn create_once<K: Kind + Serialize>(
        &mut self,
        name: impl AsRef<str>,
        generate: impl Fn(&mut Random) -> Result<K, DrawError> + Send + Sync + 'static,
    ) -> Planned {
        let resource = ResourceType::of::<K>();
        let key = self.key(&resource, name.as_ref());
        let (namespace, wanted) = (self.namespace.clone(), key.clone());
        let generate: Generator = Box::new(move |random: &mut Random| {
            let desired = Desired::of(&generate(random)?, namespace.as_deref())?;
            if desired.key == wanted {
                return Ok(desired);
            }
            Err(DrawError::new(format!(
                "the generated {} is named {}, but its place in the plan is {wanted}",
                desired.resource.kind, desired.key
            )))
        });
        self.push(
            id(&resource, &key, self.namespace.as_deref()),
            Verb::CreateOnce { resource, key, generate },
        )
    }

    /// An object of this name that is made, and made anew before it is too old: certificates. `make` runs when there is none, when
    /// it is due, when somebody has touched its data, when `recipe` (what it is made by: names, lifetimes) is another, and when a
    /// renewed object that it comes after was made anew; and only then.
    ///
    /// Unlike what is [generated once](Self::create_once), it protects nothing that would be lost with it: if it is gone, another is
    /// made. What comes after it and has pods is rolled when it was made anew.
    pub fn renew<K: Kind + Serialize>(
        &mut self,
        name: impl AsRef<str>,
        recipe: impl Into<String>,
        make: impl Fn(&mut Making<'_>) -> Result<Made<K>, DrawError> + Send + Sync + 'static,
    ) -> Planned {
        let resource = ResourceType::of::<K>();
        let key = self.key(&resource, name.as_ref());
        let (namespace, wanted) = (self.namespace.clone(), key.clone());
        let make: Maker = Box::new(move |making: &mut Making<'_>| {
            let Made { object, due } = make(making)?;
            let desired = Desired::of(&object, namespace.as_deref())?;
            if desired.key == wanted {
                return Ok((desired, due));
            }
            let (kind, key) = (&desired.resource.kind, &desired.key);
            Err(DrawError::new(format!(
                "the renewed {kind} is named {key}, but its place in the plan is {wanted}"
            )))
        });
        self.push(
            id(&resource, &key, self.namespace.as_deref()),
            Verb::Renew { resource, key, recipe: recipe.into(), make },
        )
    }

    /// A node that cannot be drawn yet keeps its place: what comes after it waits, and should its object exist, it is left as it
    /// is.
    pub fn pending<K: Kind>(&mut self, name: impl AsRef<str>, why: impl Into<String>) -> Planned {
        let resource = ResourceType::of::<K>();
        let key = self.key(&resource, name.as_ref());
        self.push(
            id(&resource, &key, self.namespace.as_deref()),
            Verb::Pending { resource, key, why: why.into() },
        )
    }

    /// An action on the outside world, with its own check.
    pub fn step(&mut self, name: impl Into<String>, step: impl Step) -> Planned {
        self.push(name.into(), Verb::Step(Arc::new(step)))
    }

    /// Advice to the user: what works as it is, and should be otherwise. Say what to do; never a secret. The status has it as the condition
    /// `Advice` as long as it is given, and nothing waits for it.
    pub fn advise(&mut self, advice: impl Into<String>) {
        self.drafts.lock().advice.push(advice.into());
    }

    /// An input, which has its node before all others.
    pub(crate) fn input(&mut self, id: String, input: crate::inputs::Given) -> Planned {
        self.push(id, Verb::Input(input))
    }

    /// Where others say what is wrong with this plan.
    pub(crate) fn complaints(&self) -> Complain {
        Complain(Arc::clone(&self.drafts))
    }

    /// Nodes and edges, or everything that is wrong with them.
    pub(crate) fn finish(self) -> Result<Drawn, DrawError> {
        let drafts = std::mem::take(&mut *self.drafts.lock());
        drawn::finish(drafts, self.namespace.as_deref())
    }

    fn object(&mut self, desired: Result<Desired, DrawError>, verb: impl FnOnce(Desired) -> Verb) -> Planned {
        match desired {
            Ok(desired) => self.push(desired.id(self.namespace.as_deref()), verb(desired)),
            Err(error) => {
                let complain = self.complaints();
                complain.error(error);
                complain.nowhere()
            }
        }
    }

    fn push(&mut self, id: String, verb: Verb) -> Planned {
        let mut drafts = self.drafts.lock();
        drafts.nodes.push(Draft::new(id, verb));
        Planned::new(Arc::clone(&self.drafts), drafts.nodes.len() - 1)
    }

    fn key(&self, resource: &ResourceType, name: &str) -> ObjectKey {
        let namespace = self.namespace.as_deref().filter(|_| resource.namespaced).map(Str::new);
        ObjectKey::new(namespace, name)
    }
}

/// Says what is wrong with a plan, before it is finished.
pub(crate) struct Complain(Arc<Mutex<Drafts>>);

impl Complain {
    pub(crate) fn error(&self, error: DrawError) {
        self.0.lock().errors.push(error);
    }

    /// The handle of something that is not there. The plan fails anyway.
    pub(crate) fn nowhere(&self) -> Planned {
        let mut drafts = self.0.lock();
        drafts.nodes.push(Draft::new("broken".into(), Verb::Broken));
        Planned::new(Arc::clone(&self.0), drafts.nodes.len() - 1)
    }
}
