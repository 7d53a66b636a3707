//! Requests of the harness itself, with all rights: raw requests, so that nothing is decoded that nobody
//! reads.

use anyhow::{Context as _, Result};
use futures::TryStreamExt as _;
use kube::Client;
use serde_json::Value;

use crate::widgets::{self, GROUP, WidgetKey};

/// The number of requests in flight when many are sent.
const AT_ONCE: usize = 16;
/// Objects per page of a list.
const PAGE: usize = 2000;

/// The harness's own hands.
#[derive(Clone)]
pub(crate) struct Admin {
    client: Client,
}

impl Admin {
    pub(crate) fn new(client: Client) -> Self {
        Self { client }
    }

    async fn send(&self, method: &str, path: &str, kind: &str, body: Vec<u8>) -> Result<String> {
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", kind)
            .body(body)
            .context("a request")?;
        self.client.request_text(request).await.with_context(|| format!("{method} {path}"))
    }

    pub(crate) async fn create(&self, path: &str, object: &Value) -> Result<()> {
        self.send("POST", path, "application/json", serde_json::to_vec(object)?).await.map(drop)
    }

    /// A JSON merge patch (RFC 7386).
    pub(crate) async fn merge(&self, path: &str, change: &Value) -> Result<()> {
        self.send("PATCH", path, "application/merge-patch+json", serde_json::to_vec(change)?).await.map(drop)
    }

    pub(crate) async fn delete(&self, path: &str) -> Result<()> {
        self.send("DELETE", path, "application/json", Vec::new()).await.map(drop)
    }

    /// All objects of a collection, without `managedFields`.
    pub(crate) async fn list(&self, path: &str) -> Result<Vec<Value>> {
        let mut all = Vec::new();
        let mut next = String::new();
        loop {
            let page = format!("{path}?limit={PAGE}&continue={next}");
            let text = self.send("GET", &page, "application/json", Vec::new()).await?;
            let mut list: Value = serde_json::from_str(&text)?;
            if let Some(items) = list["items"].as_array_mut() {
                for mut item in std::mem::take(items) {
                    if let Some(metadata) = item["metadata"].as_object_mut() {
                        metadata.remove("managedFields");
                    }
                    all.push(item);
                }
            }
            match list["metadata"]["continue"].as_str() {
                Some(more) if !more.is_empty() => more.clone_into(&mut next),
                _ => return Ok(all),
            }
        }
    }

    /// Creates the namespaces that objects are in.
    pub(crate) async fn namespaces(&self) -> Result<()> {
        for name in widgets::namespaces() {
            let namespace =
                serde_json::json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            self.create("/api/v1/namespaces", &namespace).await?;
        }
        Ok(())
    }

    /// Creates Widgets of these numbers.
    pub(crate) async fn widgets(&self, indexes: std::ops::Range<usize>) -> Result<()> {
        self.each(indexes, |index| async move {
            let key = widgets::key(index);
            self.create(&collection(&key), &widgets::widget(index, widgets::color(index))).await
        })
        .await
    }

    /// Creates the ConfigMaps that belong to Widgets of these numbers.
    pub(crate) async fn config_maps(&self, indexes: std::ops::Range<usize>) -> Result<()> {
        self.each(indexes, |index| async move {
            let path = format!("/api/v1/namespaces/{}/configmaps", widgets::key(index).namespace);
            self.create(&path, &widgets::config_map(index)).await
        })
        .await
    }

    /// Does something for each number, several at the same time; the first error stops.
    pub(crate) async fn each<F: Future<Output = Result<()>>>(
        &self,
        indexes: impl IntoIterator<Item = usize>,
        work: impl Fn(usize) -> F,
    ) -> Result<()> {
        futures::stream::iter(indexes.into_iter().map(|index| Ok(work(index))))
            .try_for_each_concurrent(AT_ONCE, |work| work)
            .await
    }

    /// Deletes everything that a workload may have left, whatever holds it.
    pub(crate) async fn wipe(&self) -> Result<()> {
        let widgets = self.list(&format!("{GROUP}/widgets")).await?;
        futures::stream::iter(widgets.iter().map(Ok::<_, anyhow::Error>))
            .try_for_each_concurrent(AT_ONCE, |widget| async move {
                let path = object(&WidgetKey {
                    namespace: text(&widget["metadata"]["namespace"]),
                    name: text(&widget["metadata"]["name"]),
                });
                if widget["metadata"]["finalizers"].is_array() {
                    self.merge(&path, &serde_json::json!({"metadata": {"finalizers": null}})).await?;
                }
                if widget["metadata"]["deletionTimestamp"].is_null() {
                    self.delete(&path).await?;
                }
                Ok(())
            })
            .await?;
        for namespace in widgets::namespaces() {
            for kind in
                ["api/v1@configmaps", "api/v1@secrets", "api/v1@serviceaccounts", "apis/apps/v1@deployments"]
            {
                let (api, plural) = kind.split_once('@').unwrap_or_default();
                self.delete(&format!("/{api}/namespaces/{namespace}/{plural}")).await?;
            }
            // Older API servers cannot delete collections of Services.
            for service in self.list(&format!("/api/v1/namespaces/{namespace}/services")).await? {
                let name = text(&service["metadata"]["name"]);
                self.delete(&format!("/api/v1/namespaces/{namespace}/services/{name}")).await?;
            }
        }
        Ok(())
    }
}

/// The path of the Widgets beside this one.
pub(crate) fn collection(key: &WidgetKey) -> String {
    format!("{GROUP}/namespaces/{}/widgets", key.namespace)
}

/// The path of a Widget.
pub(crate) fn object(key: &WidgetKey) -> String {
    format!("{}/{}", collection(key), key.name)
}

/// A string of a JSON value; empty if it is none.
pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
