//! The version of the data, recorded on what outlives its owner.
#![allow(clippy::unwrap_used, clippy::panic)] // a test fails by panicking

use crate::kit;

use anyhow::Result;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim};
use kube::ResourceExt as _;
use kube::api::{ObjectMeta, PostParams};
use serde_json::json;
use windlass::{Blueprint, Controls, Kinds, Needs, Plan, PlanController, PlanError, recorded_version};
use windlass_testenv::{TestEnv, or_not_run};

use kit::Corner;
use kit::bundle::{Bundle, BundleSpec};

/// A volume, a workload that brings its data to the version of an annotation, and the record of that. A
/// volume with data of a newer version is refused.
struct Volumes;

impl Controls for Volumes {
    type Owner = Bundle;
    const NAME: &'static str = "volume.test.windlass.dev";

    fn kinds(&self, kinds: &mut Kinds) {
        kinds.owns::<PersistentVolumeClaim>().owns::<ConfigMap>().requires::<PersistentVolumeClaim>();
    }
}

impl Blueprint for Volumes {
    fn draw(&self, bundle: &Bundle, needs: &mut Needs<'_>, plan: &mut Plan) -> Result<(), PlanError> {
        let version = bundle.annotations().get("version").cloned().unwrap_or_default();
        let found = needs.look::<PersistentVolumeClaim>("data").or_wait()?;
        let has = found.as_ref().and_then(recorded_version);
        if let Some(has) = has.filter(|has| **has > *version) {
            return Err(PlanError::new(format!("the data has version {has}")));
        }
        let claim = json!({"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}}}});
        let claim = plan.add(serde_json::from_value::<PersistentVolumeClaim>(claim).unwrap());
        let data = Some([("version".to_owned(), version.clone())].into());
        let metadata = ObjectMeta { name: Some("migrated".into()), ..ObjectMeta::default() };
        let migrated = plan.add(ConfigMap { metadata, data, ..ConfigMap::default() }).after([&claim]);
        plan.record::<PersistentVolumeClaim>("data", version).behind([&migrated]);
        Ok(())
    }
}

async fn create(corner: &Corner, version: &str) -> Result<()> {
    let mut bundle = Bundle::new("one", BundleSpec::default());
    bundle.metadata.annotations = Some([("version".to_owned(), version.to_owned())].into());
    corner.namespace.api::<Bundle>().create(&PostParams::default(), &bundle).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn seam_m8_the_version_of_the_data_is_recorded_on_what_outlives_the_owner() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "record").await?;
    let operator = corner.operate(PlanController::of(Volumes)).await?;
    create(&corner, "2").await?;
    corner.until::<Bundle>("one", "Ready", "True").await?;
    let claim = corner.object("PersistentVolumeClaim", "data").await?;
    let annotations = &claim["metadata"]["annotations"];
    assert_eq!(annotations["windlass.dev/data-version"], "2");
    let managers: Vec<&str> = claim["metadata"]["managedFields"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|entry| entry["fieldsV1"].to_string().contains("windlass.dev/data-version"))
        .filter_map(|entry| entry["manager"].as_str())
        .collect();
    assert_eq!(managers, ["volume.test.windlass.dev.records"]);
    // Written once, and no reason to write anything again.
    let mark = corner.mark()?;
    corner.look_again(&operator, "Bundle", "one").await?;
    assert_eq!(corner.writes_since(mark)?, [""; 0]);

    // The next owner of that name has no status.
    corner.delete("Bundle", "one").await?;
    corner.gone("ConfigMap", "migrated").await?;
    create(&corner, "1").await?;
    corner.until_message::<Bundle>("one", "Ready", "False", "the data has version 2").await?;
    corner.change("Bundle", "one", json!({"metadata": {"annotations": {"version": "3"}}})).await?;
    corner.until::<Bundle>("one", "Ready", "True").await?;
    let newer = corner.object("PersistentVolumeClaim", "data").await?;
    assert_eq!(newer["metadata"]["uid"], claim["metadata"]["uid"]);
    assert_eq!(newer["metadata"]["annotations"]["windlass.dev/data-version"], "3");
    operator.stop().await
}
