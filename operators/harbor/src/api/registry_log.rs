//! Log settings of the registry.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::choice::choice;
use super::log::RegistryLogLevel;
use super::pattern;

choice! {
    /// Format of log entries (`log.formatter` of Distribution).
    LogFormatter { Text = "text", Json = "json", Logstash = "logstash" }
}

/// Log settings of the registry.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RegistryLog {
    /// Fields added to every log entry (`log.fields` of Distribution). Default: none.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub fields: BTreeMap<String, String>,
    /// Format of log entries: `text`, `json` or `logstash` (`log.formatter` of Distribution). Default:
    /// `text`.
    pub formatter: LogFormatter,
    /// Lowest level of log entries that the registry writes: `debug`, `info`, `warning` or `error`
    /// (`log.level` of Distribution). Default: `info`.
    pub level: RegistryLogLevel,
    /// Access log of the registry (`log.accesslog` of Distribution). If unset, requests are logged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access_log: Option<RegistryAccessLog>,
    /// Log hooks, such as `mail` (`log.hooks` of Distribution). Default: none.
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

/// Access log of the registry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RegistryAccessLog {
    /// Disable the access log of the registry. Default: false.
    pub disabled: bool,
}

/// Hook that is called for log entries of some levels.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RegistryLogHook {
    /// Type of the hook. Distribution supports `mail` only.
    #[serde(rename = "type")]
    pub kind: String,
    /// Levels of log entries for which the hook is called: `panic`, `fatal`, `error`, `warn`, `info` or
    /// `debug`.
    pub levels: Vec<String>,
    /// Name of the Secret whose keys and values are the options of the hook.
    #[schemars(regex(pattern = pattern::NAME))]
    pub options_ref: String,
}
