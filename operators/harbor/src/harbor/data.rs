//! The version of a Harbor's data, for a Harbor whose status does not have it.
//!
//! A Harbor that is created anew or restored from a backup has no status. The version is also recorded on
//! the encryption key, which is retained together with the data that it protects.

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Secret};
use windlass::names::ask::REGENERATE;
use windlass::{Needs, PlanError, recorded_version};

use crate::api::Harbor;
use crate::api::names::built_in_database;
use crate::catalogue::Version;

use super::credentials::Credential;
use super::names::Names;
use super::upgrade;

/// Returns the version that the data of a Harbor has; `None` if there is no data yet.
///
/// # Errors
/// The data exists, and the key that encrypts a part of it does not: a new key would make it unreadable.
pub(super) fn standing(harbor: &Harbor, needs: &Needs<'_>) -> Result<Option<Version>, PlanError> {
    if let Some(standing) = upgrade::standing(harbor) {
        return Ok(Some(standing));
    }
    let key = Names::of(harbor).with(Credential::EncryptionKey.suffix());
    let claim = claim(harbor);
    // Both are asked for before the first `?`.
    let found = needs.look::<Secret>(&key);
    let volume = claim.as_ref().map(|claim| needs.look::<PersistentVolumeClaim>(claim));
    if let Some(secret) = found.or_wait()? {
        return Ok(recorded_version(&secret).map(str::parse).and_then(Result::ok));
    }
    let volume = volume.map(windlass::Known::or_wait).transpose()?.flatten();
    match (volume.as_ref().and_then(recorded_version), claim) {
        (Some(version), Some(claim)) if !may_be_regenerated(harbor, &key) => Err(PlanError::new(format!(
            "Secret {key} is missing, and claim {claim} holds data of Harbor {version} with passwords that it \
             encrypts: restore the Secret from a backup; or, to give these passwords up, set the annotation \
             {REGENERATE}: {key} on the Harbor"
        ))),
        (version, _) => Ok(version.and_then(|version| version.parse().ok())),
    }
}

/// Returns the claim of the built-in database, if the Harbor may have one: the Harbor of a HarborCluster.
fn claim(harbor: &Harbor) -> Option<String> {
    let owner = harbor.metadata.owner_references.iter().flatten().find(|owner| owner.kind == "HarborCluster");
    owner.map(|owner| built_in_database(&owner.name))
}

fn may_be_regenerated(harbor: &Harbor, key: &str) -> bool {
    let names = harbor.metadata.annotations.as_ref().and_then(|all| all.get(REGENERATE));
    names.is_some_and(|names| names.split(',').any(|name| name.trim() == key))
}
