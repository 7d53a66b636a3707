//! Settings of an operator's own: each is a flag, an environment variable and a key of a file.
//!
//! It promises: a flag takes precedence over the environment, and the environment over the file; each key has
//! one value with a known source, so that an error can name the place to change; a secret is never shown.
//!
//! It does not interpret values: the operator does.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches};
use serde_json::Value;

/// The flag that names the file.
const FILE: &str = "config";
/// The environment variable that names the file.
const FILE_VARIABLE: &str = "CONFIG_FILE";
const HEADING: &str = "Settings (flag, environment variable, or key in the --config file)";

/// A setting of an operator's own.
///
/// ```
/// use windlass_operator::Setting;
///
/// // --page-size 10, PAGE_SIZE=10, or `page-size: 10` in the file.
/// let size = Setting::new("page-size", "NUMBER", "Number of items per request; default: 100");
/// assert_eq!((size.key(), &*size.variable()), ("page-size", "PAGE_SIZE"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "give it to Operator::settings"]
pub struct Setting {
    key: String,
    value: &'static str,
    about: String,
    switch: bool,
    secret: bool,
    rare: bool,
}

impl Setting {
    /// Returns a setting of this key (lower-case letters, digits and dashes); `value` is the placeholder in
    /// the help.
    pub fn new(key: impl Into<String>, value: &'static str, about: impl Into<String>) -> Self {
        let (key, about) = (key.into(), about.into());
        Self { key, value, about, switch: false, secret: false, rare: false }
    }

    /// Returns a setting that is true or false: its flag alone means true.
    pub fn switch(key: impl Into<String>, about: impl Into<String>) -> Self {
        Self { switch: true, ..Self::new(key, "true|false", about) }
    }

    /// Hides the value of the setting, because it is secret.
    pub fn secret(self) -> Self {
        Self { secret: true, ..self }
    }

    /// Shows the setting in `--help`, but not in `-h`.
    pub fn rare(self) -> Self {
        Self { rare: true, ..self }
    }

    /// Returns the key of the setting.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Returns the environment variable of the setting.
    #[must_use]
    pub fn variable(&self) -> String {
        self.key.to_ascii_uppercase().replace('-', "_")
    }

    fn arg(&self) -> Arg {
        let arg = Arg::new(self.key.clone())
            .long(self.key.clone())
            .env(self.variable())
            .value_name(self.value)
            .help(self.about.clone())
            .help_heading(HEADING)
            .hide_env_values(self.secret)
            .hide_short_help(self.rare);
        if self.switch { arg.num_args(0..=1).require_equals(true).default_missing_value("true") } else { arg }
    }
}

/// The source of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Source {
    Flag,
    Environment,
    File(PathBuf),
}

/// The values of the operator's own settings: one for each key.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct SettingValues {
    values: BTreeMap<String, (String, Source)>,
}

/// Values are left out of debug output: they may be secret.
impl fmt::Debug for SettingValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.values.keys()).finish()
    }
}

impl SettingValues {
    /// Returns the keys in order, with their values. A file may contain keys without a setting: the operator
    /// should report them.
    pub fn values(&self) -> impl Iterator<Item = (&str, &str)> {
        self.values.iter().map(|(key, (value, _))| (key.as_str(), value.as_str()))
    }

    /// Returns the source of a value in words: `--page-size`, `PAGE_SIZE in the environment`, `page-size in
    /// settings.yaml`.
    #[must_use]
    pub fn source_of(&self, key: &str) -> Option<String> {
        let (_, source) = self.values.get(key)?;
        Some(match source {
            Source::Flag => format!("--{key}"),
            Source::Environment => {
                format!("{} in the environment", key.to_ascii_uppercase().replace('-', "_"))
            }
            Source::File(path) => format!("{key} in {}", path.display()),
        })
    }

    /// Reads the values from a matched command line.
    pub(crate) fn read(settings: &[Setting], matches: &ArgMatches) -> Result<Self, String> {
        if settings.is_empty() {
            return Ok(Self::default());
        }
        let file = matches.get_one::<PathBuf>(FILE).filter(|path| !path.as_os_str().is_empty());
        let mut values = match file {
            Some(path) => of_file(path)?,
            None => BTreeMap::new(),
        };
        for setting in settings {
            let Some(value) = matches.get_one::<String>(&setting.key) else { continue };
            let source = match matches.value_source(&setting.key) {
                Some(ValueSource::CommandLine) => Source::Flag,
                // Deployments leave out a setting with an empty variable.
                Some(ValueSource::EnvVariable) if !value.is_empty() => Source::Environment,
                _ => continue,
            };
            values.insert(setting.key.clone(), (value.clone(), source));
        }
        Ok(Self { values })
    }
}

/// Returns the flags of settings; none if there are no settings.
pub(crate) fn args(settings: &[Setting]) -> Vec<Arg> {
    if settings.is_empty() {
        return Vec::new();
    }
    let file = Arg::new(FILE)
        .long(FILE)
        .env(FILE_VARIABLE)
        .value_name("FILE")
        .value_parser(clap::value_parser!(PathBuf))
        .help("File with settings (YAML: `key: value`); flags and the environment take precedence")
        .help_heading(HEADING);
    std::iter::once(file).chain(settings.iter().map(Setting::arg)).collect()
}

fn of_file(path: &Path) -> Result<BTreeMap<String, (String, Source)>, String> {
    let at = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("the settings in {at} cannot be read: {error} (--{FILE})"))?;
    let pairs = pairs(&text).map_err(|error| {
        format!("the settings in {at} cannot be read: {error}; write one `key: value` a line (--{FILE})")
    })?;
    Ok(pairs.into_iter().map(|(key, value)| (key, (value, Source::File(path.to_owned())))).collect())
}

/// Reads the keys and values of a file: a map, or a list of `key`, `value` and `priority`, of which the
/// highest priority counts.
fn pairs(text: &str) -> Result<BTreeMap<String, String>, String> {
    let read: Value = serde_saphyr::from_str(text).map_err(|_| "it is no YAML".to_owned())?;
    let mut ranked: Vec<(i64, String, String)> = Vec::new();
    match read {
        Value::Null => {}
        Value::Object(members) => {
            for (key, value) in members {
                ranked.push((0, key, scalar(&value)));
            }
        }
        Value::Array(items) => {
            for item in items {
                let Some(key) = item["key"].as_str() else {
                    return Err("an item of its list has no `key`".to_owned());
                };
                ranked.push((item["priority"].as_i64().unwrap_or(0), key.to_owned(), scalar(&item["value"])));
            }
        }
        _ => return Err("it is neither a map nor a list".to_owned()),
    }
    ranked.sort_by_key(|(priority, ..)| *priority);
    Ok(ranked
        .into_iter()
        .map(|(_, key, value)| (key.to_ascii_lowercase().replace(['_', '.'], "-"), value))
        .collect())
}

/// Returns a value as it would be written in a flag.
fn scalar(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Command;

    fn settings() -> Vec<Setting> {
        vec![
            Setting::new("page-size", "NUMBER", "How many"),
            Setting::switch("fast", "Use the fast algorithm"),
            Setting::new("token", "TEXT", "Token of the client").secret(),
        ]
    }

    fn read(words: &[&str]) -> Result<SettingValues, String> {
        let command = Command::new("census").args(args(&settings()));
        let matches = command.try_get_matches_from([&["census"], words].concat()).unwrap();
        SettingValues::read(&settings(), &matches)
    }

    #[test]
    fn a_flag_takes_precedence_over_the_file_and_each_value_has_a_source() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("settings.yaml");
        std::fs::write(&path, "page-size: 5\nFAST: true\ntoken: hunter2\n").unwrap();
        let file = format!("--config={}", path.display());
        let settings = read(&[&file, "--page-size", "7"]).unwrap();
        let values: Vec<_> = settings.values().collect();
        assert_eq!(values, [("fast", "true"), ("page-size", "7"), ("token", "hunter2")]);
        assert_eq!(settings.source_of("page-size").unwrap(), "--page-size");
        assert_eq!(settings.source_of("fast").unwrap(), format!("fast in {}", path.display()));
        assert_eq!(settings.source_of("none"), None);
        assert!(!format!("{settings:?}").contains("hunter2"));
    }

    #[test]
    fn a_switch_alone_means_true() {
        let values = |words: &[&str]| read(words).unwrap().values().map(|(_, v)| v.to_owned()).collect();
        let (on, off): (Vec<String>, Vec<String>) = (values(&["--fast"]), values(&["--fast=false"]));
        assert_eq!((on, off), (vec!["true".to_owned()], vec!["false".to_owned()]));
    }

    #[test]
    fn the_highest_priority_counts_in_a_list_of_items() {
        let text = "- key: a\n  priority: 50\n  value: \"1\"\n- key: a\n  value: 2\n- key: b\n  value: c\n";
        let expected = [("a", "1"), ("b", "c")].map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(pairs(text), Ok(expected.into()));
        assert_eq!(pairs(""), Ok(BTreeMap::new()));
        for (wrong, message) in [("a: [", "no YAML"), ("- value: 1", "no `key`"), ("just words", "neither")] {
            assert!(pairs(wrong).unwrap_err().contains(message), "{wrong}");
        }
    }

    #[test]
    fn the_error_for_a_missing_file_names_it() {
        let error = read(&["--config=/nowhere/settings.yaml"]).unwrap_err();
        assert!(error.contains("/nowhere/settings.yaml") && error.contains("--config"), "{error}");
    }
}
