//! A small leader election for the toy: one Lease, an expiry, and a deadline for writes.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::PostParams;
use kube::{Api, Client};
use serde_json::json;
use tokio::time::{Instant, Interval, MissedTickBehavior};

pub(crate) const LEASE: &str = "toy-leader";
/// A standby takes over when the Lease has not been renewed for this long.
const EXPIRY: Duration = Duration::from_secs(3);
/// A leader writes no more when it has not renewed for this long.
const DEADLINE: Duration = Duration::from_secs(2);
/// A leader renews the Lease, and a standby reads it, this often.
const RETRY: Duration = Duration::from_millis(250);

/// Ticks with at least this time between two of them, the first one at once.
pub(crate) fn every(time: Duration) -> Interval {
    let mut ticks = tokio::time::interval(time);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

/// A leader's term.
#[derive(Clone)]
pub(crate) struct Term {
    leases: Api<Lease>,
    me: String,
    deadline: Arc<Mutex<Instant>>,
}

impl Term {
    /// Waits until the Lease is free or has expired, and takes it.
    pub(crate) async fn begin(client: Client, namespace: &str, life: u32) -> Result<Self> {
        let leases: Api<Lease> = Api::namespaced(client, namespace);
        let me = format!("toy-{life}");
        let mut seen: Option<(Lease, Instant)> = None;
        let mut looks = every(RETRY);
        loop {
            looks.tick().await;
            let began = Instant::now();
            let present = leases.get_opt(LEASE).await?;
            let expired = seen.as_ref().is_some_and(|(_, since)| since.elapsed() >= EXPIRY);
            let taken = match present {
                None => leases.create(&PostParams::default(), &lease(&me, None)).await,
                Some(lease) if seen.as_ref().is_none_or(|(before, _)| *before != lease) => {
                    seen = Some((lease, Instant::now()));
                    continue;
                }
                Some(present) if expired => {
                    let version = present.metadata.resource_version;
                    leases.replace(LEASE, &PostParams::default(), &lease(&me, version)).await
                }
                Some(_) => continue,
            };
            if taken.is_ok() {
                return Ok(Self { leases, me, deadline: Arc::new(Mutex::new(began + DEADLINE)) });
            }
        }
    }

    /// Renews the Lease until it is lost.
    pub(crate) async fn keep(&self) -> Result<()> {
        let mut renewals = every(RETRY);
        loop {
            renewals.tick().await;
            let began = Instant::now();
            self.check()?;
            let present = self.leases.get(LEASE).await?;
            let holder = present.spec.and_then(|spec| spec.holder_identity);
            ensure!(holder.as_deref() == Some(&self.me), "the Lease is held by {holder:?}");
            let renewed = lease(&self.me, present.metadata.resource_version);
            self.leases.replace(LEASE, &PostParams::default(), &renewed).await?;
            *self.deadline.lock().unwrap() = began + DEADLINE;
        }
    }

    /// Fails when the deadline has passed. To be asked right before every write.
    pub(crate) fn check(&self) -> Result<()> {
        if Instant::now() >= *self.deadline.lock().unwrap() {
            bail!("the Lease was not renewed in time");
        }
        Ok(())
    }
}

fn lease(me: &str, version: Option<String>) -> Lease {
    let now = k8s_openapi::jiff::Timestamp::now();
    let spec = json!({"holderIdentity": me, "leaseDurationSeconds": 3, "renewTime": now.to_string()});
    serde_json::from_value(json!({"metadata": {"name": LEASE, "resourceVersion": version}, "spec": spec}))
        .unwrap()
}
