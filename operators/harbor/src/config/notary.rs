//! Notary's server and signer, to Harbor 2.8: a JSON file each, and the URL of the database from a Secret.

use serde_json::{Value, json};

use super::confidential::Confidential;
use super::database::{Database, SslMode};
use super::env::Environment;
use super::rendered::{Rendered, Vault};

/// The server's file in its ConfigMap.
pub const SERVER_CONFIG_KEY: &str = "server.json";
/// Where the server's ConfigMap is mounted.
pub const SERVER_CONFIG_DIR: &str = "/etc/notary-server";
/// Where the server's certificate is mounted.
pub const SERVER_SSL_DIR: &str = "/etc/notary-server/certificates";
/// Where the certificate is mounted that the server shows the signer.
pub const SERVER_TRUST_DIR: &str = "/etc/notary-server/trust-certificates";
/// Where the certificate of the token service is mounted.
pub const SERVER_AUTH_DIR: &str = "/etc/notary-server/auth-certificates";
/// The signer's file in its ConfigMap.
pub const SIGNER_CONFIG_KEY: &str = "signer.json";
/// Where the signer's ConfigMap is mounted.
pub const SIGNER_CONFIG_DIR: &str = "/etc/notary-signer";
/// Where the signer's certificate is mounted.
pub const SIGNER_SSL_DIR: &str = "/etc/notary-signer/certificates";
/// What the names of the signer's keys to encrypt with begin with, in its environment.
pub const SIGNER_ALIAS_PREFIX: &str = "NOTARY_SIGNER_";

/// What the server is to be told.
#[derive(Debug, Clone)]
pub struct NotaryServer {
    /// Whether it speaks TLS.
    pub tls: bool,
    /// `debug`, `info`, `warning`, `error`, `fatal` or `panic`.
    pub log_level: String,
    /// PostgreSQL.
    pub storage: NotaryStorage,
    /// The signer; without, the server keeps keys itself, and loses them.
    pub signer: Option<Signer>,
    /// Who may come in; anybody, if none.
    pub auth: Option<TokenAuth>,
}

/// What the signer is to be told.
#[derive(Debug, Clone)]
pub struct NotarySigner {
    /// `debug`, `info`, `warning`, `error`, `fatal` or `panic`.
    pub log_level: String,
    /// PostgreSQL.
    pub storage: NotaryStorage,
}

/// Notary's database.
#[derive(Debug, Clone)]
pub struct NotaryStorage {
    /// PostgreSQL.
    pub database: Database,
    /// The password of PostgreSQL's user.
    pub password: Option<Confidential>,
    /// Whether the tables are brought up to date at start.
    pub migrate: bool,
}

/// Where the signer is.
#[derive(Debug, Clone)]
pub struct Signer {
    /// Its host.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// `ecdsa`, `rsa` or `ed25519`.
    pub key_algorithm: String,
    /// Whether a certificate to show it is mounted at [`SERVER_TRUST_DIR`].
    pub certificate: bool,
}

/// Tokens that let in.
#[derive(Debug, Clone)]
pub struct TokenAuth {
    /// Where they are to be had.
    pub realm: String,
    /// What they are for.
    pub service: String,
    /// Who makes them.
    pub issuer: String,
    /// Whether the realm is below the host that was asked.
    pub autoredirect: bool,
}

/// Renders the server. `secret` names the Secret that [`Rendered::secret`] will be in.
pub fn render_server(server: &NotaryServer, secret: &str) -> Rendered {
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

/// Renders the signer. `secret` names the Secret that [`Rendered::secret`] will be in. The keys to encrypt with come on top, from the Secret of
/// aliases, each under [`SIGNER_ALIAS_PREFIX`].
pub fn render_signer(signer: &NotarySigner, secret: &str) -> Rendered {
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

/// What a container runs, to be given to `/bin/sh -c`. The URL with the password is taken from the environment there, so that it stands neither in
/// the pod's spec nor has to be fit for a shell.
pub fn server_command(migrate: bool) -> String {
    command(migrate, &format!("notary-server -config {SERVER_CONFIG_DIR}/{SERVER_CONFIG_KEY} -logf logfmt"))
}

/// The same for the signer.
pub fn signer_command(migrate: bool) -> String {
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
    let url = database.url(storage.password.as_ref());
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

/// Notary's driver knows no halves: what `allow` and `prefer` have in common is that they work without TLS.
fn known_to_notary(mode: SslMode) -> SslMode {
    match mode {
        SslMode::Allow | SslMode::Prefer => SslMode::Disable,
        other => other,
    }
}
