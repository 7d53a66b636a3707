//! Version checks at admission, based on the catalogue.
//!
//! A version is checked when a Harbor is created and when its version changes, and at no other time: existing
//! Harbors may run versions that can no longer be created.

use windlass_runtime::webhook::Findings;

use crate::api::harbor::HarborCommon;
use crate::api::redis::RedisHost;
use crate::api::validation::{Previous, VersionRules};
use crate::catalogue::{
    Feature, NotaryData, Refusal, Release, Version, Wanted, admit_change, admit_creation, refuse_ignored,
    refuse_removed,
};

/// Checks versions against the [catalogue](crate::catalogue).
#[derive(Clone, Copy, Debug)]
pub struct ByCatalogue;

impl VersionRules for ByCatalogue {
    fn judge(&self, old: Option<&Previous<'_>>, new: &HarborCommon, found: &mut Findings) {
        if let Some(old) = old.filter(|old| old.common.version == new.version) {
            return refuse_added(old.common, new, found);
        }
        let version: Version = match new.version.parse() {
            Ok(version) => version,
            Err(error) => return found.invalid("spec.version", &new.version, error),
        };
        let admitted = match old {
            Some(old) => match old.ready_at.unwrap_or(&old.common.version).parse() {
                // Nothing was ever ready, so there is nothing to downgrade. If Core has migrated the database
                // nevertheless, Core's own plan refuses the older version.
                Ok(from) if old.never_ready => {
                    admit_change(&from, &version).or_else(|_| admit_creation(&version))
                }
                Ok(from) => admit_change(&from, &version),
                // The old version cannot be parsed: the new one is checked as at creation.
                Err(_) => admit_creation(&version),
            },
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

    fn check_redis(&self, version: &str, field: &str, redis: &RedisHost, found: &mut Findings) {
        let Some(secret) = &redis.certificate_ref else { return };
        let release = version.parse().ok().and_then(|version| Release::of(&version).ok());
        if release.is_some_and(|release| !release.has(Feature::RegistryRedisTls)) {
            let remedy = "Harbor connects to Redis with TLS from 2.13 on; an older version ignores this field and \
                 sends the password in clear text: set spec.version to 2.13.0 or newer, or remove \
                 certificateRef to connect without TLS";
            found.invalid(format!("{field}.certificateRef"), secret, remedy);
        }
    }

    fn check_features(&self, spec: &HarborCommon, found: &mut Findings) {
        let release = spec.version.parse().ok().and_then(|version| Release::of(&version).ok());
        let Some(release) = release else { return };
        let (core, trivy) = (spec.core.as_ref(), spec.trivy.as_ref());
        let layer = core.and_then(|core| core.cache_layer).map(|layer| layer.expire_hours);
        let database = trivy.and_then(|trivy| trivy.db_repository.as_ref());
        let java = trivy.and_then(|trivy| trivy.java_db_repository.as_ref());
        let all: [(Feature, &str, Option<&dyn std::fmt::Display>); 3] = [
            (Feature::CacheLayer, "spec.core.cacheLayer.expireHours", layer.as_ref().map(|hours| hours as _)),
            (Feature::TrivyRepositories, "spec.trivy.dbRepository", database.map(|text| text as _)),
            (Feature::TrivyRepositories, "spec.trivy.javaDBRepository", java.map(|text| text as _)),
        ];
        for (feature, field, value) in all {
            if let Some(refusal) = refuse_ignored(&release, feature, field, value) {
                refuse(found, &refusal);
            }
        }
    }

    fn judge_built_in_database(&self, old: &str, new: &str, found: &mut Findings) {
        let image = |version: &str| Some(Release::of(&version.parse().ok()?).ok()?.database_image());
        let (Some(was), Some(is)) = (image(old), image(new)) else { return };
        if is.to != was.to && is.from != Some(was.to) {
            let (was, is) = (was.to, is.to);
            let reason = format!(
                "the built-in database may already have been upgraded to PostgreSQL {was}, and the image of \
                 this version runs PostgreSQL {is}, which cannot read its data; keep {old}, or a \
                 newer version"
            );
            found.invalid("spec.version", new, reason);
        }
    }
}

/// Refuses removed components that an update adds without a change of the version.
fn refuse_added(old: &HarborCommon, new: &HarborCommon, found: &mut Findings) {
    let Some(release) = new.version.parse().ok().and_then(|version| Release::of(&version).ok()) else {
        return;
    };
    let (before, after) = (wanted(old), wanted(new));
    let added = Wanted {
        chartmuseum: after.chartmuseum.filter(|_| before.chartmuseum.is_none()),
        notary: after.notary.filter(|_| before.notary.is_none()),
    };
    for refusal in refuse_removed(&release, &added) {
        refuse(found, &refusal);
    }
}

fn refuse(found: &mut Findings, refusal: &Refusal) {
    let Refusal { field, value, reason, remedy } = refusal;
    found.invalid(field, value, format!("{reason}; {remedy}"));
}

/// Returns the requested components that newer releases no longer have. The spec alone does not contain the
/// names of their data.
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
    use crate::api::validation::Judged;
    use crate::api::{Harbor, HarborCluster};
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
        let old = old.as_ref().map(|common| Previous {
            common,
            ready_at: Some(&common.version),
            never_ready: false,
        });
        let mut found = Findings::default();
        ByCatalogue.judge(old.as_ref(), new, &mut found);
        format!("{found:?}")
    }

    #[test]
    fn a_version_is_checked_at_creation_and_when_it_changes_only() {
        let plain = |version: &str| harbor(version, json!({}));
        assert_eq!(judged(None, &plain("2.15.2")), format!("{:?}", Findings::default()));
        assert!(judged(None, &plain("2.99.0")).contains("does not know Harbor 2.99"));
        assert!(judged(None, &plain("2.4.1")).contains("can no longer be created"));
        assert_eq!(judged(Some("2.4.1"), &plain("2.4.1")), format!("{:?}", Findings::default()));
        assert!(judged(Some("2.15.2"), &plain("2.14.0")).contains("cannot be downgraded"));
        assert!(judged(Some("2.10.0"), &plain("2.15.2")).contains("at most 2 minor versions"));
    }

    fn object(version: &str, more: serde_json::Value, status: &serde_json::Value) -> Harbor {
        let mut spec = serde_json::to_value(harbor(version, more)).unwrap();
        let own = json!({
            "database": {"hosts": [{"host": "db"}]}, "redis": {"host": "redis"},
            "imageChartStorage": {"filesystem": {"registryPersistentVolume": {"claimName": "images"}}},
        });
        spec.as_object_mut().unwrap().extend(own.as_object().unwrap().clone());
        serde_json::from_value(json!({"metadata": {"name": "x"}, "spec": spec, "status": status})).unwrap()
    }

    /// Returns a HarborCluster with built-in parts and the same settings.
    fn cluster(version: &str, more: serde_json::Value, status: &serde_json::Value) -> HarborCluster {
        let mut spec = serde_json::to_value(harbor(version, more)).unwrap();
        for part in ["cache", "database", "storage"] {
            spec[part] = json!({"kind": "BuiltIn", "spec": {}});
        }
        serde_json::from_value(json!({"metadata": {"name": "x"}, "spec": spec, "status": status})).unwrap()
    }

    fn errors<K: Judged>(old: &K, new: &K) -> String {
        judgement(Some(old), new)
    }

    fn judgement<K: Judged>(old: Option<&K>, new: &K) -> String {
        let mut found = Findings::default();
        new.judge(old, &ByCatalogue, &mut found);
        if found.is_fine() { String::new() } else { format!("{found:?}") }
    }

    /// Returns the errors of an update: from the stored version and status to another version.
    fn updated(spec: &str, status: &serde_json::Value, new: &str) -> String {
        errors(&object(spec, json!({}), status), &object(new, json!({}), status))
    }

    #[test]
    fn seam_m12_a_stuck_upgrade_can_be_set_back_to_the_version_that_was_last_ready() {
        let ready_at =
            |version: &str| json!({"version": version, "conditions": [{"type": "Ready", "status": "False"}]});
        assert_eq!(updated("2.15.2", &ready_at("2.14.4"), "2.14.4"), "");
        assert_eq!(updated("2.15.2", &ready_at("2.14.4"), "2.15.1"), "", "another target");
        let back = updated("2.15.2", &ready_at("2.14.4"), "2.14.3");
        assert!(back.contains("this Harbor is at 2.14.4") && back.contains("cannot be downgraded"), "{back}");
    }

    #[test]
    fn seam_m12_another_target_is_judged_from_the_version_that_was_last_ready() {
        let status = json!({"version": "2.12.4", "conditions": [{"type": "Ready", "status": "False"}]});
        let too_far = updated("2.14.4", &status, "2.15.2");
        assert!(
            too_far.contains("this Harbor is at 2.12.4") && too_far.contains("at most 2 minor"),
            "{too_far}"
        );
    }

    #[test]
    fn seam_m12_a_built_in_database_is_not_set_back_below_an_upgrade_of_postgresql() {
        let judge = |old: &str, new: &str| {
            let mut found = Findings::default();
            ByCatalogue.judge_built_in_database(old, new, &mut found);
            if found.is_fine() { String::new() } else { format!("{found:?}") }
        };
        assert_eq!(judge("2.15.1", "2.14.4"), "", "both run PostgreSQL 15");
        assert_eq!(judge("2.15.1", "2.15.2"), "", "an upgrade");
        let back = judge("2.15.2", "2.15.1");
        assert!(back.contains("upgraded to PostgreSQL 18") && back.contains("runs PostgreSQL 15"), "{back}");
    }

    #[test]
    fn users_n10_a_mistyped_version_can_be_undone_before_the_harbor_was_ever_ready() {
        let never_ready = json!({"conditions": [{"type": "Ready", "status": "False"}]});
        assert_eq!(updated("2.15.99", &never_ready, "2.15.2"), "");
        assert_eq!(updated("2.15.99", &serde_json::Value::Null, "2.15.2"), "");
        // The upstream operator wrote neither a version nor a condition Ready: its data is at the old
        // version.
        let upstream = json!({"conditions": [{"type": "InProgress", "status": "False"}]});
        assert!(updated("2.6.2", &upstream, "2.5.6").contains("cannot be downgraded"));
    }

    #[test]
    fn users_n9_an_update_refuses_the_removed_components_that_a_creation_refuses() {
        let version = "2.15.2";
        let status = json!({"version": version});
        let expose = json!({"core": {"ingress": {"host": "harbor.example.com"}}, "notary": {}});
        for (component, spec) in [
            ("spec.chartmuseum", json!({"chartmuseum": {}})),
            ("spec.notary", json!({"notary": {}, "expose": expose})),
        ] {
            let none = || json!({});
            for (kind, created, added, kept) in [
                (
                    "Harbor",
                    judgement(None, &object(version, spec.clone(), &none())),
                    errors(&object(version, none(), &status), &object(version, spec.clone(), &status)),
                    errors(
                        &object(version, spec.clone(), &status),
                        &object(version, together(&spec, json!({"portal": {}})), &status),
                    ),
                ),
                (
                    "HarborCluster",
                    judgement(None, &cluster(version, spec.clone(), &none())),
                    errors(&cluster(version, none(), &status), &cluster(version, spec.clone(), &status)),
                    errors(
                        &cluster(version, spec.clone(), &status),
                        &cluster(version, together(&spec, json!({"portal": {}})), &status),
                    ),
                ),
            ] {
                assert!(created.contains(component), "{kind}: {created}");
                assert_eq!(added, created, "{kind}: one set of rules for both");
                assert_eq!(kept, "", "{kind}: the stored object has {component}");
            }
        }
    }

    /// Returns the fields of both objects.
    fn together(one: &serde_json::Value, other: serde_json::Value) -> serde_json::Value {
        let mut all = one.clone();
        all.as_object_mut().unwrap().extend(other.as_object().unwrap().clone());
        all
    }

    #[test]
    fn users_n18_samples_of_upstream_1_0_to_1_2_are_refused_with_the_documented_message() {
        let page = include_str!("../../../docs/harbor/from-upstream.md");
        let readme = include_str!("../README.md");
        for (upstream, line, version) in
            [("1.0", "2.2", "2.2.1"), ("1.1", "2.3", "2.3.0"), ("1.2", "2.4", "2.4.0")]
        {
            let none = json!({});
            let harbor = |version: &str| judgement(None, &object(version, json!({}), &none));
            let cluster = |version: &str| judgement(None, &cluster(version, json!({}), &none));
            for refused in [harbor(version), cluster(version)] {
                for part in
                    ["spec.version", version, line, "can no longer be created", "choose one of 2.5, 2.6"]
                {
                    assert!(refused.contains(part), "{part} in {refused}");
                }
            }
            assert_eq!([harbor("2.5.0"), cluster("2.5.0")], ["", ""], "the documented remedy");
            for text in [page, readme] {
                assert!(text.contains(upstream) && text.contains(line), "{upstream} {line}");
            }
        }
        assert!(page.contains("cannot be created") && readme.contains("can no longer be created"));
        for text in [page, readme] {
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(text.contains("`spec.version` to 2.5.0 or newer"), "the remedy");
        }
    }

    #[test]
    fn users_n7_a_certificate_of_redis_is_refused_below_2_13_and_not_ignored() {
        let redis = |name: Option<&str>| json!({"redis": {"host": "redis", "certificateRef": name}});
        let harbor = |version: &str, name: Option<&str>| {
            let mut harbor = object(version, json!({}), &serde_json::Value::Null);
            harbor.spec.redis = serde_json::from_value(redis(name)["redis"].clone()).unwrap();
            harbor
        };
        let cluster = |version: &str| -> HarborCluster {
            let mut spec = serde_json::to_value(super::tests::harbor(version, json!({}))).unwrap();
            let own = json!({
                "cache": {"kind": "Redis", "spec": redis(Some("redis-ca"))},
                "database": {"kind": "BuiltIn", "spec": {}}, "storage": {"kind": "BuiltIn", "spec": {}},
            });
            spec.as_object_mut().unwrap().extend(own.as_object().unwrap().clone());
            serde_json::from_value(json!({"metadata": {"name": "x"}, "spec": spec})).unwrap()
        };
        let judge = |old: Option<&Harbor>, new: &Harbor| {
            let mut found = Findings::default();
            new.judge(old, &ByCatalogue, &mut found);
            (found.is_fine(), format!("{found:?}"))
        };
        let (fine, found) = judge(None, &harbor("2.12.4", Some("redis-ca")));
        assert!(!fine);
        for part in ["spec.redis.certificateRef", "redis-ca", "2.13.0", "clear text"] {
            assert!(found.contains(part), "{part} in {found}");
        }
        assert!(judge(None, &harbor("2.13.0", Some("redis-ca"))).0);
        assert!(judge(None, &harbor("2.12.4", None)).0);
        for (version, fine) in [("2.12.4", false), ("2.13.0", true)] {
            let mut found = Findings::default();
            cluster(version).judge(None, &ByCatalogue, &mut found);
            assert_eq!(found.is_fine(), fine, "{found:?}");
            assert_eq!(format!("{found:?}").contains("spec.cache.spec.redis.certificateRef"), !fine);
        }
        // Stored before: other fields can change, also the version towards one that has it.
        let (stored, mut edited) = (harbor("2.12.3", Some("redis-ca")), harbor("2.12.3", Some("redis-ca")));
        edited.spec.common.portal = Some(serde_json::from_value(json!({})).unwrap());
        let patched = harbor("2.12.4", Some("redis-ca"));
        for new in [&edited, &patched, &harbor("2.13.0", Some("redis-ca"))] {
            let (fine, found) = judge(Some(&stored), new);
            assert!(fine, "{found}");
            let warned = found.contains("certificateRef");
            assert_eq!(warned, *new.spec.common.version < *"2.13", "{found}");
        }
        assert!(!judge(Some(&stored), &harbor("2.12.3", Some("other-ca"))).0, "another value is refused");
    }

    #[test]
    fn settings_that_a_release_ignores_are_refused_with_the_release_that_reads_them() {
        let repositories =
            json!({"trivy": {"storage": {}, "dbRepository": "m/db", "javaDBRepository": "m/java"}});
        let layer = json!({"core": {"cacheLayer": {}}});
        let cases = [
            (&repositories, "2.14.4", "2.15.0", ["spec.trivy.dbRepository", "spec.trivy.javaDBRepository"]),
            (&layer, "2.5.6", "2.6.0", ["spec.core.cacheLayer.expireHours", "24"]),
        ];
        for (spec, without, with, parts) in cases {
            let judge = |version: &str| {
                let mut found = Findings::default();
                ByCatalogue.check_features(&harbor(version, spec.clone()), &mut found);
                (found.is_fine(), format!("{found:?}"))
            };
            let (fine, found) = judge(without);
            assert!(!fine && found.contains(&format!("{with} or newer")), "{found}");
            for part in parts {
                assert!(found.contains(part), "{part} in {found}");
            }
            assert!(judge(with).0);
            let (new, old) =
                (object(without, spec.clone(), &json!({})), object(without, json!({}), &json!({})));
            assert!(errors(&old, &new).contains(parts[0]), "an update is refused too");
        }
    }

    #[test]
    fn components_that_a_release_no_longer_has_are_refused() {
        let charts = harbor("2.8.6", json!({"chartmuseum": {}}));
        assert!(judged(None, &charts).contains("helm push"));
        assert!(judged(None, &harbor("2.9.5", json!({"notary": {}}))).contains("Cosign"));
    }
}
