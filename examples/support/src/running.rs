//! An operator as a task of the test.

use std::net::SocketAddr;

use anyhow::Result;
use tokio::task::JoinHandle;
use windlass_operator::{Operator, Settings};
use windlass_runtime::manager::{ManagerError, Readiness, Stop, Stopper};
use windlass_runtime::metrics::Metrics;
use windlass_testenv::eventually;

use crate::counts::{is_idle, sum};

/// An operator at work.
#[derive(Debug)]
#[must_use = "it ends when it is dropped"]
pub struct Running {
    readiness: Readiness,
    metrics: Metrics,
    webhooks: Option<SocketAddr>,
    stopper: Stopper,
    task: JoinHandle<Result<(), ManagerError>>,
}

impl Running {
    /// Starts it. It need not be ready yet.
    pub fn start(operator: &Operator, config: kube::Config, settings: &Settings) -> Result<Self> {
        let process = operator.assemble(config, settings)?;
        let (readiness, metrics) = (process.readiness().clone(), process.metrics().clone());
        let webhooks = process.webhooks();
        let (stopper, stop) = Stop::pair();
        Ok(Self { readiness, metrics, webhooks, stopper, task: tokio::spawn(process.run_until(stop)) })
    }

    /// Waits until it is ready, and this controller of it works.
    pub async fn ready(&self, controller: &str) -> Result<()> {
        let works = format!("[+] controller {controller}\n");
        let ready = eventually("the operator is ready, and its controller works", || async {
            let report = self.report();
            if report.contains(&works) && self.readiness.report().is_ready() { Ok(()) } else { Err(report) }
        });
        Ok(ready.await?)
    }

    /// What its readiness says.
    pub fn report(&self) -> String {
        self.readiness.report().to_string()
    }

    /// Where its webhooks are, if it serves any.
    pub fn webhooks(&self) -> Option<SocketAddr> {
        self.webhooks
    }

    /// The sum of all samples whose lines begin so.
    pub fn metric(&self, start: &str) -> u64 {
        sum(&self.metrics.encode(), start)
    }

    /// Waits until at least so many reconciles have ended, and none is queued or under way.
    pub async fn idle_after(&self, reconciles: u64) -> Result<()> {
        let idle = eventually(format!("{reconciles} reconciles, and then peace"), || async {
            is_idle(&self.metrics.encode(), reconciles)
        });
        Ok(idle.await?)
    }

    /// Stops it in order, and wants that to go well.
    pub async fn stop(self) -> Result<()> {
        self.stopper.request();
        Ok(self.task.await??)
    }
}
