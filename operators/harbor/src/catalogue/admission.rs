//! Rules for `spec.version`: the versions that may be created, and the upgrades that are allowed.
//!
//! The rules apply at creation and when `spec.version` changes. A Harbor whose version does not change is not
//! checked.

use std::fmt;

use super::release::{Release, known_lines, lines, newest_of};
use super::releases::{FORMER, MAINTAINED, MAJOR};
use super::version::Version;

/// Largest number of minor versions that one upgrade may span: Harbor tests the migrations of Core for this
/// range.
const LONGEST_STEP: u32 = 2;

/// The field that all rules of this module check.
const FIELD: &str = "spec.version";

/// An admission refusal: the value of one field is not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {value:?} is refused: {reason}; {remedy}")]
pub(crate) struct Refusal {
    /// Path of the field from the root of the object.
    pub field: String,
    /// The value that was refused.
    pub value: String,
    /// The reason for the refusal.
    pub reason: String,
    /// The remedy: what the user can write instead.
    pub remedy: String,
}

impl Refusal {
    /// Returns a refusal of the value of a field.
    pub(crate) fn new(
        field: impl Into<String>,
        value: impl ToString,
        reason: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { field: field.into(), value: value.to_string(), reason: reason.into(), remedy: remedy.into() }
    }
}

/// An admission warning: the value is accepted, and the user is told about a consequence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Warning(String);

impl Warning {
    /// Returns the text for the `warnings` of an admission response.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Checks that a Harbor of this version may be created.
pub(crate) fn admit_creation(version: &Version) -> Result<Vec<Warning>, Refusal> {
    let release = known(version)?;
    if release.is_former() {
        return Err(Refusal::new(
            FIELD,
            version,
            format!(
                "Harbor {} still runs where it is installed, but can no longer be created",
                version.line()
            ),
            format!("choose one of {}", known_lines()),
        ));
    }
    Ok(warnings_of(&release))
}

/// Checks that a Harbor may change from one version to another. An unchanged version is always accepted.
///
/// The former lines 2.2 to 2.4 are accepted as intermediate steps: the upgrade from 2.2 to 2.6 goes through
/// 2.4.
pub(crate) fn admit_change(from: &Version, to: &Version) -> Result<Vec<Warning>, Refusal> {
    if from == to {
        return Ok(Vec::new());
    }
    let release = known(to)?;
    if to < from {
        return Err(Refusal::new(
            FIELD,
            to,
            format!("this Harbor is at {from}, and its database cannot be downgraded"),
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
                "this Harbor is at {from}, and an upgrade spans at most {LONGEST_STEP} minor versions at a time"
            ),
            remedy_of_a_long_step(from),
        ));
    }
    Ok(warnings_of(&release))
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

/// Returns a remedy that names the farthest version that one upgrade can reach.
fn remedy_of_a_long_step(from: &Version) -> String {
    let farthest = from.minor().saturating_add(LONGEST_STEP);
    match newest_of(farthest) {
        Some(next) if from.major() == MAJOR => format!("upgrade to {next} first"),
        _ if FORMER.contains(&farthest) => {
            format!("upgrade to the newest patch of {MAJOR}.{farthest} first")
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
            "{FIELD}: Harbor {} is at its end of life and gets no security fixes; maintained versions: {}; an upgrade spans at most \
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
    fn maintained_versions_are_created_without_warnings() {
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
    fn an_upgrade_spans_at_most_two_minors_and_the_remedy_names_the_next_one() {
        for (from, to) in [("2.6.2", "2.6.4"), ("2.6.2", "2.7.0"), ("2.6.2", "2.8.6"), ("2.13.0", "2.15.2")] {
            assert!(change(from, to).is_ok(), "{from} {to}");
        }
        let refusal = change("2.6.2", "2.9.5").unwrap_err();
        assert_eq!(refusal.remedy, "upgrade to 2.8.6 first");
        assert!(
            refusal.to_string().starts_with("spec.version: \"2.9.5\" is refused: this Harbor is at 2.6.2"),
            "{refusal}"
        );
    }

    #[test]
    fn no_allowed_upgrade_skips_a_migration_of_the_built_in_database() {
        let releases: Vec<Release> = lines()
            .into_iter()
            .flat_map(|minor| {
                let newest = newest_of(minor).unwrap();
                (0..=newest.patch()).map(move |patch| version(&format!("{MAJOR}.{minor}.{patch}")))
            })
            .map(|version| Release::of(&version).unwrap())
            .collect();
        for (from, to) in releases.iter().flat_map(|from| releases.iter().map(move |to| (from, to))) {
            if admit_change(from.version(), to.version()).is_err() {
                continue;
            }
            let (data, image) = (from.database_image().to, to.database_image());
            assert!(
                image.to == data || image.from == Some(data),
                "{} {} {image:?}",
                from.version(),
                to.version()
            );
        }
    }

    #[test]
    fn downgrades_are_refused_even_to_a_patch_or_a_candidate() {
        for (from, to) in [("2.9.5", "2.9.4"), ("2.9.0", "2.8.6"), ("2.9.0", "2.9.0-rc1")] {
            let refusal = change(from, to).unwrap_err();
            assert!(
                refusal.reason.contains("cannot be downgraded") && refusal.remedy.contains("backup"),
                "{refusal}"
            );
        }
    }

    #[test]
    fn an_unknown_version_may_stay_and_be_upgraded() {
        assert_eq!(change("2.99.0", "2.99.0"), Ok(Vec::new()));
        let refusal = change("1.10.0", "2.5.0").unwrap_err();
        assert!(refusal.remedy.contains("2.5"), "{refusal}");
    }

    proptest! {
        #[test]
        fn every_admitted_change_is_an_upgrade_to_a_known_version(
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
