//! Texts that the registry reads as YAML, with and without quotes.

use windlass_operator::yaml::quoted;

use super::confidential::Confidential;

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
    use windlass_operator::yaml::{Map, Style};

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
    fn every_kind_of_text_comes_back() {
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
        fn any_text_comes_back(text in any::<String>()) {
            prop_assert_eq!(read::<String>(&quoted(&text)), text);
        }
    }
}
