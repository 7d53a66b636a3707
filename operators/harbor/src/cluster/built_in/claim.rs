//! The claim of a volume. It has a place of its own in the plan, and not in a template of a StatefulSet: so it can grow.

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use serde_json::{Value, json};
use windlass::{Plan, PlanError, Planned};
use windlass_runtime::json::typed;

use crate::api::harborcluster_parts::BuiltInVolume;
use crate::cluster::Site;

/// Plans the claim of this name.
pub(super) fn plan(
    site: &Site<'_>,
    name: &str,
    volume: &BuiltInVolume,
    usual_size: &str,
    modes: &[String],
    plan: &mut Plan,
) -> Result<Planned, PlanError> {
    let modes = if modes.is_empty() { json!(["ReadWriteOnce"]) } else { json!(modes) };
    let capacity = volume.storage.as_deref().unwrap_or(usual_size);
    let claim: Value = json!({
        "metadata": site.metadata(name),
        "spec": {
            "accessModes": modes,
            "storageClassName": volume.storage_class_name,
            "resources": {"requests": {"storage": capacity}},
        },
    });
    Ok(site.keep(plan.add(typed::<PersistentVolumeClaim>(&claim)?)))
}
