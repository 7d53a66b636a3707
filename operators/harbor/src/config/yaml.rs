//! Writes the YAML of configuration files, and quotes what the registry reads as YAML.
//!
//! It promises: keys stay in the order they were put in; a string comes back as that string in every reader of YAML 1.1 and 1.2 (Harbor's
//! components use Go's yaml.v2, where `on` is true and `0123` is 83). It does not read YAML.

use std::fmt::Write as _;

use super::confidential::Confidential;

/// A value of a configuration file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Node {
    Text(String),
    Number(i64),
    Flag(bool),
    Map(Map),
    List(Vec<Node>),
}

/// Keys and values in the order in which they are written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Map(Vec<(String, Node)>);

impl Map {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn with(mut self, key: &str, value: impl Into<Node>) -> Self {
        self.0.push((key.to_owned(), value.into()));
        self
    }

    pub(crate) fn with_some(self, key: &str, value: Option<impl Into<Node>>) -> Self {
        match value {
            Some(value) => self.with(key, value),
            None => self,
        }
    }

    /// The document, ending with a line break.
    pub(crate) fn document(&self) -> String {
        let mut text = String::new();
        write_map(&mut text, self, 0);
        text
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
        Self::Number(number)
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

fn write_map(text: &mut String, map: &Map, indent: usize) {
    for (index, (key, value)) in map.0.iter().enumerate() {
        if index > 0 {
            pad(text, indent);
        }
        write_scalar(text, key);
        text.push(':');
        match value {
            Node::Map(map) if !map.0.is_empty() => {
                text.push('\n');
                pad(text, indent + 2);
                write_map(text, map, indent + 2);
            }
            Node::List(items) if !items.is_empty() => {
                for item in items {
                    text.push('\n');
                    pad(text, indent + 2);
                    text.push_str("- ");
                    write_item(text, item, indent + 4);
                    text.pop();
                }
                text.push('\n');
            }
            other => {
                text.push(' ');
                write_item(text, other, indent);
            }
        }
    }
}

/// A value where a line has begun already; ends the line.
fn write_item(text: &mut String, value: &Node, indent: usize) {
    match value {
        Node::Text(string) => write_scalar(text, string),
        Node::Number(number) => {
            let _ = write!(text, "{number}");
        }
        Node::Flag(flag) => {
            let _ = write!(text, "{flag}");
        }
        Node::Map(map) if map.0.is_empty() => text.push_str("{}"),
        Node::Map(map) => return write_map(text, map, indent),
        Node::List(items) => {
            // Lists in lists do not occur but in one line.
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push_str(", ");
                }
                write_item(text, item, indent);
                text.pop();
            }
            text.push(']');
        }
    }
    text.push('\n');
}

fn pad(text: &mut String, indent: usize) {
    text.extend(std::iter::repeat_n(' ', indent));
}

fn write_scalar(text: &mut String, string: &str) {
    if is_plain(string) {
        text.push_str(string);
    } else {
        text.push_str(&quoted(string));
    }
}

/// Whether a string can do without quotes: words and paths that no reader takes for anything else.
fn is_plain(string: &str) -> bool {
    const WORDS: [&str; 11] = ["true", "false", "yes", "no", "on", "off", "y", "n", "null", "nan", "inf"];
    string.starts_with(|first: char| first.is_ascii_alphabetic() || first == '/')
        && string.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._/-".contains(&byte))
        && !WORDS.iter().any(|word| string.eq_ignore_ascii_case(word))
}

/// A string in double quotes, with nothing in it that a reader of YAML could take amiss.
fn quoted(string: &str) -> String {
    let mut text = String::with_capacity(string.len() + 2);
    text.push('"');
    for character in string.chars() {
        match character {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            // Not printable in YAML, or a line break to some readers.
            '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' => {
                let _ = write!(text, "\\x{:02x}", u32::from(character));
            }
            '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}' => {
                let _ = write!(text, "\\u{:04x}", u32::from(character));
            }
            other => text.push(other),
        }
    }
    text.push('"');
    text
}

/// Whether a text arrives as it is where it is read as YAML without quotes, to be a text.
pub fn survives(text: &str) -> bool {
    const SIGNS: [char; 17] =
        ['*', '&', '!', '|', '>', '%', '@', '`', '"', '\'', '#', '{', '[', ',', '}', ']', '~'];
    let begins_well = !text.starts_with(SIGNS) && !text.starts_with(['-', '?', ':']);
    let is_one_word = !text.chars().any(|character| character.is_whitespace() || character.is_control());
    let is_nothing = text.is_empty() || text.eq_ignore_ascii_case("null");
    begins_well && is_one_word && !is_nothing && !text.ends_with(':')
}

/// A secret in the form in which it survives the registry's environment.
///
/// The registry reads each `REGISTRY_…` variable as YAML, so that a password like `*star`, `0123` or `a: b` fails, becomes another or is cut. In
/// quotes, every text arrives as it is. The result belongs into a Secret of ours, not into the user's.
pub fn registry_env_value(secret: &Confidential) -> Confidential {
    Confidential::new(quoted(secret.expose()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read<T: for<'de> serde::Deserialize<'de>>(text: &str) -> T {
        serde_saphyr::from_str(text).unwrap()
    }

    #[test]
    fn what_survives_without_quotes_is_read_as_it_is() {
        for plain in ["a", "0a1b2c", "a:b", "a#b", "a-b_c.d", "x*y", "Zm9vYmFy=="] {
            assert!(survives(plain), "{plain}");
            assert_eq!(read::<String>(plain), plain);
        }
        for other in [
            "", "*star", "&a", "a: b", "a #b", " a", "a ", "a\n", "- a", "-", "{a}", "'a'", "null", "~",
            "a:", "|",
        ] {
            assert!(!survives(other), "{other:?}");
            let value = registry_env_value(&Confidential::new(other));
            assert_eq!(read::<String>(value.expose()), other);
        }
    }

    #[test]
    fn a_document_keeps_the_order_of_its_keys() {
        let map = Map::new()
            .with("version", "0.1")
            .with("list", vec![Map::new().with("b", 1_i64).with("a", "on"), Map::new().with("c", Map::new())])
            .with("words", vec!["x", "no"])
            .with("empty", Vec::<String>::new())
            .with("map", Map::new().with("flag", true).with("deep", Map::new().with("path", "/etc/x")))
            .with_some("absent", None::<bool>);
        insta::assert_snapshot!(map.document(), @r#"
        version: "0.1"
        list:
          - b: 1
            a: "on"
          - c: {}
        words:
          - x
          - "no"
        empty: []
        map:
          flag: true
          deep:
            path: /etc/x
        "#);
    }

    #[test]
    fn every_kind_of_text_comes_back() {
        for text in [
            "", "12", "0123", "1e3", "yes", "~", "null", "a: b", "a #b", "*x", "&x", "!x", "%x", "@x", "{",
            "[", "'", "\"", "\\", "é", "-", "?",
        ] {
            assert_eq!(read::<String>(&quoted(text)), text);
            let document = Map::new().with("k", text).document();
            assert_eq!(
                read::<std::collections::BTreeMap<String, String>>(&document)["k"],
                text,
                "{document}"
            );
        }
    }

    proptest! {
        #[test]
        fn any_text_comes_back(text in any::<String>()) {
            prop_assert_eq!(read::<String>(&quoted(&text)), text);
        }
    }
}
