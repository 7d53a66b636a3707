//! What the Notary server and signer are told.

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

/// The port of the signer.
const SIGNER_PORT: i64 = 7899;

impl Wiring<'_> {
    fn notary(&self) -> HarborNotary {
        self.common().notary.clone().unwrap_or_default()
    }

    fn notary_log(&self) -> NotaryLogging {
        NotaryLogging { level: self.common().log_level.notary() }
    }

    /// The Secret with which the server signs itself in at the signer.
    pub fn notary_server_certificate(&self) -> String {
        self.names.with("notaryserver-authentication")
    }

    /// The Secret with which the signer serves.
    pub fn notary_signer_certificate(&self) -> String {
        self.names.with("notarysigner-authentication")
    }

    /// The Notary server.
    pub fn notary_server(&self) -> NotaryServer {
        let (common, notary) = (self.common(), self.notary());
        let given = notary.server.as_ref().map(|server| &server.component);
        let realm = format!("{}/service/token", common.external_url.trim_end_matches('/'));
        let spec = NotaryServerSpec {
            component: self.component(given, Component::NotaryServer),
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

    /// The Notary signer.
    pub fn notary_signer(&self) -> NotarySigner {
        let notary = self.notary();
        let given = notary.signer.as_ref().map(|signer| &signer.component);
        let spec = NotarySignerSpec {
            component: self.component(given, Component::NotarySigner),
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
