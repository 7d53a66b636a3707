//! How Harbor's components reach PostgreSQL.

use std::fmt;

use crate::catalogue::{Feature, Release};

use super::address::{Address, percent_encoded};
use super::confidential::Confidential;
use super::env::{Environment, SecretKey};

/// How far TLS to PostgreSQL goes, in libpq's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SslMode {
    /// No TLS: what Harbor does if it is told nothing.
    #[default]
    Disable,
    /// TLS if the server insists.
    Allow,
    /// TLS if the server can.
    Prefer,
    /// TLS, whatever the certificate.
    Require,
    /// TLS with a certificate of a trusted authority.
    VerifyCa,
    /// The same, for the server's name.
    VerifyFull,
}

impl SslMode {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Disable, Self::Allow, Self::Prefer, Self::Require, Self::VerifyCa, Self::VerifyFull];

    /// The mode that a word stands for.
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.as_str() == word)
    }

    /// The word for it.
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

/// A database of a PostgreSQL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Database {
    /// The server; core and exporter use the first, Notary's URL holds all.
    pub addresses: Vec<Address>,
    /// The user.
    pub username: Option<String>,
    /// The database.
    pub name: String,
    /// TLS or not.
    pub ssl_mode: SslMode,
}

/// How many connections a component keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pool {
    /// Idle ones at most.
    pub max_idle: u32,
    /// All at most; 0 for no limit.
    pub max_open: u32,
}

/// Why core cannot be given a word for its connection to PostgreSQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UnusableWord {
    /// It has no characters.
    #[error("it is empty; Harbor needs a password, even where PostgreSQL asks for none")]
    Empty,
    /// It has a space, a line break or a control character.
    #[error(
        "it holds a space, a line break or a control character, and Harbor puts it unquoted into a list of words; choose one without"
    )]
    Blank,
    /// It has a backslash.
    #[error("it holds a backslash, which Harbor takes for an escape; choose one without")]
    Backslash,
    /// It begins with a quote.
    #[error(
        "it begins with a single quote, which Harbor takes for the beginning of a quoted word; choose one that does not"
    )]
    Quote,
}

/// Whether core, jobservice and exporter can use a password (or a user's or a database's name).
///
/// They write it unquoted into `host=… password=… dbname=…`, and core, when it migrates, also into a URL, so that quoting it for the one would
/// break the other. A line break at the end, which many a Secret made by hand has, is found here rather than in a log.
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
    /// The URL, in the form that Notary and its migrations read.
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

    /// The variables of core's connection (`prefix` is `POSTGRESQL`) or the exporter's (`HARBOR_DATABASE`).
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

/// How a component calls the parts of its connection.
#[derive(Debug)]
pub(crate) struct Words {
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
    fn words_that_core_would_cut_are_found() {
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
