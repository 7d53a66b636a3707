//! Tests of the connections of a client: watches and calls share them, and continue when they break.
#![allow(clippy::unwrap_used, clippy::panic)] // a test fails by panicking

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result};
use futures::future::{join_all, try_join_all};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use windlass_runtime::cache::{Cache, Full, Reader, Selection, WatchTiming};
use windlass_runtime::client::{Apply, Client, ClientOptions};
use windlass_runtime::key::ObjectKey;
use windlass_testenv::{Rules, TestEnv, eventually, or_not_run};

/// A number of watches that exceeds the concurrent streams of one connection.
const WATCHES: usize = 150;

/// Passes bytes on to the server, and counts the connections. It does not decrypt: TLS goes from end to end.
struct Relay {
    address: SocketAddr,
    accepted: Arc<AtomicUsize>,
    cut: watch::Sender<()>,
}

impl Relay {
    async fn to(server: String) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let (accepted, cut) = (Arc::new(AtomicUsize::new(0)), watch::Sender::new(()));
        let (counted, cuts) = (Arc::clone(&accepted), cut.clone());
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::SeqCst);
                let (server, mut cut) = (server.clone(), cuts.subscribe());
                tokio::spawn(async move {
                    let mut server = TcpStream::connect(server).await?;
                    tokio::select! {
                        passed = tokio::io::copy_bidirectional(&mut client, &mut server) => passed.map(drop),
                        _ = cut.changed() => Ok(()),
                    }
                });
            }
        });
        Ok(Self { address, accepted, cut })
    }

    /// Returns the number of connections since the last call.
    fn accepted(&self) -> usize {
        self.accepted.swap(0, Ordering::SeqCst)
    }
}

#[tokio::test]
async fn watches_and_calls_share_connections_and_reconnect_together() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let namespace = env.namespace("connections").await?;
    let user = namespace.client_for("crowd", &Rules::everything()).await?;
    let server = user.config().cluster_url;
    let server = server.authority().context("the server has an address")?.to_string();
    let relay = Relay::to(server).await?;
    let config = user.config_through(&format!("https://{}", relay.address))?;
    let client = Client::new(config, ClientOptions::default())?;
    let timing =
        WatchTiming { backoff: (Duration::ZERO, Duration::from_millis(500)), ..WatchTiming::default() };
    let cache = Cache::with_timing(&client, timing);
    let key = |number: usize| ObjectKey::namespaced(namespace.name(), format!("c{number}"));
    let readers: Vec<Reader<Full<ConfigMap>>> = (0..WATCHES)
        .map(|number| {
            let one = format!("metadata.name=c{number}");
            Ok(cache.reader(&Selection::all().in_namespace(namespace.name()).fields(&one)?))
        })
        .collect::<Result<_>>()?;
    cache.start();
    join_all(readers.iter().map(Reader::synced)).await;
    // As many as are needed for so many streams, and no crowd of them in the beginning.
    let opened = relay.accepted();
    assert!((1..=3).contains(&opened), "{WATCHES} watches have {opened} connections");

    let apply = |client: Client, number: usize, value: usize| {
        let key = key(number);
        async move {
            let one = json!({
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": key.name()}, "data": {"value": value.to_string()},
            });
            client.objects::<ConfigMap>().apply(&key, &one, &Apply::by("crowd").force()).await
        }
    };
    // All at a time: none waits for a watch to end.
    try_join_all((0..WATCHES).map(|number| apply(client.clone(), number, 1))).await?;
    let opened = relay.accepted();
    assert!(opened <= 3, "{WATCHES} calls at a time opened {opened} connections");

    relay.cut.send_replace(());
    // Past the relay and past the cache: only a watch can tell.
    let direct = Client::new(user.config(), ClientOptions::default())?;
    for number in 0..WATCHES {
        apply(direct.clone(), number, 2).await?;
    }
    eventually("all watches to go on", || async {
        let behind = readers.iter().enumerate().filter(|(number, reader)| {
            let object = reader.get(&key(*number));
            let value = object.as_ref().and_then(|object| object.data.as_ref()?.get("value"));
            value.map(String::as_str) != Some("2")
        });
        match behind.count() {
            0 => Ok(()),
            behind => Err(format!("{behind} have not heard of the last change")),
        }
    })
    .await?;
    let opened = relay.accepted();
    assert!((1..=6).contains(&opened), "{opened} connections were opened for those that broke");
    Ok(())
}
