//! The environment of a test: the shared control plane, a private one, or the cluster that the user named.

use std::env;
use std::fs::File;
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

use http::HeaderValue;
use http::header::USER_AGENT;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};

use crate::assets::Assets;
use crate::audit::AuditLog;
use crate::control_plane::{Action, Component, ControlPlane, Facts, Options};
use crate::crds;
use crate::error::{Error, Result};
use crate::progress::Reporter;
use crate::proxy::{FaultProxy, ProxyOptions};
use crate::relay::Relay;
use crate::slots;

/// A control plane to test against.
///
/// Get one by [`shared`](Self::shared), [`private`](Self::private) or
/// [`portable`](Self::portable); the crate's front page says which. Cheap to clone.
/// The client inside belongs to the tokio runtime that it was made in, so each test
/// asks for its own `TestEnv`; the control plane behind it is the same.
#[derive(Clone)]
pub struct TestEnv {
    inner: Arc<Inner>,
}

struct Inner {
    config: kube::Config,
    client: Client,
    cluster: Cluster,
}

/// The cluster that a [`TestEnv`] talks to.
enum Cluster {
    /// A control plane of this machine, started by this crate.
    Local { plane: Arc<ControlPlane>, private: bool },
    /// A cluster that `WINDLASS_TEST_CONTEXT` names.
    External { context: String },
}

impl TestEnv {
    /// The control plane that a whole test run shares, across test binaries.
    ///
    /// It is started by its first user and stays for a minute after the last user
    /// has gone. Other tests use it at the same time, so keep to your own
    /// [`namespace`](Self::namespace); tests that need more use [`private`](Self::private).
    ///
    /// With `WINDLASS_TEST_CONTEXT` set this is [`Error::NotRun`]: only
    /// [`portable`](Self::portable) tests run on somebody's cluster.
    ///
    /// Cancel safe: a build or start that was begun goes on in the background, and
    /// the next call finds it.
    pub async fn shared() -> Result<Self> {
        match named_cluster()? {
            Some(context) => Err(Error::NotRun {
                needs: "a control plane of this machine (audit log, faults)".to_owned(),
                has: format!(
                    "WINDLASS_TEST_CONTEXT={context} names another cluster, where only portable tests run"
                ),
            }),
            None => Self::local(Options::shared, false).await,
        }
    }

    /// The cluster that `WINDLASS_TEST_CONTEXT` names, or else the shared control
    /// plane: for tests that need nothing but a Kubernetes API and a namespace.
    pub async fn portable() -> Result<Self> {
        match named_cluster()? {
            Some(context) => Self::elsewhere(context).await,
            None => Self::local(Options::shared, false).await,
        }
    }

    /// A control plane of one's own, for tests that stop a component, or change what others see. At most
    /// [`PRIVATE_AT_A_TIME`](crate::control_plane::PRIVATE_AT_A_TIME) run on a machine at the same time: a
    /// further caller waits.
    pub async fn private(options: Options) -> Result<PrivateEnv> {
        let slot = slots::take(slots::limit()?).await?;
        let env = Self::local(move |_| options, true).await?;
        Ok(PrivateEnv { env, _slot: slot })
    }

    async fn local(options: impl FnOnce(&Assets) -> Options + Send + 'static, private: bool) -> Result<Self> {
        let joined = blocking(move || {
            let reporter = Reporter::stderr();
            let assets = Assets::locate(&reporter)?;
            ControlPlane::join(&assets, &options(&assets), &Reporter::only_loss())
        })
        .await?;
        let kubeconfig = Kubeconfig::read_from(&joined.facts().kubeconfig)
            .map_err(|error| Error::Start(format!("its kubeconfig cannot be read: {error}")))?;
        let cluster = Cluster::Local { plane: Arc::new(joined), private };
        Self::connect(kubeconfig, None, cluster).await
    }

    async fn elsewhere(context: String) -> Result<Self> {
        let reason = |reason: String| Error::Context { context: context.clone(), reason };
        let kubeconfig = Kubeconfig::read().map_err(|error| reason(error.to_string()))?;
        crate::progress::say(&format!(
            "using the cluster of context {context:?}, which WINDLASS_TEST_CONTEXT names"
        ));
        Self::connect(kubeconfig, Some(context.clone()), Cluster::External { context }).await
    }

    async fn connect(kubeconfig: Kubeconfig, context: Option<String>, cluster: Cluster) -> Result<Self> {
        let options = KubeConfigOptions { context: context.clone(), ..KubeConfigOptions::default() };
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await;
        let mut config = config.map_err(|error| Error::Context {
            context: context.unwrap_or_else(|| "windlass".to_owned()),
            reason: error.to_string(),
        })?;
        config.headers.push((USER_AGENT, HeaderValue::from_static("windlass-testenv")));
        let client = Client::try_from(config.clone()).map_err(Error::api("making a client"))?;
        Ok(Self { inner: Arc::new(Inner { config, client, cluster }) })
    }

    /// A client with all rights.
    pub fn client(&self) -> Client {
        self.inner.client.clone()
    }

    /// The configuration that [`client`](Self::client) was made of.
    pub fn config(&self) -> &kube::Config {
        &self.inner.config
    }

    /// The path of a kubeconfig with all rights, for programs under test.
    pub fn kubeconfig(&self) -> Result<&Path> {
        Ok(&self.facts("a kubeconfig file of its own")?.kubeconfig)
    }

    /// Installs custom resource definitions and returns when the API serves them.
    ///
    /// On the shared control plane a definition that is there with another content
    /// is refused: others use it. There it also waits until objects of the kind can
    /// own others, which takes up to half a minute after the first installation; on a private
    /// one ask for that with [`until_owners_are_known`](Self::until_owners_are_known).
    pub async fn install_crds(&self, definitions: &[CustomResourceDefinition]) -> Result<()> {
        let shared = matches!(self.inner.cluster, Cluster::Local { private: false, .. });
        crds::install(&self.client(), definitions, !shared).await?;
        if shared {
            self.until_owners_are_known(definitions).await;
        }
        Ok(())
    }

    /// Waits until the API server lets a user with just the right to update the
    /// finalizers of these kinds create children that block their deletion.
    ///
    /// The server's admission learns of a new kind up to half a minute after everybody else,
    /// and forbids that (403) until then. What it forbids after this is a right that is missing.
    pub async fn until_owners_are_known(&self, definitions: &[CustomResourceDefinition]) {
        crds::until_they_can_own(&self.client(), definitions).await;
    }

    /// The requests that the API server has seen.
    pub fn requests(&self) -> Result<AuditLog> {
        Ok(AuditLog::new(&self.facts("an audit log")?.audit_log))
    }

    /// A proxy in front of the API server that makes faults on demand. Clients by
    /// token pass through it: see [`TestUser::client_through`](crate::TestUser::client_through).
    pub async fn fault_proxy(&self) -> Result<FaultProxy> {
        let facts = self.facts("a fault proxy")?;
        let read = |name: &str| {
            let path = facts.pki.join(name);
            std::fs::read_to_string(&path).map_err(Error::file(path))
        };
        let options = ProxyOptions {
            upstream: facts.server.clone(),
            upstream_ca_pem: read("ca.crt")?,
            certificate_pem: read("proxy.crt")?,
            key_pem: read("proxy.key")?,
            ..ProxyOptions::default()
        };
        Ok(FaultProxy::start(options).await?)
    }

    /// A relay in front of the API server that freezes, delays and resets connections on demand, whatever
    /// they carry: HTTP/2 passes as in production. Clients by token pass through it, see
    /// [`TestUser::config_through`](crate::TestUser::config_through), and so do clients with certificates.
    pub async fn relay(&self) -> Result<Relay> {
        let server = &self.facts("a relay")?.server;
        let address = server.strip_prefix("https://").and_then(|address| address.parse().ok());
        let upstream =
            address.ok_or_else(|| Error::Start(format!("its address {server} is no IP and port")))?;
        Relay::start(upstream).await.map_err(Error::file("the relay's socket on 127.0.0.1"))
    }

    /// Facts about the control plane (address, files), or [`Error::NotRun`] on a foreign cluster, which lacks
    /// what `needs` describes.
    pub fn facts(&self, needs: &str) -> Result<&Facts> {
        match &self.inner.cluster {
            Cluster::Local { plane, .. } => Ok(plane.facts()),
            Cluster::External { context } => Err(Error::NotRun {
                needs: needs.to_owned(),
                has: format!("WINDLASS_TEST_CONTEXT={context} names a cluster without it"),
            }),
        }
    }

    /// The line to the supervisor, where there is one.
    pub(crate) fn plane(&self) -> Option<&Arc<ControlPlane>> {
        match &self.inner.cluster {
            Cluster::Local { plane, .. } => Some(plane),
            Cluster::External { .. } => None,
        }
    }
}

/// A control plane of one's own. It is a [`TestEnv`], and its components can be
/// stopped. Ends when it is dropped.
pub struct PrivateEnv {
    env: TestEnv,
    /// Held while it runs; the kernel lets go with the process.
    _slot: File,
}

impl Deref for PrivateEnv {
    type Target = TestEnv;

    fn deref(&self) -> &TestEnv {
        &self.env
    }
}

impl PrivateEnv {
    /// Kills the API server, starts it again and waits until it answers.
    ///
    /// Watches break; and since its watch cache starts empty, a watch from a
    /// resourceVersion of before is answered with 410.
    pub async fn restart_api_server(&self) -> Result<()> {
        self.act(Component::ApiServer, Action::Restart).await
    }

    /// Kills a component. It stays away until it is started.
    pub async fn stop(&self, component: Component) -> Result<()> {
        self.act(component, Action::Stop).await
    }

    /// Starts a component that was stopped.
    pub async fn start(&self, component: Component) -> Result<()> {
        self.act(component, Action::Start).await
    }

    /// Freezes a component: it holds its connections and does nothing.
    pub async fn pause(&self, component: Component) -> Result<()> {
        self.act(component, Action::Pause).await
    }

    /// Lets a frozen component go on.
    pub async fn resume(&self, component: Component) -> Result<()> {
        self.act(component, Action::Continue).await
    }

    async fn act(&self, component: Component, action: Action) -> Result<()> {
        match self.env.plane() {
            Some(plane) => {
                let plane = Arc::clone(plane);
                blocking(move || plane.act(component, action)).await
            }
            None => Ok(()),
        }
    }
}

/// The context that `WINDLASS_TEST_CONTEXT` names, if it is set.
fn named_cluster() -> Result<Option<String>> {
    let set = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
    decide_cluster(set("WINDLASS_TEST_CONTEXT"), set("USE_EXISTING_CLUSTER").as_deref())
}

fn decide_cluster(context: Option<String>, existing: Option<&str>) -> Result<Option<String>> {
    match (context, existing) {
        (None, Some("true")) => Err(Error::UnnamedCluster),
        (context, _) => Ok(context),
    }
}

pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(Error::Start(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn envtests_variable_alone_is_refused_with_the_remedy() {
        let error = decide_cluster(None, Some("true")).unwrap_err();
        assert!(error.to_string().contains("WINDLASS_TEST_CONTEXT=<context>"), "{error}");
    }

    #[test]
    fn a_named_context_is_used_with_and_without_envtests_variable() {
        for existing in [None, Some("true")] {
            assert_eq!(decide_cluster(Some("c".to_owned()), existing).unwrap().as_deref(), Some("c"));
        }
        assert_eq!(decide_cluster(None, Some("false")).unwrap(), None);
    }
}
