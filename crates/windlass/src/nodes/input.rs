//! Objects that a plan asks for: the methods that ask, and the node that each adds to the plan.

use std::fmt;
use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt as _};
use serde::de::DeserializeOwned;
use windlass_graph::Progress;
use windlass_runtime::cache::Shape;
use windlass_runtime::resource::ResourceType;

use crate::error::{PlanError, Reason};
use crate::live::content::AsContent;
use crate::live::kind::id;
use crate::live::readiness::{Readiness, by_conditions};
use crate::live::{Kind, Known, Live};
use crate::needs::labelled::ListAsk;
use crate::needs::{Answer, Form};
use crate::plan::node::{Node, Place, Sketched, Visit, Visited, Wait};
use crate::plan::{Needs, Planned};

/// Methods that ask for objects.
impl Needs<'_> {
    /// Asks for an object in the owner's namespace that must exist and that somebody else owns. The digest of
    /// its content flows into the nodes that come after it.
    pub fn require<K: Kind>(&self, name: impl AsRef<str>) -> Planned {
        self.required::<K>(None, name.as_ref(), Require::There, Form::Digest).0
    }

    /// Asks for an object in another namespace. The author decides which objects an owner may name there:
    /// everybody who may write the owner gets to use that object.
    pub fn require_in<K: Kind>(&self, namespace: &str, name: impl AsRef<str>) -> Planned {
        self.required::<K>(Some(namespace), name.as_ref(), Require::There, Form::Digest).0
    }

    /// Asks for an object in the owner's namespace with conditions that must report it as ready: for kinds of
    /// other controllers.
    pub fn require_ready<K: Kind>(&self, name: impl AsRef<str>) -> Planned {
        self.required::<K>(None, name.as_ref(), Require::Ready, Form::Digest).0
    }

    /// Asks for a ConfigMap or Secret that must exist, and reads its values: they are then kept in this
    /// process.
    pub fn read<K: Kind>(&self, name: impl AsRef<str>) -> Values {
        self.values::<K>(name.as_ref(), Require::There)
    }

    /// Asks for a ConfigMap or Secret that need not exist, and reads its values if it does.
    pub fn read_if_there<K: Kind>(&self, name: impl AsRef<str>) -> Values {
        self.values::<K>(name.as_ref(), Require::Optional)
    }

    /// Asks for an object that must exist, and reads it as a whole: it is then kept in this process.
    ///
    /// All of its content flows into the nodes that come [after](Planned::after) it. If a node depends on a
    /// part of it only, draw the node from that part, and leave the node [pending](crate::Plan::pending)
    /// while the part is missing.
    pub fn object<K: Kind + DeserializeOwned>(&self, name: impl AsRef<str>) -> Object<K> {
        let (node, content) = self.required::<K>(None, name.as_ref(), Require::There, Form::Whole);
        Object::new(node, content)
    }

    /// Returns whether an object exists. Nothing waits for it; while the answer is unknown, the plan is
    /// incomplete.
    pub fn exists<K: Kind>(&self, name: impl AsRef<str>) -> Known<bool> {
        let resource = ResourceType::of::<K>();
        let key = self.key(&resource, None, name.as_ref());
        let id = format!("{}, if it exists", id(&resource, &key, self.namespace()));
        let answer = self.ask(resource, key, Form::Presence);
        let state = InputState::of(&answer, Require::Optional).without_content();
        self.node(id, Input(state));
        match answer {
            Answer::There(_) | Answer::Assumed => Known::Known(true),
            Answer::Absent => Known::Known(false),
            Answer::Unknown(why) => Known::Unknown(why),
        }
    }

    /// Returns the present state of an object: also of one that the plan creates itself, or that others
    /// create from the objects of the plan. Nothing waits for the object or for its kind; the plan is drawn
    /// again whenever the object or its status changes.
    ///
    /// An object that is not known yet is not absent: do not decide as if it were.
    /// [`observed`](Self::observed) ends the draw instead.
    pub fn observe<K: Kind + DeserializeOwned>(&self, name: impl AsRef<str>) -> Known<Option<Object<K>>> {
        let resource = ResourceType::of::<K>();
        let key = self.key(&resource, None, name.as_ref());
        // The plan may contain the object itself under its own name.
        let id = format!("{}, as it is", id(&resource, &key, self.namespace()));
        let answer = self.ask(resource, key, Form::Observed);
        let node = self.node(id, Input(InputState::of(&answer, Require::Optional)));
        match answer {
            Answer::There(content) => Known::Known(Some(Object::new(node, Some(content)))),
            Answer::Absent | Answer::Assumed => Known::Known(None),
            Answer::Unknown(why) => {
                let why = why.strip_prefix("it ").unwrap_or(&why);
                Known::Unknown(format!("{} {} {why}", K::kind(&()), name.as_ref()))
            }
        }
    }

    /// Returns the present state of an object, as [`observe`](Self::observe) does. As long as it is unknown
    /// whether the object exists, this is an error that ends the draw: there is no plan then, and nothing is
    /// written.
    ///
    /// A plan that observes several objects asks for all of them before the first `?`, with
    /// [`observe`](Self::observe) and [`Known::or_wait`].
    ///
    /// # Errors
    /// The object has not been read yet, or cannot be read.
    pub fn observed<K: Kind + DeserializeOwned>(
        &self,
        name: impl AsRef<str>,
    ) -> Result<Option<Object<K>>, PlanError> {
        self.observe::<K>(name).or_wait()
    }

    /// Returns the present state of an object, as [`observe`](Self::observe) does, without a node: the object
    /// flows into nothing, and asking for it only sometimes does not change the number of nodes.
    ///
    /// While the answer is unknown, end the draw with [`Known::or_wait`]: the plan does not say that it is
    /// incomplete.
    pub fn look<K: Kind + DeserializeOwned>(&self, name: impl AsRef<str>) -> Known<Option<K>> {
        let resource = ResourceType::of::<K>();
        let key = self.key(&resource, None, name.as_ref());
        match self.ask(resource, key, Form::Observed) {
            Answer::There(content) => {
                let decoded = content.object().map(|object| serde_json::from_slice(object.as_bytes()));
                match decoded.and_then(Result::ok) {
                    Some(object) => Known::Known(Some(object)),
                    None => Known::Unknown(format!("{} {} cannot be read", K::kind(&()), name.as_ref())),
                }
            }
            Answer::Absent | Answer::Assumed => Known::Known(None),
            Answer::Unknown(why) => {
                let why = why.strip_prefix("it ").unwrap_or(&why);
                Known::Unknown(format!("{} {} {why}", K::kind(&()), name.as_ref()))
            }
        }
    }

    /// All objects of a kind in the owner's namespace that carry a label with this value, in the shape that
    /// was [declared](crate::Kinds::lists). A list is unknown until it was read, never empty. Changes wake
    /// the owner.
    pub fn labelled<K: Kind, S: Shape>(
        &self,
        label: &'static str,
        value: impl Into<String>,
    ) -> Known<Vec<Arc<S>>> {
        let ask = ListAsk::new::<S>(ResourceType::of::<K>(), label, value.into());
        let found = self.ask_list(&ask);
        let state = match &found {
            Known::Known(_) => InputState::NotNeeded,
            Known::Unknown(why) => InputState::Unknown(why.clone()),
        };
        self.node(ask.title(), Input(state));
        // Another namespace may have an owner of the same name.
        let is_beside = |object: &Arc<S>| {
            let namespace = object.meta().namespace();
            self.namespace().is_none() || namespace.is_none() || namespace == self.namespace()
        };
        let typed =
            |object: Arc<dyn std::any::Any + Send + Sync>| object.downcast::<S>().ok().filter(is_beside);
        found.map(|objects| objects.into_iter().filter_map(typed).collect())
    }

    fn values<K: Kind>(&self, name: &str, require: Require) -> Values {
        let (node, content) = self.required::<K>(None, name, require, Form::Values);
        Values { node, resource: ResourceType::of::<K>(), content }
    }

    fn required<K: Kind>(
        &self,
        namespace: Option<&str>,
        name: &str,
        require: Require,
        form: Form,
    ) -> (Planned, Option<Arc<dyn AsContent>>) {
        let resource = ResourceType::of::<K>();
        let key = self.key(&resource, namespace, name);
        let id = id(&resource, &key, self.namespace());
        let answer = self.ask(resource, key, form);
        let node = self.node(id, Input(InputState::of(&answer, require)));
        match answer {
            Answer::There(content) => (node, Some(content)),
            Answer::Absent | Answer::Assumed | Answer::Unknown(_) => (node, None),
        }
    }
}

/// The requirement of a plan on an object that it asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Require {
    /// It must exist.
    There,
    /// It must exist and be ready.
    Ready,
    /// It need not exist, but its state must be known.
    Optional,
}

/// The state of an object that the plan asked for.
#[derive(Clone)]
enum InputState {
    /// It exists; its content has this digest.
    There(Vec<u8>),
    /// It does not exist, and need not.
    NotNeeded,
    /// It does not exist, and must.
    Missing,
    /// It is not ready, for this reason.
    NotReady(String),
    /// It is unknown whether it exists, for this reason.
    Unknown(String),
}

const MISSING: &str = "it does not exist: create it, or change the reference to it";

impl InputState {
    fn of(answer: &Answer, require: Require) -> Self {
        match answer {
            Answer::There(content) => match by_conditions(content.live()) {
                Readiness::Waiting(why) | Readiness::Failed(why) if require == Require::Ready => {
                    Self::NotReady(why)
                }
                _ => Self::There(content.digest().as_bytes().to_vec()),
            },
            Answer::Assumed => Self::There(Vec::new()),
            Answer::Absent if require == Require::Optional => Self::NotNeeded,
            Answer::Absent => Self::Missing,
            Answer::Unknown(why) => Self::Unknown(why.clone()),
        }
    }

    /// Returns the same state without a digest, for an object of which only the existence matters.
    fn without_content(self) -> Self {
        match self {
            Self::There(_) => Self::NotNeeded,
            other => other,
        }
    }

    /// Returns the reason why dependents wait.
    fn why(&self) -> Option<&str> {
        match self {
            Self::There(_) | Self::NotNeeded => None,
            Self::Missing => Some(MISSING),
            Self::NotReady(why) | Self::Unknown(why) => Some(why),
        }
    }
}

/// The node of an object that was asked for.
struct Input(InputState);

impl Node for Input {
    fn describe(&self) -> String {
        "required".to_owned()
    }

    fn kind(&self) -> &'static str {
        "input"
    }

    fn sketch(&self) -> Sketched<'_> {
        match &self.0 {
            InputState::There(digest) => Sketched::Offers(digest),
            state => state.why().map_or(Sketched::Nothing, Sketched::Waits),
        }
    }

    fn is_need(&self) -> bool {
        true
    }

    fn is_incomplete(&self) -> bool {
        matches!(self.0, InputState::Missing | InputState::Unknown(_))
    }

    fn visit<'a>(&'a self, place: &'a Place, run: &'a dyn Visit) -> BoxFuture<'a, Visited> {
        async move {
            let reason = match &self.0 {
                InputState::There(digest) => {
                    run.offer(place, digest.clone());
                    return Ok(Progress::Ready);
                }
                InputState::NotNeeded => return Ok(Progress::Ready),
                InputState::NotReady(_) => Reason::Waiting,
                InputState::Missing | InputState::Unknown(_) => Reason::InputMissing,
            };
            // A watch reports the change.
            Ok(Wait::because(reason, self.0.why().unwrap_or_default()).into())
        }
        .boxed()
    }

    fn remove<'a>(&'a self, _: &'a Place, _: &'a dyn Visit) -> BoxFuture<'a, Visited> {
        // Only nodes that come after it could need it, and they have been removed by now.
        async { Ok(Progress::Ready) }.boxed()
    }
}

/// The values of a ConfigMap or Secret that was [read](Needs::read).
#[derive(Clone)]
pub struct Values {
    node: Planned,
    resource: ResourceType,
    content: Option<Arc<dyn AsContent>>,
}

impl Values {
    /// Returns the node, so that others can come [after](Planned::after) it.
    pub fn node(&self) -> &Planned {
        &self.node
    }

    /// Returns whether the object exists.
    pub fn is_there(&self) -> bool {
        self.content.is_some()
    }

    /// Returns the value of a key as bytes; `None` if the object or the key does not exist.
    pub fn bytes(&self, key: &str) -> Option<Vec<u8>> {
        self.content.as_ref()?.value(&self.resource, key)
    }

    /// Returns the value of a key as text; `None` if the object or the key does not exist, or the value is
    /// not UTF-8.
    pub fn text(&self, key: &str) -> Option<String> {
        String::from_utf8(self.bytes(key)?).ok()
    }

    /// Returns the keys; none if the object does not exist.
    pub fn keys(&self) -> Vec<String> {
        self.content.as_ref().map(|content| content.keys()).unwrap_or_default()
    }
}

impl fmt::Debug for Values {
    // Values are left out of debug output: they may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Values").field("node", &self.node).finish_non_exhaustive()
    }
}

/// An object that was read [as a whole](Needs::object), or [observed](Needs::observe).
pub struct Object<K> {
    node: Planned,
    content: Option<Arc<dyn AsContent>>,
    kind: std::marker::PhantomData<fn() -> K>,
}

impl<K: DeserializeOwned> Object<K> {
    fn new(node: Planned, content: Option<Arc<dyn AsContent>>) -> Self {
        Self { node, content, kind: std::marker::PhantomData }
    }

    /// Returns the node, so that others can come [after](Planned::after) it.
    pub fn node(&self) -> &Planned {
        &self.node
    }

    /// Returns the object; `None` if it does not exist, or cannot be decoded as this type.
    pub fn get(&self) -> Option<K> {
        serde_json::from_slice(self.content.as_ref()?.object()?.as_bytes()).ok()
    }

    /// Passes the fields that matter for readiness to a function, such as the checks of
    /// [`readiness`](crate::readiness).
    pub fn live<T>(&self, look: impl FnOnce(&Live) -> T) -> Option<T> {
        self.content.as_ref().map(|content| look(content.live()))
    }
}

impl<K> Clone for Object<K> {
    fn clone(&self) -> Self {
        Self { node: self.node.clone(), content: self.content.clone(), kind: std::marker::PhantomData }
    }
}

impl<K> fmt::Debug for Object<K> {
    // The object is left out of debug output: it may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Object").field("node", &self.node).finish_non_exhaustive()
    }
}
