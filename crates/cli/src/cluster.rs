//! The cluster that an example runs on: the embedded control plane, or one of a kubeconfig.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};
use windlass_testenv::control_plane::Facts;
use windlass_testenv::dirs;

use crate::failure::{Failure, chain};
use crate::kubectl::kubectl;

/// Time limit for the first answer of a cluster.
const ANSWER: Duration = Duration::from_secs(15);

/// The kubeconfig and context that the command line names.
pub(crate) struct Choice {
    pub(crate) file: Option<PathBuf>,
    pub(crate) context: Option<String>,
}

/// A cluster, and the files of an operator that runs on this machine.
pub(crate) struct Cluster {
    pub(crate) client: kube::Client,
    /// Address of the API server.
    pub(crate) server: String,
    /// Name of the kubeconfig context; empty for the embedded control plane.
    pub(crate) context: String,
    /// Entry of the cluster in a kubeconfig: its address and certificate authority.
    pub(crate) entry: Value,
    /// Directory for the operator's kubeconfig and log.
    pub(crate) dir: PathBuf,
    /// Command line that selects the cluster for kubectl.
    pub(crate) select: String,
    /// The command that calls kubectl.
    pub(crate) kubectl: String,
    /// False if this program has started the cluster, where pods are simulated and ready at once.
    pub(crate) is_foreign: bool,
}

impl Cluster {
    /// Returns the embedded control plane.
    pub(crate) async fn embedded(facts: &Facts) -> Result<Self, Failure> {
        let unusable = |error: &dyn std::error::Error| {
            Failure::Running(format!("{}: {}", facts.kubeconfig.display(), chain(error)))
        };
        let read = Kubeconfig::read_from(&facts.kubeconfig).map_err(|error| unusable(&error))?;
        let config = kube::Config::from_custom_kubeconfig(read, &KubeConfigOptions::default())
            .await
            .map_err(|error| unusable(&error))?;
        Ok(Self {
            client: kube::Client::try_from(config).map_err(|error| unusable(&error))?,
            server: facts.server.clone(),
            context: String::new(),
            entry: json!({"server": facts.server, "certificate-authority": facts.pki.join("ca.crt")}),
            dir: facts.dir.clone(),
            select: format!("export KUBECONFIG={}", facts.kubeconfig.display()),
            kubectl: kubectl(facts),
            is_foreign: false,
        })
    }

    /// Returns the cluster of a kubeconfig. Nothing is sent to it yet.
    pub(crate) async fn existing(choice: &Choice) -> Result<Self, Failure> {
        let (kubeconfig, from) = match &choice.file {
            Some(path) => (read_kubeconfig(path)?, path.display().to_string()),
            None => (
                Kubeconfig::read().map_err(|error| {
                    Failure::Environment(format!(
                        "cannot read the default kubeconfig: {}; name a file with --kubeconfig",
                        chain(&error)
                    ))
                })?,
                "the default kubeconfig".to_owned(),
            ),
        };
        let context =
            choice.context.clone().or_else(|| kubeconfig.current_context.clone()).unwrap_or_default();
        let names: Vec<&str> = kubeconfig.contexts.iter().map(|context| &*context.name).collect();
        if !names.contains(&&*context) {
            let which = if names.is_empty() {
                "has no contexts".to_owned()
            } else {
                format!("has {}", names.join(", "))
            };
            return Err(Failure::Environment(format!(
                "context {context:?} does not exist: {from} {which}; choose one with --context"
            )));
        }
        let unusable = |error: &dyn std::error::Error| {
            Failure::Environment(format!("cannot use context {context:?} of {from}: {}", chain(error)))
        };
        let entry = entry(&kubeconfig, &context);
        let options = KubeConfigOptions { context: Some(context.clone()), ..KubeConfigOptions::default() };
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options)
            .await
            .map_err(|error| unusable(&error))?;
        let server = config.cluster_url.to_string();
        let client = kube::Client::try_from(config).map_err(|error| unusable(&error))?;
        let file = choice.file.as_ref().map(|file| format!("export KUBECONFIG={}\n  ", file.display()));
        Ok(Self {
            client,
            server,
            select: format!("{}kubectl config use-context {context}", file.unwrap_or_default()),
            context,
            entry,
            dir: dirs::run()?,
            kubectl: "kubectl".to_owned(),
            is_foreign: true,
        })
    }

    /// Returns the version of Kubernetes, or the reason why the cluster does not answer.
    pub(crate) async fn version(&self) -> Result<String, Failure> {
        let remedy = "is the cluster running, and is its address in the kubeconfig right?";
        match tokio::time::timeout(ANSWER, self.client.apiserver_version()).await {
            Ok(Ok(version)) => Ok(version.git_version),
            Ok(Err(error)) => Err(Failure::Running(format!(
                "{} (context {:?}) does not answer: {}; {remedy}",
                self.server,
                self.context,
                chain(&error)
            ))),
            Err(_) => Err(Failure::Running(format!(
                "{} (context {:?}) did not answer within {} s; {remedy}",
                self.server,
                self.context,
                ANSWER.as_secs()
            ))),
        }
    }

    /// Returns true if the API server runs on this machine, and can therefore call webhooks here.
    pub(crate) fn is_local(&self) -> bool {
        let host = self.server.parse::<http::Uri>().ok().and_then(|uri| uri.host().map(str::to_owned));
        host.is_some_and(|host| {
            host == "localhost"
                || host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
        })
    }
}

/// Returns the entry of a context's cluster, with absolute paths.
fn entry(kubeconfig: &Kubeconfig, context: &str) -> Value {
    let named = kubeconfig.contexts.iter().find(|named| named.name == context);
    let cluster = named.and_then(|named| named.context.as_ref()).map(|context| context.cluster.clone());
    let entry = kubeconfig.clusters.iter().find(|named| Some(&named.name) == cluster.as_ref());
    entry.and_then(|named| serde_json::to_value(&named.cluster).ok()).unwrap_or_default()
}

fn read_kubeconfig(path: &Path) -> Result<Kubeconfig, Failure> {
    // `read_from` makes relative paths absolute, but its message does not always name the file.
    Kubeconfig::read_from(path).map_err(|error| {
        Failure::Environment(format!("cannot read kubeconfig {}: {}", path.display(), chain(&error)))
    })
}
