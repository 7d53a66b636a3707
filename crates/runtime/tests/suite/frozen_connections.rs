//! A connection that dies without a packet to say so, while the API server is reachable by others: leader
//! election, cache and calls, on HTTP/2 as in production.

use crate::live;

use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::PostParams;
use live::{config_map, until};
use windlass_runtime::cache::{Cache, Full, Reader, Selection};
use windlass_runtime::client::{Apply, Client, ClientOptions};
use windlass_runtime::key::ObjectKey;
use windlass_runtime::leader::{Election, ElectionOptions, Standing};
use windlass_runtime::manager::Stop;
use windlass_testenv::{Rules, TestEnv, eventually, or_not_run, within};

const LEASE: &str = "frozen-connections";
/// The time after which a call has succeeded, whichever connection died.
const RECOVERY: Duration = Duration::from_secs(5);

#[tokio::test]
async fn seam_h1_watches_and_calls_share_a_connection_through_the_relay() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let namespace = env.namespace("multiplexed").await?;
    let user = namespace.client_for("me", &Rules::everything()).await?;
    let relay = env.relay().await?;
    let client = Client::new(user.config_through(&relay.url())?, ClientOptions::default())?;
    let cache = Cache::new(&client);
    // Eight watches: in HTTP/1.1 each of them would have a connection to itself.
    let mut readers: Vec<Reader<Full<ConfigMap>>> = Vec::new();
    for index in 0..8 {
        let selection = Selection::all().in_namespace(namespace.name()).labels(&format!("index={index}"))?;
        readers.push(cache.reader(&selection));
    }
    cache.start();
    for reader in &readers {
        reader.synced().await;
    }
    let key = ObjectKey::namespaced(namespace.name(), "a");
    client.objects::<ConfigMap>().apply(&key, &config_map("a", "1"), &Apply::by("test")).await?;
    assert!(relay.connections().len() < readers.len(), "{:?}", relay.connections());
    Ok(())
}

#[tokio::test]
async fn seam_h1_a_frozen_connection_costs_neither_the_lease_nor_a_call() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let namespace = env.namespace("frozen").await?;
    let user = namespace.client_for("me", &Rules::everything()).await?;
    let relay = env.relay().await?;
    let client = Client::new(user.config_through(&relay.url())?, ClientOptions::default())?;
    let here = Selection::all().in_namespace(namespace.name());
    let cache = Cache::new(&client);
    let configs: Reader<Full<ConfigMap>> = cache.reader(&here);
    cache.start();
    configs.synced().await;
    let election = Election::new(&client, ElectionOptions::new(LEASE).namespace(namespace.name()))?;
    let mut standing = election.standing();
    let (_stopper, stop) = Stop::pair();
    let leading = tokio::spawn(async move {
        let until = stop.clone();
        election.lead(&stop, || async move { until.requested().await }).await
    });
    standing.wait_for(|standing| *standing == Standing::Leading).await?;

    // This client does not pass the relay.
    let leases: Api<Lease> = Api::namespaced(env.client(), namespace.name());
    let others: Api<ConfigMap> = Api::namespaced(env.client(), namespace.name());
    let calls = client.objects::<ConfigMap>();
    for (round, connection) in relay.open_connections().into_iter().enumerate() {
        connection.freeze();
        let frozen = lease(&leases).await?;
        let name = format!("round-{round}");
        let key = ObjectKey::namespaced(namespace.name(), &*name);
        within(RECOVERY, format!("a call while {connection:?}"), || async {
            let applied = calls.apply(&key, &config_map(&name, "1"), &Apply::by("test").force()).await;
            applied.map(drop).map_err(|error| error.to_string())
        })
        .await?;
        let renewed = eventually(format!("a renewal while {connection:?}"), || async {
            let now = lease(&leases).await.map_err(|error| error.to_string())?;
            if now.renewed > frozen.renewed { Ok(now) } else { Err(format!("{now:?}")) }
        })
        .await?;
        assert_eq!((renewed.holder, renewed.transitions), (frozen.holder, frozen.transitions));
        // Written past the relay: the cache knows it from its watch only, and not from the client's own call.
        let written = format!("past-{round}");
        others.create(&PostParams::default(), &serde_json::from_value(config_map(&written, "1"))?).await?;
        let key = ObjectKey::namespaced(namespace.name(), &*written);
        until(&configs, "the watch to report another client's object", |configs| configs.get(&key).is_some())
            .await?;
        assert_eq!(*standing.borrow(), Standing::Leading, "while {connection:?}");
    }
    assert!(!leading.is_finished());
    leading.abort();
    Ok(())
}

#[derive(Debug)]
struct LeaseState {
    holder: Option<String>,
    transitions: Option<i32>,
    renewed: Option<String>,
}

async fn lease(leases: &Api<Lease>) -> Result<LeaseState> {
    let spec = leases.get(LEASE).await?.spec.unwrap_or_default();
    let renewed = spec.renew_time.map(|time| time.0.to_string());
    Ok(LeaseState { holder: spec.holder_identity, transitions: spec.lease_transitions, renewed })
}
