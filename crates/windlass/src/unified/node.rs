//! One visit to one node: compare → apply → check.

use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tracing::Instrument as _;
use windlass_graph::Progress;
use windlass_runtime::cache::Digest;
use windlass_runtime::client::{ClientError, Failure};
use windlass_runtime::controller::Class;
use windlass_runtime::events::EventType;
use windlass_runtime::meta::{Keep, Meta, Uid};

use super::builder::Machine;
use super::desk::{is_another, is_immutable};
use super::owner::OwnerView;
use crate::blueprint::Blueprint;
use crate::desired::Desired;
use crate::error::{DrawError, NodeError, Reason};
use crate::inputs::{Given, Held};
use crate::kinds::OpenKind;
use crate::live::{AsLive, Live, LiveRef};
use crate::memory::{Leave, Memory, REFUSAL};
use crate::metrics::NodeResult;
use crate::names::{ask, label, mark};
use crate::ownership;
use crate::plan::{Immutable, Node, Verb};
use crate::pods;
use crate::readiness::{self, Readiness};
use crate::secrecy::{self, Content, Random, Stamp};
use crate::seen::Wait;
use crate::step::{AnyStep, StepState};

pub(crate) type Visited = Result<Progress<Wait>, NodeError>;

/// One run of one owner's plan.
pub(crate) struct Visitor<'a, B: Blueprint> {
    pub(crate) machine: &'a Machine<B>,
    pub(crate) owner: &'a OwnerView,
    pub(crate) held: &'a Held,
    /// What the content of each node came to, for those that come after it.
    pub(crate) contents: Mutex<Vec<Option<Content>>>,
    /// What was generated, now or ever.
    pub(crate) generated: Mutex<Vec<String>>,
}

impl<B: Blueprint> Visitor<'_, B> {
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
        self.machine.metrics.visited(B::NAME, &kind, result, began.elapsed());
        visited
    }

    async fn bring(&self, node: &Node, done: &mut NodeResult) -> Visited {
        match &node.draft.verb {
            Verb::Apply(desired) => self.object(node, desired, done).await,
            Verb::CreateOnce { .. } => self.generated(node, done).await,
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

    async fn object(&self, node: &Node, planned: &Desired, done: &mut NodeResult) -> Visited {
        let kind = self.machine.kind(&planned.resource)?;
        let live = kind.get(&planned.key);
        let desired = self.complete(node, planned, live.as_deref().map(AsLive::live)).await?;
        self.offer_content(node, &desired)?;
        let digest = mark_of(&desired);
        match &live {
            None => self.create(node, &desired, &digest, done).await?,
            Some(live) if !self.owner.has(&live.live().metadata) => {
                if !self.take_back(live.live()) {
                    return Err(self.collision(&desired, &describe(live.live())));
                }
                self.update(node, &desired, &digest, &live.live().metadata, "taken back", done).await?;
            }
            Some(live) if live.live().metadata.deleting => return Ok(being_deleted(live.live())),
            Some(live) => {
                if let Some(why) = drift(&desired, &digest, live.live()) {
                    self.update(node, &desired, &digest, &live.live().metadata, &why, done).await?;
                }
            }
        }
        self.check(node, &desired, &*kind)
    }

    /// What was asked for, with everything that all objects of a plan have. The first error stops.
    pub(crate) async fn complete(
        &self,
        node: &Node,
        planned: &Desired,
        live: Option<&Live>,
    ) -> Result<Desired, NodeError> {
        let broken = |error: DrawError| NodeError::terminal(Reason::DrawFailed, error.to_string());
        let mut desired = planned.clone();
        for mutation in node.draft.mutations.iter().chain(&self.machine.mutations) {
            mutation(&mut desired).map_err(broken)?;
        }
        if desired.makes_pods() && desired.resource.group == "apps" {
            desired.label_pods(label::CONTROLLER, B::NAME);
            let contents: Vec<Content> = {
                let all = self.contents.lock();
                node.after.iter().filter_map(|index| all[*index].clone()).collect()
            };
            if !contents.is_empty() {
                let before = live.and_then(|live| live.metadata.annotations.get(mark::DEPENDENCIES));
                let stamp =
                    Stamp::next(self.machine.keyring.get().await?, &contents, before.map(|stamp| &**stamp));
                desired.annotate_pods(mark::TEMPLATE, stamp.token());
                desired.annotate(mark::DEPENDENCIES, stamp.to_string());
            }
        }
        self.mark_as_ours(node, &mut desired)?;
        let content = Digest::of(&desired.body).map_err(|error| broken(error.into()))?;
        let digest = if desired.is_secret() {
            self.machine.keyring.get().await?.digest(content)
        } else {
            secrecy::plain(content)
        };
        desired.annotate(mark::DIGEST, digest);
        Ok(desired)
    }

    /// Labels, order, and whose it is.
    fn mark_as_ours(&self, node: &Node, desired: &mut Desired) -> Result<(), NodeError> {
        desired.label(label::CONTROLLER, B::NAME);
        desired.label(label::OWNER, self.owner.uid.to_string());
        desired.annotate(mark::ORDER, node.order.to_string());
        let namespace = desired.key.namespace().map(str::to_owned);
        let retained = node.retained();
        match (&node.draft.verb, node.draft.retain) {
            (_, Some(false)) => desired.annotate(mark::RETAIN, "false"),
            _ if retained => desired.annotate(mark::RETAIN, self.owner.title()),
            (Verb::CreateOnce { .. }, None) => desired.annotate(mark::RETAIN, "unplanned"),
            _ => {}
        }
        if retained {
            return Ok(());
        }
        if self.owner.can_be_referred_to_from(namespace.as_deref()) {
            let reference = self
                .owner
                .reference_for(namespace.as_deref())
                .map_err(|error| NodeError::terminal(Reason::DrawFailed, error.to_string()))?;
            desired.body["metadata"]["ownerReferences"] = json!([reference]);
        }
        Ok(())
    }

    /// What others depend on: known before anything is written.
    fn offer_content(&self, node: &Node, desired: &Desired) -> Result<(), NodeError> {
        if desired.has_content() {
            let digest = Digest::of(&desired.content())
                .map_err(|error| NodeError::terminal(Reason::DrawFailed, error.to_string()))?;
            let content = Content { id: node.draft.id.clone(), digest: digest.as_bytes().to_vec() };
            self.contents.lock()[node.index] = Some(content);
        }
        Ok(())
    }

    async fn create(
        &self,
        node: &Node,
        desired: &Desired,
        digest: &str,
        done: &mut NodeResult,
    ) -> Result<(), NodeError> {
        let attempt = Attempt(digest, None).to_string();
        self.leave(node, desired, digest, &attempt)?;
        match self.machine.desk.create(desired).await {
            Ok(()) => {
                tracing::info!(object = ?desired, "created");
                *done = NodeResult::Created;
                self.machine.memory.accepted(&self.owner.key, self.owner.uid, &node.draft.id);
                Ok(())
            }
            Err(error) if matches!(error.failure(), Failure::Conflict | Failure::AlreadyExists) => {
                self.meet(node, desired, digest, done).await
            }
            Err(error) => Err(self.refused(node, &attempt, error)),
        }
    }

    /// Something of that name is there that our watch does not show: ours without its label, or somebody else's.
    async fn meet(
        &self,
        node: &Node,
        desired: &Desired,
        digest: &str,
        done: &mut NodeResult,
    ) -> Result<(), NodeError> {
        let Some(found) = self.machine.desk.look(&desired.resource, &desired.key).await? else {
            return Err(conflict("it came and went while we looked"));
        };
        let keep = Keep::default().annotation(ask::ADOPT).annotation(mark::RETAIN).manager(B::NAME);
        // From text: managers' entries are kept as they are written, which a tree no longer knows.
        let text = found.to_string();
        let live: Live = keep
            .scope(|| serde_json::from_str(&text))
            .map_err(|_| NodeError::transient(Reason::Unavailable, "what is there cannot be read"))?;
        let meta = &live.metadata;
        let consent = meta.annotations.get(ask::ADOPT).is_some_and(|title| **title == *self.owner.title())
            || self.owner.annotation(ask::ADOPT) == Some("true");
        if !(self.owner.has(meta) || self.take_back(&live) || (consent && meta.controller().is_none())) {
            self.machine.registry.follow_foreign(&self.owner.key, &desired.resource, &desired.key, self.held);
            return Err(self.collision(desired, &describe(&live)));
        }
        if meta.deleting {
            return Err(NodeError::transient(
                Reason::Waiting,
                "an object of that name is still being deleted",
            ));
        }
        let generated = matches!(node.draft.verb, Verb::CreateOnce { .. });
        if meta.managed.is_empty() && !generated {
            self.machine.desk.take_over(desired, &found).await?;
        }
        self.update(node, desired, digest, meta, "adopted", done).await
    }

    async fn update(
        &self,
        node: &Node,
        desired: &Desired,
        digest: &str,
        meta: &Meta,
        why: &str,
        done: &mut NodeResult,
    ) -> Result<(), NodeError> {
        let attempt = Attempt(digest, Some(meta)).to_string();
        self.leave(node, desired, digest, &attempt)?;
        let written = match node.draft.verb {
            Verb::CreateOnce { .. } => self.machine.desk.mark(desired, meta.uid).await,
            _ => self.machine.desk.update(desired, meta.uid, node.draft.conflicts).await,
        };
        match written {
            Ok(()) => {
                tracing::info!(object = ?desired, why, "applied");
                *done = NodeResult::Applied;
                self.machine.memory.accepted(&self.owner.key, self.owner.uid, &node.draft.id);
                Ok(())
            }
            Err(error) if is_immutable(&desired.resource, error.failure()) => {
                self.immutable(node, desired, meta, error).await
            }
            Err(error) if is_another(error.failure()) => {
                Err(conflict("it was replaced by another of its name while we looked"))
            }
            Err(error) if matches!(error.failure(), Failure::Invalid(_)) && is_drift(digest, meta) => {
                self.make_way(node, desired, &attempt, meta, error, done).await
            }
            Err(error) => Err(self.refused(node, &attempt, error)),
        }
    }

    /// What was right before is refused now, so somebody has put something beside it that cannot be there: it gives way.
    async fn make_way(
        &self,
        node: &Node,
        desired: &Desired,
        attempt: &str,
        meta: &Meta,
        refusal: ClientError,
        done: &mut NodeResult,
    ) -> Result<(), NodeError> {
        let Some(found) = self.machine.desk.look(&desired.resource, &desired.key).await? else {
            return Err(conflict("it went while we looked"));
        };
        if !self.machine.desk.make_way(desired, &found).await? {
            return Err(self.refused(node, attempt, refusal));
        }
        match self.machine.desk.update(desired, meta.uid, node.draft.conflicts).await {
            Ok(()) => {
                tracing::info!(object = ?desired, why = %refusal, "applied, after what was in its way");
                *done = NodeResult::Applied;
                self.machine.memory.accepted(&self.owner.key, self.owner.uid, &node.draft.id);
                Ok(())
            }
            Err(error) => Err(self.refused(node, attempt, error)),
        }
    }

    /// A field differs that cannot be changed.
    async fn immutable(
        &self,
        node: &Node,
        desired: &Desired,
        meta: &Meta,
        error: ClientError,
    ) -> Result<(), NodeError> {
        match node.draft.immutable.unwrap_or_else(|| Immutable::of(&desired.resource)) {
            Immutable::Report => {
                let attempt = Attempt(&mark_of(desired), Some(meta)).to_string();
                let said = format!(
                    "{error}: it cannot be changed; undo the change, or delete the object to have it created anew"
                );
                let error = NodeError::terminal(Reason::Immutable, said);
                self.machine.memory.refused(
                    &self.owner.key,
                    self.owner.uid,
                    &node.draft.id,
                    &attempt,
                    &error,
                );
                Err(error)
            }
            Immutable::Recreate => {
                tracing::info!(object = ?desired, %error, "deleted, to be created anew: a field cannot be changed");
                self.machine.desk.delete_alone(&desired.resource, &desired.key, meta.uid).await?;
                Err(conflict("it is being replaced, because a field of it cannot be changed"))
            }
        }
    }

    /// Leave to write, by what is remembered of earlier attempts.
    fn leave(&self, node: &Node, desired: &Desired, digest: &str, attempt: &str) -> Result<(), NodeError> {
        let (key, uid, id) = (&self.owner.key, self.owner.uid, &node.draft.id);
        match self.machine.memory.may_write(key, uid, id, digest, attempt, self.machine.writes) {
            Leave::Granted => Ok(()),
            Leave::Refused(error, _) => Err(NodeError { class: Class::Terminal, ..error }),
            Leave::Fight(_, first) => {
                // Without the time that is left: each look would be another status.
                let said = format!(
                    "it has been written {} times and is changed each time: somebody else writes it too. Look at its \
                     managedFields, and stop one of the two; it is tried again once a minute",
                    self.machine.writes
                );
                if first {
                    self.machine.metrics.fought(B::NAME, &desired.resource.kind);
                    let told = format!("{}: {said}", node.draft.id);
                    self.machine.event(self.owner, EventType::Warning, Reason::Fighting, &told);
                }
                Err(NodeError { class: Class::Terminal, reason: Reason::Fighting, message: said })
            }
        }
    }

    /// Remembers what the server would not have.
    fn refused(&self, node: &Node, attempt: &str, error: ClientError) -> NodeError {
        self.machine.memory.not_written(&self.owner.key, self.owner.uid, &node.draft.id);
        let internal = *error.failure() == Failure::Internal;
        let final_word = matches!(error.failure(), Failure::Invalid(_) | Failure::FieldConflict(_));
        let error = NodeError::from(error);
        if !(internal || final_word) {
            return error;
        }
        let times =
            self.machine.memory.refused(&self.owner.key, self.owner.uid, &node.draft.id, attempt, &error);
        if internal && Memory::is_last_word(times) {
            return NodeError { class: Class::Terminal, ..error };
        }
        error
    }

    fn collision(&self, desired: &Desired, whose: &str) -> NodeError {
        let said = format!(
            "an object of that name exists and is not ours ({whose}): it is left alone. Delete or rename it, or let it be taken over \
             with the annotation {}={} on it",
            ask::ADOPT,
            self.owner.title()
        );
        tracing::debug!(object = ?desired, whose, "collision");
        NodeError::terminal(Reason::Collision, said)
    }

    /// Whether an object is data that an earlier owner of our name left behind.
    fn take_back(&self, live: &Live) -> bool {
        let meta = &live.metadata;
        let kept_for_us =
            meta.annotations.get(mark::RETAIN).is_some_and(|title| **title == *self.owner.title());
        let former = meta.labels.get(label::OWNER).and_then(|uid| uid.parse::<Uid>().ok());
        kept_for_us
            && meta.controller().is_none()
            && meta.namespace() == self.owner.namespace()
            && former.is_none_or(|former| !self.machine.is_alive(former))
    }

    fn check(&self, node: &Node, desired: &Desired, kind: &dyn OpenKind) -> Visited {
        // The answer to our write is in the cache, unless it fell out of the selection.
        let Some(live) = kind.get(&desired.key) else {
            return Ok(Progress::Waiting(Wait::new("it has not been read back yet")));
        };
        let live = live.live();
        let readiness = match &node.draft.check {
            Some(check) => check(live),
            None => readiness::check(&desired.resource, live),
        };
        match readiness {
            Readiness::Ready => Ok(Progress::Ready),
            Readiness::Failed(why) => Err(NodeError::terminal(Reason::Failed, why)),
            Readiness::Waiting(why) => {
                let problem = self
                    .machine
                    .pods
                    .as_ref()
                    .and_then(|pods| pods::problem(pods, &desired.resource, &desired.key));
                Ok(Progress::Waiting(Wait::new(match problem {
                    Some(problem) => format!("{why} ({problem})"),
                    None => why,
                })))
            }
        }
    }

    /// An object that is generated once.
    async fn generated(&self, node: &Node, done: &mut NodeResult) -> Visited {
        let Verb::CreateOnce { resource, key, generate } = &node.draft.verb else {
            return Err(NodeError::terminal(Reason::DrawFailed, "it is not generated"));
        };
        let kind = self.machine.kind(resource)?;
        let live: Option<LiveRef> = kind.get(key);
        if let Some(live) = &live
            && !self.owner.has(&live.live().metadata)
            && !self.take_back(live.live())
        {
            let shell = self.shell(node, resource, key)?;
            return Err(self.collision(&shell, &describe(live.live())));
        }
        if live.is_none() {
            self.generate(node, key.name(), generate, done).await?;
        } else if let Some(live) = &live
            && !live.live().metadata.deleting
            && !self.is_marked(node, &live.live().metadata)
        {
            let shell = self.shell(node, resource, key)?;
            self.meet(node, &shell, "shell", done).await?;
        }
        let Some(live) = kind.get(key) else {
            return Ok(Progress::Waiting(Wait::new("it has not been read back yet")));
        };
        if live.live().metadata.deleting {
            return Ok(being_deleted(live.live()));
        }
        self.remember(key.name());
        // Its content is nobody's business; another one would be another object.
        let content =
            Content { id: node.draft.id.clone(), digest: live.live().metadata.uid.as_bytes().to_vec() };
        self.contents.lock()[node.index] = Some(content);
        match &node.draft.check {
            Some(check) => match check(live.live()) {
                Readiness::Ready => Ok(Progress::Ready),
                Readiness::Waiting(why) => Ok(Progress::Waiting(Wait::new(why))),
                Readiness::Failed(why) => Err(NodeError::terminal(Reason::Failed, why)),
            },
            None => Ok(Progress::Ready),
        }
    }

    async fn generate(
        &self,
        node: &Node,
        name: &str,
        generate: &crate::plan::Generator,
        done: &mut NodeResult,
    ) -> Result<(), NodeError> {
        let Verb::CreateOnce { resource, key, .. } = &node.draft.verb else { return Ok(()) };
        let known = self.owner.generated().iter().any(|generated| generated == name);
        if known && !self.owner.may_regenerate(name) {
            // It may be there without its label: then it is not lost.
            let shell = self.shell(node, resource, key)?;
            if self.machine.desk.look(resource, key).await?.is_some() {
                return self.meet(node, &shell, "shell", done).await;
            }
            // Restored from a backup, it may come without the label that our watch selects by.
            self.machine.registry.follow_foreign(&self.owner.key, resource, key, self.held);
            let said = format!(
                "it was generated and is gone. Restore it from a backup; or, if what it protected may be lost, have another one \
                 made with the annotation {}={name} on {}",
                ask::REGENERATE,
                self.owner.title()
            );
            return Err(NodeError::terminal(Reason::GeneratedLost, said));
        }
        let broken = |error: DrawError| NodeError::terminal(Reason::DrawFailed, error.to_string());
        let mut desired = generate(&mut Random::new()).map_err(broken)?;
        for mutation in node.draft.mutations.iter().chain(&self.machine.mutations) {
            mutation(&mut desired).map_err(broken)?;
        }
        self.mark_as_ours(node, &mut desired)?;
        self.leave(node, &desired, "generated", "generated")?;
        match self.machine.desk.create(&desired).await {
            Ok(()) => {
                tracing::info!(object = ?desired, "generated");
                *done = NodeResult::Created;
                Ok(())
            }
            Err(error) if matches!(error.failure(), Failure::Conflict | Failure::AlreadyExists) => {
                // What is there stays as it is: only its marks become ours.
                let shell = self.shell(node, resource, key)?;
                self.meet(node, &shell, "shell", done).await
            }
            Err(error) => Err(self.refused(node, "generated", error)),
        }
    }

    /// Whether an object that was generated says whose it is.
    fn is_marked(&self, node: &Node, meta: &Meta) -> bool {
        let needs_none = node.retained() || !self.owner.can_be_referred_to_from(meta.namespace());
        self.owner.has(meta)
            && meta.labels.get(label::OWNER).is_some_and(|uid| **uid == *self.owner.uid.to_string())
            && (needs_none || meta.controller().is_some())
    }

    /// The marks of an object, without its content.
    fn shell(
        &self,
        node: &Node,
        resource: &windlass_runtime::resource::ResourceType,
        key: &windlass_runtime::key::ObjectKey,
    ) -> Result<Desired, NodeError> {
        let body = json!({"metadata": {"name": key.name()}});
        let mut shell = Desired::from_value(resource.clone(), body, key.namespace())
            .map_err(|error| NodeError::terminal(Reason::DrawFailed, error.to_string()))?;
        self.mark_as_ours(node, &mut shell)?;
        Ok(shell)
    }

    fn remember(&self, name: &str) {
        let mut generated = self.generated.lock();
        if !generated.iter().any(|known| known == name) {
            generated.push(name.to_owned());
            generated.sort();
        }
    }
}

/// What the server was given: a content, and what it was to become a part of. What was refused on one object may be accepted on
/// the next, or when somebody has changed that one.
struct Attempt<'a>(&'a str, Option<&'a Meta>);

impl std::fmt::Display for Attempt<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self(digest, None) => f.write_str(digest),
            Self(digest, Some(meta)) => write!(f, "{digest} {} {}", meta.uid, meta.generation),
        }
    }
}

/// Why an object must be applied: `None` if nothing of it has changed since it was.
fn drift(desired: &Desired, digest: &str, live: &Live) -> Option<String> {
    let meta = &live.metadata;
    match meta.annotations.get(mark::DIGEST) {
        None => return Some("its digest is missing".into()),
        Some(known) if **known != *digest => return Some("the plan has changed".into()),
        Some(_) => {}
    }
    let api_version = desired.resource.api_version();
    let Some(entry) = meta.managed.iter().find(|entry| *entry.api_version == *api_version) else {
        return Some("it was written in another way".into());
    };
    ownership::lost(&desired.body, &entry.fields).map(|path| format!("somebody changed {path}"))
}

/// Whether the object has had this very content before.
fn is_drift(digest: &str, meta: &Meta) -> bool {
    meta.annotations.get(mark::DIGEST).is_some_and(|known| **known == *digest)
}

fn mark_of(desired: &Desired) -> String {
    let digest =
        desired.body.pointer("/metadata/annotations").and_then(|annotations| annotations.get(mark::DIGEST));
    digest.and_then(Value::as_str).unwrap_or_default().to_owned()
}

pub(crate) fn being_deleted(live: &Live) -> Progress<Wait> {
    let held: Vec<&str> = live.metadata.finalizers.iter().map(|finalizer| &**finalizer).collect();
    Progress::Waiting(Wait::new(if held.is_empty() {
        "it is being deleted".to_owned()
    } else {
        format!("it is being deleted, held by {}", held.join(", "))
    }))
}

/// Whose object it is, in a few words.
fn describe(live: &Live) -> String {
    match live.metadata.controller() {
        Some(controller) => format!("controlled by {} {}", controller.kind, controller.name),
        None => "it has no controller".to_owned(),
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secrecy::DigestKey;
    use k8s_openapi::api::core::v1::Secret;
    use windlass_runtime::resource::ResourceType;

    /// A changed value is a write of every object of every installation.
    #[test]
    fn the_digests_of_a_fixed_object_never_change() {
        let uid = "0b8d1c1e-9b1f-4f0e-8a63-7a5d1f0c2e9d";
        let body = json!({"metadata": {"name": "a", "namespace": "shop", "labels": {label::CONTROLLER: "shop.test", label::OWNER: uid},
            "annotations": {mark::ORDER: "0"}}, "data": {"k": "dg=="}, "type": null});
        let secret = Desired::from_value(ResourceType::of::<Secret>(), body, None).unwrap();
        let content = Digest::of(&secret.body).unwrap();
        assert_eq!(secrecy::plain(content), "9a2f95de2b8effb768e43de901f12985");
        assert_eq!(DigestKey::from_bytes(&[7; 32]).digest(content), "60528a91da1d58a8cca9ddf20fcd90bc");
    }

    /// A changed token restarts every database of every installation.
    #[test]
    fn the_token_in_a_pod_template_never_changes() {
        let body = json!({"metadata": {"name": "a", "namespace": "shop"}, "stringData": {"k": "v"}});
        let secret = Desired::from_value(ResourceType::of::<Secret>(), body, None).unwrap();
        let digest = Digest::of(&secret.content()).unwrap().as_bytes().to_vec();
        let contents = [Content { id: "Secret a".into(), digest }];
        let stamp = Stamp::next(&DigestKey::from_bytes(&[7; 32]), &contents, None);
        assert_eq!(stamp.token(), "35f0f43632b7a6f104ed8057310ab833");
    }
}
