//! A leader that is killed or suspended, and the standby that takes over.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;

use super::operator::Life;
use super::performance::Problems;
use super::point::Family;
use super::quiet::GLANCE;
use super::stage::Stage;
use crate::error::{Error, Result};
use crate::eventually::within;
use crate::proxy::FaultHandle;

/// The time that a former leader has to end, in quiet times.
const AFTERMATH: u32 = 4;

/// Waits until the operator leads, then starts a standby.
pub(super) async fn prepare(stage: &Stage<'_>) -> Result<()> {
    another_leads(stage, "").await?;
    stage.start_standby().await
}

/// Takes the leader away at a point where its write is held, and waits until the standby leads. Returns what
/// the former leader did wrong.
pub(super) async fn hand_over(stage: &Stage<'_>, family: Family, point: &FaultHandle) -> Result<Problems> {
    let leader = holder(stage).await.unwrap_or_default();
    let Some(former) = stage.promote() else { return Ok(Problems::new()) };
    if family == Family::Handover {
        stage.bury(former).await;
        return Ok(nobody_else(another_leads(stage, &leader).await));
    }
    former.suspend();
    // The write itself was sent by a leader: it arrives before another process leads.
    point.release();
    let problems = nobody_else(another_leads(stage, &leader).await);
    let last = former.proxy.last_sequence();
    former.resume();
    aftermath(&former, stage.plan.calm).await;
    let late = stage.writes_after(&former, last);
    stage.bury(former).await;
    let late = late.iter().map(|write| format!("a suspended leader wrote after another led: {write}"));
    Ok(problems.into_iter().chain(late).collect())
}

/// Reports that no standby took over: a fault of the operator, not of the environment.
fn nobody_else(led: Result<()>) -> Problems {
    led.err().map(|error| error.to_string()).into_iter().collect()
}

/// Waits until another process than `leader` holds the Lease.
async fn another_leads(stage: &Stage<'_>, leader: &str) -> Result<()> {
    within(stage.plan.patience, "an operator to take the Lease", || async {
        match holder(stage).await {
            Ok(holder) if !holder.is_empty() && holder != leader => Ok(()),
            Ok(holder) => Err(format!("it is held by {holder:?}")),
            Err(error) => Err(error.to_string()),
        }
    })
    .await
}

/// The holder of the Lease; empty if there is none.
async fn holder(stage: &Stage<'_>) -> Result<String> {
    let name = stage.plan.lease.as_deref().unwrap_or_default();
    let lease = stage.scene.api::<Lease>().get_opt(name).await.map_err(Error::api("reading the Lease"))?;
    Ok(lease.and_then(|lease| lease.spec?.holder_identity).unwrap_or_default())
}

/// Waits until a former leader has ended by itself, as it should, or has had time to do what it should not.
async fn aftermath(former: &Life, calm: Duration) {
    let ended = async {
        while former.last_words().is_none() {
            tokio::time::sleep(GLANCE).await;
        }
    };
    let _ = tokio::time::timeout(calm * AFTERMATH, ended).await;
}
