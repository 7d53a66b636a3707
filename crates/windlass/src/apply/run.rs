//! One run of one owner's plan, with the values that its nodes pass to each other.

use std::collections::HashMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::OnceCell;
use tokio::time::Instant;
use windlass_runtime::key::ObjectKey;
use windlass_runtime::resource::ResourceType;

use super::applier::Applier;
use super::visits::Visits;
use crate::error::NodeError;
use crate::metrics::NodeResult;
use crate::needs::Pass;
use crate::plan::digest::Content;
use crate::plan::draw::PATIENCE;
use crate::plan::drawn::Drawn;
use crate::plan::node::Place;
use crate::plan::owner::{OwnerView, generated_entry};

/// One run of one owner's plan.
pub(super) struct Run<'a> {
    pub(super) applier: &'a Applier,
    pub(super) owner: &'a OwnerView,
    pub(super) pass: &'a Pass<'a>,
    pub(super) drawn: &'a Drawn,
    /// The objects that have left the plan and still exist; computed on first use.
    pub(super) leftovers: OnceLock<String>,
    /// Set if the run writes nothing: the number of objects that it would write.
    pub(super) observing: Option<AtomicUsize>,
    /// The content of each node, for those that come after it.
    pub(super) contents: Mutex<Vec<Option<Content>>>,
    /// The effect of each visit on the cluster, by node.
    pub(super) results: Mutex<Vec<NodeResult>>,
    /// The generated objects, of this run and of earlier ones.
    pub(super) generated: Mutex<Vec<String>>,
    /// The places of the plan's renewed objects, by their nodes.
    pub(super) renewed: Vec<RenewedPlace>,
    /// The bodies of renewed objects that were read or made in this run: never kept beyond it.
    pub(super) bodies: Mutex<HashMap<usize, Value>>,
    pub(super) due: Mutex<Option<Timestamp>>,
    /// The end of each visit, for effects that wait for an object.
    pub(super) visits: Visits,
    /// True if the owner still exists on the server; requested on first use.
    pub(super) owner_stays: OnceCell<bool>,
}

/// The place of a renewed object in the plan.
pub(super) struct RenewedPlace {
    pub(super) index: usize,
    pub(super) resource: ResourceType,
    pub(super) key: ObjectKey,
    /// The nodes that it is made from.
    pub(super) from: Vec<usize>,
}

impl<'a> Run<'a> {
    pub(super) fn new(
        applier: &'a Applier,
        owner: &'a OwnerView,
        pass: &'a Pass<'a>,
        drawn: &'a Drawn,
    ) -> Self {
        let renewed = drawn.places().filter(|place| place.node.is_renewed());
        let renewed = renewed.filter_map(|place| {
            let (resource, key) = place.object()?;
            let (resource, key) = (resource.clone(), key.clone());
            Some(RenewedPlace { index: place.index, resource, key, from: place.contents.clone() })
        });
        Self {
            applier,
            owner,
            pass,
            drawn,
            observing: None,
            leftovers: OnceLock::new(),
            contents: Mutex::new(vec![None; drawn.graph.len()]),
            results: Mutex::new(vec![NodeResult::Unchanged; drawn.graph.len()]),
            generated: Mutex::new(named_by_kind(owner.generated(), drawn)),
            renewed: renewed.collect(),
            bodies: Mutex::default(),
            due: Mutex::default(),
            visits: Visits::new(drawn.graph.len()),
            owner_stays: OnceCell::new(),
        }
    }

    /// Returns the same run, which writes nothing.
    pub(super) fn observing(self) -> Self {
        Self { observing: Some(AtomicUsize::new(0)), ..self }
    }

    /// Returns whether the run writes nothing, and counts the write that was not made.
    pub(super) fn is_held(&self) -> bool {
        let Some(held) = &self.observing else { return false };
        held.fetch_add(1, Ordering::Relaxed);
        true
    }

    /// Returns the number of objects that would have been written.
    pub(super) fn held(&self) -> usize {
        self.observing.as_ref().map_or(0, |held| held.load(Ordering::Relaxed))
    }

    /// Returns the generated objects, and the time at which the first renewed object is due.
    pub(super) fn into_notes(self) -> (Vec<String>, Option<Timestamp>) {
        (self.generated.into_inner(), self.due.into_inner())
    }

    /// Watches an object that is not ours, so that its change wakes the owner; returns whether it exists.
    pub(super) async fn watch(&self, resource: &ResourceType, key: &ObjectKey) -> bool {
        self.pass.watch_foreign(resource, key, Instant::now() + PATIENCE).await
    }

    /// Reads the body of a renewed object from the server.
    pub(super) async fn body_of(&self, renewed: &RenewedPlace) -> Result<Option<Value>, NodeError> {
        let body = self.applier.writer.read(&renewed.resource, &renewed.key).await?;
        Ok(body.map(|mut body| {
            body["kind"] = json!(renewed.resource.kind);
            body
        }))
    }

    pub(super) fn did(&self, place: &Place, result: NodeResult) {
        self.results.lock()[place.index] = result;
    }

    /// Returns the contents that flow into a node, in the order in which its author named them.
    pub(super) fn contents_of(&self, place: &Place) -> Vec<Content> {
        let all = self.contents.lock();
        place.contents.iter().filter_map(|index| all[*index].clone()).collect()
    }
}

/// Adds the kind to entries of `status.generated`. An entry of an older version has no kind, and counts for
/// every generated object of that name in the plan.
fn named_by_kind(generated: Vec<String>, drawn: &Drawn) -> Vec<String> {
    let named = |entry: String| {
        let of_name = drawn
            .places()
            .filter(|place| place.node.outlives_plan())
            .filter_map(Place::object)
            .filter(|(_, key)| key.name() == entry)
            .map(|(resource, key)| generated_entry(&resource.kind, key.name()));
        let entries: Vec<String> = of_name.collect();
        if entries.is_empty() { vec![entry] } else { entries }
    };
    let mut all: Vec<String> = generated.into_iter().flat_map(named).collect();
    all.sort();
    all.dedup();
    all
}
