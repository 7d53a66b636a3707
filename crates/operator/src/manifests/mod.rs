//! What a cluster needs to run an operator, as files.
//!
//! | file | what is in it |
//! | --- | --- |
//! | `namespace.yaml` | the namespace, with the `restricted` pod security standard enforced |
//! | `crds.yaml` | the kinds that it defines |
//! | `rbac.yaml` | its ServiceAccount, and exactly the rights that its parts need |
//! | `leader-election.yaml` | the right to its Lease |
//! | `user-roles.yaml` | what users may do with its kinds, as part of the cluster's own `view`, `edit` and `admin` |
//! | `webhooks.yaml` | the configurations and the Service of its webhooks, if it has any |
//! | `deployment.yaml` | the Deployment |
//! | `kustomization.yaml` | all of them, for `kubectl apply -k` |
//!
//! It promises: made of the same declarations as the process, without a cluster; the same bytes every time.
//!
//! It does not keep what was changed by hand: put such changes into a kustomization of your own that has this one as its base.

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

use crate::hooks::Hook;
use crate::operator::Operator;
use crate::process::AssembleError;
use crate::settings::Settings;
use crate::yaml::{Node, Style};

const KUSTOMIZATION: &str = "kustomization.yaml";

/// Where and with which reach an operator is installed.
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
    /// In `<name>-system`, for all namespaces.
    pub fn of(operator: &Operator) -> Self {
        let image =
            operator.image.clone().unwrap_or_else(|| format!("{}:{}", operator.name, operator.version));
        Self { namespace: format!("{}-system", operator.name), image, reach: Reach::Cluster }
    }

    /// In this namespace.
    pub fn namespace(self, namespace: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), ..self }
    }

    /// With this image.
    pub fn image(self, image: impl Into<String>) -> Self {
        Self { image: image.into(), ..self }
    }

    /// With rights in its own namespace only.
    pub fn namespaced(self) -> Self {
        Self { reach: Reach::OwnNamespace, ..self }
    }

    /// With rights in these namespaces only.
    pub fn watching(self, namespaces: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { reach: Reach::Namespaces(namespaces.into_iter().map(Into::into).collect()), ..self }
    }

    /// The namespaces that it looks at; none: all.
    fn watched(&self) -> BTreeSet<String> {
        match &self.reach {
            Reach::Cluster => BTreeSet::new(),
            Reach::OwnNamespace => [self.namespace.clone()].into(),
            Reach::Namespaces(namespaces) => namespaces.clone(),
        }
    }
}

/// What an operator declares, seen without running it.
pub(crate) struct Declared {
    pub(crate) access: Access,
    pub(crate) hooks: Vec<Hook>,
    pub(crate) converted: Vec<String>,
}

/// The files.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "write or check them"]
pub struct Manifests {
    operator: &'static str,
    files: BTreeMap<&'static str, String>,
}

/// Why there are no manifests.
#[derive(Debug, thiserror::Error)]
pub enum ManifestsError {
    /// The operator cannot be assembled.
    #[error(transparent)]
    Assemble(#[from] AssembleError),
    /// An object cannot be written.
    #[error("an object cannot be written as JSON: {0}")]
    Encode(#[from] serde_json::Error),
    /// The parts could not be asked.
    #[error("no runtime to ask the operator's parts in: {0}")]
    Runtime(#[source] io::Error),
}

/// Files that are not as they should be. Displayed with what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stale {
    operator: &'static str,
    directory: PathBuf,
    /// The command that makes them so.
    pub refresh: String,
    /// Each file, and what is wrong with it.
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
    /// The manifests of an operator. Asks its parts what they need, with a client that reaches nobody.
    pub fn of(operator: &Operator, install: &Install) -> Result<Self, ManifestsError> {
        let declared = declared(operator, install)?;
        let definitions = definitions(operator, &declared, install)?;
        let mut objects: BTreeMap<&'static str, Vec<Value>> = BTreeMap::from([
            ("namespace.yaml", vec![workload::namespace(operator, install)]),
            ("crds.yaml", definitions),
            ("rbac.yaml", rbac::rights(operator, install, &declared)?),
            ("leader-election.yaml", rbac::election(operator, install)?),
            ("user-roles.yaml", rbac::for_users(operator, install)),
            ("webhooks.yaml", webhooks::configurations(operator, install, &declared)),
            ("deployment.yaml", vec![workload::deployment(operator, install, &declared)]),
        ]);
        objects.retain(|_, objects| !objects.is_empty());
        let kustomization = json!({
            "apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization",
            "resources": objects.keys().collect::<Vec<_>>(),
        });
        objects.insert(KUSTOMIZATION, vec![kustomization]);
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

    /// The files by name.
    pub fn files(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.files.iter().map(|(name, text)| (*name, text.as_str()))
    }

    /// All objects as one stream, for `kubectl apply -f -`: the namespace and the kinds before what needs them.
    pub fn stream(&self) -> String {
        let order = [
            "namespace.yaml",
            "crds.yaml",
            "rbac.yaml",
            "leader-election.yaml",
            "user-roles.yaml",
            "webhooks.yaml",
            "deployment.yaml",
        ];
        let texts: Vec<&str> =
            order.iter().filter_map(|file| self.files.get(file)).map(String::as_str).collect();
        texts.join("---\n")
    }

    /// Writes the files into a directory, which is made if it is not there. Returns their names.
    pub fn write(&self, directory: &Path) -> io::Result<Vec<&'static str>> {
        let named = |error: io::Error, path: &Path| {
            io::Error::new(error.kind(), format!("{}: {error}", path.display()))
        };
        std::fs::create_dir_all(directory).map_err(|error| named(error, directory))?;
        for (name, text) in &self.files {
            let path = directory.join(name);
            std::fs::write(&path, text).map_err(|error| named(error, &path))?;
        }
        Ok(self.files.keys().copied().collect())
    }

    /// Compares with the files in a directory: all there, all the same, and none of ours that is no longer made.
    pub fn check(&self, directory: &Path) -> Result<(), Stale> {
        let mut files = Vec::new();
        for (name, text) in &self.files {
            match std::fs::read_to_string(directory.join(name)) {
                Ok(found) if found == *text => {}
                Ok(_) => files.push(((*name).to_owned(), "is out of date")),
                Err(_) => files.push(((*name).to_owned(), "is missing")),
            }
        }
        for left in ["crds.yaml", "user-roles.yaml", "webhooks.yaml"] {
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

/// Sets the operator up without a cluster, and sees what it declares.
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
        // Nobody listens there, and nobody calls.
        let nowhere = kube::Config::new(http_nowhere());
        Client::new(nowhere, ClientOptions::default()).map_err(AssembleError::from).and_then(|client| {
            let setup = operator.set_up(&client, &settings)?;
            let access = setup.access();
            Ok(Declared { access, hooks: setup.hooks, converted: setup.converted })
        })
    };
    // Dropped within another runtime, it would block that one.
    runtime.shutdown_background();
    Ok(seen?)
}

fn http_nowhere() -> http::Uri {
    http::Uri::from_static("http://127.0.0.1:9")
}

/// The kinds, each converted by our webhook where the operator has conversions for it.
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

/// What every object of an operator carries.
pub(crate) fn labels(operator: &Operator) -> Value {
    json!({"app.kubernetes.io/name": operator.name})
}

/// As people write it: without members that are null (absent is shorter, and means the same), and 10 instead of 10.0.
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

/// A whole number that is written as a fraction: schemars does that with limits.
fn whole(number: &serde_json::Number) -> Option<i64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let float =
        number.as_f64().filter(|float| number.is_f64() && float.fract() == 0.0 && float.abs() <= EXACT)?;
    #[allow(clippy::cast_possible_truncation)] // checked above
    Some(float as i64)
}
