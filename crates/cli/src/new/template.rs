//! Templates: `{{name}}` is replaced by a value, and lines between `{{if flag}}` and `{{end}}` are kept if
//! the flag is set.
//!
//! There is no nesting, no loop and no escape. An unknown name is left as it is; the tests of the
//! [project](super::project) look for it.

/// Values and flags for a template, by name.
#[derive(Debug, Default)]
pub(crate) struct Values {
    pub(crate) values: Vec<(&'static str, String)>,
    pub(crate) flags: Vec<(&'static str, bool)>,
}

impl Values {
    /// Returns the template with all values filled in.
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
