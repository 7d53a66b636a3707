//! Inputs: objects of others that a plan needs.
//!
//! They are followed by namespace and name, one watch each however many owners want it, and only as long as one does: never all
//! Secrets of a cluster. What another blueprint of the same operator makes is read from one watch of [all that it makes](made).

use std::collections::HashMap;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use windlass_runtime::cache::{Cache, Selection, Shape, SyncState};
use windlass_runtime::intern::Str;
use windlass_runtime::json::{Unfit, typed};
use windlass_runtime::key::ObjectKey;
use windlass_runtime::resource::ResourceType;

use crate::content::{AsContent, Hashed, Readable, Whole};
use crate::desired::{Kind, id};
use crate::error::DrawError;
use crate::live::Live;
use crate::plan::{Complain, Plan, Planned};
use crate::readiness::{Readiness, by_conditions};
use crate::secrecy::Content;

pub(crate) mod made;
mod registry;
mod source;

pub(crate) use registry::{Held, Registry, Unknown};
use source::{ByName, Source};

/// Which inputs an owner needs; see [`Blueprint::inputs`](crate::Blueprint::inputs).
pub struct Inputs {
    namespace: Option<String>,
    pub(crate) wanted: Vec<Wanted>,
}

pub(crate) struct Wanted {
    pub(crate) id: String,
    need: Need,
    source: SourceKey,
    open: Open,
    decode: Decode,
}

impl Wanted {
    /// What it is if this is all there is: one of these objects, or missing. For [`sketch`](crate::sketch).
    pub(crate) fn among(&self, objects: &[serde_json::Value]) -> Result<ResolvedInput, DrawError> {
        let text = |object: &serde_json::Value, path: &str| {
            object.pointer(path).and_then(serde_json::Value::as_str).map(str::to_owned)
        };
        let is_it = |object: &&serde_json::Value| {
            text(object, "/kind").as_deref() == Some(&*self.source.resource.kind)
                && text(object, "/metadata/name").as_deref() == Some(self.source.key.name())
        };
        let content = match objects.iter().find(is_it) {
            Some(object) => Some((self.decode)(object)?),
            None => None,
        };
        let given = given(self, content.as_deref(), &SyncState::Synced);
        Ok(ResolvedInput { id: self.id.clone(), given, content })
    }

    pub(crate) fn resource(&self) -> &ResourceType {
        &self.source.resource
    }
}

type Open = Box<dyn Fn(&Cache, &Selection) -> Box<dyn Source> + Send + Sync>;
type Decode = fn(&serde_json::Value) -> Result<Arc<dyn AsContent>, Unfit>;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Need {
    There,
    Ready,
    Perhaps,
    /// Not even its kind.
    Not,
}

/// What makes two owners share a watch.
#[derive(Clone, PartialEq, Eq, Hash)]
struct SourceKey {
    resource: ResourceType,
    key: ObjectKey,
    form: Form,
}

/// What is kept of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Form {
    /// Of something in the way: only that it is there.
    Presence,
    Digest,
    Values,
    Whole,
    Observed,
}

impl Form {
    const ALL: [Self; 5] = [Self::Presence, Self::Digest, Self::Values, Self::Whole, Self::Observed];

    /// Whether who wants `other` is served with this. What is observed must be known not to be there: only its own watch can say that.
    fn does_for(self, other: Self) -> bool {
        match other {
            Self::Presence | Self::Digest => true,
            Self::Values | Self::Whole => self == other,
            Self::Observed => false,
        }
    }
}

impl Inputs {
    pub(crate) fn new(namespace: Option<&str>) -> Self {
        Self { namespace: namespace.map(str::to_owned), wanted: Vec::new() }
    }

    /// An object in the owner's namespace that must exist, owned by someone else. Its content flows, as a digest, into what comes
    /// after it.
    pub fn require<K: Kind>(&mut self, name: impl AsRef<str>) {
        self.want::<K, Hashed>(None, name.as_ref(), Need::There, Form::Digest);
    }

    /// The same, in another namespace. What an owner may name there is for the author to decide: whoever may write the owner
    /// gets to use that object.
    pub fn require_in<K: Kind>(&mut self, namespace: &str, name: impl AsRef<str>) {
        self.want::<K, Hashed>(Some(namespace), name.as_ref(), Need::There, Form::Digest);
    }

    /// The same, and its conditions must say that it is ready: for kinds of other controllers.
    pub fn require_ready<K: Kind>(&mut self, name: impl AsRef<str>) {
        self.want::<K, Hashed>(None, name.as_ref(), Need::Ready, Form::Digest);
    }

    /// Like [`require`](Self::require), and its values can be [read](Resolved::text) when the plan is drawn: they are then kept in
    /// this process. For ConfigMaps and Secrets.
    pub fn read<K: Kind>(&mut self, name: impl AsRef<str>) {
        self.want::<K, Readable>(None, name.as_ref(), Need::There, Form::Values);
    }

    /// An object that need not exist: it is read if it does.
    pub fn read_if_there<K: Kind>(&mut self, name: impl AsRef<str>) {
        self.want::<K, Readable>(None, name.as_ref(), Need::Perhaps, Form::Values);
    }

    /// An object that must exist and can be [looked at](Resolved::object) when the plan is drawn: it is then kept in this process.
    ///
    /// All of its content flows into what comes [after](Planned::after) it; what depends on a part of it only is better drawn from
    /// that part, and left [pending](Plan::pending) without it.
    pub fn read_object<K: Kind>(&mut self, name: impl AsRef<str>) {
        self.want::<K, Whole>(None, name.as_ref(), Need::There, Form::Whole);
    }

    /// An object as it is now, to be [looked at](Resolved::observed) when the plan is drawn: also one that the plan makes itself, and one
    /// that others make of what the plan makes. Nothing waits for it, neither for the object nor for its kind; the plan is drawn again
    /// whenever it changes, its status included. As long as nobody knows whether it is there (it has not been read yet, or may not be), there is no
    /// plan: what is decided by what is there must not be decided as if nothing were.
    pub fn observe<K: Kind>(&mut self, name: impl AsRef<str>) {
        self.want::<K, Whole>(None, name.as_ref(), Need::Not, Form::Observed);
    }

    fn want<K: Kind, S: Shape + AsContent>(
        &mut self,
        namespace: Option<&str>,
        name: &str,
        need: Need,
        form: Form,
    ) {
        let resource = ResourceType::of::<K>();
        let home = self.namespace.as_deref();
        let namespace = namespace.or(home).filter(|_| resource.namespaced).map(Str::new);
        let key = ObjectKey::new(namespace, name);
        let id = id(&resource, &key, home);
        let id = if form == Form::Observed { observed(&id) } else { id };
        if self.wanted.iter().any(|wanted| wanted.id == id && wanted.source.form == form) {
            return;
        }
        let opened = (resource.clone(), key.clone());
        let open = move |cache: &Cache, selection: &Selection| -> Box<dyn Source> {
            let reader = cache.reader_of::<S>(&opened.0, selection);
            Box::new(ByName { reader, key: opened.1.clone(), form })
        };
        self.wanted.push(Wanted {
            id,
            need,
            source: SourceKey { resource, key, form },
            open: Box::new(open),
            decode: |object| Ok(Arc::new(typed::<S>(object)?)),
        });
    }
}

/// What became of an input.
#[derive(Clone)]
pub(crate) enum Given {
    /// It is there, with this content.
    There(Content),
    /// It is not, or not yet; and what to do.
    Missing(String),
    /// It is not ready.
    NotReady(String),
    /// It is not there, and need not be.
    NotNeeded,
}

/// The inputs as they are now, by what was [asked for](Inputs).
pub struct Resolved {
    namespace: Option<String>,
    found: HashMap<String, (Planned, Option<Arc<dyn AsContent>>)>,
    complain: Complain,
    /// For a [preview](crate::preview): inputs are taken to be there, and have no values.
    pub(crate) assumed: bool,
}

impl Resolved {
    /// Gives each input its node in the plan.
    pub(crate) fn place(resolved: Vec<ResolvedInput>, namespace: Option<&str>, plan: &mut Plan) -> Self {
        let mut found: HashMap<String, (Planned, Option<Arc<dyn AsContent>>)> = HashMap::new();
        for ResolvedInput { id, given, content } in resolved {
            // Required and read: one node, with the values.
            if let Some((_, values)) = found.get_mut(&id) {
                *values = content.or(values.take());
            } else {
                let planned = plan.input(id.clone(), given);
                found.insert(id, (planned, content));
            }
        }
        Self { namespace: namespace.map(str::to_owned), found, complain: plan.complaints(), assumed: false }
    }

    /// The node of an input in the owner's namespace, for others to come [after](Planned::after) it. That it was not among the
    /// inputs fails the draw.
    pub fn get<K: Kind>(&self, name: impl AsRef<str>) -> Planned {
        self.planned::<K>(None, name.as_ref())
    }

    /// The same for an input of another namespace.
    pub fn get_in<K: Kind>(&self, namespace: &str, name: impl AsRef<str>) -> Planned {
        self.planned::<K>(Some(namespace), name.as_ref())
    }

    /// Whether this is a [preview](crate::preview): every input is taken to be there, and none has values.
    pub fn is_assumed(&self) -> bool {
        self.assumed
    }

    /// Whether the input is there.
    pub fn has<K: Kind>(&self, name: impl AsRef<str>) -> bool {
        self.found::<K>(None, name.as_ref()).is_some_and(|(_, content)| content.is_some())
    }

    /// An input that was asked for with [`Inputs::read_object`]; `None` if it is not there, or not what its type says.
    pub fn object<K: Kind + DeserializeOwned>(&self, name: impl AsRef<str>) -> Option<K> {
        let (_, content) = self.found::<K>(None, name.as_ref())?;
        serde_json::from_slice(content.as_ref()?.object()?.as_bytes()).ok()
    }

    /// An object that is [observed](Inputs::observe); `None` if it is not there, or not what its type says.
    pub fn observed<K: Kind + DeserializeOwned>(&self, name: impl AsRef<str>) -> Option<K> {
        let (_, content) = self.found_as::<K>(None, name.as_ref(), observed)?;
        serde_json::from_slice(content.as_ref()?.object()?.as_bytes()).ok()
    }

    /// The same as far as its readiness goes, for the checks of [`readiness`](crate::readiness).
    pub fn observed_live<K: Kind, T>(
        &self,
        name: impl AsRef<str>,
        look: impl FnOnce(&Live) -> T,
    ) -> Option<T> {
        let (_, content) = self.found_as::<K>(None, name.as_ref(), observed)?;
        content.as_ref().map(|content| look(content.live()))
    }

    /// The same as far as its readiness goes, for the checks of [`readiness`](crate::readiness).
    pub fn live<K: Kind, T>(&self, name: impl AsRef<str>, look: impl FnOnce(&Live) -> T) -> Option<T> {
        let (_, content) = self.found::<K>(None, name.as_ref())?;
        content.as_ref().map(|content| look(content.live()))
    }

    /// The value of a key of an input that was asked for with [`Inputs::read`], as bytes.
    pub fn bytes<K: Kind>(&self, name: impl AsRef<str>, key: &str) -> Option<Vec<u8>> {
        let (_, content) = self.found::<K>(None, name.as_ref())?;
        content.as_ref()?.value(&ResourceType::of::<K>(), key)
    }

    /// The value of a key of an input that was asked for with [`Inputs::read`]; `None` if it is missing or no text.
    pub fn text<K: Kind>(&self, name: impl AsRef<str>, key: &str) -> Option<String> {
        String::from_utf8(self.bytes::<K>(name, key)?).ok()
    }

    /// The keys of an input that was asked for with [`Inputs::read`]; none if it is not there.
    pub fn keys<K: Kind>(&self, name: impl AsRef<str>) -> Vec<String> {
        let content = self.found::<K>(None, name.as_ref()).and_then(|(_, content)| content.as_ref());
        content.map(|content| content.keys()).unwrap_or_default()
    }

    fn planned<K: Kind>(&self, namespace: Option<&str>, name: &str) -> Planned {
        match self.found::<K>(namespace, name) {
            Some((planned, _)) => planned.clone(),
            None => self.complain.nowhere(),
        }
    }

    fn found<K: Kind>(
        &self,
        namespace: Option<&str>,
        name: &str,
    ) -> Option<&(Planned, Option<Arc<dyn AsContent>>)> {
        self.found_as::<K>(namespace, name, str::to_owned)
    }

    fn found_as<K: Kind>(
        &self,
        namespace: Option<&str>,
        name: &str,
        form: fn(&str) -> String,
    ) -> Option<&(Planned, Option<Arc<dyn AsContent>>)> {
        let resource = ResourceType::of::<K>();
        let home = self.namespace.as_deref();
        let key = ObjectKey::new(namespace.or(home).filter(|_| resource.namespaced).map(Str::new), name);
        let id = form(&id(&resource, &key, home));
        let found = self.found.get(&id);
        if found.is_none() {
            let said =
                format!("{id} is used by the plan but not among its inputs: ask for it in Blueprint::inputs");
            self.complain.error(DrawError::new(said));
        }
        found
    }
}

/// What an observed object is called in a plan, which may have the object itself under its own name.
fn observed(id: &str) -> String {
    format!("{id}, as it is")
}

/// One input, read.
#[derive(Clone)]
pub(crate) struct ResolvedInput {
    pub(crate) id: String,
    pub(crate) given: Given,
    pub(crate) content: Option<Arc<dyn AsContent>>,
}

fn given(wanted: &Wanted, content: Option<&dyn AsContent>, state: &SyncState) -> Given {
    match (content, state) {
        (Some(content), _) => match by_conditions(content.live()) {
            Readiness::Waiting(why) | Readiness::Failed(why) if wanted.need == Need::Ready => {
                Given::NotReady(why)
            }
            _ => {
                Given::There(Content { id: wanted.id.clone(), digest: content.digest().as_bytes().to_vec() })
            }
        },
        (None, _) if wanted.need == Need::Not => Given::NotNeeded,
        (None, SyncState::Synced) if wanted.need == Need::Perhaps => Given::NotNeeded,
        (None, SyncState::Synced) => {
            Given::Missing("it does not exist: create it, or change the reference to it".to_owned())
        }
        (None, SyncState::Blocked(problem)) => Given::Missing(format!("it cannot be read: {problem}")),
        (None, SyncState::Starting) => Given::Missing("it has not been read yet".to_owned()),
    }
}
