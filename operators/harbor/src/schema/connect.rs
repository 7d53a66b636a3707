//! Reads the schema version of a PostgreSQL database.

use std::time::Duration;

use tokio_postgres::config::SslMode as Tls;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Config, SimpleQueryMessage};
use windlass_runtime::controller::Error;

use crate::config::database::{Database, SslMode};
use crate::config::{Address, Confidential};

use super::connector::Connector;
use super::reading::{Reading, Schema};
use super::tls;

/// Timeout of a whole read: a reconcile waits for it.
const PATIENCE: Duration = Duration::from_secs(5);
/// The table belongs to golang-migrate, which keeps one row in it. A statement without parameters works
/// through every connection pooler.
const QUESTION: &str = "select version, dirty from schema_migrations limit 1";

/// The reason why a database is not read if the setting forbids it.
const FORBIDDEN: &str = "the setting schema-check-disabled of the operator forbids to connect to databases";

/// A database with its credentials.
#[derive(Clone, Debug)]
pub struct Target {
    /// The address and name of the database.
    pub database: Database,
    /// The password of the user.
    pub password: Confidential,
    /// Additional certificate authorities, as PEM.
    pub authorities: Vec<Confidential>,
    /// The namespace of the clients, in which host names without a dot are resolved.
    pub namespace: String,
    /// True if the setting `schema-check-disabled` forbids connections to databases.
    pub forbidden: bool,
}

impl Target {
    /// Returns the name of the database for messages.
    pub fn name(&self) -> String {
        format!("{} on {}", self.database.name, Address::list(&self.database.addresses))
    }

    /// Reads the schema version.
    pub async fn read(&self) -> Reading {
        if self.forbidden {
            return Reading::Unread(format!("{}: {FORBIDDEN}", self.name()));
        }
        match tokio::time::timeout(PATIENCE, self.ask()).await {
            Ok(Ok(reading)) => reading,
            Ok(Err(error)) => Reading::Unread(format!("{}: {error}", self.name())),
            Err(_) => Reading::Unread(format!("{}: no answer within {} s", self.name(), PATIENCE.as_secs())),
        }
    }

    async fn ask(&self) -> Result<Reading, Error> {
        let tls = Connector::new(tls::config(self.database.ssl_mode, &self.authorities)?);
        let (client, connection) = self.config().connect(tls).await?;
        let driver = tokio::spawn(connection);
        let answer = schema(&client).await;
        // The connection is closed when the client is dropped; the result of closing it does not matter.
        drop(client);
        let _ = driver.await;
        answer
    }

    fn config(&self) -> Config {
        let database = &self.database;
        let mut config = Config::new();
        config
            .dbname(&database.name)
            .password(self.password.expose())
            .application_name("harbor-operator")
            .connect_timeout(PATIENCE)
            .ssl_mode(match database.ssl_mode {
                SslMode::Disable => Tls::Disable,
                SslMode::Allow | SslMode::Prefer => Tls::Prefer,
                SslMode::Require | SslMode::VerifyCa | SslMode::VerifyFull => Tls::Require,
            });
        if let Some(user) = &database.username {
            config.user(user);
        }
        for Address { host, port } in &database.addresses {
            // In the operator's own namespace, a short name would mean another Service: the password of the
            // user's database would be sent to it.
            if host.contains(['.', ':']) {
                config.host(host).port(*port);
            } else {
                config.host(format!("{host}.{}.svc", self.namespace)).port(*port);
            }
        }
        config
    }
}

async fn schema(client: &Client) -> Result<Reading, Error> {
    let answer = match client.simple_query(QUESTION).await {
        Err(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => return Ok(Reading::Empty),
        answer => answer?,
    };
    let row = answer.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    });
    let Some(row) = row else { return Ok(Reading::Empty) };
    let (version, dirty) = (row.get("version").unwrap_or_default(), row.get("dirty").unwrap_or_default());
    let version = version.parse().map_err(|_| {
        Error::terminal(format!("its table schema_migrations has the invalid version {version:?}"))
    })?;
    Ok(Reading::At(Schema { version, dirty: dirty == "t" }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio_postgres::config::Host;

    fn target(hosts: &[&str]) -> Target {
        Target {
            database: Database {
                addresses: hosts.iter().map(|host| Address::new(*host, 5432)).collect(),
                username: Some("harbor".to_owned()),
                name: "registry".to_owned(),
                ssl_mode: SslMode::Disable,
            },
            password: "hunter2".into(),
            authorities: Vec::new(),
            namespace: "shop".to_owned(),
            forbidden: false,
        }
    }

    #[test]
    fn seam_low_a_short_host_name_is_resolved_in_the_users_namespace_only() {
        let config = target(&["db", "db.example.com", "10.0.0.1", "::1"]).config();
        let hosts: Vec<&str> = config
            .get_hosts()
            .iter()
            .map(|host| match host {
                Host::Tcp(name) => name.as_str(),
                Host::Unix(_) => "a socket",
            })
            .collect();
        assert_eq!(hosts, ["db.shop.svc", "db.example.com", "10.0.0.1", "::1"]);
        assert_eq!(config.get_ports().len(), hosts.len());
    }

    #[tokio::test]
    async fn seam_low_a_database_is_not_dialled_if_the_setting_forbids_it() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let mut target = target(&[]);
        target.database.addresses = vec![Address::new("127.0.0.1", listener.local_addr().unwrap().port())];
        target.forbidden = true;
        let reading = target.read().await;
        assert_eq!(reading, Reading::Unread(format!("{}: {FORBIDDEN}", target.name())));
        assert_eq!(reading.condition()["status"], "Unknown");
        let accepted = listener.accept().map_err(|error| error.kind());
        assert!(matches!(accepted, Err(std::io::ErrorKind::WouldBlock)), "{accepted:?}");
    }

    #[test]
    fn debug_output_and_errors_contain_no_password() {
        let target = target(&["db"]);
        assert!(!format!("{target:?} {}", target.name()).contains("hunter2"));
    }
}
