//! One release of Harbor: its images, features and schema number.

use super::component::Component;
use super::feature::Feature;
use super::releases::{self, FORMER, Gate, MAJOR, REPLICATION_ADAPTERS, ROWS, Row};
use super::version::Version;

/// Error: the catalogue does not know the version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "Harbor {version} is unknown to this operator, which knows {known}; choose one of these, or a newer operator"
)]
pub struct UnknownRelease {
    /// The requested version.
    pub version: Version,
    /// The lines that the catalogue knows, as text.
    pub known: String,
}

/// One version of Harbor with its images, features and schema number.
///
/// ```
/// use harbor_operator::catalogue::{Component, Feature, Release, Version};
///
/// let release = Release::of(&Version::new(2, 8, 6))?;
/// assert_eq!(release.image(Component::ChartMuseum), None);
/// assert_eq!(release.image(Component::Core), Some("harbor-core"));
/// assert!(release.has(Feature::Notary));
/// # Ok::<(), harbor_operator::catalogue::UnknownRelease>(())
/// ```
#[derive(Debug, Clone)]
pub struct Release {
    version: Version,
    /// The row of this version or of the nearest version of its line; for the former lines, the oldest row.
    nearest: &'static Row,
    exact: bool,
}

impl Release {
    /// Returns the release of a version. Newer patches of a known line, release candidates and the former
    /// lines 2.2 to 2.4 have a release too, because they run in existing clusters.
    pub fn of(version: &Version) -> Result<Self, UnknownRelease> {
        let unknown = || UnknownRelease { version: version.clone(), known: known_lines() };
        if version.major() != MAJOR {
            return Err(unknown());
        }
        let of_line = || ROWS.iter().filter(|row| row.minor == version.minor());
        let found = of_line().find(|row| row.patch == version.patch());
        let nearest = match found.or_else(|| of_line().next_back()) {
            Some(row) => row,
            None if FORMER.contains(&version.minor()) => ROWS.first().ok_or_else(unknown)?,
            None => return Err(unknown()),
        };
        Ok(Self { version: version.clone(), nearest, exact: found.is_some() })
    }

    /// Returns the newest release in the catalogue.
    pub fn newest() -> Option<Self> {
        let nearest = ROWS.last()?;
        let version = Version::new(MAJOR, nearest.minor, nearest.patch);
        Some(Self { version, nearest, exact: true })
    }

    /// Returns the version of the release.
    pub(crate) fn version(&self) -> &Version {
        &self.version
    }

    /// Returns true if the catalogue has this patch, not only its line.
    pub(crate) fn is_exact(&self) -> bool {
        self.exact
    }

    /// Returns true if the version belongs to the former lines 2.2 to 2.4, which run but can no longer be
    /// created.
    pub(crate) fn is_former(&self) -> bool {
        FORMER.contains(&self.version.minor())
    }

    /// Returns true if the release has the feature.
    pub fn has(&self, feature: Feature) -> bool {
        self.passes(&releases::gate(feature))
    }

    fn passes(&self, gate: &Gate) -> bool {
        gate.is_open(self.version.minor(), self.version.patch())
    }

    /// Returns the image name of a component, without repository and tag; `None` if the release has no such
    /// component.
    pub fn image(&self, component: Component) -> Option<&'static str> {
        match component {
            Component::Core => Some("harbor-core"),
            Component::JobService => Some("harbor-jobservice"),
            Component::Portal => Some("harbor-portal"),
            Component::Registry => Some("registry-photon"),
            Component::RegistryController => Some("harbor-registryctl"),
            Component::ChartMuseum => self.has(Feature::ChartMuseum).then_some("chartmuseum-photon"),
            Component::Exporter => Some("harbor-exporter"),
            Component::NotaryServer => self.has(Feature::Notary).then_some("notary-server-photon"),
            Component::NotarySigner => self.has(Feature::Notary).then_some("notary-signer-photon"),
            Component::Trivy => Some("trivy-adapter-photon"),
            Component::Proxy => Some("nginx-photon"),
            Component::Database => Some("harbor-db"),
            Component::Cache => Some(self.nearest.cache),
        }
    }

    /// Returns the full image reference of a component. `repository` is the prefix of the name (default
    /// `goharbor`), `suffix` is appended to the tag.
    pub(crate) fn image_reference(
        &self,
        component: Component,
        repository: Option<&str>,
        suffix: Option<&str>,
    ) -> Option<String> {
        let repository = repository
            .map(|repository| repository.trim_end_matches('/'))
            .filter(|repository| !repository.is_empty());
        self.image(component).map(|name| {
            let (repository, suffix) = (repository.unwrap_or("goharbor"), suffix.unwrap_or(""));
            format!("{repository}/{name}:{}{suffix}", self.version.tag())
        })
    }

    /// Returns the number in the table `schema_migrations` after Core of this version has migrated the
    /// database. `None` if it is unknown: for the former lines, and for patches newer than the catalogue,
    /// which may add migrations.
    pub fn schema(&self) -> Option<u32> {
        (self.exact && !self.is_former()).then_some(self.nearest.schema)
    }

    /// Returns the majors of PostgreSQL in the image `harbor-db`.
    pub(crate) fn database_image(&self) -> releases::DatabaseImage {
        self.nearest.database
    }

    /// Returns the registry types that a proxy-cache project may use, for
    /// `PERMITTED_REGISTRY_TYPES_FOR_PROXY_CACHE`.
    pub(crate) fn proxy_cache_types(&self) -> String {
        let open: Vec<&str> = releases::PROXY_CACHE_TYPES
            .iter()
            .filter(|(_, gate)| self.passes(gate))
            .map(|(name, _)| *name)
            .collect();
        open.join(",")
    }

    /// Returns the value of `REPLICATION_ADAPTER_WHITELIST`; `None` if the release does not read it.
    pub(crate) fn replication_adapters(&self) -> Option<&'static str> {
        self.has(Feature::ReplicationAdapters).then_some(REPLICATION_ADAPTERS)
    }
}

/// Returns the lines that can be created as text: `2.5, 2.6, …`.
pub(super) fn known_lines() -> String {
    lines().iter().map(|minor| format!("{MAJOR}.{minor}")).collect::<Vec<_>>().join(", ")
}

/// Returns the minor versions that can be created, oldest first.
pub(super) fn lines() -> Vec<u32> {
    let mut minors: Vec<u32> = ROWS.iter().map(|row| row.minor).collect();
    minors.dedup();
    minors
}

/// Returns the newest patch of a line.
pub(super) fn newest_of(minor: u32) -> Option<Version> {
    let newest = ROWS.iter().rev().find(|row| row.minor == minor)?;
    Some(Version::new(MAJOR, newest.minor, newest.patch))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn release(text: &str) -> Release {
        Release::of(&text.parse().unwrap()).unwrap()
    }

    #[test]
    fn the_schema_is_that_of_the_very_patch() {
        for (version, schema) in [
            ("2.5.0", Some(80)),
            ("2.5.2", Some(81)),
            ("2.5.6", Some(82)),
            ("2.6.1", Some(90)),
            ("2.6.2", Some(91)),
            ("2.7.4", Some(100)),
            ("2.8.0", Some(110)),
            ("2.8.6", Some(111)),
            ("2.9.5", Some(120)),
            ("2.14.0", Some(170)),
            ("2.14.4", Some(171)),
            ("2.15.2", Some(180)),
            ("2.15.3", None),
            ("2.4.2", None),
        ] {
            assert_eq!(release(version).schema(), schema, "{version}");
        }
    }

    #[test]
    fn a_patch_may_change_the_images() {
        assert_eq!(release("2.15.1").image(Component::Cache), Some("redis-photon"));
        assert_eq!(release("2.15.2").image(Component::Cache), Some("valkey-photon"));
        assert_eq!(release("2.15.1").database_image().to, "15");
        assert_eq!(
            release("2.15.2").database_image(),
            releases::DatabaseImage { from: Some("15"), to: "18" }
        );
    }

    #[test]
    fn an_unknown_patch_is_like_the_newest_of_its_line() {
        let newer = release("2.15.7");
        assert!(!newer.is_exact());
        assert_eq!(newer.image(Component::Cache), Some("valkey-photon"));
        assert_eq!(
            newer.image_reference(Component::Core, None, None).unwrap(),
            "goharbor/harbor-core:v2.15.7"
        );
    }

    #[test]
    fn former_lines_have_a_release_and_unknown_ones_have_none() {
        for version in ["2.2.0", "2.3.5", "2.4.3"] {
            let former = release(version);
            assert!(former.is_former() && former.has(Feature::ChartMuseum) && former.has(Feature::Notary));
        }
        for version in ["2.1.0", "2.16.0", "1.10.0", "3.0.0"] {
            let error = Release::of(&version.parse().unwrap()).unwrap_err().to_string();
            assert!(
                error.contains(version) && error.contains("2.5, 2.6") && error.contains("2.15"),
                "{error}"
            );
        }
    }

    #[test]
    fn removed_components_have_no_image() {
        assert_eq!(release("2.7.4").image(Component::ChartMuseum), Some("chartmuseum-photon"));
        assert_eq!(release("2.8.0").image(Component::ChartMuseum), None);
        assert_eq!(release("2.8.6").image(Component::NotarySigner), Some("notary-signer-photon"));
        assert_eq!(release("2.9.0").image(Component::NotaryServer), None);
        let of_today = release("2.15.2");
        let gone: Vec<_> =
            Component::ALL.into_iter().filter(|part| of_today.image(*part).is_none()).collect();
        assert_eq!(gone, [Component::ChartMuseum, Component::NotaryServer, Component::NotarySigner]);
    }

    #[test]
    fn repository_and_suffix_surround_the_image() {
        let release = release("2.6.2");
        let image =
            |repository, suffix| release.image_reference(Component::Registry, repository, suffix).unwrap();
        assert_eq!(image(None, None), "goharbor/registry-photon:v2.6.2");
        assert_eq!(
            image(Some("mirror.example/harbor/"), Some("-dev")),
            "mirror.example/harbor/registry-photon:v2.6.2-dev"
        );
        assert_eq!(image(Some(""), None), "goharbor/registry-photon:v2.6.2");
    }

    #[test]
    fn the_registries_to_proxy_change_with_the_line() {
        let types = |version: &str| release(version).proxy_cache_types();
        assert_eq!(types("2.5.0"), "docker-hub,harbor,azure-acr,aws-ecr,google-gcr,quay,docker-registry");
        assert_eq!(
            types("2.6.2"),
            "docker-hub,harbor,azure-acr,aws-ecr,google-gcr,quay,docker-registry,github-ghcr"
        );
        assert!(types("2.7.0").ends_with("jfrog-artifactory") && !types("2.11.2").contains("ali-acr"));
        assert!(types("2.13.5").contains("quay") && types("2.12.0").contains("ali-acr"));
        assert!(!types("2.14.0").contains("quay"));
        assert_eq!(release("2.13.5").replication_adapters(), None);
        assert!(release("2.14.0").replication_adapters().is_some_and(|list| list.contains("volcengine-cr")));
    }

    #[test]
    fn gates_are_where_harbor_has_them() {
        for (feature, without, with) in [
            (Feature::CacheLayer, "2.5.6", "2.6.0"),
            (Feature::CacheLayerRedis, "2.7.2", "2.7.3"),
            (Feature::CacheLayerRedis, "2.8.3", "2.8.4"),
            (Feature::CacheLayerRedis, "2.6.4", "2.9.0"),
            (Feature::TrivySecurityChecks, "2.6.1", "2.6.2"),
            (Feature::ConnectionLifetime, "2.6.4", "2.7.0"),
            (Feature::JobReaper, "2.7.4", "2.8.0"),
            (Feature::Tls13, "2.8.6", "2.9.0"),
            (Feature::TrivySkipJavaUpdate, "2.10.0", "2.9.3"),
            (Feature::PlainProxyLongTransfers, "2.11.2", "2.12.0"),
            (Feature::JobServiceLogLevel, "2.13.0", "2.13.1"),
            (Feature::ReplicationAdapters, "2.13.5", "2.14.0"),
            (Feature::RegistryRedisUsername, "2.14.4", "2.15.0"),
            (Feature::ChartMuseum, "2.8.0-rc1", "2.7.4"),
            (Feature::SyncQuota, "2.15.0", "2.14.4"),
        ] {
            assert!(!release(without).has(feature), "{feature:?} in {without}");
            assert!(release(with).has(feature), "{feature:?} in {with}");
        }
    }
}
