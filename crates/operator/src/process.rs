//! An assembled operator: client, cache, manager, admin server, election, webhooks and the operator's own
//! parts.
//!
//! It promises: errors in the assembly are reported before anything runs; no global state is touched (no log,
//! no signals), so that tests run many processes side by side.

use std::net::SocketAddr;

use windlass_runtime::admin::{AdminServer, Guard};
use windlass_runtime::client::{Client, ClientOptions, InvalidClient};
use windlass_runtime::events::InvalidController;
use windlass_runtime::key::ObjectKey;
use windlass_runtime::leader::{
    Election, ElectionOptions, Fence, InvalidElection, NamespaceUnknown, pod_namespace,
};
use windlass_runtime::manager::{BoxError, DuplicateName, Manager, ManagerError, Readiness, Stage, Stop};
use windlass_runtime::metrics::Metrics;
use windlass_runtime::resource::ResourceType;
use windlass_runtime::serve::{BindError, Listener};
use windlass_runtime::webhook::{Certificates, WebhookServer};

use crate::metrics_names::MetricsNames;
use crate::operator::Operator;
use crate::settings::Settings;
use crate::setup::Setup;
use crate::webhook_names::WebhookNames;

/// The reason why an operator cannot be assembled.
#[derive(Debug, thiserror::Error)]
pub enum AssembleError {
    /// The cluster's configuration cannot be used.
    #[error(transparent)]
    Client(#[from] InvalidClient),
    /// A port is not available.
    #[error(transparent)]
    Port(#[from] BindError),
    /// The leader election is not valid.
    #[error(transparent)]
    Election(#[from] InvalidElection),
    /// The operator's own namespace is needed, and is not known.
    #[error(
        "the namespace of this operator, in which its certificates are kept, is unknown: set \
         --operator-namespace, or run without webhooks (--webhook-bind-address=0) and with metrics in clear \
         (--metrics-secure=false)"
    )]
    NoNamespace(#[source] NamespaceUnknown),
    /// The operator's name is not valid as the reporter of events.
    #[error(transparent)]
    Name(#[from] InvalidController),
    /// Two parts have the same name.
    #[error(transparent)]
    Duplicate(#[from] DuplicateName),
    /// One of the operator's own parts cannot be set up.
    #[error("a part of {operator} cannot be set up: {error}")]
    Part {
        /// The operator that the part belongs to.
        operator: &'static str,
        /// The error of the part.
        error: BoxError,
    },
}

/// An operator that is ready to run.
#[derive(Debug)]
#[must_use = "run it"]
pub struct Process {
    manager: Manager,
    admin: Vec<SocketAddr>,
    secure_metrics: Option<SocketAddr>,
    webhooks: Option<SocketAddr>,
    watches: Vec<ResourceType>,
    client: ClientHandle,
}

/// A client without debug output.
#[derive(Clone)]
struct ClientHandle(Client);

impl std::fmt::Debug for ClientHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Client")
    }
}

impl Operator {
    /// Assembles a process of the operator for the cluster of this configuration. Must be called within a
    /// Tokio runtime.
    ///
    /// Ports are bound here; no request is sent to the cluster before the process [runs](Process::run_until).
    pub fn assemble(&self, config: kube::Config, settings: &Settings) -> Result<Process, AssembleError> {
        let host = config.cluster_url.host().unwrap_or_default().to_owned();
        let user_agent = format!("{}/{}", self.name, self.version);
        let client = Client::new(config, ClientOptions { user_agent, ..ClientOptions::default() })?;
        let election = self.election(&client, settings)?;
        let fence = election.as_ref().map_or_else(Fence::unlimited, Election::fence);
        let mut setup = self.set_up(&client, &fence, settings)?;
        setup.manager.metrics().client(&client, host);
        setup.manager.metrics().build_info(self.name, self.version);
        let admin = serve_admin(&mut setup.manager, settings)?;
        let secure_metrics = self.serve_metrics(&mut setup, settings)?;
        let webhooks = self.serve_webhooks(&mut setup, settings)?;
        if let Some(election) = election {
            setup.manager.election(election)?;
        }
        let mut watches: Vec<_> = setup.cache().watches().into_iter().map(|watch| watch.resource).collect();
        watches.dedup();
        let client = ClientHandle(client);
        Ok(Process { manager: setup.finish()?, admin, secure_metrics, webhooks, watches, client })
    }

    fn election(&self, client: &Client, settings: &Settings) -> Result<Option<Election>, AssembleError> {
        let Some(lease) = &settings.election else { return Ok(None) };
        let mut options = ElectionOptions::new(lease.name.as_deref().unwrap_or(self.name));
        if let Some(namespace) = lease.namespace.as_ref().or(settings.own_namespace.as_ref()) {
            options = options.namespace(namespace);
        }
        Ok(Some(Election::new(client, options)?))
    }

    /// Calls every part.
    pub(crate) fn set_up<'a>(
        &'a self,
        client: &Client,
        fence: &Fence,
        settings: &'a Settings,
    ) -> Result<Setup<'a>, AssembleError> {
        let mut setup = Setup::new(self.name, client, fence, settings);
        for part in &self.parts {
            part(&mut setup).map_err(|error| AssembleError::Part { operator: self.name, error })?;
        }
        Ok(setup)
    }

    /// Serves metrics over TLS, to users with permission. Health has plain servers of its own.
    fn serve_metrics(
        &self,
        setup: &mut Setup<'_>,
        settings: &Settings,
    ) -> Result<Option<SocketAddr>, AssembleError> {
        let Some(address) = settings.secure_metrics else { return Ok(None) };
        let names = MetricsNames::of(self, &own_namespace(settings)?);
        let certificates = Certificates::in_secret(setup.client(), names.secret, [names.dns]).for_metrics();
        let listener = Listener::bind(address)?;
        let bound = listener.address();
        let server = AdminServer::new(listener, setup.manager.readiness(), setup.manager.metrics())
            .guard(Guard::new(setup.client()))
            .tls(certificates.serving());
        setup.manager.add(Stage::Admin, server.into_runnable().named("metrics"))?;
        // After the admin stage: health is served even if no certificate can be created.
        setup.manager.add(Stage::Webhooks, certificates.background_runnable())?;
        Ok(Some(bound))
    }

    fn serve_webhooks(
        &self,
        setup: &mut Setup<'_>,
        settings: &Settings,
    ) -> Result<Option<SocketAddr>, AssembleError> {
        let Some(address) = settings.webhooks.filter(|_| setup.has_webhooks()) else { return Ok(None) };
        let namespace = own_namespace(settings)?;
        let names = WebhookNames::of(self, &namespace);
        let secret = ObjectKey::namespaced(&*namespace, &*names.secret);
        let called = settings.webhook_names.iter().chain([&names.dns]);
        let certificates = Certificates::in_secret(setup.client(), secret, called);
        let listener = Listener::bind(address)?;
        let bound = listener.address();
        let webhooks = std::mem::take(&mut setup.webhooks);
        let server = WebhookServer::new(listener, webhooks, certificates.serving(), setup.manager.metrics());
        let server = server.linger(settings.webhook_linger);
        let injector = certificates.injector(names.targets(&setup.hooks, &setup.converted));
        setup.manager.add(Stage::Webhooks, certificates.runnable())?;
        setup.manager.add(Stage::Webhooks, server.into_runnable())?;
        setup.manager.add(Stage::Controllers, injector.into_runnable())?;
        Ok(Some(bound))
    }
}

/// Returns the operator's own namespace.
fn own_namespace(settings: &Settings) -> Result<String, AssembleError> {
    match &settings.own_namespace {
        Some(namespace) => Ok(namespace.clone()),
        None => pod_namespace().map_err(AssembleError::NoNamespace),
    }
}

fn serve_admin(manager: &mut Manager, settings: &Settings) -> Result<Vec<SocketAddr>, AssembleError> {
    let mut bound = Vec::new();
    for address in &settings.admin {
        let listener = Listener::bind(*address)?;
        let server = AdminServer::new(listener.clone(), manager.readiness(), manager.metrics());
        let server = if settings.secure_metrics.is_some() { server.health_only() } else { server };
        let name =
            if bound.is_empty() { "admin".to_owned() } else { format!("admin at {}", listener.address()) };
        manager.add(Stage::Admin, server.into_runnable().named(name))?;
        bound.push(listener.address());
    }
    Ok(bound)
}

impl Process {
    /// Returns the readiness of the process, with the checks that it waits for.
    pub fn readiness(&self) -> &Readiness {
        self.manager.readiness()
    }

    /// Returns the metrics of the process.
    pub fn metrics(&self) -> &Metrics {
        self.manager.metrics()
    }

    /// Returns the addresses of health, readiness and plain metrics, with the ports that were chosen.
    pub fn admin(&self) -> &[SocketAddr] {
        &self.admin
    }

    /// Returns the address of metrics over TLS, if they are served so.
    pub fn secure_metrics(&self) -> Option<SocketAddr> {
        self.secure_metrics
    }

    /// Returns the address of the webhook server, if there is one.
    pub fn webhooks(&self) -> Option<SocketAddr> {
        self.webhooks
    }

    /// Returns the kinds that the process watches.
    pub fn watches(&self) -> &[ResourceType] {
        &self.watches
    }

    /// Returns the client of the process.
    pub(crate) fn client(&self) -> &Client {
        &self.client.0
    }

    /// Runs until SIGTERM or SIGINT; signals are handled from the call on; see [`Manager::run`].
    pub fn run(self) -> impl Future<Output = Result<(), ManagerError>> {
        self.manager.run()
    }

    /// Runs until a stop is requested; see [`Manager::run_until`].
    pub async fn run_until(self, stop: Stop) -> Result<(), ManagerError> {
        self.manager.run_until(stop).await
    }
}
