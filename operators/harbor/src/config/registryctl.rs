//! RegistryController, which deletes blobs from the registry's storage.

use windlass_operator::yaml::{Map, Style};

use super::env::{Environment, SecretKey};
use super::registry;
use super::rendered::Rendered;
use super::telemetry::Trace;

/// The key of `config.yml` in the ConfigMap.
pub(crate) const CONFIG_KEY: &str = "config.yml";
/// Mount path of the ConfigMap.
pub(crate) const CONFIG_DIR: &str = "/etc/registryctl";
/// Mount path of the internal TLS certificate.
pub(crate) const SSL_DIR: &str = "/etc/registryctl/ssl";

/// The settings of RegistryController, in addition to those of its registry.
#[derive(Debug, Clone)]
pub(crate) struct RegistryController {
    /// Enables internal TLS between the components.
    pub tls: bool,
    /// `debug`, `info`, `warning`, `error` or `fatal`.
    pub log_level: String,
    /// The secret with which Core authenticates to JobService.
    pub(crate) core_secret: Option<SecretKey>,
    /// The secret with which callers authenticate.
    pub(crate) jobservice_secret: Option<SecretKey>,
    /// The receiver of traces; `None` without tracing.
    pub(crate) trace: Option<Trace>,
}

/// Renders RegistryController. Its container also needs the environment and the mounts of its registry,
/// because it opens the same storage: [`Rendered::env`] has only the additional variables.
pub(crate) fn render(controller: &RegistryController) -> Rendered {
    let (protocol, port) = if controller.tls { ("https", 8443_u16) } else { ("http", 8080) };
    let https = controller.tls.then(|| {
        Map::new().with("cert", format!("{SSL_DIR}/tls.crt")).with("key", format!("{SSL_DIR}/tls.key"))
    });
    let file = Map::new()
        .with("protocol", protocol)
        .with("port", port)
        .with_some("https_config", https)
        .with("log_level", &controller.log_level)
        .with("registry_config", format!("{}/{}", registry::CONFIG_DIR, registry::CONFIG_KEY));
    let mut environment = Environment::default();
    environment
        .secret_some("CORE_SECRET", controller.core_secret.as_ref())
        .secret_some("JOBSERVICE_SECRET", controller.jobservice_secret.as_ref());
    if controller.tls {
        environment
            .set("INTERNAL_TLS_ENABLED", true)
            .set("INTERNAL_TLS_CERT_PATH", format!("{SSL_DIR}/tls.crt"))
            .set("INTERNAL_TLS_KEY_PATH", format!("{SSL_DIR}/tls.key"))
            .set("INTERNAL_TLS_TRUST_CA_PATH", "/harbor_cust_cert/ctl-ca.crt");
    }
    if let Some(trace) = &controller.trace {
        trace.environment(&mut environment, "registryctl");
    }
    Rendered {
        config: [(CONFIG_KEY.to_owned(), file.document(Style::File))].into(),
        env: environment.finish(),
        ..Rendered::default()
    }
}
