//! TLS with the CA of the API server as its file has it now.
//!
//! The CA of a cluster is rotated while Pods run: the kubelet writes the new one into their files. It is read
//! again whenever a connection is opened, so that the process need not be restarted.

use std::path::PathBuf;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::Uri;
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use kube::client::ConfigExt as _;
use parking_lot::Mutex;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use tokio::net::TcpStream;
use tower::{BoxError, Service};

/// The protocols that a connector offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocols {
    Http1,
    All,
}

/// Opens connections, and trusts the CA that the file contains at that time.
#[derive(Clone)]
pub(super) struct Trusting {
    shared: Arc<Shared>,
}

struct Shared {
    config: kube::Config,
    protocols: Protocols,
    tcp: HttpConnector,
    /// The file of the CA; `None` if the CA is part of the configuration.
    file: Option<PathBuf>,
    current: Mutex<Current>,
}

/// The connector in use, and the content of the file that it was built from.
struct Current {
    connector: HttpsConnector<HttpConnector>,
    content: Vec<u8>,
}

impl Trusting {
    pub(super) fn new(
        config: &kube::Config,
        protocols: Protocols,
        tcp: &HttpConnector,
        file: Option<PathBuf>,
    ) -> Result<Self, kube::Error> {
        let content = file.as_ref().and_then(|file| std::fs::read(file).ok()).unwrap_or_default();
        let connector = build(config, protocols, tcp.clone())?;
        let (config, tcp) = (config.clone(), tcp.clone());
        let current = Mutex::new(Current { connector, content });
        Ok(Self { shared: Arc::new(Shared { config, protocols, tcp, file, current }) })
    }
}

impl Shared {
    /// Returns a connector that trusts the present content of the file. A file that cannot be used changes
    /// nothing: it may be in the middle of a change.
    fn connector(&self) -> HttpsConnector<HttpConnector> {
        let mut current = self.current.lock();
        if let Some(file) = &self.file
            && let Ok(content) = std::fs::read(file)
            && content != current.content
        {
            match self.rebuilt(&content) {
                Some(connector) => {
                    tracing::info!(file = %file.display(), "CA of the API server has changed; new connections trust it");
                    *current = Current { connector, content };
                }
                None => {
                    tracing::warn!(file = %file.display(), "file of the API server's CA has no certificate; keeping the last CA");
                }
            }
        }
        current.connector.clone()
    }

    fn rebuilt(&self, content: &[u8]) -> Option<HttpsConnector<HttpConnector>> {
        let certificates = CertificateDer::pem_slice_iter(content).collect::<Result<Vec<_>, _>>().ok()?;
        let root_cert: Vec<_> = certificates.iter().map(|certificate| certificate.to_vec()).collect();
        if root_cert.is_empty() {
            return None;
        }
        let mut config = self.config.clone();
        config.root_cert = Some(root_cert);
        build(&config, self.protocols, self.tcp.clone()).ok()
    }
}

fn build(
    config: &kube::Config,
    protocols: Protocols,
    tcp: HttpConnector,
) -> Result<HttpsConnector<HttpConnector>, kube::Error> {
    let builder = HttpsConnectorBuilder::new().with_tls_config(config.rustls_client_config()?);
    let mut builder = builder.https_or_http();
    if let Some(name) = &config.tls_server_name {
        let name = name.clone().try_into().map_err(kube::client::RustlsTlsError::InvalidServerName);
        let name = name.map_err(kube::Error::RustlsTls)?;
        builder = builder.with_server_name_resolver(FixedServerNameResolver::new(name));
    }
    Ok(match protocols {
        Protocols::Http1 => builder.enable_http1().wrap_connector(tcp),
        Protocols::All => builder.enable_all_versions().wrap_connector(tcp),
    })
}

impl Service<Uri> for Trusting {
    type Response = MaybeHttpsStream<TokioIo<TcpStream>>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        // An HTTP connector is always ready.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        Box::pin(self.shared.connector().call(uri))
    }
}
