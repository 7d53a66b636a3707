//! Only the API server can read etcd on this machine.
#![allow(clippy::unwrap_used, clippy::panic)] // a test fails by panicking

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use windlass_testenv::{TestEnv, or_not_run};

#[tokio::test]
async fn seam_m11_etcd_answers_only_clients_with_a_certificate_of_its_own() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let facts = env.facts("an etcd of its own")?;
    let address = facts.etcd.strip_prefix("https://").context("etcd does not speak TLS")?;
    let connect = || TcpStream::connect(address);
    let (store, cluster) = (facts.pki.join("etcd"), &facts.pki);
    let tls =
        |own: Option<(&Path, &str)>| -> Result<TlsConnector> { Ok(TlsConnector::from(config(&store, own)?)) };
    let name = ServerName::try_from("127.0.0.1")?;

    let plain = ask(connect().await?).await;
    assert!(!is_version(&plain), "in clear: {plain:?}");
    let anonymous = ask_over(tls(None)?.connect(name.clone(), connect().await?).await).await;
    assert!(!is_version(&anonymous), "without a certificate: {anonymous:?}");
    // The most powerful certificate of the cluster is none of etcd's.
    let admin = tls(Some((cluster, "admin")))?.connect(name.clone(), connect().await?).await;
    let admin = ask_over(admin).await;
    assert!(!is_version(&admin), "with the administrator's certificate: {admin:?}");

    let own = ask_over(tls(Some((&store, "client")))?.connect(name, connect().await?).await).await;
    assert!(is_version(&own), "with the API server's certificate: {own:?}");
    Ok(())
}

/// A TLS client that trusts etcd's authority, with a certificate from a directory if there is one.
fn config(store: &Path, own: Option<(&Path, &str)>) -> Result<Arc<ClientConfig>> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(store.join("ca.crt"))? {
        roots.add(certificate?)?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots);
    Ok(Arc::new(match own {
        None => builder.with_no_client_auth(),
        Some((directory, name)) => {
            let chain = CertificateDer::pem_file_iter(directory.join(format!("{name}.crt")))?;
            let chain = chain.collect::<Result<Vec<_>, _>>()?;
            let key = PrivateKeyDer::from_pem_file(directory.join(format!("{name}.key")))?;
            builder.with_client_auth_cert(chain, key)?
        }
    }))
}

async fn ask_over<S: AsyncRead + AsyncWrite + Unpin>(stream: std::io::Result<S>) -> Result<String, String> {
    match stream {
        Ok(stream) => ask(stream).await,
        Err(error) => Err(error.to_string()),
    }
}

/// The answer to a request for etcd's version, or why there is none.
async fn ask(mut stream: impl AsyncRead + AsyncWrite + Unpin) -> Result<String, String> {
    let mut answer = Vec::new();
    let asked = async {
        stream.write_all(b"GET /version HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n").await?;
        stream.read_to_end(&mut answer).await
    };
    let ended = asked.await;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    match ended {
        Err(error) if answer.is_empty() => Err(error.to_string()),
        _ => Ok(answer),
    }
}

fn is_version(answer: &Result<String, String>) -> bool {
    answer.as_ref().is_ok_and(|answer| answer.contains("etcdserver"))
}
