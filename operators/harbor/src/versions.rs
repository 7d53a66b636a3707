//! The catalogue's rules about versions, at admission.
//!
//! A version is judged when a Harbor is created and when it changes, and never otherwise: people stand at versions that nobody
//! installs any more.

use windlass_runtime::webhook::Findings;

use crate::api::harbor::HarborCommon;
use crate::api::validation::VersionRules;
use crate::catalogue::{
    NotaryData, Refusal, Release, Version, Wanted, admit_change, admit_creation, refuse_removed,
};

/// Judges by the [catalogue](crate::catalogue).
#[derive(Clone, Copy, Debug)]
pub struct ByCatalogue;

impl VersionRules for ByCatalogue {
    fn judge(&self, old: Option<&HarborCommon>, new: &HarborCommon, found: &mut Findings) {
        if old.is_some_and(|old| old.version == new.version) {
            return;
        }
        let version: Version = match new.version.parse() {
            Ok(version) => version,
            Err(error) => return found.invalid("spec.version", &new.version, error),
        };
        // Where it comes from cannot be read: then it is judged as a new one.
        let admitted = match old.and_then(|old| old.version.parse().ok()) {
            Some(from) => admit_change(&from, &version),
            None => admit_creation(&version),
        };
        match admitted {
            Ok(warnings) => {
                for warning in &warnings {
                    found.warn(warning.as_str());
                }
            }
            Err(refusal) => return refuse(found, &refusal),
        }
        if let Ok(release) = Release::of(&version) {
            for refusal in refuse_removed(&release, &wanted(new)) {
                refuse(found, &refusal);
            }
        }
    }
}

fn refuse(found: &mut Findings, refusal: &Refusal) {
    let Refusal { field, value, reason, remedy } = refusal;
    found.invalid(field, value, format!("{reason}; {remedy}"));
}

/// What is asked for of that which newer releases do not have. The spec alone does not say under which names its data lies.
fn wanted(common: &HarborCommon) -> Wanted<'static> {
    Wanted {
        chartmuseum: common.chartmuseum.as_ref().map(|_| "in the chart storage that the spec names"),
        notary: common.notary.as_ref().map(|_| NotaryData {
            server_database: "notaryserver",
            signer_database: "notarysigner",
            key_secret: "*-notarysigner-encryption-key",
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn harbor(version: &str, more: serde_json::Value) -> HarborCommon {
        let mut spec = json!({
            "version": version, "externalURL": "https://harbor.example.com", "harborAdminPasswordRef": "admin",
            "expose": {"core": {"ingress": {"host": "harbor.example.com"}}},
        });
        for (field, value) in more.as_object().unwrap() {
            spec[field] = value.clone();
        }
        serde_json::from_value(spec).unwrap()
    }

    fn judged(old: Option<&str>, new: &HarborCommon) -> String {
        let old = old.map(|version| harbor(version, json!({})));
        let mut found = Findings::default();
        ByCatalogue.judge(old.as_ref(), new, &mut found);
        format!("{found:?}")
    }

    #[test]
    fn a_version_is_judged_when_it_is_new_and_when_it_changes_only() {
        let plain = |version: &str| harbor(version, json!({}));
        assert_eq!(judged(None, &plain("2.15.2")), format!("{:?}", Findings::default()));
        assert!(judged(None, &plain("2.99.0")).contains("does not know Harbor 2.99"));
        assert!(judged(None, &plain("2.4.1")).contains("is not installed any more"));
        assert_eq!(judged(Some("2.4.1"), &plain("2.4.1")), format!("{:?}", Findings::default()));
        assert!(judged(Some("2.15.2"), &plain("2.14.0")).contains("cannot go back"));
        assert!(judged(Some("2.10.0"), &plain("2.15.2")).contains("at most 2 minor versions"));
    }

    #[test]
    fn what_a_release_no_longer_has_is_refused() {
        let charts = harbor("2.8.6", json!({"chartmuseum": {}}));
        assert!(judged(None, &charts).contains("helm push"));
        assert!(!judged(Some("2.8.6"), &charts).contains("helm push"), "it stands");
        assert!(judged(None, &harbor("2.9.5", json!({"notary": {}}))).contains("Cosign"));
    }
}
