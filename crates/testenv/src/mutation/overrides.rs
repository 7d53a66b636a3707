//! Values that a schema does not tell: a text file per operator.
//!
//! | line | meaning |
//! | --- | --- |
//! | `spec.host = "a.example.com"` | a valid value; several lines are several values, tried in this order |
//! | `spec.host ! "*"` | an invalid value, beside those that the schema tells |
//! | `spec.cache.redis with {"spec": {"cache": {"kind": "Redis"}}}` | a merge patch of the base, for this property and all below |
//!
//! `*` in a path stands for any text. `~<pattern>` instead of a path means all properties whose schema has
//! exactly this regular expression. A line with more characters before its first `*` comes first; the lines
//! of the first path that fits are used. Empty lines and lines that begin with `#` are ignored.

use serde_json::Value;

use super::path::{PropertyPath, matches, merge};

/// The lines of the file.
#[derive(Clone, Debug, Default)]
pub(super) struct Overrides(Vec<Line>);

#[derive(Clone, Debug)]
struct Line {
    selector: String,
    purpose: Purpose,
    value: Value,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    Valid,
    Invalid,
    Context,
}

impl Overrides {
    /// Reads the lines; an error names the line.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        lines.map(Line::parse).collect::<Result<_, _>>().map(Self)
    }

    /// The valid values of a property, if the file has some.
    pub(super) fn valid(&self, path: &PropertyPath, schema: &Value) -> Option<Vec<Value>> {
        self.values(Purpose::Valid, path, schema)
    }

    /// The invalid values of a property that the file adds.
    pub(super) fn invalid(&self, path: &PropertyPath, schema: &Value) -> Vec<Value> {
        self.values(Purpose::Invalid, path, schema).unwrap_or_default()
    }

    fn values(&self, purpose: Purpose, path: &PropertyPath, schema: &Value) -> Option<Vec<Value>> {
        let fits = |line: &&Line| line.purpose == purpose && line.fits(&path.to_string(), schema);
        let best = self.0.iter().filter(fits).max_by_key(|line| line.rank())?.selector.clone();
        let lines = self.0.iter().filter(fits).filter(|line| line.selector == best);
        Some(lines.map(|line| line.value.clone()).collect())
    }

    /// Merges the patches for a property and for what is above it into the base.
    pub(super) fn apply_context(&self, path: &PropertyPath, base: &mut Value) {
        for path in path.ancestors().into_iter().chain([path.clone()]) {
            let path = path.to_string();
            for line in self.0.iter().filter(|line| line.purpose == Purpose::Context) {
                if line.fits(&path, &Value::Null) {
                    merge(base, &line.value);
                }
            }
        }
    }

    /// The lines that fit no property: mistakes, or left over from an older schema.
    pub(super) fn unused(&self, properties: &[(String, &Value)]) -> Vec<String> {
        let unused =
            self.0.iter().filter(|line| !properties.iter().any(|(path, schema)| line.fits(path, schema)));
        unused.map(|line| format!("no property fits {:?} of the file of values", line.selector)).collect()
    }
}

impl Line {
    fn parse(line: &str) -> Result<Self, String> {
        let split = |mark: &str, purpose| line.split_once(mark).map(|(path, value)| (path, purpose, value));
        let parts = split(" = ", Purpose::Valid)
            .or_else(|| split(" ! ", Purpose::Invalid))
            .or_else(|| split(" with ", Purpose::Context));
        let Some((selector, purpose, value)) = parts else {
            return Err(format!(
                "{line:?} is no line of values: write <path> = <JSON>, ! <JSON> or with <JSON>"
            ));
        };
        let value = serde_json::from_str(value).map_err(|error| format!("{line:?}: {error}"))?;
        Ok(Self { selector: selector.trim().to_owned(), purpose, value })
    }

    fn fits(&self, path: &str, schema: &Value) -> bool {
        match self.selector.strip_prefix('~') {
            Some(pattern) => schema["pattern"] == pattern,
            None => matches(&self.selector, path),
        }
    }

    /// A path before a path with a star, a pattern last.
    fn rank(&self) -> (bool, bool, usize) {
        let selector = &self.selector;
        (!selector.starts_with('~'), !selector.contains('*'), selector.len())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const FILE: &str = r#"
# hosts
spec.host = "a.example.com"
spec.host = "b.example.com"
*.host = "c.example.com"
~https?://.+ = "https://a"
spec.host ! "*"
spec.cache with {"spec": {"cache": {"kind": "Redis"}}}
"#;

    fn overrides() -> Overrides {
        Overrides::parse(FILE).unwrap()
    }

    #[test]
    fn the_most_exact_line_wins() {
        let spec = PropertyPath::root("spec");
        let none = json!({});
        let url = json!({"pattern": "https?://.+"});
        let valid = |path: &PropertyPath, schema| overrides().valid(path, schema);
        assert_eq!(
            valid(&spec.field("host"), &none),
            Some(vec![json!("a.example.com"), json!("b.example.com")])
        );
        assert_eq!(valid(&spec.field("core").field("host"), &url), Some(vec![json!("c.example.com")]));
        assert_eq!(valid(&spec.field("url"), &url), Some(vec![json!("https://a")]));
        assert_eq!(valid(&spec.field("name"), &none), None);
        assert_eq!(overrides().invalid(&spec.field("host"), &none), [json!("*")]);
    }

    #[test]
    fn a_context_holds_for_everything_below() {
        let mut base = json!({"spec": {}});
        overrides().apply_context(&PropertyPath::root("spec").field("cache").field("redis"), &mut base);
        assert_eq!(base, json!({"spec": {"cache": {"kind": "Redis"}}}));
    }

    #[test]
    fn mistakes_are_named() {
        for (text, words) in [("spec.a", "write <path> ="), ("spec.a = x", "spec.a = x")] {
            let error = Overrides::parse(text).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
        let schema = json!({});
        let unused = overrides().unused(&[("spec.host".to_owned(), &schema)]);
        let left = ["~https?://.+", "spec.cache"];
        assert_eq!(unused, left.map(|left| format!("no property fits {left:?} of the file of values")));
    }
}
