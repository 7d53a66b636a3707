//! The I/O of one watch: sends requests, reads lines, updates the views. The next request is decided in
//! [`watch_state`](super::watch_state), the changes of objects in [`store`](super::store).
//!
//! It runs as one task until it is dropped, which closes the connection. A view that cannot decode an object
//! keeps the last form that it could decode; the other views are not affected.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use http::header::{ACCEPT, USER_AGENT};
use http::{HeaderValue, Request, Response};
use http_body_util::BodyExt;
use jiff::Timestamp;
use kube::client::Body;
use kube::core::Status;
use parking_lot::Mutex;
use serde::Deserialize;
use tokio::time::Instant;

use super::view::{AnyView, Undecodable};
use super::watch::{Watch, WatchKey};
use super::watch_state::{
    ListMode, NextRequest, Rejection, RequestEnd, WatchHealth, WatchState, WatchTiming,
};
use super::wire::{Event, Items, Lines, ListMeta, Malformed};
use super::{Problem, RbacRule, SyncState};
use crate::client::{Client, Failure, encode, retry_after, root_cause, selectors_query};
use crate::jitter;
use crate::meta::{Meta, ResourceVersion};

/// A stream that ends this soon after it started was not ended by the usual timeout.
const EARLY: Duration = Duration::from_secs(5);

/// Timeout for reading the body of an error response.
const LAST_WORDS: Duration = Duration::from_secs(5);

const OBJECT: &str = "application/json";
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

pub(super) struct Informer {
    client: Client,
    timing: WatchTiming,
    watch: Arc<Watch>,
    /// The number of watches of the cache.
    watches: Arc<AtomicUsize>,
    /// Called when the server turns out to need paged lists of this kind.
    on_paged: Box<dyn Fn() + Send + Sync>,
    /// True if the server sends bookmarks on this watch, about one per minute: then silence means that the
    /// connection is dead.
    bookmarks: AtomicBool,
    /// The time since which readers see a problem.
    blocked_since: Mutex<Option<Timestamp>>,
}

/// The views of a session, held weakly: a session must not keep them alive.
type Views = Vec<Weak<dyn AnyView>>;

/// The end of a session, with the message that came with it.
struct Ended {
    end: RequestEnd,
    message: String,
}

impl From<RequestEnd> for Ended {
    fn from(end: RequestEnd) -> Self {
        Self { end, message: String::new() }
    }
}

impl From<Malformed> for Ended {
    fn from(_: Malformed) -> Self {
        Self { end: RequestEnd::Cut, message: "the response is neither a list nor a watch stream".to_owned() }
    }
}

impl Informer {
    pub(super) fn new(
        client: Client,
        timing: WatchTiming,
        watch: Arc<Watch>,
        watches: Arc<AtomicUsize>,
        on_paged: Box<dyn Fn() + Send + Sync>,
    ) -> Self {
        Self {
            client,
            timing,
            watch,
            watches,
            on_paged,
            bookmarks: AtomicBool::new(false),
            blocked_since: Mutex::default(),
        }
    }

    /// Lists and watches without end.
    pub(super) async fn run(self, paged: bool) {
        let WatchKey { resource: kind, labels, fields, .. } = self.watch.key();
        let first = self.timing.first(!labels.is_empty() || !fields.is_empty());
        let mut watch_state = WatchState::new(if paged { ListMode::Paged } else { first });
        loop {
            let was_paged = watch_state.is_paged();
            let ended = self.session(&mut watch_state).await;
            let (pause, health) = watch_state.ended(&ended.end);
            if watch_state.is_paged() && !was_paged {
                tracing::info!(%kind, "unpaged list did not finish in time; using paged lists for this kind");
                (self.on_paged)();
            }
            if let Some(health) = health {
                self.stand(&health, &ended.message);
            }
            let pause = self.timing.pause(pause, self.watches.load(Ordering::Relaxed), jitter::chance());
            tracing::debug!(%kind, end = ?ended.end, message = ended.message, ?pause, "watch ended");
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
            self.watch.stats().restarted();
        }
    }

    /// Runs one list or watch, from request to end.
    async fn session(&self, watch_state: &mut WatchState) -> Ended {
        // Subscribed before the views are read: a view that is added in between ends the present session.
        let mut added = self.watch.added();
        let views = self.watch.views();
        let alive: Vec<_> = views.iter().filter_map(Weak::upgrade).collect();
        if alive.iter().any(|view| !view.is_listed()) {
            watch_state.ended(&RequestEnd::ViewsChanged);
        }
        let whole = alive.iter().any(|view| view.needs_body());
        drop(alive);
        let work = async {
            let ended = match watch_state.next_request() {
                NextRequest::WholeList => self.list(&views, whole, None).await,
                NextRequest::PagedList => self.list(&views, whole, Some(self.timing.page)).await,
                NextRequest::StreamList => self.stream(watch_state, &views, None, whole).await,
                NextRequest::Watch(from) => self.stream(watch_state, &views, Some(from), whole).await,
            };
            ended.unwrap_or_else(|ended| ended)
        };
        tokio::select! {
            ended = work => ended,
            // Cannot fail: the sender is a field of the watch.
            _ = added.changed() => RequestEnd::ViewsChanged.into(),
        }
    }

    /// Lists objects: unpaged, or with this page size.
    async fn list(&self, views: &Views, whole: bool, page: Option<u32>) -> Result<Ended, Ended> {
        for view in alive(views) {
            view.begin_list();
        }
        let mut next = String::new();
        loop {
            // A limit of 0 means no limit.
            let mut query = format!("limit={}", page.unwrap_or(0));
            if !next.is_empty() {
                query.push_str("&continue=");
                query.push_str(&encode(&next));
            }
            let answer = self.send(&query, if whole { OBJECT } else { METADATA_LIST }).await?;
            let ListMeta { resource_version: version, continue_token } =
                self.read_list(answer.into_body(), views, page.is_some()).await?;
            if continue_token.is_empty() {
                self.end_list(views, &version)?;
                return Ok(RequestEnd::Listed(version).into());
            }
            next = continue_token;
        }
    }

    /// Reads a list while it is received: a large list is never in memory as a whole.
    async fn read_list(&self, mut body: Body, views: &Views, paged: bool) -> Result<ListMeta, Ended> {
        let timing = &self.timing;
        let (total, idle) =
            if paged { (timing.answer, timing.answer) } else { (timing.list_total, timing.list_idle) };
        let by = Instant::now() + total;
        let mut items = Items::default();
        loop {
            let deadline = by.min(Instant::now() + idle);
            let chunk = match tokio::time::timeout_at(deadline, body.frame()).await {
                Ok(Some(Ok(frame))) => frame.into_data().unwrap_or_default(),
                Ok(Some(Err(error))) => return Err(cut(&error)),
                Ok(None) => return Ok(items.end()?),
                Err(_) if paged => return Err(RequestEnd::Silent.into()),
                Err(_) => return Err(RequestEnd::NoEnd.into()),
            };
            self.watch.stats().heard();
            items.feed(&chunk, |object| self.listed(views, object))?;
        }
    }

    /// Watches from a resource version, or with initial events first.
    async fn stream(
        &self,
        watch_state: &mut WatchState,
        views: &Views,
        from: Option<ResourceVersion>,
        whole: bool,
    ) -> Result<Ended, Ended> {
        let session = jitter::between(self.timing.session);
        let mut query =
            format!("watch=true&allowWatchBookmarks=true&timeoutSeconds={}", session.as_secs().max(1));
        match &from {
            Some(version) => {
                query.push_str("&resourceVersion=");
                query.push_str(&encode(&version.to_string()));
            }
            None => query.push_str("&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"),
        }
        let answer = self.send(&query, if whole { OBJECT } else { METADATA }).await?;
        let opened = Instant::now();
        if let Some(health) = watch_state.opened() {
            self.stand(&health, "");
        }
        let mut reading = Reading { informer: self, watch_state, views, listing: from.is_none(), listed: 0 };
        if reading.listing {
            alive(views).for_each(|view| view.begin_list());
        }
        let mut body = answer.into_body();
        let mut lines = Lines::default();
        // The server ends the stream after `session`; this timeout is a little later.
        let last = opened + session + self.timing.answer;
        let list_by = opened + self.timing.list_total;
        loop {
            let idle = if reading.listing {
                self.timing.list_idle
            } else if self.bookmarks.load(Ordering::Relaxed) {
                self.timing.idle
            } else {
                session + self.timing.answer
            };
            let last = if reading.listing { list_by } else { last };
            let deadline = last.min(Instant::now() + idle);
            let chunk = match tokio::time::timeout_at(deadline, body.frame()).await {
                Ok(Some(Ok(frame))) => frame.into_data().unwrap_or_default(),
                Ok(Some(Err(error))) => return Err(cut(&error)),
                Ok(None) => {
                    return Ok(RequestEnd::Closed { early: opened.elapsed() < EARLY }.into());
                }
                Err(_) if reading.listing => return Err(RequestEnd::NoEnd.into()),
                Err(_) => return Err(RequestEnd::Silent.into()),
            };
            lines.feed(chunk, |line| reading.line(line))?;
        }
    }

    /// Sends a request; returns the response if its status is a success.
    async fn send(&self, query: &str, accept: &'static str) -> Result<Response<Body>, Ended> {
        let key = self.watch.key();
        let path = key.resource.path(key.namespace.as_deref());
        let selectors = selectors_query(&key.labels.to_string(), &key.fields.to_string());
        let mut request = Request::new(Body::empty());
        *request.uri_mut() = format!("{path}?{query}{selectors}").parse().map_err(|_| Ended {
            end: RequestEnd::Refused(Rejection::Other),
            message: "no valid path".to_owned(),
        })?;
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static(accept));
        request.headers_mut().insert(USER_AGENT, self.client.user_agent().clone());
        let answer = tokio::time::timeout(self.timing.answer, self.client.kube().send(request)).await;
        let answer = match answer {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => return Err(cut(&error)),
            Err(_) => {
                return Err(Ended { end: RequestEnd::NoAnswer, message: "no response in time".to_owned() });
            }
        };
        if answer.status().is_success() {
            return Ok(answer);
        }
        let code = answer.status().as_u16();
        let wait = retry_after(answer.headers());
        let body = tokio::time::timeout(LAST_WORDS, answer.into_body().collect()).await;
        let body =
            body.ok().and_then(Result::ok).map(http_body_util::Collected::to_bytes).unwrap_or_default();
        Err(refused(code, serde_json::from_slice(&body).ok().as_ref(), wait))
    }

    fn listed(&self, views: &Views, object: &[u8]) {
        for view in alive(views) {
            if let Err(error) = view.listed(object)
                && let Some(meta) = self.undecodable(object, &error)
            {
                view.listed_undecodable(&meta.key);
            }
        }
    }

    fn end_list(&self, views: &Views, version: &ResourceVersion) -> Result<(), Ended> {
        for view in alive(views) {
            if view.end_list(version).is_err() {
                tracing::warn!(kind = %self.watch.key().resource, %version, "resource versions went backwards (the server was restored from a backup?); listing again");
                return Err(RequestEnd::WentBackwards.into());
            }
        }
        self.watch.stats().listed();
        self.stand(&WatchHealth::Synced, "");
        Ok(())
    }

    /// Logs an object that does not fit a view's shape, and returns its metadata if that can be decoded.
    fn undecodable(&self, object: &[u8], error: &Undecodable) -> Option<Meta> {
        let meta = metadata(object);
        // Logged a few times, then only counted: a thousand such objects are still one mistake.
        if self.watch.stats().undecodable() <= 10 {
            tracing::warn!(
                kind = %self.watch.key().resource,
                object = meta.as_ref().map(|meta| meta.key.to_string()),
                column = error.column,
                "object cannot be decoded into its shape; readers keep the last form that could"
            );
        }
        meta
    }

    /// Publishes the health of the watch to its views.
    fn stand(&self, health: &WatchHealth, message: &str) {
        let rule = || RbacRule {
            api_group: self.watch.key().resource.group.to_string(),
            resource: self.watch.key().resource.plural.to_string(),
            verbs: vec!["list", "watch"],
            namespace: self.watch.key().namespace.as_ref().map(ToString::to_string),
        };
        let views = self.watch.views();
        let mut since = self.blocked_since.lock();
        let Some(cause) = health.cause(rule) else {
            if since.take().is_some() {
                tracing::info!(kind = %self.watch.key().resource, "watch works again");
            }
            for view in alive(&views).filter(|view| view.is_listed()) {
                view.set_state(&SyncState::Synced);
            }
            return;
        };
        let newly = since.is_none();
        let problem = Arc::new(Problem {
            resource: self.watch.key().resource.clone(),
            cause,
            message: message.to_owned(),
            since: *since.get_or_insert_with(Timestamp::now),
        });
        if newly {
            tracing::warn!(kind = %self.watch.key().resource, %problem, "the kind cannot be watched; retrying");
        }
        for view in alive(&views) {
            view.set_state(&SyncState::Blocked(Arc::clone(&problem)));
        }
    }
}

/// One watch stream and its state.
struct Reading<'a> {
    informer: &'a Informer,
    watch_state: &'a mut WatchState,
    views: &'a Views,
    /// True until the initial events have ended.
    listing: bool,
    /// The number of initial events so far.
    listed: usize,
}

impl Reading<'_> {
    fn line(&mut self, line: &[u8]) -> Result<(), Ended> {
        self.informer.watch.stats().heard();
        match Event::parse(line)? {
            Event::Applied(object) if self.listing => {
                self.informer.listed(self.views, object);
                self.listed += 1;
                if self.listed > self.informer.timing.streamed {
                    return Err(RequestEnd::Many.into());
                }
            }
            Event::Applied(object) => self.applied(object),
            Event::Deleted(object) => {
                let meta = metadata(object).ok_or(Malformed)?;
                for view in alive(self.views) {
                    view.deleted(&meta);
                }
                self.progressed(&meta.resource_version);
            }
            Event::Bookmark { version, initial_end } => {
                self.informer.bookmarks.store(true, Ordering::Relaxed);
                if self.listing && initial_end {
                    self.informer.end_list(self.views, &version)?;
                    self.listing = false;
                }
                let now = Instant::now();
                for view in alive(self.views) {
                    view.progressed(&version);
                    view.expire(now);
                }
                self.progressed(&version);
            }
            Event::Error(status) => return Err(refused(status.code, Some(&status), None)),
        }
        Ok(())
    }

    fn applied(&mut self, object: &[u8]) {
        let mut version = None;
        for view in alive(self.views) {
            match view.applied(object) {
                Ok(seen) => version = Some(seen),
                Err(error) => {
                    if let Some(meta) = self.informer.undecodable(object, &error) {
                        view.progressed(&meta.resource_version);
                        version = Some(meta.resource_version);
                    }
                }
            }
        }
        if let Some(version) = version {
            self.progressed(&version);
        }
    }

    fn progressed(&mut self, version: &ResourceVersion) {
        if !self.listing {
            self.watch_state.progressed(version);
        }
    }
}

fn alive(views: &Views) -> impl Iterator<Item = Arc<dyn AnyView>> {
    views.iter().filter_map(Weak::upgrade)
}

fn metadata(object: &[u8]) -> Option<Meta> {
    #[derive(Deserialize)]
    struct Object {
        metadata: Meta,
    }

    serde_json::from_slice::<Object>(object).ok().map(|object| object.metadata)
}

fn cut(error: &kube::Error) -> Ended {
    Ended { end: RequestEnd::Cut, message: root_cause(error) }
}

/// Converts an error status to the end of a watch request.
fn refused(code: u16, status: Option<&Status>, wait: Option<Duration>) -> Ended {
    let message = status.map(|status| status.message.clone()).unwrap_or_default();
    let too_large = |status: &Status| {
        let causes = status.details.as_ref().map_or(&[][..], |details| &details.causes);
        causes.iter().any(|cause| cause.reason == "ResourceVersionTooLarge")
    };
    let rejection = if status.is_some_and(too_large) {
        Rejection::FromTheFuture
    } else {
        match Failure::classify(code, status, wait) {
            Failure::NotFound => Rejection::Missing,
            Failure::Forbidden => Rejection::Forbidden,
            Failure::Invalid(_) => Rejection::Invalid,
            Failure::Gone => Rejection::Expired,
            Failure::Throttled { retry_after: Some(wait) } => Rejection::Throttled(wait),
            _ => Rejection::Other,
        }
    };
    let message = if message.is_empty() { format!("status {code}") } else { message };
    Ended { end: RequestEnd::Refused(rejection), message }
}
