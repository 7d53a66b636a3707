//! Values that the registry parses as YAML, with and without quotes.

use windlass_operator::yaml::quoted;

use super::confidential::Confidential;

/// Returns true if an unquoted text is parsed as the same text by a YAML reader.
pub(crate) fn survives(text: &str) -> bool {
    const SIGNS: [char; 17] =
        ['*', '&', '!', '|', '>', '%', '@', '`', '"', '\'', '#', '{', '[', ',', '}', ']', '~'];
    let begins_well = !text.starts_with(SIGNS) && !text.starts_with(['-', '?', ':']);
    let is_one_word = !text.chars().any(|character| character.is_whitespace() || character.is_control());
    let is_nothing = text.is_empty() || text.eq_ignore_ascii_case("null");
    begins_well && is_one_word && !is_nothing && !text.ends_with(':')
}

/// Returns a secret in the form that survives the registry's environment.
///
/// The registry parses each `REGISTRY_…` variable as YAML, so a password like `*star`, `0123` or `a: b`
/// fails, changes or is cut. With quotes every text arrives unchanged. The result belongs into a Secret of
/// ours, not into the user's.
pub(crate) fn registry_env_value(secret: &Confidential) -> Confidential {
    Confidential::new(quoted(secret.expose()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use windlass_operator::yaml::{Map, Style};

    use super::*;

    fn read<T: for<'de> serde::Deserialize<'de>>(text: &str) -> T {
        serde_saphyr::from_str(text).unwrap()
    }

    #[test]
    fn a_text_that_survives_unquoted_is_parsed_unchanged() {
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
    fn quoted_texts_are_parsed_unchanged() {
        for text in [
            "", "12", "0123", "1e3", "yes", "~", "null", "a: b", "a #b", "*x", "&x", "!x", "%x", "@x", "{",
            "[", "'", "\"", "\\", "é", "-", "?",
        ] {
            assert_eq!(read::<String>(&quoted(text)), text);
            let document = Map::new().with("k", text).document(Style::File);
            assert_eq!(
                read::<std::collections::BTreeMap<String, String>>(&document)["k"],
                text,
                "{document}"
            );
        }
    }

    proptest! {
        #[test]
        fn any_quoted_text_is_parsed_unchanged(text in any::<String>()) {
            prop_assert_eq!(read::<String>(&quoted(&text)), text);
        }
    }
}
