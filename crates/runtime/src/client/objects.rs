//! Live operations on the objects of one kind.

use std::marker::PhantomData;

use bytes::Bytes;
use http::Method;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::answer::{Fate, fate};
use super::call::Call;
use super::options::{Apply, Delete, Deletion, Patch};
use super::query::{encode, query_of};
use super::retry::Repeat;
use super::{Client, ClientError, Failure, Operation};
use crate::key::ObjectKey;
use crate::meta::Uid;
use crate::resource::ResourceType;
use crate::selection::Selection;

const JSON: &str = "application/json";
const APPLY: &str = "application/apply-patch+yaml";
const MERGE_PATCH: &str = "application/merge-patch+json";
const JSON_PATCH: &str = "application/json-patch+json";

/// The objects of one kind, decoded as `T`. Every method is one call to the API server (a list: one per
/// page).
pub struct Objects<T> {
    client: Client,
    resource: ResourceType,
    decoded: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned> Objects<T> {
    pub(super) fn new(client: Client, resource: ResourceType) -> Self {
        Self { client, resource, decoded: PhantomData }
    }

    /// Reads the object from the server; fails with [`NotFound`](Failure::NotFound) if it does not exist.
    pub async fn get(&self, key: &ObjectKey) -> Result<T, ClientError> {
        let call = self.call("get", Method::GET, key, "", Repeat::Harmless);
        decode(&call, &self.client.call(&call).await?)
    }

    /// Reads the object from the server; `None` if it does not exist.
    pub async fn find(&self, key: &ObjectKey) -> Result<Option<T>, ClientError> {
        match self.get(key).await {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Lists all objects of a selection from the server, consistently, page by page; each page has its own
    /// deadline.
    pub async fn list(&self, selection: &Selection) -> Result<Vec<T>, ClientError> {
        #[derive(Deserialize)]
        #[serde(bound = "T: DeserializeOwned")]
        struct Page<T> {
            metadata: PageMeta,
            items: Option<Vec<T>>,
        }

        #[derive(Deserialize)]
        struct PageMeta {
            #[serde(rename = "continue", default)]
            next: String,
        }

        let namespaces: Vec<Option<&str>> = match &selection.namespaces {
            Some(namespaces) if self.resource.namespaced => {
                namespaces.iter().map(|name| Some(&**name)).collect()
            }
            _ => vec![None],
        };
        let mut found = Vec::new();
        for namespace in namespaces {
            let mut next = String::new();
            loop {
                let mut query = query_of(selection);
                query.push_str("&limit=500");
                if !next.is_empty() {
                    query.push_str("&continue=");
                    query.push_str(&encode(&next));
                }
                let call = Call {
                    operation: Operation { verb: "list", resource: self.resource.clone(), key: None },
                    method: Method::GET,
                    target: format!("{}?{}", self.resource.path(namespace), query.trim_start_matches('&')),
                    content_type: None,
                    body: Bytes::new(),
                    repeat: Repeat::Harmless,
                };
                let page: Page<T> = decode(&call, &self.client.call(&call).await?)?;
                found.extend(page.items.into_iter().flatten());
                if page.metadata.next.is_empty() {
                    break;
                }
                next = page.metadata.next;
            }
        }
        Ok(found)
    }

    /// Creates an object; fails with [`AlreadyExists`](Failure::AlreadyExists) if one of that name exists.
    /// For planned objects prefer an apply: with `metadata.resourceVersion: "1"` it only creates.
    pub async fn create(&self, key: &ObjectKey, object: &impl Serialize) -> Result<T, ClientError> {
        let mut call = self.call("create", Method::POST, key, "", Repeat::Harmful);
        call.target = self.resource.path(key.namespace());
        self.write(with_body(call, JSON, object)?, false).await
    }

    /// Server-side apply: creates the object, or merges the declared fields into it. Returns the present
    /// object, whether or not anything changed.
    pub async fn apply(
        &self,
        key: &ObjectKey,
        object: &impl Serialize,
        apply: &Apply,
    ) -> Result<T, ClientError> {
        self.apply_to("", key, object, apply).await
    }

    /// Server-side apply of the status.
    pub async fn apply_status(
        &self,
        key: &ObjectKey,
        object: &impl Serialize,
        apply: &Apply,
    ) -> Result<T, ClientError> {
        self.apply_to("/status", key, object, apply).await
    }

    /// Patches an object.
    pub async fn patch(&self, key: &ObjectKey, patch: &Patch, manager: &str) -> Result<T, ClientError> {
        let (content_type, body) = match patch {
            Patch::Merge(body) => (MERGE_PATCH, body),
            Patch::Json(body) => (JSON_PATCH, body),
        };
        let mut call = self.call("patch", Method::PATCH, key, "", Repeat::Harmful);
        call.target.push_str("?fieldManager=");
        call.target.push_str(&encode(manager));
        self.write(with_body(call, content_type, body)?, false).await
    }

    /// Deletes an object, or marks it for deletion.
    pub async fn delete(&self, key: &ObjectKey, delete: &Delete) -> Result<Deletion, ClientError> {
        // A repeated delete by name might delete a recreated object.
        let repeat = if delete.uid.is_some() { Repeat::Harmless } else { Repeat::Harmful };
        let call = with_body(self.call("delete", Method::DELETE, key, "", repeat), JSON, &delete.body())?;
        let answer = self.client.call(&call).await?;
        let fate = self.client.notify_caches(&self.resource, key, &answer, true);
        Ok(if fate == Fate::Stands { Deletion::Pending } else { Deletion::Done })
    }

    /// Sets the number of replicas through the scale subresource; returns the number that the server
    /// accepted.
    ///
    /// The response is not the object itself. If the kind is cached, the object is read once more, so that
    /// the cache contains the change before this call returns.
    pub async fn scale(&self, key: &ObjectKey, replicas: i32) -> Result<i32, ClientError> {
        #[derive(Deserialize)]
        struct Scale {
            spec: ScaleSpec,
        }

        #[derive(Deserialize)]
        struct ScaleSpec {
            #[serde(default)]
            replicas: i32,
        }

        let call = self.call("scale", Method::PATCH, key, "/scale", Repeat::Harmless);
        let call = with_body(call, MERGE_PATCH, &json!({"spec": {"replicas": replicas}}))?;
        let answer = self.client.call(&call).await?;
        let scale: Scale = decode(&call, &answer)?;
        self.client.refresh_caches(&self.resource, key, None).await;
        Ok(scale.spec.replicas)
    }

    async fn apply_to(
        &self,
        subresource: &str,
        key: &ObjectKey,
        object: &impl Serialize,
        apply: &Apply,
    ) -> Result<T, ClientError> {
        let verb = if subresource.is_empty() { "apply" } else { "apply status of" };
        let mut call = self.call(verb, Method::PATCH, key, subresource, Repeat::Harmless);
        call.target.push('?');
        call.target.push_str(&apply.query());
        self.write(with_body(call, APPLY, object)?, apply.dry_run).await
    }

    /// Sends a write, and updates the caches before it returns.
    async fn write(&self, call: Call, dry_run: bool) -> Result<T, ClientError> {
        let answer = self.client.call(&call).await?;
        if let (false, Some(key)) = (dry_run, &call.operation.key) {
            self.client.notify_caches(&self.resource, key, &answer, false);
        }
        decode(&call, &answer)
    }

    fn call(
        &self,
        verb: &'static str,
        method: Method,
        key: &ObjectKey,
        subresource: &str,
        repeat: Repeat,
    ) -> Call {
        Call {
            operation: Operation { verb, resource: self.resource.clone(), key: Some(key.clone()) },
            method,
            target: format!("{}/{}{subresource}", self.resource.path(key.namespace()), encode(key.name())),
            content_type: None,
            body: Bytes::new(),
            repeat,
        }
    }
}

fn with_body(mut call: Call, content_type: &'static str, body: &impl Serialize) -> Result<Call, ClientError> {
    let body = serde_json::to_vec(body).map_err(|error| {
        let where_ = format!("it cannot be written as JSON ({:?} error)", error.classify());
        ClientError::new(call.operation.clone(), Failure::Invalid(Vec::new()), where_)
    })?;
    call.content_type = Some(content_type);
    call.body = body.into();
    Ok(call)
}

fn decode<A: DeserializeOwned>(call: &Call, body: &[u8]) -> Result<A, ClientError> {
    serde_json::from_slice(body).map_err(|error| {
        // The position only: serde's message may quote the content.
        let place = format!("unexpected at line {} column {}", error.line(), error.column());
        ClientError::new(call.operation.clone(), Failure::Garbled, place)
    })
}

impl Client {
    /// Puts the response to a write into the caches of its kind.
    pub(super) fn notify_caches(
        &self,
        resource: &ResourceType,
        key: &ObjectKey,
        answer: &[u8],
        deleting: bool,
    ) -> Fate {
        let fate = fate(answer, deleting);
        for cache in self.caches() {
            match fate {
                Fate::Stands => cache.wrote(resource, answer),
                Fate::Gone(uid) => cache.wrote_gone(resource, key, uid),
                Fate::Unknown => {}
            }
        }
        fate
    }

    /// Reads an object to update the caches, after a write whose response did not contain it. If the read
    /// fails, the watch delivers the change. `uid` is the object's uid, if it is known.
    pub(super) async fn refresh_caches(&self, resource: &ResourceType, key: &ObjectKey, uid: Option<Uid>) {
        let caches = self.caches();
        if !caches.iter().any(|cache| cache.hold(resource)) {
            return;
        }
        let objects: Objects<serde::de::IgnoredAny> = self.objects_of(resource.clone());
        let call = objects.call("get", Method::GET, key, "", Repeat::Harmless);
        match (self.call(&call).await, uid) {
            (Ok(object), _) => {
                for cache in caches {
                    cache.wrote(resource, &object);
                }
            }
            (Err(error), Some(uid)) if error.is_not_found() => {
                for cache in caches {
                    cache.wrote_gone(resource, key, uid);
                }
            }
            (Err(_), _) => {}
        }
    }
}
