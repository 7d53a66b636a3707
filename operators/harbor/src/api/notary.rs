//! Notary: a server that keeps signatures, and a signer that keeps keys.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::choice::choice;
use super::component::{ComponentSpec, Tls};
use super::driver::truth;
use super::log::NotaryLogLevel;
use super::network::Network;
use super::pattern;
use super::postgres::PostgresConnection;
use super::status::ComponentStatus;

choice! {
    /// How keys are made.
    KeyAlgorithm { Ecdsa = "ecdsa", Rsa = "rsa", Ed25519 = "ed25519" }
}

/// What the Notary server should be.
#[derive(Clone, Debug, PartialEq, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "goharbor.io",
    version = "v1beta1",
    kind = "NotaryServer",
    plural = "notaryservers",
    namespaced,
    category = "goharbor",
    doc = "NotaryServer keeps signatures of images.",
    derive = "PartialEq",
    status = "ComponentStatus"
)]
#[serde(rename_all = "camelCase")]
pub struct NotaryServerSpec {
    /// How its pods are run.
    #[serde(flatten)]
    pub component: ComponentSpec,
    /// Whether it brings its database up to date when it starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub migration_enabled: Option<bool>,
    /// Who may ask it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authentication: Option<NotaryAuthentication>,
    /// What it logs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logging: Option<NotaryLogging>,
    /// The addresses on which it listens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// Its database.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage: Option<NotaryStorage>,
    /// The certificate with which it serves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,
    /// Who signs for it.
    pub trust_service: TrustService,
}

/// Who may ask the Notary server.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NotaryAuthentication {
    /// Who has a token.
    pub token: NotaryToken,
}

/// Which tokens Notary takes.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NotaryToken {
    /// Where they are had.
    pub realm: String,
    /// What they are for.
    pub service: String,
    /// Who issues them.
    pub issuer: String,
    /// The Secret with the certificate of the key that signs them, under tls.crt.
    #[schemars(regex(pattern = pattern::NAME))]
    pub certificate_ref: String,
    /// Whether who has none is sent to where they are had, by the name that was asked for.
    #[serde(default = "truth")]
    pub autoredirect: bool,
}

/// What Notary logs.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NotaryLogging {
    /// From this level on.
    #[serde(default)]
    pub level: NotaryLogLevel,
}

/// The database of the Notary server.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NotaryStorage {
    /// Where it is.
    pub postgres: PostgresConnection,
}

/// Who signs.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TrustService {
    /// The signer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remote: Option<RemoteTrustService>,
}

/// The signer, as the server sees it.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RemoteTrustService {
    /// Its host name.
    pub host: String,
    /// Its port.
    #[serde(default = "https")]
    #[schemars(range(min = 1))]
    pub port: i64,
    /// How keys are made.
    #[serde(default = "ecdsa")]
    pub key_algorithm: KeyAlgorithm,
    /// The Secret with the certificate by which the signer knows the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = pattern::NAME))]
    pub certificate_ref: Option<String>,
}

fn https() -> i64 {
    443
}

fn ecdsa() -> KeyAlgorithm {
    KeyAlgorithm::Ecdsa
}

/// What the Notary signer should be.
#[derive(Clone, Debug, PartialEq, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "goharbor.io",
    version = "v1beta1",
    kind = "NotarySigner",
    plural = "notarysigners",
    namespaced,
    category = "goharbor",
    doc = "NotarySigner keeps the keys that sign.",
    derive = "PartialEq",
    status = "ComponentStatus"
)]
#[serde(rename_all = "camelCase")]
pub struct NotarySignerSpec {
    /// How its pods are run.
    #[serde(flatten)]
    pub component: ComponentSpec,
    /// Whether it brings its database up to date when it starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub migration_enabled: Option<bool>,
    /// The certificate with which it serves. The name is as it is.
    #[serde(rename = "authentatication")]
    pub authentication: NotarySignerAuthentication,
    /// What it logs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logging: Option<NotaryLogging>,
    /// The addresses on which it listens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// Its database.
    pub storage: NotarySignerStorage,
}

/// With what the signer serves.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NotarySignerAuthentication {
    /// The Secret with tls.crt, tls.key and ca.crt.
    #[schemars(regex(pattern = pattern::NAME))]
    pub certificate_ref: String,
}

/// The database of the signer.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NotarySignerStorage {
    /// Where it is.
    pub postgres: PostgresConnection,
    /// The Secret with the passwords that encrypt its keys, each under its alias.
    #[schemars(regex(pattern = pattern::NAME))]
    pub aliases_ref: String,
}

impl NotaryServerSpec {
    /// What it logs.
    pub fn log_level(&self) -> NotaryLogLevel {
        self.logging.as_ref().map_or(NotaryLogLevel::Info, |log| log.level)
    }
}

impl NotarySignerSpec {
    /// What it logs.
    pub fn log_level(&self) -> NotaryLogLevel {
        self.logging.as_ref().map_or(NotaryLogLevel::Info, |log| log.level)
    }
}
