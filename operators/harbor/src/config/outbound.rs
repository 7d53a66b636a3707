//! Outbound HTTP proxies.

use super::env::Environment;

/// The HTTP proxies of a component for outbound requests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outbound {
    /// Proxy for `http://` URLs.
    pub http: Option<String>,
    /// Proxy for `https://` URLs.
    pub https: Option<String>,
    /// Hosts that are reached directly (`NO_PROXY`). Harbor's own Services belong here.
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
