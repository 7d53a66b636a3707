//! Fields that take one of a few words.

/// Declares an enum whose values are words in manifests: with `as_str`, `Display`, and a schema that lists them.
macro_rules! choice {
    ($(#[$about:meta])* $name:ident { $($(#[$mark:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$about])*
        #[allow(unreachable_pub)] // where nobody outside reads it
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Deserialize, serde::Serialize)]
        pub enum $name {
            $(
                $(#[$mark])*
                #[doc = concat!("`", $word, "`.")]
                #[serde(rename = $word)]
                $variant,
            )+
        }

        #[allow(unreachable_pub)]
        impl $name {
            /// All of them, in the order of the documentation.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// As it is written in manifests.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl schemars::JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({"type": "string", "enum": [$($word),+]})
            }
        }
    };
}

pub(crate) use choice;

#[cfg(test)]
mod tests {
    choice! {
        /// For the test.
        Colour { Red = "red", DarkRed = "dark/red" }
    }

    #[test]
    fn a_choice_is_written_read_and_described_with_the_same_words() {
        for colour in Colour::ALL {
            assert_eq!(serde_json::to_value(colour).unwrap(), colour.as_str());
            assert_eq!(serde_json::from_value::<Colour>(colour.to_string().into()).unwrap(), *colour);
        }
        let schema = schemars::schema_for!(Colour);
        assert_eq!(schema.get("enum").unwrap(), &serde_json::json!(["red", "dark/red"]));
    }
}
