//! Starts an operator of `windlass-operator` in a [world](windlass_testenv::world) of `windlass-testenv`.
//!
//! The world knows nothing of `windlass-operator`. This crate is the connection, for the tests of the
//! examples and of the operators.

pub mod torture;
mod webhooks;

use std::net::SocketAddr;

use anyhow::Result;
use windlass_operator::manifests::{Install, Manifests};
use windlass_operator::{Operator, Settings};
use windlass_runtime::manager::Stop;
use windlass_testenv::world::{Running, World, rights};
use windlass_testenv::{TestEnv, TestNamespace};

pub use webhooks::run_with_webhooks;

/// A world whose operator may do exactly what the manifests of an installation in its namespace grant, and
/// these manifests. Installs the operator's custom resource definitions first.
pub async fn world(
    env: &TestEnv,
    hint: &str,
    account: &str,
    operator: &Operator,
) -> Result<(World, Manifests)> {
    env.install_crds(operator.definitions()).await?;
    let namespace: TestNamespace = env.namespace(hint).await?;
    let install = Install::of(operator).namespace(namespace.name()).namespaced();
    let manifests = Manifests::of(operator, &install)?;
    let world = World::in_namespace(namespace, account, &rights::granted(manifests.files())?).await?;
    Ok((world, manifests))
}

/// The settings of an operator that lives in the namespace of a world and watches it.
#[must_use]
pub fn settings(world: &World) -> Settings {
    let namespace = world.namespace.name();
    Settings { own_namespace: Some(namespace.to_owned()), ..Settings::default().in_namespaces([namespace]) }
}

/// Starts an operator as a task of the test. It need not be ready yet.
pub fn start(operator: &Operator, config: kube::Config, settings: &Settings) -> Result<Running> {
    Ok(start_with_webhooks(operator, config, settings)?.0)
}

/// The same, and the address of its webhooks, if it serves any.
pub fn start_with_webhooks(
    operator: &Operator,
    config: kube::Config,
    settings: &Settings,
) -> Result<(Running, Option<SocketAddr>)> {
    let process = operator.assemble(config, settings)?;
    let (readiness, metrics) = (process.readiness().clone(), process.metrics().clone());
    let webhooks = process.webhooks();
    let (stopper, stop) = Stop::pair();
    let report = move || {
        let report = readiness.report();
        (report.is_ready(), report.to_string())
    };
    let running =
        Running::new(report, move || metrics.encode(), move || stopper.request(), process.run_until(stop));
    Ok((running, webhooks))
}
