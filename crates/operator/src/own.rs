//! Settings of one operator's own: each a flag, a variable of the environment and a key of a file.
//!
//! It promises: a flag counts before the environment, the environment before the file; of each key one value is left, and where it
//! came from is known, so that an error can say where to look; a secret is never shown.
//!
//! It does not know what a value means: that is for the operator to say.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches};
use serde_json::Value;

/// The flag that names the file.
const FILE: &str = "config";
/// The same in the environment.
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
    /// A setting of this key (small letters, digits and dashes), whose value is called so in the help.
    pub fn new(key: impl Into<String>, value: &'static str, about: impl Into<String>) -> Self {
        let (key, about) = (key.into(), about.into());
        Self { key, value, about, switch: false, secret: false, rare: false }
    }

    /// One that is true or false: its flag alone means true.
    pub fn switch(key: impl Into<String>, about: impl Into<String>) -> Self {
        Self { switch: true, ..Self::new(key, "true|false", about) }
    }

    /// The same, whose value is never shown.
    pub fn secret(self) -> Self {
        Self { secret: true, ..self }
    }

    /// The same, shown by `--help`, and not by `-h`.
    pub fn rare(self) -> Self {
        Self { rare: true, ..self }
    }

    /// Its key.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Its name in the environment.
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

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Source {
    Flag,
    Environment,
    File(PathBuf),
}

/// What was given: one value for each key.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Given {
    values: BTreeMap<String, (String, Source)>,
}

/// Its values may be secrets.
impl fmt::Debug for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.values.keys()).finish()
    }
}

impl Given {
    /// The keys, in order, with their values. Keys of a file need not be those of settings: say which are not.
    pub fn values(&self) -> impl Iterator<Item = (&str, &str)> {
        self.values.iter().map(|(key, (value, _))| (key.as_str(), value.as_str()))
    }

    /// Where a value was given, in words: `--page-size`, `PAGE_SIZE in the environment`, `page-size in settings.yaml`.
    #[must_use]
    pub fn whence(&self, key: &str) -> Option<String> {
        let (_, source) = self.values.get(key)?;
        Some(match source {
            Source::Flag => format!("--{key}"),
            Source::Environment => {
                format!("{} in the environment", key.to_ascii_uppercase().replace('-', "_"))
            }
            Source::File(path) => format!("{key} in {}", path.display()),
        })
    }

    /// Of what a command line was matched to.
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
                // An empty variable is how deployments leave one out.
                Some(ValueSource::EnvVariable) if !value.is_empty() => Source::Environment,
                _ => continue,
            };
            values.insert(setting.key.clone(), (value.clone(), source));
        }
        Ok(Self { values })
    }
}

/// The flags of settings; none, where there are none.
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

/// The keys and values of a file: a map, or a list of `key`, `value` and `priority`, the highest of which counts.
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

/// As it would stand in a flag.
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
            Setting::switch("fast", "Whether to hurry"),
            Setting::new("token", "TEXT", "Who is there").secret(),
        ]
    }

    fn given(words: &[&str]) -> Result<Given, String> {
        let command = Command::new("census").args(args(&settings()));
        let matches = command.try_get_matches_from([&["census"], words].concat()).unwrap();
        Given::read(&settings(), &matches)
    }

    #[test]
    fn a_flag_counts_before_the_file_and_each_says_where_it_stands() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("settings.yaml");
        std::fs::write(&path, "page-size: 5\nFAST: true\ntoken: hunter2\n").unwrap();
        let file = format!("--config={}", path.display());
        let given = given(&[&file, "--page-size", "7"]).unwrap();
        let values: Vec<_> = given.values().collect();
        assert_eq!(values, [("fast", "true"), ("page-size", "7"), ("token", "hunter2")]);
        assert_eq!(given.whence("page-size").unwrap(), "--page-size");
        assert_eq!(given.whence("fast").unwrap(), format!("fast in {}", path.display()));
        assert_eq!(given.whence("none"), None);
        assert!(!format!("{given:?}").contains("hunter2"));
    }

    #[test]
    fn a_switch_alone_means_true() {
        let values = |words: &[&str]| given(words).unwrap().values().map(|(_, v)| v.to_owned()).collect();
        let (on, off): (Vec<String>, Vec<String>) = (values(&["--fast"]), values(&["--fast=false"]));
        assert_eq!((on, off), (vec!["true".to_owned()], vec!["false".to_owned()]));
    }

    #[test]
    fn a_list_of_items_is_read_too_and_the_highest_priority_counts() {
        let text = "- key: a\n  priority: 50\n  value: \"1\"\n- key: a\n  value: 2\n- key: b\n  value: c\n";
        let expected = [("a", "1"), ("b", "c")].map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(pairs(text), Ok(expected.into()));
        assert_eq!(pairs(""), Ok(BTreeMap::new()));
        for (wrong, said) in [("a: [", "no YAML"), ("- value: 1", "no `key`"), ("just words", "neither")] {
            assert!(pairs(wrong).unwrap_err().contains(said), "{wrong}");
        }
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let error = given(&["--config=/nowhere/settings.yaml"]).unwrap_err();
        assert!(error.contains("/nowhere/settings.yaml") && error.contains("--config"), "{error}");
    }
}
