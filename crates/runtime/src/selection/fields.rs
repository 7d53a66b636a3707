//! Field selectors, evaluated locally as far as that is certain.

use std::fmt;
use std::str::FromStr;

use serde_json::Value;

use super::{InvalidSelector, Verdict};
use crate::meta::Meta;

const NAME: &str = "metadata.name";
const NAMESPACE: &str = "metadata.namespace";

/// A field selector. The default selects everything.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct FieldSelector(Vec<Term>);

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Term {
    path: String,
    equal: bool,
    value: String,
}

impl FieldSelector {
    /// Returns true if it selects everything.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the one name that an object must have to be selected, if there is one. Names never change, so
    /// any other object is never selected.
    pub(crate) fn name(&self) -> Option<&str> {
        self.0.iter().find(|term| term.equal && term.path == NAME).map(|term| &*term.value)
    }

    /// Evaluates the selector for the object with this metadata and these JSON bytes.
    ///
    /// Selectable fields are named by their JSON path, in all built-in kinds and CRDs; an absent field counts
    /// as the empty string, as for the server, except for a boolean, whose default only the server knows.
    pub(crate) fn judge(&self, meta: &Meta, object: &[u8]) -> Verdict {
        let (known, others): (Vec<&Term>, Vec<&Term>) =
            self.0.iter().partition(|term| matches!(&*term.path, NAME | NAMESPACE));
        let of_known = |term: &Term| {
            let actual = if term.path == NAME { meta.name() } else { meta.namespace().unwrap_or_default() };
            Verdict::of((actual == term.value) == term.equal)
        };
        let verdict = known.into_iter().map(of_known).fold(Verdict::Inside, Verdict::and);
        // The whole object is decoded only if that can still change the result.
        if others.is_empty() || verdict == Verdict::Outside {
            return verdict;
        }
        let Ok(object) = serde_json::from_slice::<Value>(object) else {
            return Verdict::Unknown;
        };
        others.into_iter().map(|term| term.judge(&object)).fold(verdict, Verdict::and)
    }
}

impl Term {
    fn judge(&self, object: &Value) -> Verdict {
        let found = self.path.split('.').try_fold(object, |value, step| value.get(step));
        let actual = match found {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Bool(flag)) => flag.to_string(),
            Some(Value::Number(number)) => number.to_string(),
            Some(Value::Null) | None if !matches!(&*self.value, "true" | "false") => String::new(),
            _ => return Verdict::Unknown,
        };
        Verdict::of((actual == self.value) == self.equal)
    }
}

impl fmt::Display for FieldSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, term) in self.0.iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            let operator = if term.equal { "=" } else { "!=" };
            write!(f, "{comma}{}{operator}{}", term.path, term.value)?;
        }
        Ok(())
    }
}

impl FromStr for FieldSelector {
    type Err = InvalidSelector;

    fn from_str(selector: &str) -> Result<Self, InvalidSelector> {
        let mut terms = Vec::new();
        for part in selector.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (path, equal, value) = if let Some((path, value)) = part.split_once("!=") {
                (path, false, value)
            } else if let Some((path, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
                (path, true, value)
            } else {
                return Err(InvalidSelector::new(selector, format!("{part:?} has no '=' or '!='")));
            };
            if path.trim().is_empty() {
                return Err(InvalidSelector::new(selector, "a field selector names a field"));
            }
            terms.push(Term { path: path.trim().to_owned(), equal, value: value.trim().to_owned() });
        }
        terms.sort();
        terms.dedup();
        Ok(Self(terms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POD: &[u8] =
        br#"{"metadata":{"name":"p","namespace":"n"},"spec":{"nodeName":"n1"},"status":{"phase":"Running"}}"#;

    #[derive(serde::Deserialize)]
    struct Pod {
        metadata: Meta,
    }

    #[test]
    fn field_selectors_are_evaluated_by_path() {
        let meta = serde_json::from_slice::<Pod>(POD).unwrap().metadata;
        for (selector, verdict) in [
            ("", Verdict::Inside),
            ("metadata.name=p", Verdict::Inside),
            ("metadata.name!=p", Verdict::Outside),
            ("metadata.namespace=n,metadata.name=p", Verdict::Inside),
            ("metadata.namespace=m", Verdict::Outside),
            ("spec.nodeName=n1,status.phase!=Failed", Verdict::Inside),
            ("spec.nodeName=n1,status.phase=Failed", Verdict::Outside),
            ("status.podIP=", Verdict::Inside),
            ("status.podIP=10.0.0.1", Verdict::Outside),
            ("spec.hostNetwork=false", Verdict::Unknown),
            ("spec.hostNetwork=false,metadata.name=q", Verdict::Outside),
            ("spec=x", Verdict::Unknown),
        ] {
            assert_eq!(selector.parse::<FieldSelector>().unwrap().judge(&meta, POD), verdict, "{selector}");
        }
    }

    #[test]
    fn a_field_selector_for_one_name_has_that_name() {
        for (selector, name) in [
            ("metadata.name=p", Some("p")),
            ("spec.nodeName=n1,metadata.name==p", Some("p")),
            ("metadata.name!=p", None),
            ("metadata.namespace=p", None),
            ("", None),
        ] {
            assert_eq!(selector.parse::<FieldSelector>().unwrap().name(), name, "{selector}");
        }
    }

    #[test]
    fn equal_field_selectors_print_alike() {
        let a: FieldSelector = "b=1, a==2".parse().unwrap();
        assert_eq!(a.to_string(), "a=2,b=1");
        assert!("metadata.name".parse::<FieldSelector>().is_err());
        assert!("=x".parse::<FieldSelector>().is_err());
    }
}
