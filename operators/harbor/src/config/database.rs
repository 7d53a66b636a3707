//! Connections of Harbor's components to PostgreSQL.

use std::fmt;

use crate::catalogue::{Feature, Release};

use super::address::{Address, percent_encoded};
use super::confidential::Confidential;
use super::env::{Environment, SecretKey};

/// TLS mode of a connection to PostgreSQL, with libpq's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SslMode {
    /// No TLS: Harbor's default.
    #[default]
    Disable,
    /// TLS if the server requires it.
    Allow,
    /// TLS if the server supports it.
    Prefer,
    /// TLS without verification of the certificate.
    Require,
    /// TLS with a certificate of a trusted authority.
    VerifyCa,
    /// TLS with a certificate of a trusted authority for the host name.
    VerifyFull,
}

impl SslMode {
    /// All modes, in the order of their strictness.
    pub const ALL: [Self; 6] =
        [Self::Disable, Self::Allow, Self::Prefer, Self::Require, Self::VerifyCa, Self::VerifyFull];

    /// Parses a mode.
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.as_str() == word)
    }

    /// Returns libpq's name of the mode.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Disable => "disable",
            Self::Allow => "allow",
            Self::Prefer => "prefer",
            Self::Require => "require",
            Self::VerifyCa => "verify-ca",
            Self::VerifyFull => "verify-full",
        }
    }
}

impl fmt::Display for SslMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A PostgreSQL database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Database {
    /// The servers. Core and the exporter use the first one, Notary's URL contains all.
    pub addresses: Vec<Address>,
    /// The user name.
    pub username: Option<String>,
    /// The name of the database.
    pub name: String,
    /// The TLS mode.
    pub ssl_mode: SslMode,
}

/// Limits of a connection pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pool {
    /// Maximum number of idle connections.
    pub max_idle: u32,
    /// Maximum number of connections; 0 for no limit.
    pub max_open: u32,
}

/// Error: a word cannot be used in Core's connection string.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UnusableWord {
    /// The word is empty.
    #[error("it is empty; Harbor needs a password, even if PostgreSQL does not ask for one")]
    Empty,
    /// The word contains a space, a line break or a control character.
    #[error(
        "it contains a space, a line break or a control character, and Harbor writes it unquoted into a connection string; choose one without"
    )]
    Blank,
    /// The word contains a backslash.
    #[error("it contains a backslash, which Harbor reads as an escape; choose one without")]
    Backslash,
    /// The word begins with a single quote.
    #[error(
        "it begins with a single quote, which Harbor reads as the start of a quoted value; choose one that does not"
    )]
    Quote,
}

/// Checks that Core, JobService and the exporter can use a password, user name or database name.
///
/// They write it unquoted into `host=… password=… dbname=…`, and for migrations Core also writes it into a
/// URL, so quoting it for one would break the other. This finds, for example, the trailing line break of a
/// Secret that was created by hand.
pub fn check_word(word: &str) -> Result<(), UnusableWord> {
    if word.is_empty() {
        return Err(UnusableWord::Empty);
    }
    if word.chars().any(|character| character.is_whitespace() || character.is_control()) {
        return Err(UnusableWord::Blank);
    }
    if word.contains('\\') {
        return Err(UnusableWord::Backslash);
    }
    if word.starts_with('\'') {
        return Err(UnusableWord::Quote);
    }
    Ok(())
}

impl Database {
    /// Returns the URL in the form that Notary and its migrations read.
    pub fn url(&self, password: Option<&Confidential>) -> Confidential {
        let user = self.username.as_deref().map(percent_encoded).unwrap_or_default();
        let credentials = match password {
            Some(password) => format!("{user}:{}@", percent_encoded(password.expose())),
            None if !user.is_empty() => format!("{user}@"),
            None => String::new(),
        };
        Confidential::new(format!(
            "postgres://{credentials}{}/{}?sslmode={}",
            Address::list(&self.addresses),
            percent_encoded(&self.name),
            self.ssl_mode,
        ))
    }

    /// Returns the variables of Core's connection (`prefix` is `POSTGRESQL`) or the exporter's
    /// (`HARBOR_DATABASE`).
    pub(crate) fn environment(
        &self,
        environment: &mut Environment,
        release: &Release,
        words: &Words,
        password: &SecretKey,
        pool: Pool,
    ) {
        let mut set = |name: &str, value: &dyn fmt::Display| {
            environment.set(&format!("{}_{name}", words.prefix), value);
        };
        if let Some(Address { host, port }) = self.addresses.first() {
            set("HOST", host);
            set("PORT", port);
        }
        if let Some(username) = &self.username {
            set("USERNAME", username);
        }
        set(words.name, &self.name);
        set("SSLMODE", &self.ssl_mode);
        set("MAX_IDLE_CONNS", &pool.max_idle);
        set("MAX_OPEN_CONNS", &pool.max_open);
        if release.has(Feature::ConnectionLifetime) {
            set("CONN_MAX_LIFETIME", &"5m");
            set("CONN_MAX_IDLE_TIME", &"0");
        }
        environment.secret(&format!("{}_PASSWORD", words.prefix), password);
    }
}

/// A component's names for the parameters of its connection.
#[derive(Debug)]
pub struct Words {
    prefix: &'static str,
    name: &'static str,
}

pub(crate) const CORE: Words = Words { prefix: "POSTGRESQL", name: "DATABASE" };
pub(crate) const EXPORTER: Words = Words { prefix: "HARBOR_DATABASE", name: "DBNAME" };

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_holds_every_host_and_escapes_every_part() {
        let database = Database {
            addresses: vec![Address::new("a", 5432), Address::new("b", 5433)],
            username: Some("har@bor".to_owned()),
            name: "notary/server".to_owned(),
            ssl_mode: SslMode::VerifyFull,
        };
        assert_eq!(
            database.url(Some(&"p/w d?".into())).expose(),
            "postgres://har%40bor:p%2Fw%20d%3F@a:5432,b:5433/notary%2Fserver?sslmode=verify-full"
        );
        assert_eq!(
            database.url(None).expose(),
            "postgres://har%40bor@a:5432,b:5433/notary%2Fserver?sslmode=verify-full"
        );
    }

    #[test]
    fn every_mode_is_found_by_its_word() {
        for mode in SslMode::ALL {
            assert_eq!(SslMode::of(mode.as_str()), Some(mode));
        }
        assert_eq!(SslMode::of("verify"), None);
    }

    #[test]
    fn passwords_that_core_would_cut_are_refused() {
        for (word, result) in [
            ("a!\"#$%&'()*+,-./:;<=>?@[]^_`{|}~é", Ok(())),
            ("", Err(UnusableWord::Empty)),
            ("secret\n", Err(UnusableWord::Blank)),
            ("two words", Err(UnusableWord::Blank)),
            ("back\\slash", Err(UnusableWord::Backslash)),
            ("'quoted'", Err(UnusableWord::Quote)),
        ] {
            assert_eq!(check_word(word), result, "{word:?}");
        }
    }
}
