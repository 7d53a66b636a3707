//! Images of the software that other operators run for a HarborCluster.
//!
//! These images are independent of the version of Harbor. Changing one restarts the databases of users, so it
//! needs a decision of its own.

/// Software that another operator runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Delegated {
    /// Redis, run by the Redis operator of Spotahome (RedisFailover).
    Redis,
    /// PostgreSQL, run by Zalando's operator.
    Postgres,
    /// MinIO, run by the MinIO operator.
    MinIo,
    /// The MinIO client, which creates the bucket.
    MinIoClient,
}

impl Delegated {
    /// Returns the image as its maker publishes it.
    pub(crate) const fn image(self) -> &'static str {
        match self {
            Self::Redis => "redis:5.0-alpine",
            Self::Postgres => "registry.opensource.zalan.do/acid/spilo-13:2.1-p1",
            Self::MinIo => "minio/minio:RELEASE.2022-08-26T19-53-15Z",
            Self::MinIoClient => "minio/mc:RELEASE.2022-08-23T05-45-20Z",
        }
    }

    /// Returns the full image reference. `repository` replaces the maker's repository, `suffix` is appended
    /// to the tag.
    pub(crate) fn image_reference(self, repository: Option<&str>, suffix: Option<&str>) -> String {
        let image = self.image();
        let repository = repository
            .map(|repository| repository.trim_end_matches('/'))
            .filter(|repository| !repository.is_empty());
        let name = image.rsplit('/').next().unwrap_or(image);
        let image = repository.map_or_else(|| image.to_owned(), |repository| format!("{repository}/{name}"));
        format!("{image}{}", suffix.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_replaces_the_makers_repository() {
        let image = |which: Delegated, repository| which.image_reference(repository, None);
        assert_eq!(image(Delegated::Redis, None), "redis:5.0-alpine");
        assert_eq!(image(Delegated::Redis, Some("mirror.example/x/")), "mirror.example/x/redis:5.0-alpine");
        assert_eq!(image(Delegated::Postgres, Some("mirror.example")), "mirror.example/spilo-13:2.1-p1");
        assert_eq!(
            Delegated::MinIo.image_reference(Some(""), Some("-fips")),
            "minio/minio:RELEASE.2022-08-26T19-53-15Z-fips"
        );
    }
}
