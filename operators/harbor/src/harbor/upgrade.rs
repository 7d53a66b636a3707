//! Upgrades of a Harbor from one version to the next.
//!
//! The current version of a Harbor is the one at which it was last ready; it is stored in the status. While
//! the spec has another version, Core is updated first, because it migrates the database, and the other
//! components follow when Core is ready: a failed migration leaves them as they are.

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

/// The status field with the current version.
pub(crate) const FIELD: &str = "version";

/// Returns the version at which the Harbor was last ready; `None` before it was ready for the first time.
pub(crate) fn standing(harbor: &Harbor) -> Option<Version> {
    harbor.status.as_ref()?.other.get(FIELD)?.as_str()?.parse().ok()
}

/// Returns the schema of the database from Core's status.
pub(crate) fn schema(core: &Live) -> Option<Value> {
    let clean = core.status.condition(SCHEMA_CLEAN)?;
    Some(
        json!({"type": SCHEMA_CLEAN, "status": clean.status, "reason": clean.reason, "message": clean.message}),
    )
}

/// The requested version of a Harbor.
pub(crate) struct Wish {
    /// The release of that version.
    pub release: Release,
    /// True if the Harbor was last ready at another version.
    pub upgrading: bool,
}

/// Returns the requested version, or an error if the data, which has the version `standing`, cannot follow.
/// Versions are checked only when they change.
pub(crate) fn wish(harbor: &Harbor, standing: Option<&Version>) -> Result<Wish, PlanError> {
    let text = &harbor.spec.common.version;
    let version: Version = text.parse().map_err(|error| PlanError::new(format!("spec.version: {error}")))?;
    let release = Release::of(&version).map_err(|error| PlanError::new(format!("spec.version: {error}")))?;
    if let Some(standing) = standing {
        admit_change(standing, &version)?;
    }
    refuse_what_is_gone(harbor, &release)?;
    Ok(Wish { upgrading: standing.is_some_and(|standing| *standing != version), release })
}

/// Refuses components that the release no longer has. The error names the location of their data.
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

/// Returns the location of charts, as text.
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
    use super::{Harbor, PlanError, Wish, json, standing};
    use crate::harbor::blueprint::samples::{full, harbor};

    fn standing_at(mut harbor: Harbor, version: &str) -> Harbor {
        harbor.status = serde_json::from_value(json!({"version": version})).unwrap();
        harbor
    }

    fn wish(harbor: &Harbor) -> Result<Wish, PlanError> {
        super::wish(harbor, standing(harbor).as_ref())
    }

    #[test]
    fn versions_are_checked_only_when_they_change() {
        assert!(!wish(&harbor("2.15.2", false)).unwrap().upgrading);
        // These versions can no longer be created, but they run.
        assert!(!wish(&harbor("2.4.1", false)).unwrap().upgrading);
        assert!(!wish(&standing_at(harbor("2.4.1", false), "2.4.1")).unwrap().upgrading);
        assert!(wish(&standing_at(harbor("2.15.2", false), "2.13.5")).unwrap().upgrading);
        let refused = |harbor: Harbor| wish(&harbor).err().unwrap().to_string();
        let too_far = refused(standing_at(harbor("2.15.2", false), "2.12.4"));
        assert!(too_far.contains("spec.version") && too_far.contains("upgrade to 2.14.4 first"), "{too_far}");
        let back = refused(standing_at(harbor("2.13.0", false), "2.14.0"));
        assert!(back.contains("cannot be downgraded"), "{back}");
        let unknown = refused(harbor("2.99.0", false));
        assert!(unknown.contains("2.99.0") && unknown.contains("2.15"), "{unknown}");
    }

    #[test]
    fn removed_components_are_refused_with_the_location_of_their_data() {
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
