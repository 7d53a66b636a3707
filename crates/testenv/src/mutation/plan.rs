//! The declaration of a mutation: the operator, the kind, the base, and the files of values and exceptions.

use std::fmt::Debug;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DynamicObject};
use serde_json::Value;

use super::owner::{OwnerReport, conditions};
use super::selection::Selection;
use crate::torture::{
    Action, Condition, Kind, Normaliser, Operator, OperatorRun, Scene, StepResult, action, condition,
};

/// An operator, a kind with a base manifest, and what must hold. The [module's page](super) has an example.
#[must_use = "nothing happens until it is run"]
pub struct Mutation {
    pub(super) plan: Plan,
}

/// The declared settings.
pub(super) struct Plan {
    pub(super) name: String,
    pub(super) operator: Operator,
    pub(super) owner: ApiResource,
    pub(super) schema: Value,
    pub(super) base: Value,
    pub(super) values: String,
    pub(super) exceptions: String,
    pub(super) kinds: Vec<Kind>,
    pub(super) normalisers: Vec<Normaliser>,
    pub(super) prepare: Option<Action>,
    pub(super) serves: Option<Condition>,
    pub(super) report: Arc<dyn Fn(&Value) -> OwnerReport + Send + Sync>,
    pub(super) patience: Duration,
    pub(super) calm: Duration,
    pub(super) grace: Duration,
    pub(super) lanes: usize,
    pub(super) selection: Selection,
}

impl Mutation {
    /// Begins with the kind, a manifest of it that is known to become ready, and the operator. The stored
    /// version of the definition is mutated.
    ///
    /// `operator` is called once per lane, on a thread and in a tokio runtime of its own, and must keep to
    /// [`OperatorRun::namespace`]: lanes run side by side. Its future runs until it is killed.
    pub fn new<F, Fut>(
        name: impl Into<String>,
        definition: &CustomResourceDefinition,
        base: Value,
        operator: F,
    ) -> Self
    where
        F: Fn(OperatorRun) -> Fut + Send + Sync + 'static,
        Fut: Future + 'static,
        Fut::Output: Debug,
    {
        let operator: Operator = Arc::new(move |run| {
            let life = operator(run);
            Box::pin(async move { format!("{:?}", life.await) })
        });
        let spec = &definition.spec;
        let version = spec.versions.iter().find(|version| version.storage);
        let version_name = version.map(|version| version.name.clone()).unwrap_or_default();
        let schema = version.and_then(|version| serde_json::to_value(version.schema.as_ref()?).ok());
        let owner = ApiResource {
            group: spec.group.clone(),
            api_version: format!("{}/{version_name}", spec.group),
            version: version_name,
            kind: spec.names.kind.clone(),
            plural: spec.names.plural.clone(),
        };
        let schema = schema.map(|schema| schema["openAPIV3Schema"].clone()).unwrap_or_default();
        Self {
            plan: Plan {
                name: name.into(),
                operator,
                owner,
                schema,
                base,
                values: String::new(),
                exceptions: String::new(),
                kinds: Vec::new(),
                normalisers: Vec::new(),
                prepare: None,
                serves: None,
                report: Arc::new(conditions),
                patience: Duration::from_secs(30),
                calm: Duration::from_secs(1),
                grace: Duration::from_secs(8),
                lanes: 4,
                selection: Selection::All,
            },
        }
    }

    /// Adds a kind whose objects show an effect. The owner's own kind shows none, nor do kinds that only
    /// pass a spec on.
    pub fn watch(mut self, kind: impl Into<Kind>) -> Self {
        self.plan.kinds.push(kind.into());
        self
    }

    /// Sets the text of the file of values, for fields whose values the schema does not tell.
    pub fn values(mut self, text: impl Into<String>) -> Self {
        self.plan.values = text.into();
        self
    }

    /// Sets the text of the file of exceptions: fields without effect and known defects, with their reasons.
    pub fn exceptions(mut self, text: impl Into<String>) -> Self {
        self.plan.exceptions = text.into();
        self
    }

    /// Changes objects before they are compared: takes out what differs between two equal ones.
    pub fn normalise(mut self, normalise: impl Fn(&mut DynamicObject) + Send + Sync + 'static) -> Self {
        self.plan.normalisers.push(Arc::new(normalise));
        self
    }

    /// Sets what is done in a namespace before the operator starts there.
    pub fn prepare<A, Fut>(mut self, act: A) -> Self
    where
        A: Fn(Scene) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = StepResult> + Send + 'static,
    {
        self.plan.prepare = Some(action(act));
        self
    }

    /// Sets what must be true before the first owner is created, such as webhooks that are asked.
    pub fn serves<C, Fut>(mut self, until: C) -> Self
    where
        C: Fn(Scene) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = StepResult<bool>> + Send + 'static,
    {
        self.plan.serves = Some(condition(until));
        self
    }

    /// Sets how the state of an owner is read from its JSON, for kinds without the usual conditions.
    pub fn report(mut self, report: impl Fn(&Value) -> OwnerReport + Send + Sync + 'static) -> Self {
        self.plan.report = Arc::new(report);
        self
    }

    /// Sets the time after which an operator that is not at rest hangs (default: 30 s). It is only ever spent
    /// when something is wrong.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.plan.patience = patience;
        self
    }

    /// Sets the time without a request and an event after which an operator is at rest (default: 1 s).
    pub fn calm(mut self, calm: Duration) -> Self {
        self.plan.calm = calm;
        self
    }

    /// Sets the time without a request and an event after which an owner that is not ready is taken to stay
    /// so (default: 8 s).
    pub fn grace(mut self, grace: Duration) -> Self {
        self.plan.grace = grace;
        self
    }

    /// Sets the number of lanes that run side by side (default: 4).
    pub fn lanes(mut self, lanes: usize) -> Self {
        self.plan.lanes = lanes.max(1);
        self
    }

    /// Runs one of `of` slices, chosen by the commit, where the environment does not say otherwise.
    pub fn slice_by_commit(mut self, of: u64) -> Self {
        self.plan.selection = Selection::by_commit(of);
        self
    }
}
