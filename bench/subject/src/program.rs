//! The common part of all modes: a client, a cache, a manager with its admin servers, and an end at SIGTERM.

use anyhow::{Context as _, Result};
use kube::config::{KubeConfigOptions, Kubeconfig};
use tokio::signal::unix::{SignalKind, signal};
use windlass_runtime::admin::AdminServer;
use windlass_runtime::cache::Cache;
use windlass_runtime::client::{Client, ClientOptions};
use windlass_runtime::manager::{Manager, Stage, Stop};
use windlass_runtime::serve::Listener;

use crate::args::Common;

/// A process that is being put together.
pub(crate) struct Program {
    pub(crate) client: Client,
    pub(crate) cache: Cache,
    pub(crate) manager: Manager,
}

impl Program {
    pub(crate) async fn new(common: &Common) -> Result<Self> {
        let file = common.kubeconfig.as_deref().context("--kubeconfig is missing")?;
        let kubeconfig = Kubeconfig::read_from(file)?;
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        let host = config.cluster_url.host().unwrap_or_default().to_owned();
        let client = Client::new(config, ClientOptions::default())?;
        let cache = Cache::new(&client);
        let mut manager = Manager::new();
        manager.metrics().client(&client, host);
        for (name, address) in [("metrics", common.metrics.0), ("health", common.health.0)] {
            if let Some(address) = address {
                let server =
                    AdminServer::new(Listener::bind(address)?, manager.readiness(), manager.metrics());
                manager.add(Stage::Admin, server.into_runnable().named(name))?;
            }
        }
        Ok(Self { client, cache, manager })
    }

    /// Runs until SIGTERM, or until `work` has ended.
    pub(crate) async fn run(mut self, work: impl Future<Output = Result<()>>) -> Result<()> {
        self.manager.cache(&self.cache)?;
        let mut terminated = signal(SignalKind::terminate())?;
        let (stopper, stop) = Stop::pair();
        let mut running = std::pin::pin!(self.manager.run_until(stop));
        tokio::select! {
            ended = &mut running => return Ok(ended?),
            done = work => done?,
            _ = terminated.recv() => {}
        }
        stopper.request();
        Ok(running.await?)
    }
}
