//! One visit to one node, whatever its verb: with its span, its metrics, and what it leaves for those that come after it.

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::OnceCell;
use tracing::Instrument as _;
use windlass_graph::Progress;
use windlass_runtime::controller::Class;
use windlass_runtime::key::ObjectKey;
use windlass_runtime::resource::ResourceType;

use super::builder::Machine;
use super::owner::OwnerView;
use crate::error::{NodeError, Reason};
use crate::inputs::{Given, Held};
use crate::live::Live;
use crate::memory::REFUSAL;
use crate::metrics::NodeResult;
use crate::plan::{Drawn, Node, Verb};
use crate::secrecy::Content;
use crate::seen::Wait;
use crate::step::{AnyStep, StepState};

pub(crate) type Visited = Result<Progress<Wait>, NodeError>;

/// One run of one owner's plan.
pub(crate) struct Visitor<'a> {
    pub(crate) machine: &'a Machine,
    pub(crate) owner: &'a OwnerView,
    pub(crate) held: &'a Held,
    /// What the content of each node came to, for those that come after it.
    pub(crate) contents: Mutex<Vec<Option<Content>>>,
    /// What was generated, now or ever.
    pub(crate) generated: Mutex<Vec<String>>,
    /// Where the renewed objects of the plan are, by their nodes.
    pub(crate) renewed: Vec<(usize, ResourceType, ObjectKey)>,
    /// Those of them that were read or made in this run: never kept beyond it.
    pub(crate) bodies: Mutex<HashMap<usize, Value>>,
    /// When the first of them is due.
    pub(crate) again: Mutex<Option<Timestamp>>,
    /// Whether the server still has the owner, once it was asked.
    pub(crate) owner_stays: OnceCell<bool>,
}

impl<'a> Visitor<'a> {
    pub(crate) fn new(machine: &'a Machine, owner: &'a OwnerView, held: &'a Held, drawn: &Drawn) -> Self {
        let renewed = drawn.nodes().filter_map(|node| match &node.draft.verb {
            Verb::Renew { resource, key, .. } => Some((node.index, resource.clone(), key.clone())),
            _ => None,
        });
        Self {
            machine,
            owner,
            held,
            contents: Mutex::new(vec![None; drawn.graph.len()]),
            generated: Mutex::new(owner.generated()),
            renewed: renewed.collect(),
            bodies: Mutex::default(),
            again: Mutex::default(),
            owner_stays: OnceCell::new(),
        }
    }
}

impl Visitor<'_> {
    /// Visits a node, with its span and its metrics.
    pub(crate) async fn visit(&self, node: &Node) -> Visited {
        let kind = node
            .object()
            .map_or_else(|| verb(&node.draft.verb).to_owned(), |(resource, _)| resource.kind.to_string());
        let span = tracing::info_span!("node", id = node.draft.id);
        let began = tokio::time::Instant::now();
        let (result, visited) = async {
            let mut done = NodeResult::Unchanged;
            let visited = self.bring(node, &mut done).await;
            match &visited {
                Ok(Progress::Waiting(wait)) => tracing::debug!(why = %wait, "waiting"),
                Err(error) => tracing::warn!(%error, class = %error.class, "failed"),
                Ok(Progress::Ready) => {}
            }
            (done, visited)
        }
        .instrument(span)
        .await;
        let result = match (&visited, result) {
            (Err(_), _) => NodeResult::Failed,
            (Ok(Progress::Waiting(_)), NodeResult::Unchanged) => NodeResult::Waiting,
            (_, result) => result,
        };
        self.machine.metrics.visited(self.machine.name, &kind, result, began.elapsed());
        visited
    }

    async fn bring(&self, node: &Node, done: &mut NodeResult) -> Visited {
        match &node.draft.verb {
            Verb::Apply(desired) => self.object(node, desired, done).await,
            Verb::CreateOnce { .. } => self.generated(node, done).await,
            Verb::Renew { .. } => self.renewed(node, done).await,
            Verb::Pending { why, .. } => Ok(Progress::Waiting(Wait::new(why.clone()))),
            Verb::Step(step) => self.step(node, &**step).await,
            Verb::Input(given) => self.input(node, given),
            Verb::Broken => Err(NodeError::terminal(Reason::DrawFailed, "it could not be drawn")),
        }
    }

    fn input(&self, node: &Node, given: &Given) -> Visited {
        let wait =
            |reason, why: &str| Ok(Progress::Waiting(Wait { reason, message: why.to_owned(), poll: None }));
        match given {
            Given::There(content) => {
                self.contents.lock()[node.index] = Some(content.clone());
                Ok(Progress::Ready)
            }
            Given::NotNeeded => Ok(Progress::Ready),
            Given::NotReady(why) => wait(Reason::Waiting, why),
            Given::Missing(why) => Ok(Progress::Waiting(Wait {
                reason: Reason::InputMissing,
                message: why.clone(),
                // The watch tells when it comes; this is for one that could not be opened in time.
                poll: why.ends_with("yet").then_some(Duration::from_secs(10)),
            })),
        }
    }

    async fn step(&self, node: &Node, step: &dyn AnyStep) -> Visited {
        let mut state = step.check().await?;
        if state == StepState::NotDone {
            step.act().await?;
            state = step.check().await?;
        }
        let why = match state {
            StepState::Done => {
                self.machine.memory.finished(&self.owner.key, self.owner.uid, &node.draft.id);
                return Ok(Progress::Ready);
            }
            StepState::NotDone => "it was begun and is not done yet".to_owned(),
            StepState::Waiting(why) => why,
        };
        let waited = self.machine.memory.unfinished_for(&self.owner.key, self.owner.uid, &node.draft.id);
        if waited > step.patience() {
            let said = format!("{why} (for more than {} s)", step.patience().as_secs());
            return Err(NodeError::transient(Reason::Failed, said));
        }
        Ok(Progress::Waiting(Wait { reason: Reason::Waiting, message: why, poll: Some(step.poll()) }))
    }
}

pub(crate) fn being_deleted(live: &Live) -> Progress<Wait> {
    let held: Vec<&str> = live.metadata.finalizers.iter().map(|finalizer| &**finalizer).collect();
    Progress::Waiting(Wait::new(if held.is_empty() {
        "it is being deleted".to_owned()
    } else {
        format!("it is being deleted, held by {}", held.join(", "))
    }))
}

pub(crate) fn conflict(message: &str) -> NodeError {
    NodeError { class: Class::Conflict, reason: Reason::Conflict, message: message.to_owned() }
}

fn verb(verb: &Verb) -> &'static str {
    match verb {
        Verb::Step(_) => "step",
        Verb::Input(_) => "input",
        _ => "object",
    }
}

/// When a refused content is sent again, at the latest.
pub(crate) const RETRY: Duration = REFUSAL;
