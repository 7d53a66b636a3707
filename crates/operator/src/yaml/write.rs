//! The text of a document.

use std::fmt::Write as _;

use super::{Map, Node, Style};

pub(super) fn document(node: &Node, style: Style) -> String {
    let mut writer = Writer { text: String::new(), style };
    writer.block(node, 0);
    writer.text
}

struct Writer {
    text: String,
    style: Style,
}

impl Writer {
    /// Writes a value at the beginning of a line, or after `- `: on the line if it fits, or on lines below
    /// it.
    fn block(&mut self, node: &Node, indent: usize) {
        match node {
            Node::Map(map) if !map.0.is_empty() => self.map(map, indent),
            Node::List(items) if !items.is_empty() => {
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        self.pad(indent);
                    }
                    self.text.push_str("- ");
                    self.block(item, indent + 2);
                }
            }
            other => self.flat(other, indent),
        }
    }

    fn map(&mut self, map: &Map, indent: usize) {
        for (index, (key, value)) in map.0.iter().enumerate() {
            if index > 0 {
                self.pad(indent);
            }
            self.scalar(key);
            self.text.push(':');
            let below = match (value, self.style) {
                (Node::Map(map), _) if !map.0.is_empty() => Some(indent + 2),
                (Node::List(items), Style::File) if !items.is_empty() => Some(indent + 2),
                (Node::List(items), Style::Manifest) if !items.is_empty() => Some(indent),
                _ => None,
            };
            if let Some(below) = below {
                self.text.push('\n');
                self.pad(below);
                self.block(value, below);
            } else {
                self.text.push(' ');
                self.flat(value, indent + 2);
            }
        }
    }

    /// Writes a value that begins on this line, and ends the line.
    fn flat(&mut self, node: &Node, indent: usize) {
        match node {
            Node::Text(string) if self.style == Style::Manifest && is_literal(string) => {
                return self.literal(string, indent.max(2));
            }
            Node::Text(string) => self.scalar(string),
            Node::Number(number) => {
                let _ = write!(self.text, "{number}");
            }
            Node::Flag(flag) => {
                let _ = write!(self.text, "{flag}");
            }
            Node::Null => self.text.push_str("null"),
            Node::Map(_) => self.text.push_str("{}"),
            Node::List(_) => self.text.push_str("[]"),
        }
        self.text.push('\n');
    }

    fn literal(&mut self, string: &str, indent: usize) {
        self.text.push_str("|-\n");
        for line in string.split('\n') {
            if !line.is_empty() {
                self.pad(indent);
                self.text.push_str(line);
            }
            self.text.push('\n');
        }
    }

    fn scalar(&mut self, string: &str) {
        let plain = match self.style {
            Style::Manifest => is_plain(string),
            Style::File => is_word(string),
        };
        if plain {
            self.text.push_str(string);
        } else {
            self.text.push_str(&quoted(string));
        }
    }

    fn pad(&mut self, indent: usize) {
        self.text.extend(std::iter::repeat_n(' ', indent));
    }
}

/// Returns a string in double quotes, with all characters escaped that a YAML reader could misread.
pub fn quoted(string: &str) -> String {
    let mut text = String::with_capacity(string.len() + 2);
    text.push('"');
    for c in string.chars() {
        match c {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            c if is_printable(c) => text.push(c),
            c => {
                let code = u32::from(c);
                let _ =
                    if code <= 0xff { write!(text, "\\x{code:02x}") } else { write!(text, "\\u{code:04x}") };
            }
        }
    }
    text.push('"');
    text
}

/// Returns whether a character is printable in every version of YAML, and no line break in any. Tabs are
/// excluded: YAML readers disagree about them. Everything else is below U+10000.
fn is_printable(c: char) -> bool {
    matches!(c, ' '..='~' | '\u{a0}'..='\u{2027}' | '\u{202a}'..='\u{d7ff}' | '\u{e000}'..='\u{fefe}'
        | '\u{ff00}'..='\u{fffd}' | '\u{10000}'..)
}

/// Returns whether a literal block reproduces these lines unchanged.
fn is_literal(string: &str) -> bool {
    string.contains('\n')
        && !string.starts_with([' ', '\n'])
        && !string.ends_with('\n')
        && string.chars().all(|c| c == '\n' || is_printable(c))
        && string.split('\n').all(|line| !line.ends_with(' '))
}

/// Words that some version of YAML does not read as a string.
const WORDS: [&str; 11] = ["null", "true", "false", "yes", "no", "on", "off", "y", "n", "nan", "inf"];

fn is_special(string: &str) -> bool {
    WORDS.iter().any(|word| string.eq_ignore_ascii_case(word))
}

/// Returns whether a string is a word or a path that every reader reads as a string.
fn is_word(string: &str) -> bool {
    string.starts_with(|first: char| first.is_ascii_alphabetic() || first == '/')
        && string.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._/-".contains(&byte))
        && !is_special(string)
}

/// Returns whether a string needs no quotes for any reader: it begins with a letter, `/` or the `--` of a
/// flag, and has no character with a meaning in YAML.
fn is_plain(string: &str) -> bool {
    let quiet = |c: char| {
        c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | '(' | ')' | '+' | ';' | ' ')
    };
    let word = string.strip_prefix("--").unwrap_or(string);
    word.starts_with(|c: char| c.is_ascii_alphabetic() || (c == '/' && word == string))
        && !string.ends_with([' ', ':'])
        && string.char_indices().all(|(at, c)| {
            // A colon has a meaning only before a space; a hash has one after a space, and is never plain.
            quiet(c) || matches!(c, ',' | '=') || (c == ':' && !string[at + 1..].starts_with(' '))
        })
        && !is_special(string)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn document(value: &Value) -> String {
        Node::from(value.clone()).document(Style::Manifest)
    }

    fn read(text: &str) -> Value {
        serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
    }

    #[test]
    fn a_manifest_is_written_in_the_style_of_kubectl() {
        let value = json!({
            "apiVersion": "v1", "kind": "Thing",
            "metadata": {"name": "a", "labels": {}, "annotations": {"yes": "no", "n": "12:30", "port": "8080"}},
            "spec": {"list": [{"name": "x", "args": ["--a=b", ":80"]}, {"name": "y"}], "nested": [[1, 2], []],
                "text": "two\n\n  lines", "replicas": 1, "nothing": null, "on": true},
        });
        let expected = r#"apiVersion: v1
kind: Thing
metadata:
  annotations:
    "n": "12:30"
    port: "8080"
    "yes": "no"
  labels: {}
  name: a
spec:
  list:
  - args:
    - --a=b
    - ":80"
    name: x
  - name: "y"
  nested:
  - - 1
    - 2
  - []
  nothing: null
  "on": true
  replicas: 1
  text: |-
    two

      lines
"#;
        assert_eq!(document(&value), expected);
        assert_eq!(read(expected), value);
    }

    #[test]
    fn a_string_that_yaml_1_1_reads_as_another_type_is_quoted() {
        for text in [
            "yes",
            "No",
            "ON",
            "off",
            "y",
            "N",
            "null",
            "~",
            "1",
            "1e3",
            "0x1f",
            "1_000",
            "12:30",
            ".5",
            "",
            " a",
            "a ",
            "a: b",
            "a #b",
            "- a",
            "<<",
            "=",
            "*a",
            "&a",
            "!a",
            "%a",
            "@a",
            "`a",
            "{a",
            "[a",
            "a:",
            "-",
            "?",
            "tab\t",
            "\u{85}",
            "\u{2028}",
            "\u{feff}",
            "2026-11-16",
            "Infinity ",
        ] {
            let document = document(&json!({"k": text}));
            assert!(document.starts_with("k: \""), "{document}");
            assert_eq!(read(&document)["k"], *text);
        }
        for text in [
            "nginx:latest",
            "a/b.c-d_e",
            "Two words, and more",
            "runAsNonRoot",
            "app=web",
            "/healthz",
            "--bind=:80",
        ] {
            assert_eq!(document(&json!({"k": text})), format!("k: {text}\n"));
        }
    }

    #[test]
    fn a_file_keeps_the_order_of_its_keys_and_quotes_all_texts_except_words() {
        let map = Map::new()
            .with("version", "0.1")
            .with("list", vec![Map::new().with("b", 1_i64).with("a", "on"), Map::new().with("c", Map::new())])
            .with("words", vec!["x", "no", "two words", "a:b"])
            .with("empty", Vec::<String>::new())
            .with("map", Map::new().with("flag", true).with("deep", Map::new().with("path", "/etc/x")))
            .with("lines", "two\nlines")
            .with_some("absent", None::<bool>);
        let expected = r#"version: "0.1"
list:
  - b: 1
    a: "on"
  - c: {}
words:
  - x
  - "no"
  - "two words"
  - "a:b"
empty: []
map:
  flag: true
  deep:
    path: /etc/x
lines: "two\nlines"
"#;
        assert_eq!(map.document(Style::File), expected);
    }

    fn any_text() -> impl Strategy<Value = String> {
        prop_oneof![
            "[ -~\n]{0,12}",
            any::<String>(),
            prop::sample::select(WORDS.to_vec()).prop_map(ToOwned::to_owned),
            "[-0-9:.eExob_+]{1,8}",
        ]
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any_text().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::btree_map(any_text(), inner, 0..5)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn every_written_value_is_read_back_unchanged(value in any_value()) {
            for style in [Style::Manifest, Style::File] {
                let text = Node::from(value.clone()).document(style);
                prop_assert_eq!(read(&text), value.clone(), "{}", text);
            }
        }

        #[test]
        fn every_quoted_text_is_read_back_unchanged(text in any::<String>()) {
            prop_assert_eq!(read(&quoted(&text)), text);
        }
    }
}
