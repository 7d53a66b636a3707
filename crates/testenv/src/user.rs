//! Users with exactly the rights given to them.

use http::HeaderValue;
use http::header::USER_AGENT;
use k8s_openapi::api::rbac::v1::PolicyRule;
use kube::Client;

use crate::error::{Error, Result};

/// The rights of a [`TestUser`].
///
/// ```
/// use windlass_testenv::{Rules, rule};
///
/// let rules = Rules::default()
///     .in_namespace(rule("", &["configmaps"], &["get", "list", "watch"]))
///     .cluster_wide(rule("apiextensions.k8s.io", &["customresourcedefinitions"], &["get"]));
/// # let _ = rules;
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rules {
    pub(crate) namespaced: Vec<PolicyRule>,
    pub(crate) cluster: Vec<PolicyRule>,
    pub(crate) everything: bool,
}

impl Rules {
    /// All rights everywhere, for tests that are not about rights.
    pub fn everything() -> Self {
        Self { everything: true, ..Self::default() }
    }

    /// Adds a rule for the test's namespace (a Role).
    #[must_use]
    pub fn in_namespace(mut self, rule: PolicyRule) -> Self {
        self.namespaced.push(rule);
        self
    }

    /// Adds a rule for the whole cluster (a ClusterRole).
    #[must_use]
    pub fn cluster_wide(mut self, rule: PolicyRule) -> Self {
        self.cluster.push(rule);
        self
    }

    /// The rules, each with the namespace to ask about.
    pub(crate) fn samples(&self, namespace: &str) -> Vec<(PolicyRule, Option<String>)> {
        let everything = self.everything.then(|| rule("*", &["*"], &["*"]));
        let cluster = self.cluster.iter().cloned().chain(everything).map(|rule| (rule, None));
        let namespaced = self.namespaced.iter().map(|rule| (rule.clone(), Some(namespace.to_owned())));
        cluster.chain(namespaced).collect()
    }
}

/// A policy rule for one API group (`""` is the core group).
pub fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> PolicyRule {
    let list = |items: &[&str]| items.iter().map(|item| (*item).to_owned()).collect::<Vec<_>>();
    PolicyRule {
        api_groups: Some(vec![group.to_owned()]),
        resources: Some(list(resources)),
        verbs: list(verbs),
        ..PolicyRule::default()
    }
}

/// A user with exactly the rights given to it.
#[derive(Clone)]
pub struct TestUser {
    name: String,
    token: String,
    server: kube::Config,
}

impl std::fmt::Debug for TestUser {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TestUser").field("name", &self.name).finish_non_exhaustive()
    }
}

impl TestUser {
    pub(crate) fn new(name: String, token: String, server: kube::Config) -> Self {
        Self { name, token, server }
    }

    /// The user's name, as the audit log has it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A client of this user.
    pub fn client(&self) -> Result<Client> {
        client(self.config())
    }

    /// A client of this user whose calls go through a proxy at `url`.
    pub fn client_through(&self, url: &str) -> Result<Client> {
        client(self.config_through(url)?)
    }

    /// The configuration of a client of this user.
    pub fn config(&self) -> kube::Config {
        let mut config = self.server.clone();
        let ca = config.root_cert.take();
        let mut fresh = kube::Config::new(config.cluster_url);
        fresh.root_cert = ca;
        fresh.auth_info.token = Some(self.token.clone().into());
        fresh.headers.push((USER_AGENT, HeaderValue::from_static("windlass-testenv-user")));
        fresh
    }

    /// The configuration of a client of this user through a proxy at `url`.
    pub fn config_through(&self, url: &str) -> Result<kube::Config> {
        let mut config = self.config();
        config.cluster_url = url.parse().map_err(|error: http::uri::InvalidUri| Error::Api {
            action: format!("reading the proxy's address {url}"),
            message: error.to_string(),
        })?;
        Ok(config)
    }

    /// A kubeconfig of this user, for a program under test.
    pub fn kubeconfig(&self) -> Result<String> {
        self.kubeconfig_through(&self.server.cluster_url.to_string())
    }

    /// A kubeconfig of this user, for a program under test whose calls go through a proxy or relay at `url`.
    pub fn kubeconfig_through(&self, url: &str) -> Result<String> {
        use std::fmt::Write as _;
        let mut bundle = String::new();
        for der in self.server.root_cert.iter().flatten() {
            let _ =
                write!(bundle, "-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", base64(der));
        }
        let text = serde_json::json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "user",
            "clusters": [{"name": "c", "cluster": {
                "server": url,
                "certificate-authority-data": base64(bundle.as_bytes()),
            }}],
            "users": [{"name": "u", "user": {"token": self.token}}],
            "contexts": [{"name": "user", "context": {"cluster": "c", "user": "u"}}],
        });
        Ok(text.to_string())
    }
}

fn client(config: kube::Config) -> Result<Client> {
    Client::try_from(config).map_err(Error::api("making a client"))
}

/// Standard base64, as PEM and kubeconfigs have it.
fn base64(bytes: &[u8]) -> String {
    // `ByteString` is how Kubernetes writes bytes into JSON: a base64 string.
    match serde_json::to_value(k8s_openapi::ByteString(bytes.to_vec())) {
        Ok(serde_json::Value::String(text)) => text,
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_does_not_print_its_token() {
        let server = kube::Config::new(http::Uri::from_static("https://127.0.0.1:1"));
        let user = TestUser { name: "u".to_owned(), token: "very-secret".to_owned(), server };
        assert!(!format!("{user:?}").contains("very-secret"));
        assert!(user.kubeconfig().unwrap().contains("very-secret"));
    }

    #[test]
    fn a_kubeconfig_for_a_process_points_at_the_proxy() {
        let server = kube::Config::new(http::Uri::from_static("https://127.0.0.1:1"));
        let user = TestUser::new("u".to_owned(), "token".to_owned(), server);
        let through = user.kubeconfig_through("https://127.0.0.1:2").unwrap();
        let read = kube::config::Kubeconfig::from_yaml(&through).unwrap();
        let cluster = read.clusters[0].cluster.as_ref().unwrap();
        assert_eq!(cluster.server.as_deref(), Some("https://127.0.0.1:2"));
    }
}
