//! The way out: proxies between Harbor and the rest of the world.

use super::env::Environment;

/// The proxies that a component goes through to reach other hosts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outbound {
    /// For `http://`.
    pub http: Option<String>,
    /// For `https://`.
    pub https: Option<String>,
    /// Hosts that are reached without. Names of Harbor's own Services belong here.
    pub without: Vec<String>,
}

impl Outbound {
    pub(crate) fn environment(&self, environment: &mut Environment) {
        if self.http.is_none() && self.https.is_none() {
            return;
        }
        environment.set_some("HTTP_PROXY", self.http.as_ref());
        environment.set_some("HTTPS_PROXY", self.https.as_ref());
        if !self.without.is_empty() {
            environment.set("NO_PROXY", self.without.join(","));
        }
    }
}
