//! The declaration of an operator and its parts.

use std::fmt;
use std::sync::OnceLock;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use windlass::NodeError;
use windlass_graph::Report;
use windlass_runtime::manager::BoxError;

use crate::own::Setting;
use crate::setup::Setup;

/// Draws the plan of an object of one kind, without a cluster.
pub(crate) struct Drawer {
    pub(crate) api_version: String,
    pub(crate) kind: String,
    pub(crate) draw: Box<dyn Fn(serde_json::Value) -> Result<Report<NodeError>, String> + Send + Sync>,
}

type Part = Box<dyn Fn(&mut Setup<'_>) -> Result<(), BoxError> + Send + Sync>;

type Make = Box<dyn Fn() -> Vec<CustomResourceDefinition> + Send + Sync>;

/// Kinds, and their definitions, which are generated on first use.
#[derive(Default)]
struct Definitions {
    make: Vec<Make>,
    made: OnceLock<Vec<CustomResourceDefinition>>,
}

/// The declaration of an operator: its name, its kinds, and its parts.
///
/// The same value [runs](crate::main), is [assembled](Self::assemble) in tests, and becomes
/// [manifests](crate::manifests).
#[must_use = "give it to windlass_operator::main"]
pub struct Operator {
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
    pub(crate) about: String,
    pub(crate) image: Option<String>,
    definitions: Definitions,
    pub(crate) parts: Vec<Part>,
    pub(crate) drawers: Vec<Drawer>,
    pub(crate) settings: Vec<Setting>,
    pub(crate) workers: Option<usize>,
}

impl fmt::Debug for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Operator").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Operator {
    /// Declares an operator of this name: letters, digits and dashes. Its ServiceAccount, its Lease and its
    /// events are named after it, so the name must never change.
    pub fn new(name: &'static str) -> Self {
        Self {
            name,
            version: env!("CARGO_PKG_VERSION"),
            about: String::new(),
            image: None,
            definitions: Definitions::default(),
            parts: Vec::new(),
            drawers: Vec::new(),
            settings: Vec::new(),
            workers: None,
        }
    }

    /// Sets a sentence that says what the operator does: the first line of `--help`.
    pub fn about(self, about: impl Into<String>) -> Self {
        Self { about: about.into(), ..self }
    }

    /// Sets the version, usually `env!("CARGO_PKG_VERSION")`. Default: the version of this crate.
    pub fn version(self, version: &'static str) -> Self {
        Self { version, ..self }
    }

    /// Sets the image that manifests name. Default: `<name>:<version>`.
    pub fn image(self, image: impl Into<String>) -> Self {
        Self { image: Some(image.into()), ..self }
    }

    /// Adds settings of the operator's own: flags of its program, for [`main_with`](crate::main_with). A
    /// Deployment takes them from a ConfigMap and a Secret named `<name>-settings`, if these exist.
    pub fn settings(self, settings: impl IntoIterator<Item = Setting>) -> Self {
        Self { settings: settings.into_iter().collect(), ..self }
    }

    /// Sets the number of objects that each controller reconciles at the same time if `--workers` is not set.
    /// Default: 16.
    pub fn workers(self, workers: usize) -> Self {
        Self { workers: Some(workers), ..self }
    }

    /// Adds a kind that the operator defines.
    pub fn crd<K: CustomResourceExt + 'static>(self) -> Self {
        self.definition(K::crd)
    }

    /// Adds a kind that the operator defines, with a function that generates its definition (for several
    /// versions, for example). It is called only when the definition is needed: a running process needs none,
    /// and a schema takes megabytes.
    pub fn definition(self, make: impl Fn() -> CustomResourceDefinition + Send + Sync + 'static) -> Self {
        self.define(move || vec![make()])
    }

    /// Adds several kinds that the operator defines.
    pub fn define(
        mut self,
        make: impl Fn() -> Vec<CustomResourceDefinition> + Send + Sync + 'static,
    ) -> Self {
        self.definitions.make.push(Box::new(make));
        self
    }

    /// Adds a part: a function that adds controllers, webhooks and other tasks, and declares the rights that
    /// they need.
    ///
    /// The function is called for every run, and also for manifests, with a client that reaches no cluster:
    /// it must declare, and do nothing else.
    pub fn part(
        mut self,
        part: impl Fn(&mut Setup<'_>) -> Result<(), BoxError> + Send + Sync + 'static,
    ) -> Self {
        self.parts.push(Box::new(part));
        self
    }

    /// Returns the name of the operator.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the kinds that the operator defines.
    pub fn definitions(&self) -> &[CustomResourceDefinition] {
        let Definitions { make, made } = &self.definitions;
        made.get_or_init(|| make.iter().flat_map(|make| make()).collect())
    }

    /// Returns the name of its cluster-scoped objects: with the namespace, so that two installations share
    /// none.
    pub(crate) fn cluster_name(&self, namespace: &str) -> String {
        format!("{}.{namespace}", self.name)
    }
}
