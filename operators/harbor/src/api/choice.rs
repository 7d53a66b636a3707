//! Enums whose values are words in manifests.

/// Declares an enum of words in manifests, with `as_str`, `Display`, and a schema that lists the words.
macro_rules! choice {
    ($(#[$about:meta])* $name:ident { $($(#[$mark:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$about])*
        #[allow(unreachable_pub)] // for choices used only inside the crate
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Deserialize, serde::Serialize)]
        pub enum $name {
            $(
                $(#[$mark])*
                #[doc = concat!("Written as `", $word, "` in manifests.")]
                #[serde(rename = $word)]
                $variant,
            )+
        }

        #[allow(unreachable_pub)]
        impl $name {
            /// All values, in the order of the schema.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// Returns the value as written in manifests.
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
        /// Values of the test.
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
