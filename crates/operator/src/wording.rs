//! Mechanical rules for the texts that users read one at a time: CRD descriptions and `--help`.
//!
//! `kubectl explain` and `--help` show a text without its context, so each must stand alone: at least four
//! words, and a subject at the beginning. The rules cannot tell whether a text is right; they find the ones
//! that cannot be understood alone.

use clap::{Arg, Command};
use serde_json::Value;

use crate::args::Cli;
use crate::operator::Operator;

/// Fewer words than this name no subject and say nothing about it.
const FEWEST_WORDS: usize = 4;

/// A text that begins with one of these refers to something that the reader does not see.
const HEADLESS: [&str; 11] =
    ["what", "who", "whom", "whose", "which", "whether", "where", "how", "its", "of", "by"];

/// Parts of a schema that hold values of users, with fields of any name.
const VALUES: [&str; 3] = ["default", "enum", "example"];

/// Error that lists all texts that break the rules, each with its place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} texts cannot be understood alone:\n{}", .0.len(), .0.join("\n"))]
pub struct UnclearTexts(Vec<String>);

/// Checks the CRD descriptions and the `--help` of an operator. One line in a test keeps them clear:
///
/// ```
/// use kube::CustomResource;
/// use schemars::JsonSchema;
/// use serde::{Deserialize, Serialize};
/// use windlass_operator::{Operator, check_wording};
///
/// /// Desired state of an article.
/// #[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
/// #[kube(group = "shop.example.com", version = "v1", kind = "Article", namespaced, doc = "Article is an item of the shop.")]
/// struct ArticleSpec {
///     /// How much.
///     price: u32,
/// }
///
/// let operator = Operator::new("shop-operator").about("Sells the articles of a shop").crd::<Article>();
/// let error = check_wording(&operator).unwrap_err().to_string();
/// assert!(error.contains(r#"Article v1 spec.price: "How much." has fewer than 4 words"#), "{error}");
/// ```
///
/// # Errors
/// If a text has fewer than four words, begins with a word such as `Whether`, `How` or `Its`, or is missing
/// where `--help` shows a command or a flag.
pub fn check_wording(operator: &Operator) -> Result<(), UnclearTexts> {
    let mut faults = Vec::new();
    for definition in operator.definitions() {
        let kind = &definition.spec.names.kind;
        for version in &definition.spec.versions {
            let schema = serde_json::to_value(&version.schema).unwrap_or_default();
            let mut found = Vec::new();
            descriptions(&schema["openAPIV3Schema"], "", &mut found);
            for (path, text) in found {
                judge(&format!("{kind} {} {path}", version.name), text, &mut faults);
            }
        }
    }
    help(&Cli::of(operator), operator.name, &mut faults);
    result(faults)
}

/// Checks the `--help` of a program and of all its commands, by the rules of [`check_wording`].
///
/// # Errors
/// If a text breaks these rules.
pub fn check_help(command: &Command) -> Result<(), UnclearTexts> {
    let mut faults = Vec::new();
    help(command, command.get_name(), &mut faults);
    result(faults)
}

fn result(faults: Vec<String>) -> Result<(), UnclearTexts> {
    if faults.is_empty() { Ok(()) } else { Err(UnclearTexts(faults)) }
}

/// Returns the rule that a text breaks, in words that follow the text.
fn fault(text: &str) -> Option<String> {
    let is_word = |word: &&str| word.contains(char::is_alphanumeric);
    if text.split_whitespace().filter(is_word).count() < FEWEST_WORDS {
        return Some(format!("has fewer than {FEWEST_WORDS} words"));
    }
    let first = text.split(|c: char| !c.is_alphanumeric()).find(|word| !word.is_empty())?;
    let headless = HEADLESS.contains(&first.to_lowercase().as_str());
    headless.then(|| format!("begins with {first:?}: begin with what it describes"))
}

fn judge(place: &str, text: &str, faults: &mut Vec<String>) {
    faults.extend(fault(text).map(|fault| format!("{place}: {text:?} {fault}")));
}

/// Collects all descriptions in a schema, each with the path of its field.
fn descriptions<'v>(value: &'v Value, path: &str, found: &mut Vec<(String, &'v str)>) {
    let Value::Object(parts) = value else { return };
    if let Some(Value::String(text)) = parts.get("description") {
        found.push((path.to_owned(), text));
    }
    for (name, value) in parts.iter().filter(|(name, _)| !VALUES.contains(&name.as_str())) {
        match (name.as_str(), value) {
            ("properties", Value::Object(fields)) => {
                for (field, value) in fields {
                    let dot = if path.is_empty() { "" } else { "." };
                    descriptions(value, &format!("{path}{dot}{field}"), found);
                }
            }
            ("items", value) => descriptions(value, &format!("{path}[]"), found),
            ("additionalProperties", value) => descriptions(value, &format!("{path}.<key>"), found),
            (_, Value::Array(alternatives)) => {
                for value in alternatives {
                    descriptions(value, path, found);
                }
            }
            _ => {}
        }
    }
}

/// Visits all texts in the help of a command and of its subcommands.
fn help(command: &Command, place: &str, faults: &mut Vec<String>) {
    match command.get_long_about().or(command.get_about()) {
        Some(about) => judge(place, &about.to_string(), faults),
        None => faults.push(format!("{place}: the command has no description")),
    }
    for arg in command.get_arguments().filter(|arg| !arg.is_hide_set() && !is_claps_own(arg)) {
        let place = match arg.get_long() {
            Some(long) => format!("{place} --{long}"),
            None => format!("{place} <{}>", arg.get_id()),
        };
        match arg.get_long_help().or(arg.get_help()) {
            Some(help) => judge(&place, &help.to_string(), faults),
            None => faults.push(format!("{place}: the flag has no description")),
        }
        for value in arg.get_possible_values() {
            if let Some(help) = value.get_help() {
                judge(&format!("{place}={}", value.get_name()), &help.to_string(), faults);
            }
        }
    }
    for command in command.get_subcommands().filter(|command| !command.is_hide_set()) {
        if command.get_name() != "help" {
            help(command, &format!("{place} {}", command.get_name()), faults);
        }
    }
}

/// Returns true for the flags that clap adds.
fn is_claps_own(arg: &Arg) -> bool {
    ["help", "version"].contains(&arg.get_id().as_str()) && arg.get_help().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::own::Setting;
    use serde_json::json;

    #[test]
    fn a_text_with_a_subject_and_four_words_is_clear() {
        for text in
            ["Number of pods; default: 1.", "`Retain` keeps the volumes.", "Whatsoever begins like this"]
        {
            assert_eq!(fault(text), None, "{text}");
        }
    }

    #[test]
    fn a_short_or_headless_text_is_a_fault() {
        for text in ["", "Which.", "How deep.", "Number - of … pods"] {
            assert!(fault(text).is_some_and(|fault| fault.contains("fewer than 4")), "{text}");
        }
        for text in ["Whether its pods get a token.", "Its name in the cluster.", "What it does, in short."] {
            assert!(fault(text).is_some_and(|fault| fault.contains("begins with")), "{text}");
        }
    }

    #[test]
    fn descriptions_are_found_everywhere_in_a_schema_but_in_values() {
        let schema = json!({
            "description": "root",
            "properties": {
                "description": {"type": "string", "description": "named like this"},
                "either": {"anyOf": [{"description": "one of several"}]},
                "list": {"items": {"description": "item"}, "default": {"description": "no description"}},
                "map": {"additionalProperties": {"properties": {"x": {"description": "in a map"}}}},
            },
        });
        let mut found = Vec::new();
        descriptions(&schema, "", &mut found);
        let paths: Vec<&str> = found.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(paths, ["", "description", "either", "list[]", "map.<key>.x"]);
    }

    #[test]
    fn the_flags_of_every_operator_are_clear_and_a_bad_setting_is_named() {
        let operator = || Operator::new("shop-operator").about("Sells the articles of a shop");
        check_wording(&operator()).unwrap();
        let settings = [Setting::new("size", "NUMBER", "How many items a page has")];
        let error = check_wording(&operator().settings(settings)).unwrap_err().to_string();
        assert!(
            error.contains("shop-operator --size: \"How many items a page has\" begins with \"How\""),
            "{error}"
        );
        let error = check_wording(&Operator::new("shop-operator")).unwrap_err().to_string();
        assert!(error.contains("shop-operator: "), "{error}");
    }
}
