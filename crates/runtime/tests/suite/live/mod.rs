//! Helpers of tests on the real control plane.
// Shared by several test files, each of which uses some of it; a test fails by panicking.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::expect_used)]

use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};
use windlass_runtime::cache::{Cache, Full, Reader, Selection, Shape, WatchTiming};
use windlass_runtime::client::{Client, ClientOptions};
use windlass_runtime::key::ObjectKey;
use windlass_testenv::proxy::{FaultProxy, Match};
use windlass_testenv::{Rules, TestEnv, TestNamespace, TestUser, eventually};

/// A namespace, a fault proxy, and a client whose calls pass through it.
pub struct Live {
    pub env: TestEnv,
    pub namespace: TestNamespace,
    pub proxy: FaultProxy,
    pub user: TestUser,
    pub client: Client,
    /// A client that does not use the proxy.
    pub direct: Client,
}

impl Live {
    pub async fn new(env: &TestEnv, hint: &str) -> Result<Self> {
        let namespace = env.namespace(hint).await?;
        let user = namespace.client_for("cached", &Rules::everything()).await?;
        let proxy = env.fault_proxy().await?;
        let client = Client::new(user.config_through(&proxy.url())?, ClientOptions::default())?;
        let direct = Client::new(user.config(), ClientOptions::default())?;
        Ok(Self { env: env.clone(), namespace, proxy, user, client, direct })
    }

    pub fn key(&self, name: &str) -> ObjectKey {
        ObjectKey::namespaced(self.namespace.name(), name)
    }

    pub fn here(&self) -> Selection {
        Selection::all().in_namespace(self.namespace.name())
    }

    /// Matches this test's watches of ConfigMaps.
    pub fn watches(&self) -> Match {
        Match::watches().resource("configmaps").namespace(self.namespace.name())
    }

    /// Applies a ConfigMap without the proxy and the caches.
    pub async fn put(&self, name: &str, value: &str) -> Result<()> {
        let apply = windlass_runtime::client::Apply::by("elsewhere").force();
        self.direct.objects::<ConfigMap>().apply(&self.key(name), &config_map(name, value), &apply).await?;
        Ok(())
    }

    /// Deletes a ConfigMap without the proxy and the caches.
    pub async fn remove(&self, name: &str) -> Result<()> {
        let any = windlass_runtime::client::Delete::any();
        self.direct.objects::<ConfigMap>().delete(&self.key(name), &any).await?;
        Ok(())
    }

    /// Waits until the reader equals the server, version by version.
    pub async fn equals_server<S: Shape>(&self, reader: &Reader<S>) -> Result<usize> {
        let held = eventually("the cache to equal the server", || async {
            let server =
                self.direct.objects::<ConfigMap>().list(&self.here()).await.map_err(|e| e.to_string())?;
            let mut server: Vec<(String, String, String)> = server
                .into_iter()
                .map(|object| {
                    let meta = object.metadata;
                    (meta.name.unwrap(), meta.uid.unwrap(), meta.resource_version.unwrap())
                })
                .collect();
            server.sort();
            let held: Vec<(String, String, String)> =
                reader.list().iter().map(|object| identity(&**object)).collect();
            if held == server { Ok(held.len()) } else { Err(difference(&held, &server)) }
        });
        Ok(held.await?)
    }
}

fn identity<S: Shape>(object: &S) -> (String, String, String) {
    let meta = object.meta();
    (meta.name().to_owned(), meta.uid.to_string(), meta.resource_version.to_string())
}

fn difference(held: &[(String, String, String)], server: &[(String, String, String)]) -> String {
    let only = |a: &[(String, String, String)], b: &[(String, String, String)]| {
        a.iter().filter(|item| !b.contains(item)).take(3).cloned().collect::<Vec<_>>()
    };
    format!("only in the cache: {:?}; only in the server: {:?}", only(held, server), only(server, held))
}

pub fn config_map(name: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"value": value}})
}

/// Returns short delays for tests. Lists are streamed: that has more ways to fail.
pub fn quick() -> WatchTiming {
    WatchTiming {
        stream_all: true,
        backoff: (Duration::from_millis(20), Duration::from_millis(500)),
        slow_backoff: (Duration::from_millis(50), Duration::from_millis(500)),
        ..WatchTiming::default()
    }
}

pub type Configs = Reader<Full<ConfigMap>>;

pub fn value_of(configs: &Configs, key: &ObjectKey) -> Option<String> {
    Some(configs.get(key)?.data.as_ref()?.get("value")?.clone())
}

/// Waits until the reader satisfies the condition.
pub async fn until<S: Shape>(
    reader: &Reader<S>,
    what: &str,
    holds: impl Fn(&Reader<S>) -> bool,
) -> Result<()> {
    let look = || async { if holds(reader) { Ok(()) } else { Err(format!("{} objects", reader.len())) } };
    Ok(eventually(what, look).await?)
}

/// Returns a synced cache of the namespace's ConfigMaps.
pub async fn synced(live: &Live, timing: WatchTiming) -> (Cache, Configs) {
    let cache = Cache::with_timing(&live.client, timing);
    let configs = cache.reader(&live.here());
    cache.start();
    configs.synced().await;
    (cache, configs)
}
