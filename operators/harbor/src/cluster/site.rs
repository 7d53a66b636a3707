//! What all parts of a HarborCluster have in common: names, labels, images, and what becomes of data.

use k8s_openapi::api::core::v1::LocalObjectReference;
use kube::ResourceExt as _;
use kube::api::ObjectMeta;
use serde_json::{Value, json};
use windlass::Planned;

use crate::api::HarborCluster;
use crate::api::component::{ImageSpec, PullPolicy};
use crate::api::harbor::{DeletionPolicy, HarborCommon};
use crate::api::names::{annotation, label};
use crate::settings::HarborSettings;

use super::Names;

/// Which instance of the operator is responsible: as the first operator of these kinds had it, and as ours has it.
const INHERITED: [&str; 3] = [annotation::CLASS, windlass::names::ask::CLASS, annotation::NETWORK_POLICIES];

/// One HarborCluster, as its parts are made.
pub struct Site<'a> {
    /// The HarborCluster.
    pub cluster: &'a HarborCluster,
    /// What its objects are called.
    pub names: Names,
    /// What an administrator has decided.
    pub settings: &'a HarborSettings,
}

/// An image, and how it is had.
#[derive(Clone, Debug, PartialEq)]
pub struct Image {
    /// The image.
    pub reference: String,
    /// When it is pulled.
    pub policy: PullPolicy,
    /// With which Secrets.
    pub secrets: Vec<LocalObjectReference>,
}

impl<'a> Site<'a> {
    /// Of this HarborCluster.
    pub fn of(cluster: &'a HarborCluster, settings: &'a HarborSettings) -> Self {
        Self { cluster, names: Names::of(cluster), settings }
    }

    /// What is the same for every Harbor.
    pub fn common(&self) -> &'a HarborCommon {
        &self.cluster.spec.common
    }

    /// The metadata of an object.
    pub fn metadata(&self, name: &str) -> ObjectMeta {
        ObjectMeta {
            name: Some(name.to_owned()),
            namespace: Some(self.names.namespace().to_owned()),
            labels: Some([(label::CLUSTER.to_owned(), self.names.label())].into()),
            ..ObjectMeta::default()
        }
    }

    /// What children are told that users say in annotations.
    pub fn inherited(&self) -> impl Iterator<Item = (String, String)> {
        let given = self.cluster.annotations();
        INHERITED.into_iter().filter_map(|key| Some((key.to_owned(), given.get(key)?.clone())))
    }

    /// Has the object outlive the HarborCluster, or go with it, as its deletion policy says.
    pub fn keep(&self, planned: Planned) -> Planned {
        match self.common().deletion_policy() {
            DeletionPolicy::Retain => planned.retain(),
            DeletionPolicy::Delete => planned.delete(),
        }
    }

    /// The image of something: the one given, or the usual one, of a repository and with a suffix as they are said.
    pub fn image(
        &self,
        given: &ImageSpec,
        usual: impl FnOnce(Option<&str>, Option<&str>) -> String,
    ) -> Image {
        let source = self.common().image_source.clone().unwrap_or_default();
        let repository = source.repository.as_deref().or(self.settings.image_repository.as_deref());
        let suffix = self.tag_suffix();
        let own = !given.image_pull_secrets.is_empty();
        Image {
            reference: given.image.clone().unwrap_or_else(|| usual(repository, suffix)),
            policy: given.image_pull_policy.or(source.image_pull_policy).unwrap_or(PullPolicy::IfNotPresent),
            secrets: if own { given.image_pull_secrets.clone() } else { source.image_pull_secrets },
        }
    }

    /// The image of something that may run already. Then it stays in the version that it has, unless the spec says another image or it is
    /// to come from elsewhere: another version restarts it, and an older one may not read what it has written.
    pub fn image_that_runs(
        &self,
        given: &ImageSpec,
        there: Option<&str>,
        usual: impl FnOnce(Option<&str>, Option<&str>) -> String,
    ) -> Image {
        let mut image = self.image(given, usual);
        let suffix = self.tag_suffix().unwrap_or_default();
        let is_same = |there: &str| unversioned(there) == unversioned(&image.reference);
        let stays = |there: &&str| given.image.is_none() && is_same(there) && there.ends_with(suffix);
        if let Some(there) = there.filter(stays) {
            there.clone_into(&mut image.reference);
        }
        image
    }

    fn tag_suffix(&self) -> Option<&'a str> {
        let source = self.common().image_source.as_ref().and_then(|source| source.tag_suffix.as_deref());
        source.or(self.settings.image_tag_suffix.as_deref())
    }
}

/// An image without its version.
fn unversioned(image: &str) -> &str {
    // Before the last slash, a colon is that of a port.
    let name = image.rfind('/').map_or(0, |slash| slash + 1);
    let end = image[name..].find([':', '@']).map_or(image.len(), |version| name + version);
    &image[..end]
}

impl Image {
    /// The Secrets as a field of a pod; nothing if there are none.
    pub fn secrets(&self) -> Value {
        if self.secrets.is_empty() { Value::Null } else { json!(self.secrets) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::blueprint::samples::delegated;

    #[test]
    fn what_runs_stays_in_its_version_as_long_as_it_comes_from_where_it_should() {
        let image = |settings: &HarborSettings, given: &ImageSpec, there: Option<&str>| {
            let cluster = delegated();
            let usual = |repository: Option<&str>, suffix: Option<&str>| {
                let (repository, suffix) = (repository.unwrap_or("minio"), suffix.unwrap_or_default());
                format!("{repository}/minio:3{suffix}")
            };
            Site::of(&cluster, settings).image_that_runs(given, there, usual).reference
        };
        let (settings, unsaid) = (HarborSettings::default(), ImageSpec::default());
        assert_eq!(image(&settings, &unsaid, None), "minio/minio:3");
        for there in ["minio/minio:2", "minio/minio:4", "minio/minio@sha256:0a", "minio/minio"] {
            assert_eq!(image(&settings, &unsaid, Some(there)), there);
        }
        assert_eq!(image(&settings, &unsaid, Some("mirror.example:5000/minio:2")), "minio/minio:3");
        let said = ImageSpec { image: Some("minio/minio:1".into()), ..ImageSpec::default() };
        assert_eq!(image(&settings, &said, Some("minio/minio:2")), "minio/minio:1");
        let mirrored = HarborSettings {
            image_repository: Some("mirror.example:5000".into()),
            image_tag_suffix: Some("-fips".into()),
            ..HarborSettings::default()
        };
        assert_eq!(image(&mirrored, &unsaid, Some("minio/minio:2")), "mirror.example:5000/minio:3-fips");
        let there = "mirror.example:5000/minio:2-fips";
        assert_eq!(image(&mirrored, &unsaid, Some(there)), there);
        let without = Some("mirror.example:5000/minio:2");
        assert_eq!(image(&mirrored, &unsaid, without), "mirror.example:5000/minio:3-fips");
    }
}
