//! What is said about which object.

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Resource;

use crate::key::ObjectKey;
use crate::meta::Uid;
use crate::resource::ResourceType;

/// What the API server takes at most: bytes of a note, and of a reason, an action or an instance.
pub(super) const LONGEST_NOTE: usize = 1024;
pub(super) const LONGEST_WORD: usize = 128;

/// Whether something went well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventType {
    /// All is as it should be.
    Normal,
    /// Somebody should have a look.
    Warning,
}

impl EventType {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// An object that an event is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Regarding {
    api_version: String,
    kind: String,
    namespace: Option<String>,
    name: String,
    uid: Option<String>,
}

impl Regarding {
    /// A typed object.
    pub fn of<K: Resource<DynamicType = ()>>(object: &K) -> Self {
        let meta = object.meta();
        Self {
            api_version: K::api_version(&()).into_owned(),
            kind: K::kind(&()).into_owned(),
            namespace: meta.namespace.clone(),
            name: meta.name.clone().unwrap_or_default(),
            uid: meta.uid.clone(),
        }
    }

    /// Any object: its kind, key and incarnation.
    pub fn new(resource: &ResourceType, key: &ObjectKey, uid: Uid) -> Self {
        Self {
            api_version: resource.api_version(),
            kind: resource.kind.to_string(),
            namespace: key.namespace().map(str::to_owned),
            name: key.name().to_owned(),
            uid: (!uid.is_unknown()).then(|| uid.to_string()),
        }
    }

    /// Where events about it are kept: its namespace, or `default` for an object that has none.
    pub(super) fn home(&self) -> &str {
        self.namespace.as_deref().unwrap_or("default")
    }

    /// The beginning of the names of events about it, short enough for `longest` bytes.
    pub(super) fn stem(&self, longest: usize) -> &str {
        // Names are ASCII, but what was given to us need not be one.
        clip(&self.name, longest).trim_end_matches(['-', '.'])
    }

    pub(super) fn reference(&self) -> ObjectReference {
        ObjectReference {
            api_version: Some(self.api_version.clone()),
            kind: Some(self.kind.clone()),
            namespace: self.namespace.clone(),
            name: Some(self.name.clone()),
            uid: self.uid.clone(),
            ..ObjectReference::default()
        }
    }
}

/// An event, as it is recorded. Events that are equal are one series.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[must_use = "give it to Recorder::record"]
pub struct Event {
    pub(super) regarding: Regarding,
    pub(super) related: Option<Regarding>,
    pub(super) kind: EventType,
    pub(super) reason: String,
    pub(super) action: String,
    pub(super) note: String,
}

impl Event {
    /// An event. `reason` says why in one word (`ReplicaFailed`), `action` what was done (`Scale`), `note` tells it to people.
    /// What is longer than the API server takes is cut: reason and action at 128 bytes, the note at 1 KiB.
    pub fn new(
        regarding: &Regarding,
        kind: EventType,
        reason: impl AsRef<str>,
        action: impl AsRef<str>,
        note: impl AsRef<str>,
    ) -> Self {
        // Neither may be empty, and what is wrong with an event is no reason to lose it.
        let word = |word: &str| match clip(word, LONGEST_WORD) {
            "" => "Unspecified".to_owned(),
            word => word.to_owned(),
        };
        Self {
            regarding: regarding.clone(),
            related: None,
            kind,
            reason: word(reason.as_ref()),
            action: word(action.as_ref()),
            note: shorten(note.as_ref(), LONGEST_NOTE),
        }
    }

    /// Names a second object, of which the first one's event tells.
    pub fn related(self, related: &Regarding) -> Self {
        Self { related: Some(related.clone()), ..self }
    }
}

/// The first bytes of a text, as many as are whole characters.
pub(super) fn clip(text: &str, longest: usize) -> &str {
    &text[..text.floor_char_boundary(longest)]
}

/// A text that shows where it was cut.
fn shorten(text: &str, longest: usize) -> String {
    const CUT: &str = "…";
    if text.len() <= longest {
        return text.to_owned();
    }
    format!("{}{CUT}", clip(text, longest - CUT.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::{ConfigMap, Node};

    fn map() -> Regarding {
        let map: ConfigMap =
            serde_json::from_value(serde_json::json!({"metadata": {"name": "m", "namespace": "shop"}}))
                .unwrap();
        Regarding::of(&map)
    }

    #[test]
    fn what_is_too_long_is_cut_between_characters_and_shows_it() {
        let long = "ä".repeat(2000);
        let event = Event::new(&map(), EventType::Normal, &long, "", &long);
        assert_eq!((event.reason.len(), &*event.action), (128, "Unspecified"));
        assert_eq!(event.note.len(), 1023, "no half characters");
        assert!(event.note.ends_with("ä…"));
        assert_eq!(Event::new(&map(), EventType::Normal, "R", "A", "short").note, "short");
    }

    #[test]
    fn events_of_objects_without_a_namespace_live_in_default() {
        let mut node = Node::default();
        node.metadata.name = Some("n".repeat(300));
        let node = Regarding::of(&node);
        assert_eq!((node.home(), map().home()), ("default", "shop"));
        assert_eq!(node.stem(230).len(), 230);
        assert_eq!(node.reference().kind.as_deref(), Some("Node"));
    }
}
