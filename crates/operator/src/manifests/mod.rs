//! The manifests that install an operator in a cluster, as files.
//!
//! | file | what is in it |
//! | --- | --- |
//! | `namespace.yaml` | the namespace, with the `restricted` pod security standard enforced |
//! | `crds.yaml` | the kinds that it defines |
//! | `rbac.yaml` | its ServiceAccount, and exactly the rights that its parts need |
//! | `leader-election.yaml` | the right to its Lease |
//! | `user-roles.yaml` | what users may do with its kinds, as part of the cluster's own `view`, `edit` and `admin` |
//! | `webhooks.yaml` | the configurations and the Service of its webhooks, if it has any |
//! | `metrics.yaml` | the Service of its metrics, and the rights to serve and to read them |
//! | `deployment.yaml` | the Deployment; with webhooks, two Pods and their disruption budget |
//! | `kustomization.yaml` | all of them, for `kubectl apply -k` |
//! | `network-policy/` | a component for a kustomization of your own: who may reach its Pods |
//! | `metrics-auth/` | only if its rights are limited to namespaces, a component: the cluster-wide right to authorize readers of its metrics, and the role of such readers |
//!
//! It promises: manifests are generated from the same declarations as the process, without a cluster; the
//! same bytes every time.
//!
//! It does not keep manual changes: put such changes into a kustomization of your own that has this one as
//! its base.

mod metrics;
mod rbac;
mod webhooks;
mod workload;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Value, json};
use windlass_runtime::access::Access;
use windlass_runtime::client::{Client, ClientOptions};
use windlass_runtime::leader::Fence;

use crate::hooks::Hook;
use crate::operator::Operator;
use crate::process::AssembleError;
use crate::settings::Settings;
use crate::yaml::{Node, Style};

const KUSTOMIZATION: &str = "kustomization.yaml";

/// The label of every object of an installation; its value is the name of the operator.
pub(crate) const NAME_LABEL: &str = "app.kubernetes.io/name";

/// The files that exist only if something is declared for them.
const OPTIONAL: [&str; 5] = [
    "crds.yaml",
    "user-roles.yaml",
    "webhooks.yaml",
    "metrics-auth/kustomization.yaml",
    "metrics-auth/metrics-auth.yaml",
];

/// The namespace, the image and the scope of an installation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "give it to Manifests::of"]
pub struct Install {
    pub(crate) namespace: String,
    pub(crate) image: String,
    pub(crate) reach: Reach,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    Cluster,
    OwnNamespace,
    Namespaces(BTreeSet<String>),
}

impl Install {
    /// Returns an installation in `<name>-system`, for all namespaces.
    pub fn of(operator: &Operator) -> Self {
        let image =
            operator.image.clone().unwrap_or_else(|| format!("{}:{}", operator.name, operator.version));
        Self { namespace: format!("{}-system", operator.name), image, reach: Reach::Cluster }
    }

    /// Sets the namespace of the installation.
    pub fn namespace(self, namespace: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), ..self }
    }

    /// Sets the image of the operator.
    pub fn image(self, image: impl Into<String>) -> Self {
        Self { image: image.into(), ..self }
    }

    /// Grants rights in the operator's own namespace only.
    pub fn namespaced(self) -> Self {
        Self { reach: Reach::OwnNamespace, ..self }
    }

    /// Grants rights in these namespaces only.
    pub fn watching(self, namespaces: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { reach: Reach::Namespaces(namespaces.into_iter().map(Into::into).collect()), ..self }
    }

    /// Returns the watched namespaces; none means all.
    fn watched(&self) -> BTreeSet<String> {
        match &self.reach {
            Reach::Cluster => BTreeSet::new(),
            Reach::OwnNamespace => [self.namespace.clone()].into(),
            Reach::Namespaces(namespaces) => namespaces.clone(),
        }
    }
}

/// The declarations of an operator, collected without running it.
pub(crate) struct Declared {
    pub(crate) access: Access,
    pub(crate) hooks: Vec<Hook>,
    pub(crate) converted: Vec<String>,
}

/// The generated manifests, as files.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "write or check them"]
pub struct Manifests {
    operator: &'static str,
    files: BTreeMap<&'static str, String>,
}

/// The reason why manifests cannot be generated.
#[derive(Debug, thiserror::Error)]
pub enum ManifestsError {
    /// The operator cannot be assembled.
    #[error(transparent)]
    Assemble(#[from] AssembleError),
    /// An object cannot be encoded.
    #[error("an object cannot be written as JSON: {0}")]
    Encode(#[from] serde_json::Error),
    /// The parts could not be set up.
    #[error("the runtime for setting up the operator's parts cannot be started: {0}")]
    Runtime(#[source] io::Error),
}

/// Files that are out of date. The display text says what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stale {
    operator: &'static str,
    directory: PathBuf,
    /// The command that refreshes the files.
    pub refresh: String,
    /// The name of each file, and its problem.
    pub files: Vec<(String, &'static str)>,
}

impl fmt::Display for Stale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let directory = self.directory.display();
        writeln!(f, "{directory} is not what {} declares:", self.operator)?;
        for (file, what) in &self.files {
            writeln!(f, "  {file} {what}")?;
        }
        write!(f, "refresh it with: {}", self.refresh)
    }
}

impl std::error::Error for Stale {}

impl Manifests {
    /// Generates the manifests of an operator. Its parts are set up with a client that reaches no cluster.
    pub fn of(operator: &Operator, install: &Install) -> Result<Self, ManifestsError> {
        let Contents { mut objects, components } = contents(operator, install)?;
        let kustomization = json!({
            "apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization",
            "resources": objects.keys().collect::<Vec<_>>(),
        });
        objects.insert(KUSTOMIZATION, vec![kustomization]);
        for (kustomization, file, content) in components {
            let resource = file.rsplit('/').next();
            let component = json!({
                "apiVersion": "kustomize.config.k8s.io/v1alpha1", "kind": "Component", "resources": [resource],
            });
            objects.insert(kustomization, vec![component]);
            objects.insert(file, content);
        }
        let header = format!("# generated by `{} manifests`; do not edit\n", operator.name);
        let text = |objects: Vec<Value>| {
            let documents: Vec<String> = objects
                .into_iter()
                .map(|object| Node::from(tidy(object)).document(Style::Manifest))
                .collect();
            header.clone() + &documents.join("---\n")
        };
        let files = objects.into_iter().map(|(file, objects)| (file, text(objects))).collect();
        Ok(Self { operator: operator.name, files })
    }

    /// Returns the files by name.
    pub fn files(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.files.iter().map(|(name, text)| (*name, text.as_str()))
    }

    /// Returns all objects as one stream, for `kubectl apply -f -`: the namespace and the kinds before the
    /// objects that need them. Components are left out.
    pub fn stream(&self) -> String {
        let order = [
            "namespace.yaml",
            "crds.yaml",
            "rbac.yaml",
            "leader-election.yaml",
            "user-roles.yaml",
            "webhooks.yaml",
            "metrics.yaml",
            "deployment.yaml",
        ];
        let texts: Vec<&str> =
            order.iter().filter_map(|file| self.files.get(file)).map(String::as_str).collect();
        texts.join("---\n")
    }

    /// Writes the files into a directory, which is created if it does not exist. Returns their names.
    pub fn write(&self, directory: &Path) -> io::Result<Vec<&'static str>> {
        let named = |error: io::Error, path: &Path| {
            io::Error::new(error.kind(), format!("{}: {error}", path.display()))
        };
        for (name, text) in &self.files {
            let path = directory.join(name);
            if let Some(parent) = path.parent() {
                std::fs::create_dir_all(parent).map_err(|error| named(error, parent))?;
            }
            std::fs::write(&path, text).map_err(|error| named(error, &path))?;
        }
        Ok(self.files.keys().copied().collect())
    }

    /// Compares the files in a directory: all must exist and be equal, and no file of an earlier version may
    /// be left.
    pub fn check(&self, directory: &Path) -> Result<(), Stale> {
        let mut files = Vec::new();
        for (name, text) in &self.files {
            match std::fs::read_to_string(directory.join(name)) {
                Ok(found) if found == *text => {}
                Ok(_) => files.push(((*name).to_owned(), "is out of date")),
                Err(_) => files.push(((*name).to_owned(), "is missing")),
            }
        }
        for left in OPTIONAL {
            if !self.files.contains_key(left) && directory.join(left).exists() {
                files.push((left.to_owned(), "is left over: nothing is declared for it; delete it"));
            }
        }
        if files.is_empty() {
            return Ok(());
        }
        let refresh = format!("{} manifests --out {}", self.operator, directory.display());
        Err(Stale { operator: self.operator, directory: directory.to_owned(), refresh, files })
    }
}

/// The objects of an installation.
struct Contents {
    /// The objects that every installation has, by the file that they are written to.
    objects: BTreeMap<&'static str, Vec<Value>>,
    /// Parts that a user adds to an installation: the kustomization, the file, and its objects.
    components: Vec<(&'static str, &'static str, Vec<Value>)>,
}

fn contents(operator: &Operator, install: &Install) -> Result<Contents, ManifestsError> {
    let declared = declared(operator, install)?;
    let definitions = definitions(operator, &declared, install)?;
    let mut metrics = metrics::service(operator, install)?;
    let authorization = metrics::authorization(operator, install)?;
    let policy = vec![metrics::network_policy(operator, install, &declared)];
    let mut components =
        vec![("network-policy/kustomization.yaml", "network-policy/network-policy.yaml", policy)];
    if install.reach == Reach::Cluster {
        metrics.extend(authorization);
    } else {
        components.push(("metrics-auth/kustomization.yaml", "metrics-auth/metrics-auth.yaml", authorization));
    }
    let mut objects: BTreeMap<&'static str, Vec<Value>> = BTreeMap::from([
        ("namespace.yaml", vec![workload::namespace(operator, install)]),
        ("crds.yaml", definitions),
        ("rbac.yaml", rbac::rights(operator, install, &declared)?),
        ("leader-election.yaml", rbac::election(operator, install)?),
        ("user-roles.yaml", rbac::for_users(operator, install)),
        ("webhooks.yaml", webhooks::configurations(operator, install, &declared)),
        ("metrics.yaml", metrics),
        ("deployment.yaml", workload::deployment(operator, install, &declared)),
    ]);
    objects.retain(|_, objects| !objects.is_empty());
    Ok(Contents { objects, components })
}

/// Returns all objects that an installation may have, with those of its optional parts.
pub(crate) fn objects(operator: &Operator, install: &Install) -> Result<Vec<Value>, ManifestsError> {
    let Contents { objects, components } = contents(operator, install)?;
    let optional = components.into_iter().map(|(_, _, objects)| objects);
    Ok(objects.into_values().chain(optional).flatten().collect())
}

/// Sets the operator up without a cluster, and collects its declarations.
fn declared(operator: &Operator, install: &Install) -> Result<Declared, ManifestsError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(ManifestsError::Runtime)?;
    let seen = {
        let _within = runtime.enter();
        let settings = Settings {
            namespaces: install.watched(),
            own_namespace: Some(install.namespace.clone()),
            ..Settings::default()
        };
        // No server listens at this address, and no request is sent.
        let nowhere = kube::Config::new(http_nowhere());
        Client::new(nowhere, ClientOptions::default()).map_err(AssembleError::from).and_then(|client| {
            let setup = operator.set_up(&client, &Fence::unlimited(), &settings)?;
            let access = setup.access();
            Ok(Declared { access, hooks: setup.hooks, converted: setup.converted })
        })
    };
    // If the runtime were dropped within another one, it would block that one.
    runtime.shutdown_background();
    Ok(seen?)
}

fn http_nowhere() -> http::Uri {
    http::Uri::from_static("http://127.0.0.1:9")
}

/// Returns the kinds, with the conversion webhook for those that the operator converts.
fn definitions(
    operator: &Operator,
    declared: &Declared,
    install: &Install,
) -> Result<Vec<Value>, serde_json::Error> {
    let converted = |definition: &CustomResourceDefinition| {
        definition.metadata.name.as_ref().is_some_and(|name| declared.converted.contains(name))
    };
    let value = |definition: &CustomResourceDefinition| {
        let mut value = serde_json::to_value(definition)?;
        if converted(definition) {
            value["spec"]["conversion"] = webhooks::conversion(operator, install);
        }
        Ok(value)
    };
    operator.definitions().iter().map(value).collect()
}

/// Returns the labels of every object of an operator.
pub(crate) fn labels(operator: &Operator) -> Value {
    json!({NAME_LABEL: operator.name})
}

/// Removes null members (an absent member means the same), and writes 10 instead of 10.0.
fn tidy(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let kept = members.into_iter().filter(|(_, member)| !member.is_null());
            Value::Object(kept.map(|(key, member)| (key, tidy(member))).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(tidy).collect()),
        Value::Number(number) => whole(&number).map_or(Value::Number(number), Value::from),
        other => other,
    }
}

/// Returns a whole number that is written as a fraction: schemars does that with limits.
fn whole(number: &serde_json::Number) -> Option<i64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let float =
        number.as_f64().filter(|float| number.is_f64() && float.fract() == 0.0 && float.abs() <= EXACT)?;
    #[allow(clippy::cast_possible_truncation)] // checked above
    Some(float as i64)
}
