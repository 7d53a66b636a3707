//! Errors of the proxy itself.

use std::fmt;
use std::io;
use std::time::Duration;

/// Why a proxy did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProxyError {
    /// The address of the API server cannot be used.
    #[error("the proxy's upstream {url:?} is not usable: {reason}; expected https://host:port")]
    Upstream {
        /// The URL as it was passed in.
        url: String,
        /// The reason why it cannot be used.
        reason: String,
    },
    /// A PEM text does not hold what it should.
    #[error("the proxy cannot read {what}: {reason}")]
    Pem {
        /// The name of the option.
        what: &'static str,
        /// The reason why it cannot be used; never its content.
        reason: String,
    },
    /// Certificate and key do not make a TLS server, or the authority no TLS client.
    #[error("the proxy cannot set up TLS")]
    Tls(#[from] rustls::Error),
    /// No port on 127.0.0.1 could be had.
    #[error("the proxy cannot listen on 127.0.0.1")]
    Listen(#[source] io::Error),
}

/// An expected request or fault did not happen in time.
///
/// Says what was waited for and what went through the proxy instead.
#[derive(Clone, Debug)]
pub struct WaitError {
    pub(super) what: String,
    pub(super) patience: Duration,
    /// The last requests, one line each.
    pub(super) recent: Vec<String>,
}

impl fmt::Display for WaitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "waited {:?} in vain for {}", self.patience, self.what)?;
        if self.recent.is_empty() {
            return f.write_str("; no request has arrived at the proxy");
        }
        f.write_str("; the last requests were:")?;
        self.recent.iter().try_for_each(|line| write!(f, "\n  {line}"))
    }
}

impl std::error::Error for WaitError {}
