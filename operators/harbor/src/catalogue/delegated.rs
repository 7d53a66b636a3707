//! The images of what other operators run for a HarborCluster.
//!
//! These have no version of Harbor in them, and change only with a decision: another image means that somebody's database restarts.

/// Something that another operator runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Delegated {
    /// Redis, run by the operator of RedisFailovers.
    Redis,
    /// PostgreSQL, run by Zalando's operator.
    Postgres,
    /// MinIO, run by its own operator.
    MinIo,
    /// MinIO's client, which makes the bucket.
    MinIoClient,
}

impl Delegated {
    /// The image as its maker publishes it.
    pub const fn image(self) -> &'static str {
        match self {
            Self::Redis => "redis:5.0-alpine",
            Self::Postgres => "registry.opensource.zalan.do/acid/spilo-13:2.1-p1",
            Self::MinIo => "minio/minio:RELEASE.2022-08-26T19-53-15Z",
            Self::MinIoClient => "minio/mc:RELEASE.2022-08-23T05-45-20Z",
        }
    }

    /// The whole reference. A `repository` stands in the place of the maker's, a `suffix` after the tag.
    pub fn image_reference(self, repository: Option<&str>, suffix: Option<&str>) -> String {
        let image = self.image();
        let repository =
            repository.map(|repository| repository.trim_end_matches('/')).filter(|given| !given.is_empty());
        let name = image.rsplit('/').next().unwrap_or(image);
        let image = repository.map_or_else(|| image.to_owned(), |repository| format!("{repository}/{name}"));
        format!("{image}{}", suffix.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_stands_in_the_place_of_the_makers() {
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
