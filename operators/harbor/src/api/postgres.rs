//! PostgreSQL servers and connections to them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::choice::choice;
use super::pattern;

choice! {
    /// TLS mode of a PostgreSQL connection (`sslmode` of libpq).
    SslMode {
        Disable = "disable",
        Allow = "allow",
        Prefer = "prefer",
        Require = "require",
        VerifyCa = "verify-ca",
        VerifyFull = "verify-full",
    }
}

/// Address of a PostgreSQL server.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PostgresHost {
    /// Host name of the PostgreSQL server.
    #[schemars(length(min = 1))]
    pub host: String,
    /// Port of the PostgreSQL server. Default: 5432.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub port: Option<i32>,
}

impl PostgresHost {
    /// Returns the port, with the default applied.
    pub fn port(&self) -> i32 {
        self.port.unwrap_or(5432)
    }
}

/// Connection to one PostgreSQL database.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PostgresConnection {
    /// PostgreSQL servers; at least one is needed. Core and the exporter use the first, Notary uses all of
    /// them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1))]
    pub hosts: Vec<PostgresHost>,
    /// User name for PostgreSQL. If unset, Core connects as `postgres`; Notary and the exporter are given no
    /// user name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub username: Option<String>,
    /// Name of the Secret with the PostgreSQL password, in key `postgres-password`. Core and the exporter
    /// require it. If unset, Notary connects without a password.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = pattern::NAME))]
    pub password_ref: Option<String>,
    /// Name of the Secret with the certificate authority of the PostgreSQL server, in key `ca.crt`, for the
    /// modes `verify-ca` and `verify-full`. If unset, the authorities of the image are trusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = pattern::NAME))]
    pub certificate_ref: Option<String>,
    /// Name of the database. Default: `registry` for Core and the exporter, `notaryserver` and `notarysigner`
    /// for Notary.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub database: Option<String>,
    /// Connection parameters. Only `sslmode` has an effect; if it is unset, the connection does not use TLS.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, String>,
}

/// PostgreSQL connection of Core, also used by the exporter.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CoreDatabase {
    /// Servers, credentials and name of the database.
    #[serde(flatten)]
    pub connection: PostgresConnection,
    /// Name of the Secret with the key that encrypts passwords in the database, in key `secret`, 16
    /// characters. If it is lost, these passwords are lost too.
    #[schemars(regex(pattern = pattern::NAME))]
    pub encryption_key_ref: String,
    /// Maximum number of idle database connections per pod (`POSTGRESQL_MAX_IDLE_CONNS` of Harbor). Default:
    /// 50.
    #[serde(default = "idle_connections")]
    #[schemars(range(min = 0))]
    pub max_idle_connections: i32,
    /// Maximum number of open database connections per pod; 0 means no limit (`POSTGRESQL_MAX_OPEN_CONNS` of
    /// Harbor). Default: 1000.
    #[serde(default = "open_connections")]
    #[schemars(range(min = 0))]
    pub max_open_connections: i32,
}

pub(super) fn idle_connections() -> i32 {
    50
}

pub(super) fn open_connections() -> i32 {
    1000
}

/// PostgreSQL server with all databases of a Harbor.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HarborDatabase {
    /// PostgreSQL servers, at least one. Core and the exporter use the first, Notary uses all of them.
    #[schemars(length(min = 1))]
    pub hosts: Vec<PostgresHost>,
    /// User name for PostgreSQL, used for all databases of the Harbor. If unset, Core connects as `postgres`;
    /// Notary and the exporter are given no user name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub username: Option<String>,
    /// Name of the Secret with the PostgreSQL password, in key `postgres-password`. Core and the exporter
    /// require it. If unset, Notary connects without a password.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = pattern::NAME))]
    pub password_ref: Option<String>,
    /// Prefix of the database names: `<prefix>core`, `<prefix>notaryserver` and `<prefix>notarysigner`. They
    /// must exist. If unset, there is no prefix.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// TLS mode of the connections (`sslmode` of libpq). If unset, connections do not use TLS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ssl_mode: Option<SslMode>,
    /// Name of the Secret with the certificate authority of the PostgreSQL server, in key `ca.crt`, for the
    /// modes `verify-ca` and `verify-full`. If unset, the authorities of the images are trusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = pattern::NAME))]
    pub certificate_ref: Option<String>,
}

/// Databases of a Harbor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Database {
    /// Database of Harbor Core.
    Core,
    /// Database of the Notary server.
    NotaryServer,
    /// Database of the Notary signer.
    NotarySigner,
}

impl Database {
    const fn name(self) -> &'static str {
        match self {
            Self::Core => "core",
            Self::NotaryServer => "notaryserver",
            Self::NotarySigner => "notarysigner",
        }
    }
}

impl HarborDatabase {
    /// Returns the connection to one of the databases. Notary's driver does not support `allow`, so `prefer`,
    /// the closest mode, is used for it.
    pub fn connection(&self, database: Database) -> PostgresConnection {
        let mode = match (self.ssl_mode, database) {
            (Some(SslMode::Allow), Database::NotaryServer | Database::NotarySigner) => Some(SslMode::Prefer),
            (mode, _) => mode,
        };
        PostgresConnection {
            hosts: self.hosts.clone(),
            username: self.username.clone(),
            password_ref: self.password_ref.clone(),
            certificate_ref: self.certificate_ref.clone(),
            database: Some(format!("{}{}", self.prefix.as_deref().unwrap_or_default(), database.name())),
            parameters: mode.map(|mode| ("sslmode".to_owned(), mode.to_string())).into_iter().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn databases_are_named_by_prefix_and_component() {
        let database = HarborDatabase {
            hosts: vec![PostgresHost { host: "db".into(), port: None }],
            prefix: Some("team-".into()),
            ssl_mode: Some(SslMode::Allow),
            ..HarborDatabase::default()
        };
        let core = database.connection(Database::Core);
        assert_eq!((core.database.as_deref(), &*core.parameters["sslmode"]), (Some("team-core"), "allow"));
        let signer = database.connection(Database::NotarySigner);
        assert_eq!(
            (signer.database.as_deref(), &*signer.parameters["sslmode"]),
            (Some("team-notarysigner"), "prefer")
        );
        assert_eq!(core.hosts[0].port(), 5432);
    }
}
