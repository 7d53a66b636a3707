//! One run of one owner's plan: what its nodes leave for each other.

use std::collections::HashMap;

use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::OnceCell;
use tokio::time::Instant;
use windlass_runtime::key::ObjectKey;
use windlass_runtime::resource::ResourceType;

use super::applier::Applier;
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
    /// The content of each node, for those that come after it.
    pub(super) contents: Mutex<Vec<Option<Content>>>,
    /// The effect of each visit on the cluster, by node.
    pub(super) results: Mutex<Vec<NodeResult>>,
    /// The generated objects, of this run and of earlier ones.
    pub(super) generated: Mutex<Vec<String>>,
    /// The places of the plan's renewed objects, by their nodes.
    pub(super) renewed: Vec<(usize, ResourceType, ObjectKey)>,
    /// Those of them that were read or made in this run: never kept beyond it.
    pub(super) bodies: Mutex<HashMap<usize, Value>>,
    pub(super) due: Mutex<Option<Timestamp>>,
    /// Whether the server still has the owner, once it was asked.
    pub(super) owner_stays: OnceCell<bool>,
}

impl<'a> Run<'a> {
    pub(super) fn new(applier: &'a Applier, owner: &'a OwnerView, pass: &'a Pass<'a>, drawn: &Drawn) -> Self {
        let renewed = drawn.places().filter(|place| place.node.is_renewed());
        let renewed = renewed.filter_map(|place| {
            let (resource, key) = place.object()?;
            Some((place.index, resource.clone(), key.clone()))
        });
        Self {
            applier,
            owner,
            pass,
            contents: Mutex::new(vec![None; drawn.graph.len()]),
            results: Mutex::new(vec![NodeResult::Unchanged; drawn.graph.len()]),
            generated: Mutex::new(named_by_kind(owner.generated(), drawn)),
            renewed: renewed.collect(),
            bodies: Mutex::default(),
            due: Mutex::default(),
            owner_stays: OnceCell::new(),
        }
    }

    /// Returns what was generated, and when the first renewed object is due.
    pub(super) fn into_notes(self) -> (Vec<String>, Option<Timestamp>) {
        (self.generated.into_inner(), self.due.into_inner())
    }

    /// Watches an object that is not ours, so that its change wakes the owner; returns whether it exists.
    pub(super) async fn watch(&self, resource: &ResourceType, key: &ObjectKey) -> bool {
        self.pass.watch_foreign(resource, key, Instant::now() + PATIENCE).await
    }

    pub(super) fn did(&self, place: &Place, result: NodeResult) {
        self.results.lock()[place.index] = result;
    }

    /// The contents that flow into a node, in the order in which its author named them.
    pub(super) fn contents_of(&self, place: &Place) -> Vec<Content> {
        let all = self.contents.lock();
        place.contents.iter().filter_map(|index| all[*index].clone()).collect()
    }
}

/// Entries of `status.generated` with their kinds. An entry of an older version, which has none, counts for every generated
/// object of that name in the plan.
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
