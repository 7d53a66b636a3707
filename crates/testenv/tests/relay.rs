//! The relay in front of a real API server.
#![allow(clippy::unwrap_used, clippy::panic)] // a test fails by panicking

use std::sync::Arc;

use anyhow::Result;
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ListParams, PostParams, WatchEvent, WatchParams};
use kube::{Api, ResourceExt as _};
use rustls::pki_types::{CertificateDer, ServerName, pem::PemObject as _};
use rustls::{ClientConfig, RootCertStore};
use serde_json::json;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use windlass_testenv::{Rules, TestEnv, or_not_run};

fn config_map(name: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}})).unwrap()
}

#[tokio::test]
async fn seam_h1_the_api_server_chooses_http_2_through_the_relay() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let relay = env.relay().await?;
    let mut roots = RootCertStore::empty();
    let ca = env.facts("its certificate authority")?.pki.join("ca.crt");
    for certificate in CertificateDer::pem_file_iter(ca)? {
        roots.add(certificate?)?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let socket = TcpStream::connect(relay.address()).await?;
    let stream = TlsConnector::from(Arc::new(config))
        .connect(ServerName::try_from(relay.address().ip().to_string())?, socket)
        .await?;
    // The server's own certificate was verified, and its own choice of the protocol came through.
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    Ok(())
}

#[tokio::test]
async fn seam_h1_a_frozen_watch_leaves_calls_on_other_connections_alone() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let namespace = env.namespace("relay").await?;
    let user = namespace.client_for("me", &Rules::everything()).await?;
    let relay = env.relay().await?;
    // kube's own client speaks HTTP/1.1: the watch has a connection to itself.
    let maps: Api<ConfigMap> = Api::namespaced(user.client_through(&relay.url())?, namespace.name());
    let version = maps.list(&ListParams::default()).await?.metadata.resource_version.unwrap();
    let others = relay.connections().len();
    let mut events = maps.watch(&WatchParams::default(), &version).await?.boxed();
    maps.create(&PostParams::default(), &config_map("before")).await?;
    let seen = next(&mut events).await?;
    assert_eq!(seen, "before");

    let watch = relay.connections()[others - 1].clone();
    let (open, received) = (relay.open_connections().len(), watch.received());
    assert!(open >= 2, "{:?}", relay.connections());
    watch.freeze();
    for name in ["a", "b", "c"] {
        maps.create(&PostParams::default(), &config_map(name)).await?;
    }
    assert_eq!(watch.received(), received, "nothing came through the frozen connection");
    watch.thaw();
    for name in ["a", "b", "c"] {
        assert_eq!(next(&mut events).await?, name);
    }
    Ok(())
}

/// The name in the next event about one of the test's own objects.
async fn next(
    events: &mut (impl futures::Stream<Item = Result<WatchEvent<ConfigMap>, kube::Error>> + Unpin),
) -> Result<String> {
    loop {
        match events.try_next().await? {
            Some(WatchEvent::Added(map)) if map.name_any() == "kube-root-ca.crt" => {}
            Some(WatchEvent::Added(map)) => return Ok(map.name_any()),
            other => panic!("{other:?}"),
        }
    }
}
