//! The table of Harbor releases: the one file to edit for a new release.
//!
//! A patch release is one [`Row`]. A new minor version is one [`Row`] too, and one entry in [`gate`] for each
//! new feature. A newer patch of a known minor version uses the newest row of that minor version.

use super::feature::Feature;

/// The only supported major version.
pub(super) const MAJOR: u32 = 2;

/// Number of minor versions that upstream maintains; older ones are at their end of life.
pub(super) const MAINTAINED: usize = 3;

/// Minor versions that the upstream operator installed and that still run, but are too old to be created.
pub(super) const FORMER: std::ops::RangeInclusive<u32> = 2..=4;

/// The majors of PostgreSQL in an image `harbor-db`. The image upgrades data of `from` to `to` when it
/// starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DatabaseImage {
    /// The major whose data the image can upgrade; `None` if the image cannot upgrade.
    pub from: Option<&'static str>,
    /// The major that the image runs.
    pub to: &'static str,
}

/// One patch release.
#[derive(Debug)]
pub(super) struct Row {
    /// Minor version: the second number of the version.
    pub(super) minor: u32,
    /// Patch version: the third number of the version.
    pub(super) patch: u32,
    /// The number in the table `schema_migrations` after Core has migrated the database.
    pub(super) schema: u32,
    /// The majors of PostgreSQL in the image `harbor-db`.
    pub(super) database: DatabaseImage,
    /// The image of the cache that Harbor ships.
    pub(super) cache: &'static str,
}

const REDIS: &str = "redis-photon";
const VALKEY: &str = "valkey-photon";

const PG_96_TO_13: DatabaseImage = DatabaseImage { from: Some("96"), to: "13" };
const PG_13: DatabaseImage = DatabaseImage { from: None, to: "13" };
const PG_13_TO_14: DatabaseImage = DatabaseImage { from: Some("13"), to: "14" };
const PG_14_TO_15: DatabaseImage = DatabaseImage { from: Some("14"), to: "15" };
const PG_15_TO_18: DatabaseImage = DatabaseImage { from: Some("15"), to: "18" };

const fn row(minor: u32, patch: u32, schema: u32, database: DatabaseImage, cache: &'static str) -> Row {
    Row { minor, patch, schema, database, cache }
}

/// All releases, oldest first.
pub(super) const ROWS: &[Row] = &[
    row(5, 0, 80, PG_96_TO_13, REDIS),
    row(5, 1, 80, PG_96_TO_13, REDIS),
    row(5, 2, 81, PG_96_TO_13, REDIS),
    row(5, 3, 82, PG_96_TO_13, REDIS),
    row(5, 4, 82, PG_96_TO_13, REDIS),
    row(5, 5, 82, PG_96_TO_13, REDIS),
    row(5, 6, 82, PG_96_TO_13, REDIS),
    row(6, 0, 90, PG_96_TO_13, REDIS),
    row(6, 1, 90, PG_96_TO_13, REDIS),
    row(6, 2, 91, PG_96_TO_13, REDIS),
    row(6, 3, 91, PG_96_TO_13, REDIS),
    row(6, 4, 91, PG_96_TO_13, REDIS),
    row(7, 0, 100, PG_13, REDIS),
    row(7, 1, 100, PG_13, REDIS),
    row(7, 2, 100, PG_13, REDIS),
    row(7, 3, 100, PG_13, REDIS),
    row(7, 4, 100, PG_13, REDIS),
    row(8, 0, 110, PG_13, REDIS),
    row(8, 1, 111, PG_13, REDIS),
    row(8, 2, 111, PG_13, REDIS),
    row(8, 3, 111, PG_13, REDIS),
    row(8, 4, 111, PG_13, REDIS),
    row(8, 5, 111, PG_13, REDIS),
    row(8, 6, 111, PG_13, REDIS),
    row(9, 0, 120, PG_13_TO_14, REDIS),
    row(9, 1, 120, PG_13_TO_14, REDIS),
    row(9, 2, 120, PG_13_TO_14, REDIS),
    row(9, 3, 120, PG_13_TO_14, REDIS),
    row(9, 4, 120, PG_13_TO_14, REDIS),
    row(9, 5, 120, PG_13_TO_14, REDIS),
    row(10, 0, 130, PG_13_TO_14, REDIS),
    row(10, 1, 130, PG_13_TO_14, REDIS),
    row(10, 2, 130, PG_13_TO_14, REDIS),
    row(10, 3, 130, PG_13_TO_14, REDIS),
    row(11, 0, 140, PG_14_TO_15, REDIS),
    row(11, 1, 140, PG_14_TO_15, REDIS),
    row(11, 2, 140, PG_14_TO_15, REDIS),
    row(12, 0, 150, PG_14_TO_15, REDIS),
    row(12, 1, 150, PG_14_TO_15, REDIS),
    row(12, 2, 150, PG_14_TO_15, REDIS),
    row(12, 3, 150, PG_14_TO_15, REDIS),
    row(12, 4, 150, PG_14_TO_15, REDIS),
    row(13, 0, 160, PG_14_TO_15, REDIS),
    row(13, 1, 160, PG_14_TO_15, REDIS),
    row(13, 2, 160, PG_14_TO_15, REDIS),
    row(13, 3, 160, PG_14_TO_15, REDIS),
    row(13, 4, 160, PG_14_TO_15, REDIS),
    row(13, 5, 160, PG_14_TO_15, REDIS),
    row(14, 0, 170, PG_14_TO_15, REDIS),
    row(14, 1, 171, PG_14_TO_15, REDIS),
    row(14, 2, 171, PG_14_TO_15, REDIS),
    row(14, 3, 171, PG_14_TO_15, REDIS),
    row(14, 4, 171, PG_14_TO_15, REDIS),
    row(15, 0, 180, PG_14_TO_15, REDIS),
    row(15, 1, 180, PG_14_TO_15, REDIS),
    row(15, 2, 180, PG_15_TO_18, VALKEY),
];

/// The releases that have a feature, as (minor, patch).
///
/// A feature that was backported has one entry for each line: with `(9, 3), (10, 1), (11, 0)`, 2.9.3 has the
/// feature, 2.10.0 does not, and 2.11 and everything later do. `until` is the first release without it.
#[derive(Debug)]
pub(super) struct Gate {
    pub(super) since: &'static [(u32, u32)],
    pub(super) until: Option<(u32, u32)>,
}

impl Gate {
    pub(super) fn is_open(&self, minor: u32, patch: u32) -> bool {
        let begun = match self.since.iter().find(|(since, _)| *since == minor) {
            Some((_, since)) => patch >= *since,
            None => self.since.iter().all(|(since, _)| *since < minor),
        };
        begun && self.until.is_none_or(|until| (minor, patch) < until)
    }
}

const fn since(since: &'static [(u32, u32)]) -> Gate {
    Gate { since, until: None }
}

const fn until(minor: u32, patch: u32) -> Gate {
    Gate { since: &[], until: Some((minor, patch)) }
}

/// Returns the releases that have a feature.
pub(super) const fn gate(feature: Feature) -> Gate {
    match feature {
        Feature::ChartMuseum => until(8, 0),
        Feature::Notary | Feature::FormerCoreEnv => until(9, 0),
        Feature::SyncQuota => until(15, 0),
        Feature::CacheLayer => since(&[(6, 0)]),
        Feature::TrivySecurityChecks => since(&[(6, 2)]),
        Feature::ConnectionLifetime | Feature::PortalDeveloperCentre => since(&[(7, 0)]),
        Feature::JobReaper => since(&[(8, 0)]),
        Feature::CacheLayerRedis => since(&[(7, 3), (8, 4), (9, 0)]),
        Feature::Tls13 => since(&[(9, 0)]),
        Feature::TrivySkipJavaUpdate => since(&[(9, 3), (10, 1), (11, 0)]),
        Feature::PlainProxyLongTransfers => since(&[(12, 0)]),
        Feature::RegistryRedisTls => since(&[(13, 0)]),
        Feature::JobServiceLogLevel => since(&[(13, 1)]),
        Feature::ReplicationAdapters => since(&[(14, 0)]),
        Feature::RegistryRedisUsername | Feature::TrivyRepositories => since(&[(15, 0)]),
    }
}

/// The registry types that a proxy-cache project may use, with the releases that support them.
pub(super) const PROXY_CACHE_TYPES: &[(&str, Gate)] = &[
    ("docker-hub", since(&[])),
    ("harbor", since(&[])),
    ("azure-acr", since(&[])),
    ("ali-acr", since(&[(12, 0)])),
    ("aws-ecr", since(&[])),
    ("google-gcr", since(&[])),
    ("quay", until(14, 0)),
    ("docker-registry", since(&[])),
    ("github-ghcr", since(&[(6, 0)])),
    ("jfrog-artifactory", since(&[(7, 0)])),
];

/// The registry types that replication supports, for releases that need the list.
pub(super) const REPLICATION_ADAPTERS: &str = "ali-acr,aws-ecr,azure-acr,docker-hub,docker-registry,github-ghcr,google-gcr,harbor,\
                                               huawei-SWR,jfrog-artifactory,tencent-tcr,volcengine-cr";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_sorted_and_no_patch_is_left_out() {
        for pair in ROWS.windows(2) {
            let (before, after) = (&pair[0], &pair[1]);
            let next_patch = before.minor == after.minor && before.patch + 1 == after.patch;
            let next_minor = before.minor + 1 == after.minor && after.patch == 0;
            assert!(next_patch || next_minor, "{before:?} {after:?}");
            assert!(before.schema <= after.schema, "{before:?} {after:?}");
        }
    }

    #[test]
    fn the_releases_are_those_that_upstream_has_tagged() {
        let last = |minor| ROWS.iter().filter(|row| row.minor == minor).map(|row| row.patch).max().unwrap();
        let lasts: Vec<u32> = (5..=15).map(last).collect();
        assert_eq!(lasts, [6, 4, 4, 6, 5, 3, 2, 4, 5, 4, 2]);
    }

    #[test]
    fn a_gate_that_was_ported_back_is_open_from_a_patch_of_each_line() {
        let gate = gate(Feature::TrivySkipJavaUpdate);
        for (minor, patch, open) in [
            (4, 9, false),
            (8, 6, false),
            (9, 2, false),
            (9, 3, true),
            (10, 0, false),
            (10, 1, true),
            (11, 0, true),
            (15, 0, true),
        ] {
            assert_eq!(gate.is_open(minor, patch), open, "2.{minor}.{patch}");
        }
    }
}
