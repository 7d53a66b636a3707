//! Names, labels, images and deletion policy that all dependencies of a HarborCluster share.

use k8s_openapi::api::core::v1::{LocalObjectReference, PersistentVolumeClaim};
use kube::ResourceExt as _;
use kube::api::ObjectMeta;
use serde_json::{Value, json};
use windlass::{Needs, PlanError, Planned, recorded_version};

use crate::api::HarborCluster;
use crate::api::component::{ImageSpec, PullPolicy};
use crate::api::harbor::{DeletionPolicy, HarborCommon};
use crate::api::harborcluster::DatabaseKind;
use crate::api::names::{annotation, label};
use crate::catalogue::Version;
use crate::harbor::upgrade::FIELD as VERSION;
use crate::settings::HarborSettings;

use super::Names;

/// Annotations that children inherit: the class of the operator, in upstream's and in our form.
const INHERITED: [&str; 3] = [annotation::CLASS, windlass::names::ask::CLASS, annotation::NETWORK_POLICIES];

/// One HarborCluster, while its dependencies are planned.
pub(crate) struct Site<'a> {
    /// The HarborCluster that is planned.
    pub cluster: &'a HarborCluster,
    /// The names of its objects.
    pub names: Names,
    /// The operator's settings.
    pub settings: &'a HarborSettings,
    /// The version that the data has: that of the status, or else that on the claim of the database.
    pub standing: Option<Version>,
}

/// An image with its pull settings.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Image {
    /// The image reference.
    pub reference: String,
    /// The pull policy.
    pub policy: PullPolicy,
    /// The pull Secrets.
    pub secrets: Vec<LocalObjectReference>,
}

impl<'a> Site<'a> {
    /// Returns the site of a HarborCluster.
    pub(crate) fn of(cluster: &'a HarborCluster, settings: &'a HarborSettings) -> Self {
        let status = cluster.status.as_ref();
        let standing = status.and_then(|status| status.other.get(VERSION)?.as_str()?.parse().ok());
        Self { cluster, names: Names::of(cluster), settings, standing }
    }

    /// Returns the site with the version of retained data, if the status does not have it: that of a
    /// HarborCluster which was created anew or restored without its status.
    pub(crate) fn with_retained_data(mut self, needs: &Needs<'_>) -> Result<Self, PlanError> {
        if self.standing.is_none() && self.has_built_in_database() {
            let claim = needs.look::<PersistentVolumeClaim>(self.names.database()).or_wait()?;
            let version = claim.as_ref().and_then(recorded_version).map(str::parse);
            self.standing = version.and_then(Result::ok);
        }
        Ok(self)
    }

    /// Returns true if this operator runs the database.
    pub(crate) fn has_built_in_database(&self) -> bool {
        self.cluster.spec.database.as_ref().is_some_and(|database| database.kind == DatabaseKind::BuiltIn)
    }

    /// Returns the settings that Harbor and HarborCluster have in common.
    pub(crate) fn common(&self) -> &'a HarborCommon {
        &self.cluster.spec.common
    }

    /// Returns the metadata of a child object.
    pub(crate) fn metadata(&self, name: &str) -> ObjectMeta {
        ObjectMeta {
            name: Some(name.to_owned()),
            namespace: Some(self.names.namespace().to_owned()),
            labels: Some([(label::CLUSTER.to_owned(), self.names.label())].into()),
            ..ObjectMeta::default()
        }
    }

    /// Returns the annotations that children inherit.
    pub(crate) fn inherited(&self) -> impl Iterator<Item = (String, String)> {
        let annotations = self.cluster.annotations();
        INHERITED.into_iter().filter_map(|key| Some((key.to_owned(), annotations.get(key)?.clone())))
    }

    /// Retains the object when the HarborCluster is deleted, or deletes it too, depending on the deletion
    /// policy.
    pub(crate) fn keep(&self, planned: Planned) -> Planned {
        match self.common().deletion_policy() {
            DeletionPolicy::Retain => planned.retain(),
            DeletionPolicy::Delete => planned.delete(),
        }
    }

    /// Returns an image with its pull settings: the image of the spec, or the default image with the
    /// configured repository and suffix.
    pub(crate) fn image(
        &self,
        spec: &ImageSpec,
        usual: impl FnOnce(Option<&str>, Option<&str>) -> String,
    ) -> Image {
        let source = self.common().image_source.clone().unwrap_or_default();
        let repository = source.repository.as_deref().or(self.settings.image_repository.as_deref());
        let suffix = self.tag_suffix();
        let own = !spec.image_pull_secrets.is_empty();
        Image {
            reference: spec.image.clone().unwrap_or_else(|| usual(repository, suffix)),
            policy: spec.image_pull_policy.or(source.image_pull_policy).unwrap_or(PullPolicy::IfNotPresent),
            secrets: if own { spec.image_pull_secrets.clone() } else { source.image_pull_secrets },
        }
    }

    /// Returns the image of a dependency that may already run. A running image keeps its version, unless the
    /// spec names another image or another repository: a different version restarts it, and an older one may
    /// not be able to read its data.
    pub(crate) fn image_that_runs(
        &self,
        spec: &ImageSpec,
        there: Option<&str>,
        usual: impl FnOnce(Option<&str>, Option<&str>) -> String,
    ) -> Image {
        let mut image = self.image(spec, usual);
        let suffix = self.tag_suffix().unwrap_or_default();
        let is_same = |there: &str| unversioned(there) == unversioned(&image.reference);
        let stays = |there: &&str| spec.image.is_none() && is_same(there) && there.ends_with(suffix);
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

/// Returns an image reference without its tag and digest.
fn unversioned(image: &str) -> &str {
    // A colon before the last slash separates a port.
    let name = image.rfind('/').map_or(0, |slash| slash + 1);
    let end = image[name..].find([':', '@']).map_or(image.len(), |version| name + version);
    &image[..end]
}

impl Image {
    /// Returns the pull Secrets as a field of a pod; null if there are none.
    pub(crate) fn secrets(&self) -> Value {
        if self.secrets.is_empty() { Value::Null } else { json!(self.secrets) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::blueprint::samples::delegated;

    #[test]
    fn a_running_image_keeps_its_version_while_its_repository_is_unchanged() {
        let image = |settings: &HarborSettings, spec: &ImageSpec, there: Option<&str>| {
            let cluster = delegated();
            let usual = |repository: Option<&str>, suffix: Option<&str>| {
                let (repository, suffix) = (repository.unwrap_or("minio"), suffix.unwrap_or_default());
                format!("{repository}/minio:3{suffix}")
            };
            Site::of(&cluster, settings).image_that_runs(spec, there, usual).reference
        };
        let (settings, unsaid) = (HarborSettings::default(), ImageSpec::default());
        assert_eq!(image(&settings, &unsaid, None), "minio/minio:3");
        for there in ["minio/minio:2", "minio/minio:4", "minio/minio@sha256:0a", "minio/minio"] {
            assert_eq!(image(&settings, &unsaid, Some(there)), there);
        }
        assert_eq!(image(&settings, &unsaid, Some("mirror.example:5000/minio:2")), "minio/minio:3");
        let other_image = ImageSpec { image: Some("minio/minio:1".into()), ..ImageSpec::default() };
        assert_eq!(image(&settings, &other_image, Some("minio/minio:2")), "minio/minio:1");
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
