//! Where PostgreSQL is.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::choice::choice;
use super::pattern;

choice! {
    /// How a connection is secured.
    SslMode {
        Disable = "disable",
        Allow = "allow",
        Prefer = "prefer",
        Require = "require",
        VerifyCa = "verify-ca",
        VerifyFull = "verify-full",
    }
}

/// A PostgreSQL server.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PostgresHost {
    /// Its host name.
    #[schemars(length(min = 1))]
    pub host: String,
    /// Its port; 5432 if nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub port: Option<i32>,
}

impl PostgresHost {
    /// The port that it listens on.
    pub fn port(&self) -> i32 {
        self.port.unwrap_or(5432)
    }
}

/// One database of PostgreSQL.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PostgresConnection {
    /// The servers, of which Harbor's own components use the first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1))]
    pub hosts: Vec<PostgresHost>,
    /// The user.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub username: Option<String>,
    /// The Secret with the password, under postgres-password.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = pattern::NAME))]
    pub password_ref: Option<String>,
    /// The database.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub database: Option<String>,
    /// Parameters of the connection, such as sslmode.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, String>,
}

/// The database of Core, which the exporter reads too.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CoreDatabase {
    /// Where it is.
    #[serde(flatten)]
    pub connection: PostgresConnection,
    /// The Secret with the key of what is encrypted in it, under secret.
    #[schemars(regex(pattern = pattern::NAME))]
    pub encryption_key_ref: String,
    /// How many connections are kept when idle.
    #[serde(default = "idle_connections")]
    #[schemars(range(min = 0))]
    pub max_idle_connections: i32,
    /// How many connections there may be; 0 is no limit.
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

/// The PostgreSQL of a Harbor, with all its databases.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HarborDatabase {
    /// The servers.
    #[schemars(length(min = 1))]
    pub hosts: Vec<PostgresHost>,
    /// The user.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub username: Option<String>,
    /// The Secret with the password, under postgres-password.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = pattern::NAME))]
    pub password_ref: Option<String>,
    /// Put before the names of the databases.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// How connections are secured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ssl_mode: Option<SslMode>,
}

/// Which of Harbor's databases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Database {
    /// Core's.
    Core,
    /// The Notary server's.
    NotaryServer,
    /// The Notary signer's.
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
    /// The connection to one of its databases. Notary's driver does not know `allow`, and `prefer` is the next to it.
    pub fn connection(&self, database: Database) -> PostgresConnection {
        let mode = match (self.ssl_mode, database) {
            (Some(SslMode::Allow), Database::NotaryServer | Database::NotarySigner) => Some(SslMode::Prefer),
            (mode, _) => mode,
        };
        PostgresConnection {
            hosts: self.hosts.clone(),
            username: self.username.clone(),
            password_ref: self.password_ref.clone(),
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
