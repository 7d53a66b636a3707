//! Which versions may be created, and which may follow which.
//!
//! These are rules for a moment: creation, and a change of `spec.version`. A Harbor that stands is not judged.

use std::fmt;

use super::release::{Release, known_lines, lines, newest_of};
use super::releases::{FORMER, MAINTAINED, MAJOR};
use super::version::Version;

/// How many minors one upgrade may climb: core's migrations are tested for this much.
const LONGEST_STEP: u32 = 2;

/// The field that every rule here is about.
const FIELD: &str = "spec.version";

/// Why something that a user wrote is not accepted, for the user to read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {value:?} is refused: {reason}; {remedy}")]
pub struct Refusal {
    /// The field, as a path from the object's root.
    pub field: String,
    /// What was written there.
    pub value: String,
    /// What is wrong with it.
    pub reason: String,
    /// What to write instead.
    pub remedy: String,
}

impl Refusal {
    /// A refusal of what a field holds.
    pub fn new(
        field: impl Into<String>,
        value: impl ToString,
        reason: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { field: field.into(), value: value.to_string(), reason: reason.into(), remedy: remedy.into() }
    }
}

/// Something accepted that the user should know more about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning(String);

impl Warning {
    /// The text, as an admission response carries it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether a Harbor of this version may be created.
pub fn admit_creation(version: &Version) -> Result<Vec<Warning>, Refusal> {
    let release = known(version)?;
    if release.is_former() {
        return Err(Refusal::new(
            FIELD,
            version,
            format!("Harbor {} runs where it is installed, but is not installed any more", version.line()),
            format!("choose one of {}", known_lines()),
        ));
    }
    Ok(warnings_of(&release))
}

/// Whether a Harbor may go from one version to another. The same version is always accepted.
///
/// The former lines are accepted as steps: from 2.2 the way to 2.6 leads over 2.4.
pub fn admit_change(from: &Version, to: &Version) -> Result<Vec<Warning>, Refusal> {
    if from == to {
        return Ok(Vec::new());
    }
    let release = known(to)?;
    if to < from {
        return Err(Refusal::new(
            FIELD,
            to,
            format!("this Harbor is at {from}, and its database cannot go back"),
            format!(
                "keep {from}, or restore a backup of the database made before the upgrade into a new Harbor"
            ),
        ));
    }
    if to.major() != from.major() || to.minor() - from.minor() > LONGEST_STEP {
        return Err(Refusal::new(
            FIELD,
            to,
            format!(
                "this Harbor is at {from}, and an upgrade climbs at most {LONGEST_STEP} minor versions at a time"
            ),
            remedy_of_a_long_step(from),
        ));
    }
    Ok(warnings_of(&release))
}

/// What to know about a version that stands: end of life, unknown patch. Nothing for a version that is not known at all.
pub fn warnings(version: &Version) -> Vec<Warning> {
    Release::of(version).map(|release| warnings_of(&release)).unwrap_or_default()
}

fn known(version: &Version) -> Result<Release, Refusal> {
    Release::of(version).map_err(|unknown| {
        Refusal::new(
            FIELD,
            version,
            format!("this operator does not know Harbor {}", version.line()),
            format!("choose one of {}, or install an operator that knows it", unknown.known),
        )
    })
}

/// The farthest step that is allowed, by name.
fn remedy_of_a_long_step(from: &Version) -> String {
    let farthest = from.minor().saturating_add(LONGEST_STEP);
    match newest_of(farthest) {
        Some(next) if from.major() == MAJOR => format!("go to {next} first"),
        _ if FORMER.contains(&farthest) => {
            format!("go to the newest patch of {MAJOR}.{farthest} first")
        }
        _ => format!("choose one of {}", known_lines()),
    }
}

fn warnings_of(release: &Release) -> Vec<Warning> {
    let version = release.version();
    let all = lines();
    let maintained = &all[all.len().saturating_sub(MAINTAINED)..];
    let mut warnings = Vec::new();
    if !maintained.contains(&version.minor()) {
        let names: Vec<String> = maintained.iter().map(|minor| format!("{MAJOR}.{minor}")).collect();
        warnings.push(Warning(format!(
            "{FIELD}: Harbor {} is at its end of life and gets no security fixes; maintained are {}; an upgrade climbs at most \
             {LONGEST_STEP} minor versions at a time",
            version.line(),
            names.join(", "),
        )));
    }
    if !release.is_exact() && !release.is_former() {
        let newest = newest_of(version.minor()).map(|newest| newest.to_string()).unwrap_or_default();
        warnings.push(Warning(format!(
            "{FIELD}: this operator does not know Harbor {version} and treats it like {newest}, the newest patch of {} it knows",
            version.line(),
        )));
    } else if version.candidate().is_some() {
        warnings.push(Warning(format!(
            "{FIELD}: Harbor {version} is a release candidate: not for data that matters"
        )));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn version(text: &str) -> Version {
        text.parse().unwrap()
    }

    fn change(from: &str, to: &str) -> Result<Vec<Warning>, Refusal> {
        admit_change(&version(from), &version(to))
    }

    #[test]
    fn maintained_versions_are_created_without_a_word() {
        for text in ["2.13.0", "2.14.4", "2.15.2"] {
            assert_eq!(admit_creation(&version(text)).unwrap(), []);
        }
    }

    #[test]
    fn versions_at_their_end_of_life_warn_and_name_the_maintained_ones() {
        for text in ["2.5.0", "2.6.2", "2.12.4"] {
            let warnings = admit_creation(&version(text)).unwrap();
            assert_eq!(warnings.len(), 1);
            assert!(warnings[0].as_str().contains("end of life"), "{}", warnings[0]);
            assert!(warnings[0].as_str().contains("2.13, 2.14, 2.15"), "{}", warnings[0]);
        }
    }

    #[test]
    fn an_unknown_patch_is_accepted_with_a_warning_that_says_what_it_is_taken_for() {
        let warnings = admit_creation(&version("2.15.9")).unwrap();
        assert_eq!(warnings.len(), 1);
        assert!(warnings[0].as_str().contains("2.15.9") && warnings[0].as_str().contains("like 2.15.2"));
        assert_eq!(admit_creation(&version("2.6.99")).unwrap().len(), 2);
    }

    #[test]
    fn a_candidate_is_accepted_with_a_warning() {
        let warnings = admit_creation(&version("2.15.0-rc1")).unwrap();
        assert!(warnings.iter().any(|warning| warning.as_str().contains("release candidate")));
    }

    #[test]
    fn an_unknown_minor_is_refused_with_the_list() {
        for text in ["2.16.0", "2.1.0", "3.0.0", "1.10.1"] {
            let refusal = admit_creation(&version(text)).unwrap_err();
            assert_eq!((refusal.field.as_str(), refusal.value.as_str()), ("spec.version", text));
            assert!(
                refusal.remedy.contains("2.5, 2.6, 2.7, 2.8, 2.9, 2.10, 2.11, 2.12, 2.13, 2.14, 2.15"),
                "{refusal}"
            );
            assert!(change("2.15.0", text).is_err());
        }
    }

    #[test]
    fn former_versions_are_not_created_but_can_be_left_and_passed_through() {
        for text in ["2.2.0", "2.3.5", "2.4.3"] {
            assert!(admit_creation(&version(text)).unwrap_err().remedy.contains("2.5, 2.6"));
            assert_eq!(change(text, text), Ok(Vec::new()));
        }
        for (from, to) in [("2.4.0", "2.6.2"), ("2.3.0", "2.5.6"), ("2.2.1", "2.4.3"), ("2.4.0", "2.4.3")] {
            assert!(change(from, to).is_ok(), "{from} {to}");
        }
        let refusal = change("2.2.1", "2.6.2").unwrap_err();
        assert!(refusal.remedy.contains("2.4"), "{refusal}");
    }

    #[test]
    fn an_upgrade_climbs_at_most_two_minors_and_the_remedy_names_the_next_stop() {
        for (from, to) in [("2.6.2", "2.6.4"), ("2.6.2", "2.7.0"), ("2.6.2", "2.8.6"), ("2.13.0", "2.15.2")] {
            assert!(change(from, to).is_ok(), "{from} {to}");
        }
        let refusal = change("2.6.2", "2.9.5").unwrap_err();
        assert_eq!(refusal.remedy, "go to 2.8.6 first");
        assert!(
            refusal.to_string().starts_with("spec.version: \"2.9.5\" is refused: this Harbor is at 2.6.2"),
            "{refusal}"
        );
    }

    #[test]
    fn there_is_no_way_back_not_even_to_a_patch_or_a_candidate() {
        for (from, to) in [("2.9.5", "2.9.4"), ("2.9.0", "2.8.6"), ("2.9.0", "2.9.0-rc1")] {
            let refusal = change(from, to).unwrap_err();
            assert!(
                refusal.reason.contains("cannot go back") && refusal.remedy.contains("backup"),
                "{refusal}"
            );
        }
    }

    #[test]
    fn an_unknown_version_that_stands_may_stay_and_may_be_left_upwards() {
        assert_eq!(change("2.99.0", "2.99.0"), Ok(Vec::new()));
        assert_eq!(warnings(&version("2.99.0")), []);
        let refusal = change("1.10.0", "2.5.0").unwrap_err();
        assert!(refusal.remedy.contains("2.5"), "{refusal}");
    }

    proptest! {
        #[test]
        fn whatever_is_admitted_is_a_known_way_up(
            from in "[0-9]{1,2}\\.[0-9]{1,2}\\.[0-9](-rc[0-9])?",
            to in "[0-9]{1,2}\\.[0-9]{1,2}\\.[0-9](-rc[0-9])?",
        ) {
            let (Ok(from), Ok(to)) = (from.parse::<Version>(), to.parse::<Version>()) else { return Ok(()) };
            if admit_change(&from, &to).is_ok() && from != to {
                prop_assert!(from < to && to.major() == from.major() && to.minor() - from.minor() <= 2);
                prop_assert!(Release::of(&to).is_ok());
            }
        }
    }
}
