//! The implementation of the functions that a visited node may call.

use std::time::Duration;

use futures::future::{BoxFuture, FutureExt as _};
use jiff::Timestamp;
use serde_json::Value;
use tokio::time::Instant;
use tracing::Instrument as _;
use windlass_graph::Progress;
use windlass_runtime::client::{Deletion, Evict};
use windlass_runtime::key::ObjectKey;
use windlass_runtime::meta::{Meta, ResourceVersion, Uid};
use windlass_runtime::resource::ResourceType;

use super::applier::{Applier, Report};
use super::run::Run;
use super::visits::VisitEnd;
use crate::error::{NodeError, Reason};
use crate::live::{Live, LiveRef, pods};
use crate::metrics::NodeResult;
use crate::needs::Pass;
use crate::plan::desired::Desired;
use crate::plan::digest::Content;
use crate::plan::drawn::Drawn;
use crate::plan::node::{Creation, Place, Visit, Visited, Wait, Write};
use crate::plan::owner::{OwnerView, generated_entry};

/// The result of a run of a plan.
pub(crate) struct Applied {
    pub(crate) report: Report,
    /// The generated objects of the owner, of this run and of earlier ones: `Secret/key`.
    pub(crate) generated: Vec<String>,
    /// The time at which the first renewed object is due.
    pub(crate) due: Option<Timestamp>,
    /// The number of objects that differ from the plan and were not written, because the run only observed.
    pub(crate) differing: usize,
}

impl Applier {
    /// Visits every node of a plan, in order.
    pub(crate) async fn apply(&self, owner: &OwnerView, pass: &Pass<'_>, drawn: &Drawn) -> Applied {
        self.visit_all(Run::new(self, owner, pass, drawn)).await
    }

    /// Visits every node of a plan, in order, and writes nothing.
    pub(crate) async fn observe(&self, owner: &OwnerView, pass: &Pass<'_>, drawn: &Drawn) -> Applied {
        self.visit_all(Run::new(self, owner, pass, drawn).observing()).await
    }

    async fn visit_all(&self, run: Run<'_>) -> Applied {
        let report = run.drawn.graph.run(self.concurrency, |place| run.visit(place)).await;
        let differing = run.held();
        let (generated, due) = run.into_notes();
        Applied { report, generated, due, differing }
    }
}

impl Run<'_> {
    /// Visits a node, with its span and its metrics.
    pub(super) async fn visit(&self, place: &Place) -> Visited {
        let kind = place
            .object()
            .map_or_else(|| place.node.kind().to_owned(), |(resource, _)| resource.kind.to_string());
        let span = tracing::info_span!("node", id = place.id);
        let began = Instant::now();
        let visited = async {
            let visited = place.node.visit(place, self).await;
            match &visited {
                Ok(Progress::Waiting(wait)) => tracing::debug!(why = %wait, "node is not ready"),
                Err(error) => tracing::warn!(%error, class = %error.class, "node failed"),
                Ok(Progress::Ready) => {}
            }
            visited
        }
        .instrument(span)
        .await;
        self.visits.end(
            place.index,
            match &visited {
                Ok(Progress::Ready) => VisitEnd::Ready,
                Ok(Progress::Waiting(_)) => VisitEnd::Waiting,
                Err(_) => VisitEnd::Failed,
            },
        );
        let result = match (&visited, self.results.lock()[place.index]) {
            (Err(_), _) => NodeResult::Failed,
            (Ok(Progress::Waiting(_)), NodeResult::Unchanged) => NodeResult::Waiting,
            (_, result) => result,
        };
        self.applier.metrics.visited(self.applier.name, &kind, result, began.elapsed());
        visited
    }
}

fn paused(message: &str) -> NodeError {
    NodeError::transient(Reason::Paused, message)
}

impl Visit for Run<'_> {
    fn is_observing(&self) -> bool {
        self.observing.is_some()
    }

    fn owner(&self) -> &OwnerView {
        self.owner
    }

    fn live(&self, resource: &ResourceType, key: &ObjectKey) -> Result<Option<LiveRef>, NodeError> {
        Ok(self.applier.kind(resource)?.get(key))
    }

    fn missing_kind(&self, resource: &ResourceType) -> Result<Option<String>, NodeError> {
        Ok(self.applier.kind(resource)?.missing())
    }

    fn read<'a>(
        &'a self,
        resource: &'a ResourceType,
        key: &'a ObjectKey,
    ) -> BoxFuture<'a, Result<Option<Value>, NodeError>> {
        async { Ok(self.applier.writer.read(resource, key).await?) }.boxed()
    }

    fn mutate(&self, place: &Place, desired: &mut Desired) -> Result<(), NodeError> {
        self.completion().mutate(place, desired)
    }

    fn mark(&self, place: &Place, desired: &mut Desired) -> Result<(), NodeError> {
        self.completion().mark_as_ours(place, desired)
    }

    fn marks(&self, place: &Place, resource: &ResourceType, key: &ObjectKey) -> Result<Desired, NodeError> {
        self.completion().marks(place, resource, key)
    }

    fn complete<'a>(
        &'a self,
        place: &'a Place,
        planned: &'a Desired,
        live: Option<&'a Live>,
    ) -> BoxFuture<'a, Result<Desired, NodeError>> {
        self.completed(place, planned, live).boxed()
    }

    fn create<'a>(&'a self, write: Write<'a>) -> BoxFuture<'a, Result<Creation, NodeError>> {
        async move {
            if self.is_held() {
                return Err(paused("it does not exist and is not created while the owner is paused"));
            }
            self.try_create(write).await
        }
        .boxed()
    }

    fn update<'a>(
        &'a self,
        write: Write<'a>,
        live: &'a Meta,
        why: &'a str,
    ) -> BoxFuture<'a, Result<(), NodeError>> {
        async move { if self.is_held() { Ok(()) } else { self.apply_to(write, live, why).await } }.boxed()
    }

    fn adopt<'a>(&'a self, write: Write<'a>) -> BoxFuture<'a, Result<(), NodeError>> {
        async move {
            if self.is_held() {
                return Err(paused("it is not adopted while the owner is paused"));
            }
            self.adopt_found(write).await
        }
        .boxed()
    }

    fn record<'a>(
        &'a self,
        resource: &'a ResourceType,
        key: &'a ObjectKey,
        uid: Uid,
        version: &'a str,
    ) -> BoxFuture<'a, Result<(), NodeError>> {
        async move { Ok(self.applier.writer.record(resource, key, uid, version).await?) }.boxed()
    }

    fn was_left_for_us(&self, live: &Live) -> bool {
        self.is_left_for_us(live)
    }

    fn collision(&self, live: &Live) -> NodeError {
        self.collides(live)
    }

    fn ensure_owner(&self) -> BoxFuture<'_, Result<(), NodeError>> {
        self.owner_must_stay().boxed()
    }

    fn was_there(&self, place: &Place) -> bool {
        self.owner.was_complete()
            || self.applier.history.was_written(&self.owner.key, self.owner.uid, &place.id)
    }

    fn watch_foreign<'a>(&'a self, resource: &'a ResourceType, key: &'a ObjectKey) -> BoxFuture<'a, bool> {
        self.watch(resource, key).boxed()
    }

    fn stop_writers<'a>(
        &'a self,
        place: &'a Place,
        of: &'a ObjectKey,
    ) -> BoxFuture<'a, Result<(), NodeError>> {
        async move { if self.is_held() { Ok(()) } else { self.stop_writers_of(place, of).await } }.boxed()
    }

    fn delete<'a>(
        &'a self,
        resource: &'a ResourceType,
        key: &'a ObjectKey,
        uid: Uid,
    ) -> BoxFuture<'a, Result<Deletion, NodeError>> {
        async move { Ok(self.applier.writer.delete(resource, key, uid).await?) }.boxed()
    }

    fn offer(&self, place: &Place, digest: Vec<u8>) {
        self.contents.lock()[place.index] = Some(Content { id: place.id.clone(), digest });
    }

    fn content(&self, index: usize) -> Option<Content> {
        self.contents.lock().get(index).cloned().flatten()
    }

    fn is_renewed(&self, index: usize) -> bool {
        self.renewed.iter().any(|renewed| renewed.index == index)
    }

    fn body(&self, index: usize) -> BoxFuture<'_, Result<Option<Value>, NodeError>> {
        async move {
            if let Some(body) = self.bodies.lock().get(&index) {
                return Ok(Some(body.clone()));
            }
            let Some(renewed) = self.renewed.iter().find(|renewed| renewed.index == index) else {
                return Ok(None);
            };
            let Some(body) = self.body_of(renewed).await? else {
                return Err(NodeError::conflict("an object that it is made from was deleted"));
            };
            self.bodies.lock().insert(index, body.clone());
            Ok(Some(body))
        }
        .boxed()
    }

    fn renewed_after(&self, index: usize) -> BoxFuture<'_, Result<Vec<Value>, NodeError>> {
        async move {
            let mut bodies = Vec::new();
            for renewed in self.renewed.iter().filter(|renewed| renewed.from.contains(&index)) {
                // Most plans make all of them at once at first: then there is nothing to read.
                if self.live(&renewed.resource, &renewed.key)?.is_some() {
                    bodies.extend(self.body_of(renewed).await?);
                }
            }
            Ok(bodies)
        }
        .boxed()
    }

    fn offer_body(&self, place: &Place, body: Value) {
        self.bodies.lock().insert(place.index, body);
    }

    fn note_generated(&self, resource: &ResourceType, name: &str) {
        let entry = generated_entry(&resource.kind, name);
        let mut generated = self.generated.lock();
        if !generated.contains(&entry) {
            generated.push(entry);
            generated.sort();
        }
    }

    fn note_due(&self, due: Timestamp) {
        let mut first = self.due.lock();
        *first = Some(first.map_or(due, |sooner| sooner.min(due)));
    }

    fn unfinished_for(&self, place: &Place) -> Duration {
        self.applier.history.unfinished_for(&self.owner.key, self.owner.uid, &place.id)
    }

    fn finished(&self, place: &Place) {
        self.applier.history.finished(&self.owner.key, self.owner.uid, &place.id);
    }

    fn applied<'a>(
        &'a self,
        resource: &'a ResourceType,
        key: &'a ObjectKey,
    ) -> BoxFuture<'a, Result<Option<Wait>, NodeError>> {
        async move {
            let planned = self
                .drawn
                .places()
                .find(|place| place.object().is_some_and(|object| object == (resource, key)));
            let Some(place) = planned else {
                let message = format!(
                    "the effect waits for {} {}, which is not in the plan",
                    resource.kind,
                    key.name()
                );
                return Err(NodeError::terminal(Reason::DrawFailed, message));
            };
            let applied = match self.visits.end_of(place.index, self.drawn).await {
                Some(VisitEnd::Ready) => true,
                // It may also wait because it could not be drawn, or because its kind is not installed.
                Some(VisitEnd::Waiting) => !place.node.is_incomplete() && self.live(resource, key)?.is_some(),
                Some(VisitEnd::Failed) | None => false,
            };
            Ok((!applied).then(|| Wait::new(format!("{} is not applied yet", place.id))))
        }
        .boxed()
    }

    fn may_act(&self, place: &Place, words: &str) -> Result<(), NodeError> {
        self.may_send(place, words)
    }

    fn acted(&self, place: &Place) {
        self.did(place, NodeResult::Applied);
        self.accepted(place);
    }

    fn not_acted(&self, place: &Place) {
        self.applier.history.not_written(&self.owner.key, self.owner.uid, &place.id);
    }

    fn delete_unchanged<'a>(
        &'a self,
        resource: &'a ResourceType,
        key: &'a ObjectKey,
        uid: Uid,
        version: &'a ResourceVersion,
    ) -> BoxFuture<'a, Result<(), NodeError>> {
        async move { Ok(self.applier.writer.delete_unchanged(resource, key, uid, version).await?) }.boxed()
    }

    fn evict<'a>(&'a self, key: &'a ObjectKey, uid: Uid) -> BoxFuture<'a, Result<(), NodeError>> {
        async move { Ok(self.applier.writer.client.evict(key, &Evict::incarnation(uid)).await?) }.boxed()
    }

    fn pod_problem(&self, resource: &ResourceType, key: &ObjectKey) -> Option<String> {
        pods::problem(self.applier.pods.as_ref()?, resource, key)
    }
}
