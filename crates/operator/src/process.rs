//! An operator, assembled: client, cache, manager, admin server, election, webhooks and the operator's own parts.
//!
//! It promises: whatever can be wrong with how it is put together is an error before anything runs; nothing global is touched (no
//! log, no signals), so that tests run many side by side.

use std::net::SocketAddr;

use windlass_runtime::admin::AdminServer;
use windlass_runtime::client::{Client, ClientOptions, InvalidClient};
use windlass_runtime::events::InvalidController;
use windlass_runtime::key::ObjectKey;
use windlass_runtime::leader::{Election, ElectionOptions, InvalidElection, NamespaceUnknown, pod_namespace};
use windlass_runtime::manager::{BoxError, DuplicateName, Manager, ManagerError, Readiness, Stage, Stop};
use windlass_runtime::metrics::Metrics;
use windlass_runtime::resource::ResourceType;
use windlass_runtime::serve::{BindError, Listener};
use windlass_runtime::webhook::{Certificates, WebhookServer};

use crate::operator::Operator;
use crate::settings::Settings;
use crate::setup::Setup;
use crate::webhook_names::WebhookNames;

/// Why an operator cannot be assembled.
#[derive(Debug, thiserror::Error)]
pub enum AssembleError {
    /// The cluster's configuration cannot be used.
    #[error(transparent)]
    Client(#[from] InvalidClient),
    /// A port cannot be had.
    #[error(transparent)]
    Port(#[from] BindError),
    /// There cannot be such an election.
    #[error(transparent)]
    Election(#[from] InvalidElection),
    /// The operator's own namespace is needed, and nothing says which it is.
    #[error(
        "it is not known in which namespace this operator lives, where its certificates are kept: name it with \
         --operator-namespace, or run without webhooks (--webhook-bind-address=0)"
    )]
    Homeless(#[source] NamespaceUnknown),
    /// The operator's name cannot be that of one who records events.
    #[error(transparent)]
    Name(#[from] InvalidController),
    /// Two parts have the same name.
    #[error(transparent)]
    Duplicate(#[from] DuplicateName),
    /// One of the operator's own parts cannot be set up.
    #[error("a part of {operator} cannot be set up: {error}")]
    Part {
        /// Whose.
        operator: &'static str,
        /// Why.
        error: BoxError,
    },
}

/// An operator that is ready to run.
#[derive(Debug)]
#[must_use = "run it"]
pub struct Process {
    manager: Manager,
    admin: Vec<SocketAddr>,
    webhooks: Option<SocketAddr>,
    watches: Vec<ResourceType>,
    client: ClientHandle,
}

/// A client that prints nothing of itself.
#[derive(Clone)]
struct ClientHandle(Client);

impl std::fmt::Debug for ClientHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Client")
    }
}

impl Operator {
    /// Assembles a process of it, to work in the cluster of this configuration. Must be called within a Tokio runtime.
    ///
    /// Ports are taken here; nothing is asked of the cluster before the process [runs](Process::run_until).
    pub fn assemble(&self, config: kube::Config, settings: &Settings) -> Result<Process, AssembleError> {
        let host = config.cluster_url.host().unwrap_or_default().to_owned();
        let user_agent = format!("{}/{}", self.name, self.version);
        let client = Client::new(config, ClientOptions { user_agent, ..ClientOptions::default() })?;
        let mut setup = self.set_up(&client, settings)?;
        setup.manager.metrics().client(&client, host);
        let admin = serve_admin(&mut setup.manager, settings)?;
        let webhooks = self.serve_webhooks(&mut setup, settings)?;
        if let Some(lease) = &settings.election {
            let mut options = ElectionOptions::new(lease.name.as_deref().unwrap_or(self.name));
            if let Some(namespace) = lease.namespace.as_ref().or(settings.own_namespace.as_ref()) {
                options = options.namespace(namespace);
            }
            setup.manager.election(Election::new(&client, options)?)?;
        }
        let mut watches: Vec<_> = setup.cache().watches().into_iter().map(|watch| watch.resource).collect();
        watches.dedup();
        Ok(Process { manager: setup.finish()?, admin, webhooks, watches, client: ClientHandle(client) })
    }

    /// Calls every part.
    pub(crate) fn set_up<'a>(
        &'a self,
        client: &Client,
        settings: &'a Settings,
    ) -> Result<Setup<'a>, AssembleError> {
        let mut setup = Setup::new(self.name, client, settings);
        for part in &self.parts {
            part(&mut setup).map_err(|error| AssembleError::Part { operator: self.name, error })?;
        }
        Ok(setup)
    }

    fn serve_webhooks(
        &self,
        setup: &mut Setup<'_>,
        settings: &Settings,
    ) -> Result<Option<SocketAddr>, AssembleError> {
        let Some(address) = settings.webhooks.filter(|_| setup.has_webhooks()) else { return Ok(None) };
        let namespace = match &settings.own_namespace {
            Some(namespace) => namespace.clone(),
            None => pod_namespace().map_err(AssembleError::Homeless)?,
        };
        let names = WebhookNames::of(self, &namespace);
        let secret = ObjectKey::namespaced(&*namespace, &*names.secret);
        let called = settings.webhook_names.iter().chain([&names.dns]);
        let certificates = Certificates::in_secret(setup.client(), secret, called);
        let listener = Listener::bind(address)?;
        let bound = listener.address();
        let webhooks = std::mem::take(&mut setup.webhooks);
        let server = WebhookServer::new(listener, webhooks, certificates.serving(), setup.manager.metrics());
        let injector = certificates.injector(names.targets(&setup.hooks, &setup.converted));
        setup.manager.add(Stage::Webhooks, certificates.part())?;
        setup.manager.add(Stage::Webhooks, server.into_part())?;
        setup.manager.add(Stage::Controllers, injector.into_part())?;
        Ok(Some(bound))
    }
}

fn serve_admin(manager: &mut Manager, settings: &Settings) -> Result<Vec<SocketAddr>, AssembleError> {
    let mut bound = Vec::new();
    for address in &settings.admin {
        let listener = Listener::bind(*address)?;
        let server = AdminServer::new(listener.clone(), manager.readiness(), manager.metrics());
        let name =
            if bound.is_empty() { "admin".to_owned() } else { format!("admin at {}", listener.address()) };
        manager.add(Stage::Admin, server.into_part().named(name))?;
        bound.push(listener.address());
    }
    Ok(bound)
}

impl Process {
    /// Whether it is ready, and what it waits for.
    pub fn readiness(&self) -> &Readiness {
        self.manager.readiness()
    }

    /// What it counts.
    pub fn metrics(&self) -> &Metrics {
        self.manager.metrics()
    }

    /// Where health, readiness and metrics are served, with the ports that were taken.
    pub fn admin(&self) -> &[SocketAddr] {
        &self.admin
    }

    /// Where webhooks are served, if they are.
    pub fn webhooks(&self) -> Option<SocketAddr> {
        self.webhooks
    }

    /// The kinds that it watches.
    pub fn watches(&self) -> &[ResourceType] {
        &self.watches
    }

    /// Its client.
    pub(crate) fn client(&self) -> &Client {
        &self.client.0
    }

    /// Runs until SIGTERM or SIGINT, which are heard from the call on; see [`Manager::run`].
    pub fn run(self) -> impl Future<Output = Result<(), ManagerError>> {
        self.manager.run()
    }

    /// Runs until a stop is requested; see [`Manager::run_until`].
    pub async fn run_until(self, stop: Stop) -> Result<(), ManagerError> {
        self.manager.run_until(stop).await
    }
}
