//! NotaryServer and NotarySigner, up to Harbor 2.8: a JSON file each, and the URL of the database from a
//! Secret.

use serde_json::{Value, json};

use super::confidential::Confidential;
use super::database::{Database, SslMode};
use super::env::Environment;
use super::rendered::{Rendered, Vault};

/// Key of NotaryServer's file in its ConfigMap.
pub(crate) const SERVER_CONFIG_KEY: &str = "server.json";
/// Mount path of NotaryServer's ConfigMap.
pub(crate) const SERVER_CONFIG_DIR: &str = "/etc/notary-server";
/// Mount path of NotaryServer's certificate.
pub(crate) const SERVER_SSL_DIR: &str = "/etc/notary-server/certificates";
/// Mount path of NotaryServer's client certificate for the signer.
pub(crate) const SERVER_TRUST_DIR: &str = "/etc/notary-server/trust-certificates";
/// Mount path of the token service's certificate.
pub(crate) const SERVER_AUTH_DIR: &str = "/etc/notary-server/auth-certificates";
/// Key of NotarySigner's file in its ConfigMap.
pub(crate) const SIGNER_CONFIG_KEY: &str = "signer.json";
/// Mount path of NotarySigner's ConfigMap.
pub(crate) const SIGNER_CONFIG_DIR: &str = "/etc/notary-signer";
/// Mount path of NotarySigner's certificate.
pub(crate) const SIGNER_SSL_DIR: &str = "/etc/notary-signer/certificates";
/// Mount path of the certificate authority of the database.
pub(crate) const DATABASE_SSL_DIR: &str = "/etc/notary-database";
/// Prefix of the environment variables with the encryption keys of NotarySigner.
pub(crate) const SIGNER_ALIAS_PREFIX: &str = "NOTARY_SIGNER_";

/// The settings of NotaryServer.
#[derive(Debug, Clone)]
pub(crate) struct NotaryServer {
    /// Serves with TLS.
    pub tls: bool,
    /// `debug`, `info`, `warning`, `error`, `fatal` or `panic`.
    pub log_level: String,
    /// The PostgreSQL database.
    pub(crate) storage: NotaryStorage,
    /// The signer. Without one, the server keeps keys in memory and loses them.
    pub(crate) signer: Option<Signer>,
    /// The token authentication; `None` lets everybody in.
    pub(crate) auth: Option<TokenAuth>,
}

/// The settings of NotarySigner.
#[derive(Debug, Clone)]
pub(crate) struct NotarySigner {
    /// `debug`, `info`, `warning`, `error`, `fatal` or `panic`.
    pub log_level: String,
    /// The PostgreSQL database.
    pub(crate) storage: NotaryStorage,
}

/// The database of Notary.
#[derive(Debug, Clone)]
pub(crate) struct NotaryStorage {
    /// The PostgreSQL database.
    pub database: Database,
    /// The password of the PostgreSQL user.
    pub password: Option<Confidential>,
    /// True if the certificate authority of the database is mounted at [`DATABASE_SSL_DIR`].
    pub authority: bool,
    /// Migrates the tables at start.
    pub migrate: bool,
}

/// The address of NotarySigner.
#[derive(Debug, Clone)]
pub(crate) struct Signer {
    /// The host name.
    pub host: String,
    /// The port of NotarySigner.
    pub port: u16,
    /// `ecdsa`, `rsa` or `ed25519`.
    pub key_algorithm: String,
    /// True if a client certificate for the signer is mounted at [`SERVER_TRUST_DIR`].
    pub certificate: bool,
}

/// Settings of token authentication.
#[derive(Debug, Clone)]
pub(crate) struct TokenAuth {
    /// The URL of the token service.
    pub realm: String,
    /// The service that tokens are issued for.
    pub service: String,
    /// The issuer of tokens.
    pub issuer: String,
    /// Derives the realm from the host name of the request (`autoredirect` of Distribution).
    pub autoredirect: bool,
}

/// Renders NotaryServer. `secret` is the name of the Secret with [`Rendered::secret`].
pub(crate) fn render_server(server: &NotaryServer, secret: &str) -> Rendered {
    let mut listen = json!({ "http_addr": ":4443" });
    if server.tls {
        listen["tls_cert_file"] = json!(format!("{SERVER_SSL_DIR}/tls.crt"));
        listen["tls_key_file"] = json!(format!("{SERVER_SSL_DIR}/tls.key"));
    }
    let trust = match &server.signer {
        None => json!({ "type": "local" }),
        Some(signer) => {
            let mut trust = json!({
                "type": "remote",
                "hostname": signer.host,
                "port": signer.port.to_string(),
                "key_algorithm": signer.key_algorithm,
            });
            if signer.certificate {
                trust["tls_ca_file"] = json!(format!("{SERVER_TRUST_DIR}/ca.crt"));
                trust["tls_client_cert"] = json!(format!("{SERVER_TRUST_DIR}/tls.crt"));
                trust["tls_client_key"] = json!(format!("{SERVER_TRUST_DIR}/tls.key"));
            }
            trust
        }
    };
    let mut file = json!({
        "server": listen,
        "trust_service": trust,
        "logging": { "level": server.log_level },
        "storage": { "backend": "postgres" },
        "caching": caching(),
    });
    if let Some(auth) = &server.auth {
        file["auth"] = json!({
            "type": "token",
            "options": {
                "realm": auth.realm,
                "service": auth.service,
                "issuer": auth.issuer,
                "rootcertbundle": format!("{SERVER_AUTH_DIR}/tls.crt"),
                "autoredirect": auth.autoredirect.to_string(),
            },
        });
    }
    rendered(SERVER_CONFIG_KEY, &file, &server.storage, "server", secret)
}

/// Renders NotarySigner. `secret` is the name of the Secret with [`Rendered::secret`]. The encryption keys
/// are added from the Secret of aliases, each with [`SIGNER_ALIAS_PREFIX`].
pub(crate) fn render_signer(signer: &NotarySigner, secret: &str) -> Rendered {
    let file = json!({
        "server": {
            "grpc_addr": ":7899",
            "tls_cert_file": format!("{SIGNER_SSL_DIR}/tls.crt"),
            "tls_key_file": format!("{SIGNER_SSL_DIR}/tls.key"),
            "client_ca_file": format!("{SIGNER_SSL_DIR}/ca.crt"),
        },
        "logging": { "level": signer.log_level },
        "storage": { "backend": "postgres", "default_alias": "default" },
        "caching": caching(),
    });
    rendered(SIGNER_CONFIG_KEY, &file, &signer.storage, "signer", secret)
}

/// Returns the command of the container for `/bin/sh -c`. It reads the URL with the password from the
/// environment, so that the password is neither in the pod spec nor needs shell quoting.
pub(crate) fn server_command(migrate: bool) -> String {
    command(migrate, &format!("notary-server -config {SERVER_CONFIG_DIR}/{SERVER_CONFIG_KEY} -logf logfmt"))
}

/// Returns the command of NotarySigner's container.
pub(crate) fn signer_command(migrate: bool) -> String {
    command(migrate, &format!("notary-signer -config {SIGNER_CONFIG_DIR}/{SIGNER_CONFIG_KEY} -logf logfmt"))
}

fn command(migrate: bool, program: &str) -> String {
    let migrations =
        if migrate { "migrate-patch -database=\"${DB_URL}\" && /migrations/migrate.sh && " } else { "" };
    format!("{migrations}exec {program}")
}

fn caching() -> Value {
    json!({ "max_age": { "current_metadata": 300, "consistent_metadata": 31_536_000 } })
}

fn rendered(key: &str, file: &Value, storage: &NotaryStorage, part: &str, secret: &str) -> Rendered {
    let mut vault = Vault::new(secret);
    let mut environment = Environment::default();
    let database =
        Database { ssl_mode: known_to_notary(storage.database.ssl_mode), ..storage.database.clone() };
    let mut url = database.url(storage.password.as_ref());
    if storage.authority {
        url = Confidential::new(format!("{}&sslrootcert={DATABASE_SSL_DIR}/ca.crt", url.expose()));
    }
    let name = format!("NOTARY_{}_STORAGE_DB_URL", part.to_uppercase());
    environment.secret(&name, &vault.put("DB_URL", url.clone()));
    if storage.migrate {
        environment
            .secret("DB_URL", &vault.put("DB_URL", url))
            .set("SERVICE_NAME", format!("notary_{part}"))
            .set("MIGRATIONS_PATH", format!("/migrations/{part}/postgresql"));
    }
    Rendered {
        config: [(key.to_owned(), format!("{file:#}\n"))].into(),
        secret: vault.finish(),
        env: environment.finish(),
    }
}

/// Notary's driver does not support `allow` and `prefer`: both accept connections without TLS.
fn known_to_notary(mode: SslMode) -> SslMode {
    match mode {
        SslMode::Allow | SslMode::Prefer => SslMode::Disable,
        other => other,
    }
}
