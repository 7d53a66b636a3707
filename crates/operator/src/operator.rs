//! What an operator is made of, declared once.

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

/// Kinds, and their definitions once somebody has asked for them.
#[derive(Default)]
struct Definitions {
    make: Vec<Make>,
    made: OnceLock<Vec<CustomResourceDefinition>>,
}

/// An operator, declared: its name, its kinds, and the parts that it is made of.
///
/// The same value [runs](crate::main), is [assembled](Self::assemble) in tests, and becomes [manifests](crate::manifests).
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
    /// An operator of this name: letters, digits and dashes. Its ServiceAccount, its Lease and its events go by it, so a name is
    /// for ever.
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

    /// What it does, in a sentence: the first line of `--help`.
    pub fn about(self, about: impl Into<String>) -> Self {
        Self { about: about.into(), ..self }
    }

    /// Its version, usually `env!("CARGO_PKG_VERSION")`; otherwise that of this crate.
    pub fn version(self, version: &'static str) -> Self {
        Self { version, ..self }
    }

    /// The image that manifests name; otherwise `<name>:<version>`.
    pub fn image(self, image: impl Into<String>) -> Self {
        Self { image: Some(image.into()), ..self }
    }

    /// Settings of its own: flags of its program, for [`main_with`](crate::main_with). A Deployment takes them from a ConfigMap and a
    /// Secret named `<name>-settings`, if there are any.
    pub fn settings(self, settings: impl IntoIterator<Item = Setting>) -> Self {
        Self { settings: settings.into_iter().collect(), ..self }
    }

    /// How many objects each of its controllers works on at the same time, where `--workers` does not say; otherwise two.
    pub fn workers(self, workers: usize) -> Self {
        Self { workers: Some(workers), ..self }
    }

    /// A kind that it defines.
    pub fn crd<K: CustomResourceExt + 'static>(self) -> Self {
        self.definition(K::crd)
    }

    /// A kind that it defines, where the definition is made otherwise (several versions, say). It is made when it is needed: a process
    /// that runs needs none, and a schema takes megabytes.
    pub fn definition(self, make: impl Fn() -> CustomResourceDefinition + Send + Sync + 'static) -> Self {
        self.define(move || vec![make()])
    }

    /// The same for many kinds.
    pub fn define(
        mut self,
        make: impl Fn() -> Vec<CustomResourceDefinition> + Send + Sync + 'static,
    ) -> Self {
        self.definitions.make.push(Box::new(make));
        self
    }

    /// A part: a function that adds controllers, webhooks and whatever else runs, and says what they need.
    ///
    /// It is called for every run, and for manifests too, with a client that reaches nobody: it declares, and does nothing
    /// else.
    pub fn part(
        mut self,
        part: impl Fn(&mut Setup<'_>) -> Result<(), BoxError> + Send + Sync + 'static,
    ) -> Self {
        self.parts.push(Box::new(part));
        self
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The kinds that it defines.
    pub fn definitions(&self) -> &[CustomResourceDefinition] {
        let Definitions { make, made } = &self.definitions;
        made.get_or_init(|| make.iter().flat_map(|make| make()).collect())
    }

    /// The name of its cluster-scoped objects: with the namespace, so that two installations do not share any.
    pub(crate) fn cluster_name(&self, namespace: &str) -> String {
        format!("{}.{namespace}", self.name)
    }
}
