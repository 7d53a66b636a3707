//! Writes YAML that every reader of YAML understands the same.
//!
//! It promises: the same value gives the same text, keys in the order of the alphabet (which for Kubernetes is the usual one:
//! `apiVersion`, `kind`, `metadata`, `spec`); a string comes back as that string, whether its reader follows YAML 1.1 (where `no` is
//! a boolean and `12:30` a number, as in Kubernetes' own) or 1.2.
//!
//! It does not: fold long lines, or write anchors, tags and comments.

use std::fmt::Write as _;

use serde_json::Value;

/// A document, ending with a line break, without the `---` before it.
pub(crate) fn document(value: &Value) -> String {
    let mut text = String::new();
    block(&mut text, value, 0);
    text
}

/// A value where a line may begin, or after `key:` and `-`: what fits on the line, or lines below it.
fn block(text: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            for (index, (key, member)) in members.iter().enumerate() {
                if index > 0 {
                    pad(text, indent);
                }
                scalar(text, key);
                text.push(':');
                after_key(text, member, indent);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    pad(text, indent);
                }
                text.push_str("- ");
                block(text, item, indent + 2);
            }
        }
        Value::String(string) => string_value(text, string, indent),
        other => flat(text, other),
    }
}

fn after_key(text: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            text.push('\n');
            pad(text, indent + 2);
            block(text, value, indent + 2);
        }
        // Lists begin below their key, not indented: as `kubectl` writes them.
        Value::Array(items) if !items.is_empty() => {
            text.push('\n');
            pad(text, indent);
            block(text, value, indent);
        }
        Value::String(string) => {
            text.push(' ');
            string_value(text, string, indent + 2);
        }
        other => {
            text.push(' ');
            flat(text, other);
        }
    }
}

fn flat(text: &mut String, value: &Value) {
    // Empty lists and maps, numbers, booleans and null are written as JSON writes them.
    let _ = writeln!(text, "{value}");
}

fn string_value(text: &mut String, string: &str, indent: usize) {
    if !is_literal(string) {
        scalar(text, string);
        text.push('\n');
        return;
    }
    text.push_str("|-\n");
    for line in string.split('\n') {
        if !line.is_empty() {
            pad(text, indent.max(2));
            text.push_str(line);
        }
        text.push('\n');
    }
}

fn pad(text: &mut String, indent: usize) {
    text.extend(std::iter::repeat_n(' ', indent));
}

/// Several lines that a literal block gives back unchanged.
fn is_literal(string: &str) -> bool {
    string.contains('\n')
        && !string.starts_with([' ', '\n'])
        && !string.ends_with('\n')
        && string.chars().all(|c| c == '\n' || is_printable(c))
        && string.split('\n').all(|line| !line.ends_with(' '))
}

/// Printable in every version of YAML, and no line break in any. Tabs are left out: where they may stand is disputed.
fn is_printable(c: char) -> bool {
    matches!(c, ' '..='~' | '\u{a0}'..='\u{2027}' | '\u{202a}'..='\u{d7ff}' | '\u{e000}'..='\u{fefe}'
        | '\u{ff00}'..='\u{fffd}' | '\u{10000}'..)
}

fn scalar(text: &mut String, string: &str) {
    if is_plain(string) {
        text.push_str(string);
        return;
    }
    text.push('"');
    for c in string.chars() {
        match c {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\t' => text.push_str("\\t"),
            c if is_printable(c) => text.push(c),
            c => {
                let code = u32::from(c);
                let _ = if code <= 0xffff {
                    write!(text, "\\u{code:04x}")
                } else {
                    write!(text, "\\U{code:08x}")
                };
            }
        }
    }
    text.push('"');
}

/// Words that some version of YAML takes for something else than a string.
const WORDS: [&str; 11] = ["null", "true", "false", "yes", "no", "on", "off", "y", "n", "nan", "inf"];

/// Whether a string needs no quotes, whoever reads it: a letter, `/` or a flag's `--` first, then what never means anything.
fn is_plain(string: &str) -> bool {
    let quiet = |c: char| {
        c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | '(' | ')' | '+' | ';' | ' ')
    };
    let word = string.strip_prefix("--").unwrap_or(string);
    word.starts_with(|c: char| c.is_ascii_alphabetic() || (c == '/' && word == string))
        && !string.ends_with([' ', ':'])
        && string.char_indices().all(|(at, c)| {
            // A colon means something only before a space; a hash, which does after one, is never plain.
            quiet(c) || matches!(c, ',' | '=') || (c == ':' && !string[at + 1..].starts_with(' '))
        })
        && !WORDS.iter().any(|word| string.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn read(text: &str) -> Value {
        serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
    }

    #[test]
    fn a_manifest_looks_as_people_write_it() {
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
    fn what_yaml_1_1_takes_for_something_else_is_quoted() {
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
        fn whatever_is_written_is_read_back(value in any_value()) {
            let text = document(&value);
            prop_assert_eq!(read(&text), value, "{}", text);
        }
    }
}
