//! Writes YAML that every YAML reader understands in the same way.
//!
//! It promises: the same value gives the same text; a string comes back as that string, whether its reader
//! follows YAML 1.1 (where `no` is a boolean, `0123` is 83 and `12:30` a number, as in Go's yaml.v2 and in
//! Kubernetes' own reader) or 1.2. Keys are written in the order of the [`Map`]; those of JSON are in the
//! order of the alphabet, which for Kubernetes is the usual one.
//!
//! It does not read YAML, fold long lines, or write anchors, tags and comments.
//!
//! The writer of `serde-saphyr` is not used, because it quotes keys by the rules of YAML 1.2 only: a reader
//! of YAML 1.1 takes its `on: 1` for a key that is a boolean.
//!
//! ```
//! use windlass_operator::yaml::{Map, Style};
//!
//! let log = Map::new().with("level", "info").with("fields", Map::new().with("on", "0123"));
//! let file = Map::new().with("version", "0.1").with("log", log);
//! assert_eq!(file.document(Style::File), "version: \"0.1\"\nlog:\n  level: info\n  fields:\n    \"on\": \"0123\"\n");
//! ```

mod write;

use serde_json::{Number, Value};

pub use write::quoted;

/// The layout of a document. Readers understand both styles in the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Manifests as `kubectl` writes them: lists are not indented, phrases have no quotes, and texts of
    /// several lines are blocks.
    Manifest,
    /// Configuration files: lists are indented, and every text except a word or a path is in quotes.
    File,
}

/// A value of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    /// The value `null`.
    Null,
    /// A boolean value.
    Flag(bool),
    /// A number, as it was written.
    Number(Number),
    /// A string value.
    Text(String),
    /// A list of values.
    List(Vec<Node>),
    /// A map of values.
    Map(Map),
}

/// Keys and values in the order in which they are written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Map(Vec<(String, Node)>);

impl Map {
    /// Returns an empty map.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a key.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Node>) -> Self {
        self.0.push((key.to_owned(), value.into()));
        self
    }

    /// Adds a key if there is a value for it.
    #[must_use]
    pub fn with_some(self, key: &str, value: Option<impl Into<Node>>) -> Self {
        match value {
            Some(value) => self.with(key, value),
            None => self,
        }
    }

    /// Returns the document, ending with a line break, without the `---` before it.
    pub fn document(self, style: Style) -> String {
        Node::Map(self).document(style)
    }
}

impl Node {
    /// Returns the document, ending with a line break, without the `---` before it.
    pub fn document(&self, style: Style) -> String {
        write::document(self, style)
    }
}

impl From<Value> for Node {
    fn from(value: Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(flag) => Self::Flag(flag),
            Value::Number(number) => Self::Number(number),
            Value::String(text) => Self::Text(text),
            Value::Array(items) => items.into(),
            Value::Object(members) => Self::Map(members.into_iter().collect()),
        }
    }
}

impl<K: Into<String>, V: Into<Node>> FromIterator<(K, V)> for Map {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        Self(entries.into_iter().map(|(key, value)| (key.into(), value.into())).collect())
    }
}

impl From<&str> for Node {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<&String> for Node {
    fn from(text: &String) -> Self {
        Self::Text(text.clone())
    }
}

impl From<String> for Node {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<bool> for Node {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

impl From<i64> for Node {
    fn from(number: i64) -> Self {
        Self::Number(number.into())
    }
}

impl From<u32> for Node {
    fn from(number: u32) -> Self {
        Self::Number(number.into())
    }
}

impl From<u16> for Node {
    fn from(number: u16) -> Self {
        Self::Number(number.into())
    }
}

impl From<Map> for Node {
    fn from(map: Map) -> Self {
        Self::Map(map)
    }
}

impl<T: Into<Node>> From<Vec<T>> for Node {
    fn from(items: Vec<T>) -> Self {
        Self::List(items.into_iter().map(Into::into).collect())
    }
}

impl From<&Vec<String>> for Node {
    fn from(items: &Vec<String>) -> Self {
        Self::List(items.iter().map(Into::into).collect())
    }
}
