//! The traits between a node of a plan and the run that visits it.
//!
//! A node kind implements [`Node`] in a file of its own in `nodes`. It reaches the cluster only through
//! [`Visit`], which the applier implements, so that a node kind can be tested without a cluster.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt as _};
use jiff::Timestamp;
use serde_json::Value;
use windlass_graph::Progress;
use windlass_runtime::client::Deletion;
use windlass_runtime::key::ObjectKey;
use windlass_runtime::meta::{Meta, ResourceVersion, Uid};
use windlass_runtime::resource::ResourceType;

use super::desired::Desired;
use super::digest::Content;
use super::options::Options;
use super::owner::OwnerView;
use crate::error::{NodeError, Reason};
use crate::live::kind::is_data;
use crate::live::{Live, LiveRef};

/// The outcome of a visit to a node.
pub(crate) type Visited = Result<Progress<Wait>, NodeError>;

/// The reason why a node waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    pub(crate) reason: Reason,
    pub(crate) message: String,
    /// The time after which to look again, if no watch will wake the owner.
    pub(crate) poll: Option<Duration>,
}

impl Wait {
    /// A wait for something that needs more time; a watch reports its end.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self::because(Reason::Waiting, message)
    }

    /// The same, with another reason.
    pub(crate) fn because(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), poll: None }
    }

    /// Sets the time after which to look again, because no watch reports the end of the wait.
    pub(crate) fn poll(mut self, poll: Duration) -> Self {
        self.poll = Some(poll);
        self
    }

    /// Returns the reason in one word.
    pub fn reason(&self) -> Reason {
        self.reason
    }
}

impl From<Wait> for Progress<Wait> {
    fn from(wait: Wait) -> Self {
        Self::Waiting(wait)
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// One kind of node: its description, its visit, its removal.
pub(crate) trait Node: Send + Sync + 'static {
    /// Describes in a few words what is done for the node, for previews.
    fn describe(&self) -> String;

    /// Returns the object of the node, if the node has an object that the owner owns.
    fn object(&self) -> Option<(&ResourceType, &ObjectKey)> {
        None
    }

    /// Returns the result of the node without a cluster, for sketches.
    fn sketch(&self) -> Sketched<'_> {
        Sketched::Nothing
    }

    /// Returns the kind of a node without an object, for metrics.
    fn kind(&self) -> &'static str {
        "object"
    }

    /// Returns whether the node is an object that the plan asked for.
    fn is_need(&self) -> bool {
        false
    }

    /// Returns whether the plan is incomplete because of this node: then nothing is pruned.
    fn is_incomplete(&self) -> bool {
        false
    }

    /// Returns whether the object stays when it leaves the plan, and is deleted with its owner.
    fn outlives_plan(&self) -> bool {
        false
    }

    /// Returns whether nodes that come after it are renewed with it.
    fn is_renewed(&self) -> bool {
        false
    }

    /// Returns whether its removal undoes something outside of the cluster, so that the owner needs a
    /// finalizer.
    fn undoes(&self) -> bool {
        false
    }

    /// Brings the node to its planned state, without waiting for long operations.
    fn visit<'a>(&'a self, place: &'a Place, run: &'a dyn Visit) -> BoxFuture<'a, Visited>;

    /// Removes the node when its owner is deleted in order. By default its object is deleted.
    fn remove<'a>(&'a self, place: &'a Place, run: &'a dyn Visit) -> BoxFuture<'a, Visited> {
        remove_object(place, run).boxed()
    }
}

/// A node of the graph: its kind, its position, and the options that the author set.
pub(crate) struct Place {
    pub(crate) id: String,
    pub(crate) node: Box<dyn Node>,
    pub(crate) options: Options,
    /// The index of the node in the graph.
    pub(crate) index: usize,
    /// The indexes of the nodes that it comes after.
    pub(crate) after: Vec<usize>,
    /// The indexes of the nodes that pass their content to it, in the order in which the author named them.
    pub(crate) contents: Vec<usize>,
    /// The length of the longest chain before it.
    pub(crate) order: usize,
}

impl Place {
    /// Returns the object of the node, if the node has an object that the owner owns.
    pub(crate) fn object(&self) -> Option<(&ResourceType, &ObjectKey)> {
        self.node.object()
    }

    /// Returns whether the object of the node is kept when it leaves the plan, and when its owner is deleted.
    pub(crate) fn retained(&self) -> bool {
        self.options.retain.unwrap_or_else(|| self.object().is_some_and(|(resource, _)| is_data(resource)))
    }
}

impl windlass_graph::Node for Place {
    fn id(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.id)
    }
}

/// The result of a node without a cluster.
#[derive(PartialEq)]
pub(crate) enum Sketched<'a> {
    /// This object would be applied.
    Object(&'a Desired),
    /// An object would be generated.
    Generated,
    /// An object would be made by this recipe.
    Renewed(&'a str),
    /// The node offers content of this digest.
    Offers(&'a [u8]),
    /// The node waits, for this reason.
    Waits(&'a str),
    /// The node does none of this.
    Nothing,
}

/// The method of writing an object.
#[derive(Clone, Copy)]
pub(crate) enum How<'a> {
    /// The object is written by server-side apply.
    Apply,
    /// Only our marks are put on the object: its content is never touched.
    Marks,
    /// A new version, made from the existing object, is written by server-side apply.
    Remake(&'a dyn Remake),
}

/// Makes a new version of an object from the existing one.
pub(crate) trait Remake: Send + Sync {
    fn remake<'a>(&'a self, present: &'a Value) -> BoxFuture<'a, Result<Desired, NodeError>>;
}

/// One write of a node's object.
#[derive(Clone, Copy)]
pub(crate) struct Write<'a> {
    pub(crate) place: &'a Place,
    pub(crate) desired: &'a Desired,
    /// The digest by which a content that was refused or fought over is recognised.
    pub(crate) digest: &'a str,
    pub(crate) how: How<'a>,
}

/// The result of an attempt to create an object.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Creation {
    /// It was created.
    Created,
    /// An object of that name exists.
    Exists,
}

/// The functions of a run that a visited node may call.
pub(crate) trait Visit: Send + Sync {
    /// Returns whether the run writes and does nothing, because the owner is paused.
    fn is_observing(&self) -> bool;

    /// Returns the owner of the plan.
    fn owner(&self) -> &OwnerView;

    /// Returns the live object from the cache. Fails if the kind is not declared.
    fn live(&self, resource: &ResourceType, key: &ObjectKey) -> Result<Option<LiveRef>, NodeError>;

    /// Returns the reason why objects of a kind cannot exist now, if that is expected. Fails if the kind is
    /// not declared.
    fn missing_kind(&self, resource: &ResourceType) -> Result<Option<String>, NodeError>;

    /// Reads the object from the server.
    fn read<'a>(
        &'a self,
        resource: &'a ResourceType,
        key: &'a ObjectKey,
    ) -> BoxFuture<'a, Result<Option<Value>, NodeError>>;

    /// Applies the mutations of the node and of the controller to the desired object.
    fn mutate(&self, place: &Place, desired: &mut Desired) -> Result<(), NodeError>;

    /// Puts labels, order and ownership on an object.
    fn mark(&self, place: &Place, desired: &mut Desired) -> Result<(), NodeError>;

    /// Returns the marks of a node's object, without its content.
    fn marks(&self, place: &Place, resource: &ResourceType, key: &ObjectKey) -> Result<Desired, NodeError>;

    /// Returns the planned object with everything that all objects of a plan have, its digest included.
    fn complete<'a>(
        &'a self,
        place: &'a Place,
        planned: &'a Desired,
        live: Option<&'a Live>,
    ) -> BoxFuture<'a, Result<Desired, NodeError>>;

    /// Creates the object if no object of its name exists.
    fn create<'a>(&'a self, write: Write<'a>) -> BoxFuture<'a, Result<Creation, NodeError>>;

    /// Applies to the existing object.
    fn update<'a>(
        &'a self,
        write: Write<'a>,
        live: &'a Meta,
        why: &'a str,
    ) -> BoxFuture<'a, Result<(), NodeError>>;

    /// Adopts the existing object of this name if it may be adopted; fails with a collision otherwise.
    fn adopt<'a>(&'a self, write: Write<'a>) -> BoxFuture<'a, Result<(), NodeError>>;

    /// Records the version of the data that this incarnation of an object holds.
    fn record<'a>(
        &'a self,
        resource: &'a ResourceType,
        key: &'a ObjectKey,
        uid: Uid,
        version: &'a str,
    ) -> BoxFuture<'a, Result<(), NodeError>>;

    /// Returns whether a live object is data that an earlier owner of the same name left behind.
    fn was_left_for_us(&self, live: &Live) -> bool;

    /// Returns the error for an object of the planned name that the owner does not own.
    fn collision(&self, live: &Live) -> NodeError;

    /// Fails if a missing object was deleted together with its owner; asks the server at most once in a run.
    fn ensure_owner(&self) -> BoxFuture<'_, Result<(), NodeError>>;

    /// Returns whether the node's object has existed before.
    fn was_there(&self, place: &Place) -> bool;

    /// Watches an object that the owner does not own, so that its change wakes the owner; returns whether it
    /// exists.
    fn watch_foreign<'a>(&'a self, resource: &'a ResourceType, key: &'a ObjectKey) -> BoxFuture<'a, bool>;

    /// Deletes the objects of a former operator that would go on writing this node's object.
    fn stop_writers<'a>(
        &'a self,
        place: &'a Place,
        of: &'a ObjectKey,
    ) -> BoxFuture<'a, Result<(), NodeError>>;

    /// Deletes this incarnation of an object.
    fn delete<'a>(
        &'a self,
        resource: &'a ResourceType,
        key: &'a ObjectKey,
        uid: Uid,
    ) -> BoxFuture<'a, Result<Deletion, NodeError>>;

    /// Offers the content of a node to those that come after it.
    fn offer(&self, place: &Place, digest: Vec<u8>);

    /// Returns the content that another node offered.
    fn content(&self, index: usize) -> Option<Content>;

    /// Returns whether another node is [renewed](Node::is_renewed).
    fn is_renewed(&self, index: usize) -> bool;

    /// Returns the body of a renewed object of this run: read from the server at most once, and never kept
    /// beyond the run.
    fn body(&self, index: usize) -> BoxFuture<'_, Result<Option<Value>, NodeError>>;

    /// Reads the bodies of the existing renewed objects that the content of this node flows into from the
    /// server.
    fn renewed_after(&self, index: usize) -> BoxFuture<'_, Result<Vec<Value>, NodeError>>;

    /// Offers the body of a renewed object to the objects that are made from it.
    fn offer_body(&self, place: &Place, body: Value);

    /// Records that an object was generated, now or earlier.
    fn note_generated(&self, resource: &ResourceType, name: &str);

    /// Records that the owner has to be reconciled at this time at the latest.
    fn note_due(&self, due: Timestamp);

    /// Returns the time for which a node has been unfinished.
    fn unfinished_for(&self, place: &Place) -> Duration;

    /// Records that a node is finished.
    fn finished(&self, place: &Place);

    /// Waits until a planned object has been visited in this run. Returns the reason to wait if it was not
    /// applied; it need not be ready. Fails if the plan does not have it.
    fn applied<'a>(
        &'a self,
        resource: &'a ResourceType,
        key: &'a ObjectKey,
    ) -> BoxFuture<'a, Result<Option<Wait>, NodeError>>;

    /// Returns whether an effect may be sent, and counts it against the write budget if so.
    fn may_act(&self, place: &Place, words: &str) -> Result<(), NodeError>;

    /// Records that an effect was sent.
    fn acted(&self, place: &Place);

    /// Records that an effect failed: it does not count against the write budget.
    fn not_acted(&self, place: &Place);

    /// Deletes an object that the owner does not plan, if it has not changed since it was read.
    fn delete_unchanged<'a>(
        &'a self,
        resource: &'a ResourceType,
        key: &'a ObjectKey,
        uid: Uid,
        version: &'a ResourceVersion,
    ) -> BoxFuture<'a, Result<(), NodeError>>;

    /// Evicts this incarnation of a pod.
    fn evict<'a>(&'a self, key: &'a ObjectKey, uid: Uid) -> BoxFuture<'a, Result<(), NodeError>>;

    /// Returns the reason why the pods of a workload do not run, if there is one.
    fn pod_problem(&self, resource: &ResourceType, key: &ObjectKey) -> Option<String>;
}

/// Deletes the object of a node, unless it is retained or not the owner's.
async fn remove_object(place: &Place, run: &dyn Visit) -> Visited {
    let Some((resource, key)) = place.object() else { return Ok(Progress::Ready) };
    let Some(live) = run.live(resource, key)? else { return Ok(Progress::Ready) };
    let meta = &live.live().metadata;
    if place.retained() || !run.owner().has(meta) {
        return Ok(Progress::Ready);
    }
    if meta.deleting {
        return Ok(being_deleted(live.live()));
    }
    tracing::info!(object = %format!("{} {key}", resource.kind), "deleted with its owner");
    Ok(match run.delete(resource, key, meta.uid).await? {
        Deletion::Done => Progress::Ready,
        Deletion::Pending => Wait::new("it is being deleted").into(),
    })
}

/// Returns the progress of an object that is being deleted.
pub(crate) fn being_deleted(live: &Live) -> Progress<Wait> {
    let held: Vec<&str> = live.metadata.finalizers.iter().map(|finalizer| &**finalizer).collect();
    let message = if held.is_empty() {
        "it is being deleted".to_owned()
    } else {
        format!("it is being deleted, held by {}", held.join(", "))
    };
    Wait::new(message).into()
}

/// Returns the progress of an object that was written and is not in the cache yet.
pub(crate) fn not_read_back() -> Progress<Wait> {
    Wait::new("it has not been read back yet").into()
}
