//! Operators under [torture](windlass_testenv::torture).

use anyhow::Result;
use kube::api::DynamicObject;
use serde_json::Value;
use windlass_operator::{Lease, Operator, Settings};
use windlass_runtime::manager::Stop;
use windlass_testenv::torture::OperatorRun;

/// The name of the Lease of an operator that is [`elected`].
pub const LEASE: &str = "operator-under-torture";

/// Runs one life of an operator, in the namespace of its repetition and without leader election.
pub async fn life(operator: Operator, run: OperatorRun) -> Result<()> {
    live(operator, run, None).await
}

/// Runs one life of an operator that works while it holds the [`LEASE`].
pub async fn elected(operator: Operator, run: OperatorRun) -> Result<()> {
    let lease = Lease { name: Some(LEASE.to_owned()), namespace: Some(run.namespace().to_owned()) };
    live(operator, run, Some(lease)).await
}

async fn live(operator: Operator, run: OperatorRun, election: Option<Lease>) -> Result<()> {
    let namespace = run.namespace();
    let settings = Settings {
        own_namespace: Some(namespace.to_owned()),
        election,
        ..Settings::default().in_namespaces([namespace])
    };
    let process = operator.assemble(run.config(), &settings)?;
    let (_stopper, stop) = Stop::pair();
    Ok(process.run_until(stop).await?)
}

/// Removes what differs from run to run for good reasons: owners have other uids in every run, and so have
/// the labels and digests that are made of them. The Deployment controller's count of revisions goes with
/// them.
pub fn forget_uids(object: &mut DynamicObject) {
    let made_of_uids = ["windlass.dev/digest", "windlass.dev/dependencies"];
    let differs = |mark: &str| made_of_uids.contains(&mark) || mark.starts_with("deployment.kubernetes.io/");
    if let Some(labels) = &mut object.metadata.labels {
        labels.retain(|label, _| label != "windlass.dev/owner");
    }
    if let Some(marks) = &mut object.metadata.annotations {
        marks.retain(|mark, _| !differs(mark));
    }
    if let Some(marks) = object.data.pointer_mut("/spec/template/metadata/annotations")
        && let Some(marks) = marks.as_object_mut()
    {
        marks.retain(|mark, _| !differs(mark));
    }
}

/// Returns true if a Deployment has an available replica: what its users would miss.
#[must_use]
pub fn is_served(deployment: &DynamicObject) -> bool {
    deployment
        .data
        .pointer("/status/availableReplicas")
        .and_then(Value::as_i64)
        .is_some_and(|count| count > 0)
}
