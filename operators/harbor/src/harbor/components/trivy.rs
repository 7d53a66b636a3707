//! The Trivy of a Harbor.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;

use crate::api::driver::Claim;
use crate::api::embedded::Embedded;
use crate::api::jobservice::Volume;
use crate::api::redis::database;
use crate::api::trivy::{Trivy, TrivyLog, TrivyRedis, TrivyServer, TrivySpec, TrivyUpdate, TrivyVolumes};
use crate::catalogue::Component;

use super::{Wiring, metadata};

impl Wiring<'_> {
    /// Returns the Trivy.
    pub(crate) fn trivy(&self) -> Trivy {
        let common = self.common();
        let trivy = common.trivy.clone().unwrap_or_default();
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let spec = TrivySpec {
            component: self.component(Some(&trivy.component), Component::Trivy),
            certificate_refs: trivy.certificate_refs.clone(),
            offline_scan: trivy.offline_scan,
            severities: words(&["UNKNOWN", "LOW", "MEDIUM", "HIGH", "CRITICAL"]),
            timeout: "5m0s".into(),
            vulnerability_types: words(&["os", "library"]),
            log: TrivyLog { level: common.log_level.notary() },
            network: common.network.clone(),
            proxy: common.proxy_of("trivy").cloned(),
            redis: Some(TrivyRedis {
                connection: self.redis(database::TRIVY),
                namespace: "harbor.scanner.trivy:store".to_owned(),
                jobs: None,
                pool: None,
            }),
            server: TrivyServer {
                token_service_certificate_authority_refs: self.public_certificate().into_iter().collect(),
                tls: self.tls(Component::Trivy),
                ..TrivyServer::default()
            },
            storage: TrivyVolumes {
                cache: volume(trivy.storage.cache_persistent_volume.as_ref()),
                reports: volume(trivy.storage.reports_persistent_volume.as_ref()),
            },
            update: Some(TrivyUpdate {
                github_token_ref: trivy
                    .github_token_ref
                    .clone()
                    .or_else(|| self.github_token().map(|_| self.names.with("trivy-github"))),
                skip: trivy.skip_update,
                db_repository: trivy.db_repository.clone(),
                java_db_repository: trivy.java_db_repository.clone(),
            }),
        };
        Trivy { metadata: self.metadata(), spec, status: None }
    }

    /// Returns the Secret with the operator's GitHub token, used if the spec names none.
    pub(crate) fn github_token(&self) -> Option<Secret> {
        let none = self.common().trivy.as_ref()?.github_token_ref.is_none();
        let token = self.settings.github_token.clone().filter(|_| none)?;
        let data = BTreeMap::from([("github-token".to_owned(), ByteString(token.into_bytes()))]);
        Some(Secret {
            metadata: metadata(&self.names, self.names.with("trivy-github")),
            data: Some(data),
            type_: Some("goharbor.io/github".to_owned()),
            ..Secret::default()
        })
    }
}

/// Returns the volume of a claim, or an empty directory without a size limit, as upstream does: the
/// vulnerability databases take about 1.5 GB and grow. Upstream ignored the `prefix` of the claim.
fn volume(claim: Option<&Claim>) -> Volume {
    let volume_source = match claim {
        Some(claim) => Embedded::claim(&claim.source()),
        None => Embedded::unlimited_empty_dir(),
    };
    Volume { volume_source, prefix: None }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::api::Harbor;
    use crate::harbor::blueprint::samples::{full, harbor, wired};

    /// Upstream's operator, archived, is the reference: what it wrote for the same Harbor, in our own values.
    #[test]
    fn users_d1_trivy_has_the_settings_that_upstream_gave_it() {
        let empty = || json!({"volumeSource": {"emptyDir": {}}});
        let server = || {
            json!({"debugMode": false, "ignoreUnfixed": false, "insecure": false, "idleTimeout": "60s",
                "readTimeout": "15s", "writeTimeout": "15s"})
        };
        let with = |mut base: Value, field: &str, value: Value| {
            base[field] = value;
            base
        };
        let claims = json!({
            "cachePersistentVolume": {"claimName": "scan-db", "readOnly": false, "prefix": "ignored"},
            "reportsPersistentVolume": {"claimName": "scan-reports"},
        });
        let claimed = json!({
            "cache": {"volumeSource": {"persistentVolumeClaim": {"claimName": "scan-db", "readOnly": false}}},
            "reports": {"volumeSource": {"persistentVolumeClaim": {"claimName": "scan-reports"}}},
        });
        let trivy = |storage: Value| json!({"storage": storage});
        let nowhere = || json!({"cache": empty(), "reports": empty()});
        let update = || json!({"skip": false});
        // Name, Harbor's trivy, Harbor's expose.core.tls, and the expected storage, server and update.
        let cases = [
            ("without claims", trivy(json!({})), Value::Null, nowhere(), server(), update()),
            ("with claims", trivy(claims), Value::Null, claimed, server(), update()),
            (
                "with a certificate for users",
                trivy(json!({})),
                json!({"certificateRef": "for-users"}),
                nowhere(),
                with(server(), "tokenServiceCertificateAuthorityRefs", json!(["for-users"])),
                update(),
            ),
            (
                "with a token and without updates",
                with(with(trivy(json!({})), "githubTokenRef", json!("gh")), "skipUpdate", json!(true)),
                Value::Null,
                nowhere(),
                server(),
                json!({"githubTokenRef": "gh", "skip": true}),
            ),
        ];
        for (name, trivy, tls, storage, server, update) in cases {
            let mut harbor = serde_json::to_value(harbor("2.6.2", false)).unwrap();
            harbor["spec"]["trivy"] = trivy;
            harbor["spec"]["expose"]["core"]["tls"] = tls;
            harbor["spec"]["redis"] =
                json!({"host": "cache.example.com", "port": 6380, "passwordRef": "cache"});
            let harbor: Harbor = serde_json::from_value(harbor).unwrap();
            let found = wired(&harbor, |wiring| serde_json::to_value(wiring.trivy().spec).unwrap());
            let redis = json!({
                "host": "cache.example.com", "port": 6380, "passwordRef": "cache", "database": 5,
                "namespace": "harbor.scanner.trivy:store",
            });
            let expected = json!({"storage": storage, "server": server, "update": update, "redis": redis});
            for (field, expected) in expected.as_object().unwrap() {
                assert_eq!(&found[field], expected, "{name}: {field}");
            }
            let all = json!(["UNKNOWN", "LOW", "MEDIUM", "HIGH", "CRITICAL"]);
            assert_eq!((&found["severities"], &found["timeout"]), (&all, &json!("5m0s")), "{name}");
            assert_eq!(found["vulnerabilityTypes"], json!(["os", "library"]), "{name}");
        }
    }

    #[test]
    fn users_d1_a_trivy_without_claims_has_empty_directories_without_a_size_limit() {
        let mut harbor = full("2.15.2", false);
        let common = &mut harbor.spec.common;
        (common.chartmuseum, common.notary, common.expose.notary) = (None, None, None);
        let storage = |harbor: &Harbor| {
            wired(harbor, |wiring| serde_json::to_value(wiring.trivy().spec.storage).unwrap())
        };
        let empty = json!({"volumeSource": {"emptyDir": {}}});
        assert_eq!(storage(&harbor), json!({"cache": empty, "reports": empty}));
        let trivy = harbor.spec.common.trivy.as_mut().unwrap();
        trivy.storage =
            serde_json::from_value(json!({"cachePersistentVolume": {"claimName": "db"}})).unwrap();
        let claim = json!({"volumeSource": {"persistentVolumeClaim": {"claimName": "db"}}});
        assert_eq!(storage(&harbor), json!({"cache": claim, "reports": empty}));
    }
}
