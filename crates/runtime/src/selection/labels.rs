//! Label selectors: parsed once, matched locally, printed in one canonical form.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use super::InvalidSelector;
use crate::meta::Labels;

/// A label selector. The default selects everything.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct LabelSelector(BTreeSet<Requirement>);

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Requirement {
    Exists(String),
    Missing(String),
    In(String, BTreeSet<String>),
    NotIn(String, BTreeSet<String>),
}

impl LabelSelector {
    /// Returns true if it selects everything.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if an object with these labels is selected.
    pub fn matches(&self, labels: &Labels) -> bool {
        self.0.iter().all(|requirement| match requirement {
            Requirement::Exists(key) => labels.contains_key(key),
            Requirement::Missing(key) => !labels.contains_key(key),
            Requirement::In(key, values) => {
                labels.get(key).is_some_and(|value| values.contains(value.as_str()))
            }
            // As in the API server: an object without the key is not in any set.
            Requirement::NotIn(key, values) => {
                labels.get(key).is_none_or(|value| !values.contains(value.as_str()))
            }
        })
    }
}

impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, requirement) in self.0.iter().enumerate() {
            if at > 0 {
                f.write_str(",")?;
            }
            match requirement {
                Requirement::Exists(key) => f.write_str(key)?,
                Requirement::Missing(key) => write!(f, "!{key}")?,
                Requirement::In(key, values) if values.len() == 1 => write!(f, "{key}={}", join(values))?,
                Requirement::In(key, values) => write!(f, "{key} in ({})", join(values))?,
                Requirement::NotIn(key, values) if values.len() == 1 => write!(f, "{key}!={}", join(values))?,
                Requirement::NotIn(key, values) => write!(f, "{key} notin ({})", join(values))?,
            }
        }
        Ok(())
    }
}

fn join(values: &BTreeSet<String>) -> String {
    values.iter().map(String::as_str).collect::<Vec<_>>().join(",")
}

impl FromStr for LabelSelector {
    type Err = InvalidSelector;

    fn from_str(selector: &str) -> Result<Self, InvalidSelector> {
        let refuse = |reason: &str| InvalidSelector::new(selector, reason);
        split_outside_parentheses(selector)
            .into_iter()
            .map(str::trim)
            .filter(|part| !part.is_empty())
            .map(|part| requirement(part).map_err(refuse))
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

/// Splits at commas that are not inside a set of values.
fn split_outside_parentheses(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut depth, mut start) = (0_i32, 0);
    for (at, character) in text.char_indices() {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

fn requirement(part: &str) -> Result<Requirement, &'static str> {
    let one = |value: &str| value_of(value).map(|value| BTreeSet::from([value]));
    if let Some(key) = part.strip_prefix('!') {
        return Ok(Requirement::Missing(key_of(key)?));
    }
    if let Some((head, values)) = part.split_once('(') {
        let values = values.trim().strip_suffix(')').ok_or("a set of values ends with ')'")?;
        let values = values.split(',').map(value_of).collect::<Result<_, _>>()?;
        let mut words = head.split_whitespace();
        return match (words.next(), words.next(), words.next()) {
            (Some(key), Some("in"), None) => Ok(Requirement::In(key_of(key)?, values)),
            (Some(key), Some("notin"), None) => Ok(Requirement::NotIn(key_of(key)?, values)),
            _ => Err("a set of values follows `key in` or `key notin`"),
        };
    }
    if let Some((key, value)) = part.split_once("!=") {
        return Ok(Requirement::NotIn(key_of(key)?, one(value)?));
    }
    if let Some((key, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
        return Ok(Requirement::In(key_of(key)?, one(value)?));
    }
    Ok(Requirement::Exists(key_of(part)?))
}

fn key_of(text: &str) -> Result<String, &'static str> {
    let key = text.trim();
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
    if key.is_empty() || !key.chars().all(allowed) {
        return Err("a label key has letters, digits, '-', '_', '.' and one '/'");
    }
    Ok(key.to_owned())
}

fn value_of(text: &str) -> Result<String, &'static str> {
    let value = text.trim();
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if !value.chars().all(allowed) {
        return Err("a label value has letters, digits, '-', '_' and '.'");
    }
    Ok(value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        pairs.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect()
    }

    #[test]
    fn every_selector_operator_matches_as_in_the_api_server() {
        let web = labels(&[("app", "web"), ("tier", "front")]);
        let bare = labels(&[]);
        for (selector, matches_web, matches_bare) in [
            ("", true, true),
            ("app", true, false),
            ("!app", false, true),
            ("app=web", true, false),
            ("app==web", true, false),
            ("app = web , tier=front", true, false),
            ("app=web,tier=back", false, false),
            ("app!=web", false, true),
            ("app!=api", true, true),
            ("app in (api, web)", true, false),
            ("app notin (api,web)", false, true),
            ("app in (web),tier notin (back)", true, false),
            ("app=", false, false),
        ] {
            let parsed: LabelSelector = selector.parse().unwrap();
            assert_eq!(parsed.matches(&web), matches_web, "{selector} on web");
            assert_eq!(parsed.matches(&bare), matches_bare, "{selector} on bare");
        }
    }

    #[test]
    fn equal_label_selectors_print_alike_however_they_were_written() {
        let a: LabelSelector = "b in (y,x), a==1".parse().unwrap();
        let b: LabelSelector = "a=1,b in (x,y)".parse().unwrap();
        assert_eq!(a, b);
        assert_eq!(a.to_string(), b.to_string());
        assert_eq!(a.to_string().parse::<LabelSelector>().unwrap(), a);
    }

    #[test]
    fn an_invalid_label_selector_is_refused_with_a_reason() {
        for selector in ["app in web", "app in (web", "a b=c", "=x", "app=(x)", "app=a b"] {
            assert!(selector.parse::<LabelSelector>().is_err(), "{selector}");
        }
    }
}
