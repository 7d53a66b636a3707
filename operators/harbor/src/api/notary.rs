//! Notary: a server that stores signatures of images, and a signer that holds the signing keys.

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
    /// Key algorithm of certificates and signing keys.
    KeyAlgorithm { Ecdsa = "ecdsa", Rsa = "rsa", Ed25519 = "ed25519" }
}

/// Desired state of the Notary server, which stores the signatures of images up to Harbor 2.8.
#[derive(Clone, Debug, PartialEq, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "goharbor.io",
    version = "v1beta1",
    kind = "NotaryServer",
    plural = "notaryservers",
    namespaced,
    category = "goharbor",
    doc = "NotaryServer stores the signatures of images (content trust), up to Harbor 2.8.",
    derive = "PartialEq",
    status = "ComponentStatus"
)]
#[serde(rename_all = "camelCase")]
pub struct NotaryServerSpec {
    /// Pod settings of the Notary server.
    #[serde(flatten)]
    pub component: ComponentSpec,
    /// Migrate the database schema when the server starts. Default: true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub migration_enabled: Option<bool>,
    /// Authentication of clients (`auth` of Notary). If unset, the server accepts every client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authentication: Option<NotaryAuthentication>,
    /// Log settings of the Notary server. If unset, the level is `info`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logging: Option<NotaryLogging>,
    /// IP families to listen on. The values are validated, but have no effect on the Notary server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// Database of the Notary server (`storage` of Notary). The server is not deployed without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage: Option<NotaryStorage>,
    /// Internal TLS certificate of the Notary server. If unset, it serves plain HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,
    /// Signing service of the server (`trust_service` of Notary).
    pub trust_service: TrustService,
}

/// Authentication of the Notary server's clients.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NotaryAuthentication {
    /// Authentication with bearer tokens (`auth.type` `token` of Notary).
    pub token: NotaryToken,
}

/// Authentication with bearer tokens.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NotaryToken {
    /// URL of the token endpoint, sent as the realm in the `WWW-Authenticate` challenge.
    pub realm: String,
    /// Service name sent in the `WWW-Authenticate` challenge; tokens must be issued for it.
    pub service: String,
    /// Issuer that a token must name in its `iss` claim.
    pub issuer: String,
    /// Name of the Secret with the certificate that verifies token signatures, in key `tls.crt`
    /// (`rootcertbundle` of Notary).
    #[schemars(regex(pattern = pattern::NAME))]
    pub certificate_ref: String,
    /// Redirect unauthenticated clients to the token endpoint, using the host name of the request
    /// (`autoredirect` of Notary). Default: true.
    #[serde(default = "truth")]
    pub autoredirect: bool,
}

/// Log settings of Notary.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NotaryLogging {
    /// Lowest level of log entries that Notary writes: `debug`, `info`, `warning`, `error`, `fatal` or
    /// `panic` (`logging.level` of Notary). Default: `info`.
    #[serde(default)]
    pub level: NotaryLogLevel,
}

/// Database of the Notary server.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NotaryStorage {
    /// PostgreSQL connection of the Notary server (`storage.db_url` of Notary).
    pub postgres: PostgresConnection,
}

/// Signing service of the Notary server.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TrustService {
    /// Notary signer that holds the keys. If unset, the server keeps the keys in memory (`trust_service.type`
    /// `local` of Notary) and loses them when it restarts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remote: Option<RemoteTrustService>,
}

/// Notary signer as called by the server.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RemoteTrustService {
    /// Host name of the Notary signer (`trust_service.hostname` of Notary).
    pub host: String,
    /// Port of the Notary signer (`trust_service.port` of Notary). Default: 443.
    #[serde(default = "https")]
    #[schemars(range(min = 1))]
    pub port: i64,
    /// Algorithm of new signing keys: `ecdsa`, `rsa` or `ed25519` (`trust_service.key_algorithm` of Notary).
    /// Default: `ecdsa`.
    #[serde(default = "ecdsa")]
    pub key_algorithm: KeyAlgorithm,
    /// Name of the Secret with the client certificate for the signer, in keys `tls.crt`, `tls.key` and
    /// `ca.crt`. If unset, no client certificate is sent.
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

/// Desired state of the Notary signer, which holds the keys that sign images up to Harbor 2.8.
#[derive(Clone, Debug, PartialEq, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "goharbor.io",
    version = "v1beta1",
    kind = "NotarySigner",
    plural = "notarysigners",
    namespaced,
    category = "goharbor",
    doc = "NotarySigner holds the keys that sign images (content trust), up to Harbor 2.8.",
    derive = "PartialEq",
    status = "ComponentStatus"
)]
#[serde(rename_all = "camelCase")]
pub struct NotarySignerSpec {
    /// Pod settings of the Notary signer.
    #[serde(flatten)]
    pub component: ComponentSpec,
    /// Migrate the database schema when the signer starts. Default: true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub migration_enabled: Option<bool>,
    /// Serving certificate of the signer. The misspelt field name is kept for compatibility.
    #[serde(rename = "authentatication")]
    pub authentication: NotarySignerAuthentication,
    /// Log settings of the Notary signer. If unset, the level is `info`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logging: Option<NotaryLogging>,
    /// IP families to listen on. The values are validated, but have no effect on the Notary signer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// Database and key encryption of the Notary signer (`storage` of Notary).
    pub storage: NotarySignerStorage,
}

/// Serving certificate of the Notary signer.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NotarySignerAuthentication {
    /// Name of the Secret with the certificate, in keys `tls.crt`, `tls.key` and `ca.crt`; clients must
    /// present a certificate signed by `ca.crt`.
    #[schemars(regex(pattern = pattern::NAME))]
    pub certificate_ref: String,
}

/// Database and key encryption of the Notary signer.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NotarySignerStorage {
    /// PostgreSQL connection of the Notary signer (`storage.db_url` of Notary).
    pub postgres: PostgresConnection,
    /// Name of the Secret with the passphrases that encrypt the signing keys, each under its alias
    /// (`NOTARY_SIGNER_<alias>` of Notary). The alias in use is `DEFAULT`.
    #[schemars(regex(pattern = pattern::NAME))]
    pub aliases_ref: String,
}

impl NotaryServerSpec {
    /// Returns the log level, with the default applied.
    pub(crate) fn log_level(&self) -> NotaryLogLevel {
        self.logging.as_ref().map_or(NotaryLogLevel::Info, |log| log.level)
    }
}

impl NotarySignerSpec {
    /// Returns the log level, with the default applied.
    pub(crate) fn log_level(&self) -> NotaryLogLevel {
        self.logging.as_ref().map_or(NotaryLogLevel::Info, |log| log.level)
    }
}
