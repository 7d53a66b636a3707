//! What a registry logs.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::choice::choice;
use super::log::RegistryLogLevel;
use super::pattern;

choice! {
    /// How lines of a log look.
    LogFormatter { Text = "text", Json = "json", Logstash = "logstash" }
}

/// What the registry logs.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RegistryLog {
    /// Added to every line.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub fields: BTreeMap<String, String>,
    /// How lines look.
    pub formatter: LogFormatter,
    /// From this level on.
    pub level: RegistryLogLevel,
    /// A line for every request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access_log: Option<RegistryAccessLog>,
    /// What else is done with lines.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<RegistryLogHook>,
}

impl Default for RegistryLog {
    fn default() -> Self {
        Self {
            fields: BTreeMap::new(),
            formatter: LogFormatter::Text,
            level: RegistryLogLevel::Info,
            access_log: None,
            hooks: Vec::new(),
        }
    }
}

/// A line for every request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RegistryAccessLog {
    /// Whether there is none.
    pub disabled: bool,
}

/// What else is done with lines of the log.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RegistryLogHook {
    /// What.
    #[serde(rename = "type")]
    pub kind: String,
    /// With lines of these levels.
    pub levels: Vec<String>,
    /// The Secret whose keys and values are its options.
    #[schemars(regex(pattern = pattern::NAME))]
    pub options_ref: String,
}
