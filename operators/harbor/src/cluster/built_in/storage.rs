//! A volume for images and charts.

use windlass::{Plan, PlanError};

use crate::api::driver::{Claim, FileSystem, ImageChartStorage, RegistryClaim};
use crate::cluster::{Part, Site};

use super::claim;

/// Plans a claim, in which images are, and charts where there are any.
pub fn storage(site: &Site<'_>, plan: &mut Plan) -> Result<Part<ImageChartStorage>, PlanError> {
    let given = site.cluster.spec.storage.as_ref().and_then(|storage| storage.spec.built_in.clone());
    let given = given.unwrap_or_default();
    let name = site.names.registry();
    let volume = claim::plan(site, &name, &given.volume, "50Gi", &given.access_modes, plan)?;
    let claim = Claim { claim_name: name, read_only: None, prefix: None };
    let registry = RegistryClaim { claim, max_threads: 100 };
    let filesystem = FileSystem { chart_persistent_volume: None, registry_persistent_volume: registry };
    let told = ImageChartStorage { filesystem: Some(filesystem), ..ImageChartStorage::default() };
    Ok(Part { told: Ok(told), needs: vec![volume] })
}
