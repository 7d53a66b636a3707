//! A registry that runs on what we render.

use std::fs;
use std::path::Path;

use harbor_operator::config::registry::{CONFIG_KEY, HTPASSWD_PATH, SSL_DIR, STORAGE_DIR};
use harbor_operator::config::{Confidential, EnvValue, Rendered};

use super::packages::Packages;
use super::process::Server;
use super::tls::Tls;

/// A running registry.
#[derive(Debug)]
pub(crate) struct RegistryServer {
    pub(crate) server: Server,
    pub(crate) port: u16,
}

impl RegistryServer {
    /// Starts the registry with its rendered file and environment. Only where things are differs from a pod:
    /// addresses and paths are overridden the way the registry offers, by environment, so that the file is
    /// used as it was rendered.
    pub(crate) fn start(dir: &Path, rendered: &Rendered, htpasswd: &Confidential, tls: Option<&Tls>) -> Self {
        let file = dir.join(CONFIG_KEY);
        let text = match rendered.config.get(CONFIG_KEY) {
            Some(text) => text.as_str(),
            None => rendered.secret[CONFIG_KEY].expose(),
        };
        fs::write(&file, text).unwrap();
        let passwords = dir.join("htpasswd");
        fs::write(&passwords, htpasswd.expose()).unwrap();
        let mut command = Packages::get().command("docker-registry");
        command.arg("serve").arg(&file);
        for env in &rendered.env {
            match &env.value {
                EnvValue::Literal(value) => command.env(&env.name, value),
                EnvValue::Secret(key) => command.env(&env.name, rendered.secret[&key.key].expose()),
            };
        }
        command.env("REGISTRY_HTTP_ADDR", "127.0.0.1:0").env("REGISTRY_LOG_LEVEL", "info");
        if text.contains("debug:") {
            command.env("REGISTRY_HTTP_DEBUG_ADDR", "127.0.0.1:0");
        }
        if text.contains(HTPASSWD_PATH) {
            command.env("REGISTRY_AUTH_HTPASSWD_PATH", &passwords);
        }
        if text.contains(STORAGE_DIR) {
            command.env("REGISTRY_STORAGE_FILESYSTEM_ROOTDIRECTORY", dir.join("storage"));
        }
        if text.contains(SSL_DIR) {
            let tls = tls.expect("a certificate for a registry with TLS");
            command
                .env("REGISTRY_HTTP_TLS_CERTIFICATE", &tls.certificate)
                .env("REGISTRY_HTTP_TLS_KEY", &tls.key);
        }
        let (server, line) = Server::start(&mut command, |line| line.contains("listening on"))
            .unwrap_or_else(|log| panic!("the registry does not start: {log}\n{text}"));
        let port = line
            .split("listening on 127.0.0.1:")
            .nth(1)
            .and_then(|rest| rest.split(|character: char| !character.is_ascii_digit()).next())
            .and_then(|port| port.parse().ok())
            .unwrap_or_else(|| panic!("no port in {line}"));
        Self { server, port }
    }
}
