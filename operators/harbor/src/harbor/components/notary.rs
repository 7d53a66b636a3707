//! The NotaryServer and the NotarySigner of a Harbor.

use crate::api::harbor_components::HarborNotary;
use crate::api::notary::{
    KeyAlgorithm, NotaryAuthentication, NotaryLogging, NotaryServer, NotaryServerSpec, NotarySigner,
    NotarySignerAuthentication, NotarySignerSpec, NotarySignerStorage, NotaryStorage, NotaryToken,
    RemoteTrustService, TrustService,
};
use crate::api::postgres::Database;
use crate::catalogue::Component;

use super::Wiring;
use crate::harbor::credentials::Credential;

/// Port of the signer.
const SIGNER_PORT: i64 = 7899;

impl Wiring<'_> {
    fn notary(&self) -> HarborNotary {
        self.common().notary.clone().unwrap_or_default()
    }

    fn notary_log(&self) -> NotaryLogging {
        NotaryLogging { level: self.common().log_level.notary() }
    }

    /// Returns the name of the Secret with the server's client certificate for the signer.
    pub(crate) fn notary_server_certificate(&self) -> String {
        self.names.with("notaryserver-authentication")
    }

    /// Returns the name of the Secret with the signer's certificate.
    pub(crate) fn notary_signer_certificate(&self) -> String {
        self.names.with("notarysigner-authentication")
    }

    /// Returns the NotaryServer.
    pub(crate) fn notary_server(&self) -> NotaryServer {
        let (common, notary) = (self.common(), self.notary());
        let spec = notary.server.as_ref().map(|server| &server.component);
        let realm = format!("{}/service/token", common.external_url.trim_end_matches('/'));
        let spec = NotaryServerSpec {
            component: self.component(spec, Component::NotaryServer),
            migration_enabled: Some(notary.migration_enabled),
            authentication: Some(NotaryAuthentication {
                token: NotaryToken {
                    realm,
                    service: "harbor-notary".to_owned(),
                    issuer: "harbor-token-issuer".to_owned(),
                    certificate_ref: self.token_key(),
                    autoredirect: true,
                },
            }),
            logging: Some(self.notary_log()),
            network: common.network.clone(),
            storage: Some(NotaryStorage { postgres: self.database.connection(Database::NotaryServer) }),
            tls: self.tls(Component::NotaryServer),
            trust_service: TrustService {
                remote: Some(RemoteTrustService {
                    host: self.names.service(Component::NotarySigner),
                    port: SIGNER_PORT,
                    key_algorithm: KeyAlgorithm::Ecdsa,
                    certificate_ref: Some(self.notary_server_certificate()),
                }),
            },
        };
        NotaryServer { metadata: self.metadata_behind_ingress(), spec, status: None }
    }

    /// Returns the NotarySigner.
    pub(crate) fn notary_signer(&self) -> NotarySigner {
        let notary = self.notary();
        let spec = notary.signer.as_ref().map(|signer| &signer.component);
        let spec = NotarySignerSpec {
            component: self.component(spec, Component::NotarySigner),
            migration_enabled: Some(notary.migration_enabled),
            authentication: NotarySignerAuthentication { certificate_ref: self.notary_signer_certificate() },
            logging: Some(self.notary_log()),
            network: self.common().network.clone(),
            storage: NotarySignerStorage {
                postgres: self.database.connection(Database::NotarySigner),
                aliases_ref: self.credential(Credential::NotarySignerKey),
            },
        };
        NotarySigner { metadata: self.metadata(), spec, status: None }
    }
}
