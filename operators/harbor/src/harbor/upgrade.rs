//! From one version to the next.
//!
//! The version that a Harbor stands at is the one at which it was last ready; its status remembers it. As long as another is asked for,
//! Core goes first, since it migrates the database, and the others follow when it is ready: a migration that fails leaves them as
//! they are.

use serde_json::{Value, json};
use windlass::PlanError;
use windlass::live::Live;

use crate::api::Harbor;
use crate::api::driver::{ImageChartStorage, Store};
use crate::api::postgres::Database;
use crate::api::status::condition::SCHEMA_CLEAN;
use crate::catalogue::{NotaryData, Release, Version, Wanted, admit_change, refuse_removed};

use super::credentials::Credential;
use super::names::Names;

/// The field of the status.
pub const FIELD: &str = "version";

/// The version that a Harbor stands at; none before it was ready for the first time.
pub fn standing(harbor: &Harbor) -> Option<Version> {
    harbor.status.as_ref()?.other.get(FIELD)?.as_str()?.parse().ok()
}

/// What Core says of the schema of its database, which is the Harbor's too.
pub fn schema(core: &Live) -> Option<Value> {
    let clean = core.status.condition(SCHEMA_CLEAN)?;
    Some(
        json!({"type": SCHEMA_CLEAN, "status": clean.status, "reason": clean.reason, "message": clean.message}),
    )
}

/// What is asked of a Harbor.
pub struct Wish {
    /// The release.
    pub release: Release,
    /// Whether it stands at another.
    pub upgrading: bool,
}

/// What is asked of a Harbor, if it can be: versions are judged when they change, and never otherwise.
pub fn wish(harbor: &Harbor) -> Result<Wish, PlanError> {
    let text = &harbor.spec.common.version;
    let version: Version = text.parse().map_err(|error| PlanError::new(format!("spec.version: {error}")))?;
    let release = Release::of(&version).map_err(|error| PlanError::new(format!("spec.version: {error}")))?;
    let standing = standing(harbor);
    if let Some(standing) = &standing {
        admit_change(standing, &version)?;
    }
    refuse_what_is_gone(harbor, &release)?;
    Ok(Wish { upgrading: standing.is_some_and(|standing| standing != version), release })
}

/// Refuses components that the release does not have, with the place where their data is.
fn refuse_what_is_gone(harbor: &Harbor, release: &Release) -> Result<(), PlanError> {
    let (common, names) = (&harbor.spec.common, Names::of(harbor));
    let charts = common.chartmuseum.as_ref().map(|_| charts(harbor));
    let name = |database| {
        let connection = harbor.spec.database.as_ref().map(|all| all.connection(database));
        connection.and_then(|connection| connection.database).unwrap_or_default()
    };
    let (server, signer) = (name(Database::NotaryServer), name(Database::NotarySigner));
    let key = names.with(Credential::NotarySignerKey.suffix());
    let wanted = Wanted {
        chartmuseum: charts.as_deref(),
        notary: common.notary.as_ref().map(|_| NotaryData {
            server_database: &server,
            signer_database: &signer,
            key_secret: &key,
        }),
    };
    match refuse_removed(release, &wanted).into_iter().next() {
        Some(refusal) => Err(refusal.into()),
        None => Ok(()),
    }
}

/// Where charts are, in words.
fn charts(harbor: &Harbor) -> String {
    let store = harbor.spec.image_chart_storage.as_ref().and_then(ImageChartStorage::store);
    match store {
        Some(Store::FileSystem(files)) => {
            let images = &files.registry_persistent_volume.claim;
            format!("claim {}", files.chart_persistent_volume.as_ref().unwrap_or(images).claim_name)
        }
        Some(store) => format!("the {} store, under chart_storage", store.name()),
        None => "their store".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harbor::blueprint::samples::{full, harbor};

    fn standing_at(mut harbor: Harbor, version: &str) -> Harbor {
        harbor.status = serde_json::from_value(json!({"version": version})).unwrap();
        harbor
    }

    #[test]
    fn versions_are_judged_when_they_change_and_never_otherwise() {
        assert!(!wish(&harbor("2.15.2", false)).unwrap().upgrading);
        // Nobody creates these any more, but they run.
        assert!(!wish(&harbor("2.4.1", false)).unwrap().upgrading);
        assert!(!wish(&standing_at(harbor("2.4.1", false), "2.4.1")).unwrap().upgrading);
        assert!(wish(&standing_at(harbor("2.15.2", false), "2.13.5")).unwrap().upgrading);
        let refused = |harbor: Harbor| wish(&harbor).err().unwrap().to_string();
        let too_far = refused(standing_at(harbor("2.15.2", false), "2.12.4"));
        assert!(too_far.contains("spec.version") && too_far.contains("go to 2.14.4 first"), "{too_far}");
        let back = refused(standing_at(harbor("2.13.0", false), "2.14.0"));
        assert!(back.contains("cannot go back"), "{back}");
        let unknown = refused(harbor("2.99.0", false));
        assert!(unknown.contains("2.99.0") && unknown.contains("2.15"), "{unknown}");
    }

    #[test]
    fn what_a_release_no_longer_has_is_refused_with_the_place_of_its_data() {
        let charts = wish(&full("2.8.6", false)).err().unwrap().to_string();
        assert!(charts.contains("spec.chartmuseum") && charts.contains("claim charts"), "{charts}");
        let mut harbor = full("2.9.5", false);
        harbor.spec.common.chartmuseum = None;
        let notary = wish(&harbor).err().unwrap().to_string();
        assert!(
            notary.contains("notarysigner") && notary.contains("sample-harbor-notarysigner-encryption-key"),
            "{notary}"
        );
    }
}
