//! Fields that a release ignores, because it is older than the feature.

use std::fmt::Display;

use super::admission::Refusal;
use super::feature::Feature;
use super::release::Release;
use super::releases::{MAJOR, gate};

/// Refuses a field that is set while the release lacks the feature that reads it.
pub(crate) fn refuse_ignored(
    release: &Release,
    feature: Feature,
    field: &str,
    value: Option<&dyn Display>,
) -> Option<Refusal> {
    let value = value.filter(|_| !release.has(feature))?;
    // A feature that was ported back to older lines is in all releases from the last entry on.
    let gate = gate(feature);
    let (minor, patch) = gate.since.last()?;
    Some(Refusal::new(
        field,
        value,
        format!("Harbor {} ignores it: Harbor has it from {MAJOR}.{minor} on", release.version()),
        format!("upgrade to {MAJOR}.{minor}.{patch} or newer, or remove the field"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_that_a_release_ignores_is_refused_with_the_release_that_reads_it() {
        let refuse = |version: &str, feature: Feature, value: Option<&dyn Display>| {
            let release = Release::of(&version.parse().unwrap()).unwrap();
            refuse_ignored(&release, feature, "spec.f", value).map(|refusal| refusal.to_string())
        };
        let refusal = refuse("2.14.4", Feature::TrivyRepositories, Some(&"x")).unwrap();
        for part in ["spec.f", "\"x\"", "2.14.4", "from 2.15 on", "2.15.0 or newer", "remove the field"] {
            assert!(refusal.contains(part), "{part} in {refusal}");
        }
        assert_eq!(refuse("2.14.4", Feature::TrivyRepositories, None), None);
        assert_eq!(refuse("2.15.0", Feature::TrivyRepositories, Some(&"x")), None);
        let refusal = refuse("2.6.4", Feature::CacheLayerRedis, Some(&7)).unwrap();
        assert!(refusal.contains("2.9.0 or newer"), "{refusal}");
    }
}
