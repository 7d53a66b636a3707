//! What Trivy is told.

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
    /// Trivy.
    pub fn trivy(&self) -> Trivy {
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
            }),
        };
        Trivy { metadata: self.metadata(), spec, status: None }
    }

    /// The Secret with the operator's token of GitHub, where the user has none.
    pub fn github_token(&self) -> Option<Secret> {
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

/// A claim, or room in the pod. A directory in it has never been looked at.
fn volume(claim: Option<&Claim>) -> Volume {
    claim.map_or_else(Volume::default, |claim| Volume {
        volume_source: Embedded::claim(&claim.source()),
        prefix: None,
    })
}
