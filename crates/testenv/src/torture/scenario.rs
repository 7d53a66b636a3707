//! Scenarios: steps that change an operator's objects, one after the other.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use k8s_openapi::NamespaceResourceScope;
use kube::{Api, Client, Resource};

/// The result of an action or a condition of a scenario. Any error type will do.
pub type StepResult<T = ()> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// The environment of one repetition, which actions and conditions receive.
#[derive(Clone)]
pub struct Scene {
    client: Client,
    namespace: String,
}

impl Scene {
    pub(crate) fn new(client: Client, namespace: String) -> Self {
        Self { client, namespace }
    }

    /// A client with all rights. Its calls do not pass the proxy of the operator.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// The namespace of this repetition.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// An API for a kind in that namespace.
    pub fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        Api::namespaced(self.client(), &self.namespace)
    }
}

impl fmt::Debug for Scene {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scene").field("namespace", &self.namespace).finish_non_exhaustive()
    }
}

pub(crate) type Action = Arc<dyn Fn(Scene) -> BoxFuture<StepResult> + Send + Sync>;
pub(crate) type Condition = Arc<dyn Fn(Scene) -> BoxFuture<StepResult<bool>> + Send + Sync>;
type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// One step: something is done, and then something comes true.
#[derive(Clone)]
pub(super) struct ScenarioStep {
    pub(super) name: String,
    pub(super) action: Action,
    pub(super) until: Condition,
}

/// A change and its way back.
#[derive(Clone)]
pub(super) struct Reversal {
    pub(super) name: String,
    pub(super) after: String,
    pub(super) there: Action,
    pub(super) back: Action,
}

pub(crate) fn action<F, Fut>(action: F) -> Action
where
    F: Fn(Scene) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = StepResult> + Send + 'static,
{
    Arc::new(move |scene| Box::pin(action(scene)))
}

pub(crate) fn condition<F, Fut>(condition: F) -> Condition
where
    F: Fn(Scene) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = StepResult<bool>> + Send + 'static,
{
    Arc::new(move |scene| Box::pin(condition(scene)))
}
