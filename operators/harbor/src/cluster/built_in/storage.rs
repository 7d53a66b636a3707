//! The built-in storage: a claim for images and charts.

use windlass::{Needs, Plan, PlanError};

use crate::api::driver::{Claim, FileSystem, ImageChartStorage, RegistryClaim};
use crate::api::harborcluster_parts::BuiltInVolume;
use crate::cluster::{Dependency, Site};

use super::claim;

/// Adds the claim for images and charts to the plan.
pub(crate) fn storage(
    site: &Site<'_>,
    needs: &Needs<'_>,
    plan: &mut Plan,
) -> Result<Dependency<ImageChartStorage>, PlanError> {
    let spec = site.cluster.spec.storage.as_ref().and_then(|storage| storage.spec.built_in.clone());
    let spec = spec.unwrap_or_default();
    let name = site.names.registry();
    let volume = claim::Claim {
        name: &name,
        field: "spec.storage.spec.builtIn",
        volume: &spec.volume,
        usual_size: BuiltInVolume::OF_IMAGES,
        modes: &spec.access_modes,
    };
    let volume = volume.plan(site, needs, plan)?;
    let claim = Claim { claim_name: name, read_only: None, prefix: None };
    let registry = RegistryClaim { claim, max_threads: 100 };
    let filesystem = FileSystem { chart_persistent_volume: None, registry_persistent_volume: registry };
    let settings = ImageChartStorage { filesystem: Some(filesystem), ..ImageChartStorage::default() };
    Ok(Dependency { settings: Ok(settings), needs: vec![volume] })
}
