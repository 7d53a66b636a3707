//! Filling in templates: `{{name}}` is a value, and lines between `{{if flag}}` and `{{end}}` are there if the flag is set.
//!
//! That is all of it: no nesting, no loops, no escapes. A name that is not known is left as it is, which the tests of the
//! [project](super::project) look for.

/// Values and flags, by name.
#[derive(Debug, Default)]
pub(crate) struct Values {
    pub(crate) values: Vec<(&'static str, String)>,
    pub(crate) flags: Vec<(&'static str, bool)>,
}

impl Values {
    /// The template with everything filled in.
    pub(crate) fn fill(&self, template: &str) -> String {
        let mut text = String::with_capacity(template.len());
        let mut shown = true;
        for line in template.split_inclusive('\n') {
            let marker = line.trim();
            if let Some(flag) = marker.strip_prefix("{{if ").and_then(|rest| rest.strip_suffix("}}")) {
                shown = self.flags.iter().any(|(name, set)| *name == flag && *set);
            } else if marker == "{{end}}" {
                shown = true;
            } else if shown {
                text.push_str(line);
            }
        }
        self.values.iter().fold(text, |text, (name, value)| text.replace(&format!("{{{{{name}}}}}"), value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values() -> Values {
        Values { values: vec![("kind", "Shop".into())], flags: vec![("yes", true), ("no", false)] }
    }

    #[test]
    fn values_are_filled_in_wherever_they_are() {
        assert_eq!(
            values().fill("a {{kind}} is a {{kind}}Spec, not {{other}}"),
            "a Shop is a ShopSpec, not {{other}}"
        );
    }

    #[test]
    fn lines_are_there_if_their_flag_is_set() {
        let template =
            "a\n{{if yes}}\nb\n{{end}}\n    {{if no}}\nc\n    {{end}}\n{{if unknown}}\nd\n{{end}}\ne\n";
        assert_eq!(values().fill(template), "a\nb\ne\n");
    }
}
