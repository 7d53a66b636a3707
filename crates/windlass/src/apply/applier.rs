//! The applier: everything that a run of any plan needs.

use std::sync::Arc;

use futures::future::join_all;
use windlass_runtime::cache::Reader;
use windlass_runtime::events::{EventType, Recorder};
use windlass_runtime::resource::ResourceType;

use super::history::WriteHistory;
use super::keyring::Keyring;
use super::writer::Writer;
use crate::error::{NodeError, Reason};
use crate::live::pods::PodShape;
use crate::live::watched::OpenKind;
use crate::metrics::PlanMetrics;
use crate::needs::Registry;
use crate::plan::Wait;
use crate::plan::draw::PATIENCE;
use crate::plan::options::Mutation;
use crate::plan::owner::OwnerView;

/// The report of a run: the outcome of each node of a plan.
pub(crate) type Report = windlass_graph::Report<NodeError, Wait>;

/// Applies the plans of one controller.
pub(crate) struct Applier {
    /// The name of the controller.
    pub(crate) name: &'static str,
    pub(crate) kinds: Vec<Arc<dyn OpenKind>>,
    pub(crate) pods: Option<Reader<PodShape>>,
    pub(crate) writer: Writer,
    pub(crate) needs: Registry,
    pub(crate) keyring: Keyring,
    pub(crate) history: WriteHistory,
    pub(crate) mutations: Vec<Mutation>,
    pub(crate) metrics: PlanMetrics,
    pub(crate) recorder: Recorder,
    /// The number of nodes of one plan that are visited at the same time.
    pub(crate) concurrency: usize,
    /// The write budget: the number of times that one object may be written with the same content.
    pub(crate) writes: u32,
    /// True if an owner of this uid exists.
    pub(crate) has_owner: Box<dyn Fn(&str) -> bool + Send + Sync>,
}

impl Applier {
    /// Waits a short time until the first lists of the kinds that need not be installed have ended. After
    /// that, a node of a kind that is still unknown waits.
    pub(crate) async fn kinds_listed(&self) {
        let listed = join_all(self.kinds.iter().map(|kind| kind.listed()));
        let _ = tokio::time::timeout(PATIENCE, listed).await;
    }

    /// Returns a message that names a kind that has not been listed yet, if there is one: its existing
    /// objects are unknown.
    pub(crate) fn unlisted(&self) -> Option<String> {
        self.kinds.iter().find_map(|kind| kind.unlisted())
    }

    /// Returns the cache of a planned kind.
    pub(super) fn kind(&self, resource: &ResourceType) -> Result<&Arc<dyn OpenKind>, NodeError> {
        self.kinds.iter().find(|kind| kind.resource() == resource).ok_or_else(|| {
            let message = format!(
                "the kind {resource} is not declared: add `kinds.owns::<{}>()` to Controls::kinds",
                resource.kind
            );
            NodeError::terminal(Reason::DrawFailed, message)
        })
    }

    /// Records an event about an owner.
    pub(crate) fn event(&self, owner: &OwnerView, kind: EventType, reason: Reason, note: &str) {
        self.recorder.event(&owner.regarding(), kind, reason.as_str(), "Reconcile", note);
    }
}
