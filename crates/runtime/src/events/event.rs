//! Events and the objects that they are about.

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Resource;

use crate::key::ObjectKey;
use crate::meta::Uid;
use crate::resource::ResourceType;

/// Limits of the API server in bytes: of a note, and of a reason, an action or an instance.
pub(super) const LONGEST_NOTE: usize = 1024;
pub(super) const LONGEST_WORD: usize = 128;

/// The type of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventType {
    /// An event of normal operation.
    Normal,
    /// A problem that someone should look at.
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

/// The object that an event is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Regarding {
    api_version: String,
    kind: String,
    namespace: Option<String>,
    name: String,
    uid: Option<String>,
}

impl Regarding {
    /// Refers to a typed object.
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

    /// Refers to any object by its kind, key and uid.
    pub fn new(resource: &ResourceType, key: &ObjectKey, uid: Uid) -> Self {
        Self {
            api_version: resource.api_version(),
            kind: resource.kind.to_string(),
            namespace: key.namespace().map(str::to_owned),
            name: key.name().to_owned(),
            uid: (!uid.is_unknown()).then(|| uid.to_string()),
        }
    }

    /// The namespace of events about the object: its own, or `default` for a cluster-scoped object.
    pub(super) fn event_namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or("default")
    }

    /// The prefix of the names of events about the object, clipped so that names fit into `longest` bytes.
    pub(super) fn stem(&self, longest: usize) -> &str {
        // Valid names are ASCII, but the caller may pass anything.
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

/// An event to record. Equal events form one series.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[must_use = "pass it to Recorder::record"]
pub struct Event {
    pub(super) regarding: Regarding,
    pub(super) related: Option<Regarding>,
    pub(super) kind: EventType,
    pub(super) reason: String,
    pub(super) action: String,
    pub(super) note: String,
}

impl Event {
    /// Creates an event. `reason` is one word (`ReplicaFailed`), `action` is what was done (`Scale`), `note`
    /// is for people. Longer texts than the API server accepts are cut: reason and action at 128 bytes, the
    /// note at 1 KiB.
    pub fn new(
        regarding: &Regarding,
        kind: EventType,
        reason: impl AsRef<str>,
        action: impl AsRef<str>,
        note: impl AsRef<str>,
    ) -> Self {
        // Neither may be empty; an incomplete event is better than a lost one.
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

    /// Sets a second object that the event refers to.
    pub fn related(self, related: &Regarding) -> Self {
        Self { related: Some(related.clone()), ..self }
    }
}

/// Returns the first bytes of a text, up to a character boundary.
pub(super) fn clip(text: &str, longest: usize) -> &str {
    &text[..text.floor_char_boundary(longest)]
}

/// Shortens a text and marks the cut.
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
    fn a_text_that_is_too_long_is_cut_between_characters_and_marked() {
        let long = "ä".repeat(2000);
        let event = Event::new(&map(), EventType::Normal, &long, "", &long);
        assert_eq!((event.reason.len(), &*event.action), (128, "Unspecified"));
        assert_eq!(event.note.len(), 1023, "no half characters");
        assert!(event.note.ends_with("ä…"));
        assert_eq!(Event::new(&map(), EventType::Normal, "R", "A", "short").note, "short");
    }

    #[test]
    fn events_of_cluster_scoped_objects_are_in_namespace_default() {
        let mut node = Node::default();
        node.metadata.name = Some("n".repeat(300));
        let node = Regarding::of(&node);
        assert_eq!((node.event_namespace(), map().event_namespace()), ("default", "shop"));
        assert_eq!(node.stem(230).len(), 230);
        assert_eq!(node.reference().kind.as_deref(), Some("Node"));
    }
}
