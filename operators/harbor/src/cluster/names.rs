//! Names of the objects of a HarborCluster.
//!
//! Names are API: a later HarborCluster of the same name finds its data by them. They never change.

use kube::ResourceExt as _;
use windlass::naming::{self, name};

use crate::api::HarborCluster;
use crate::api::children::child_of;
use crate::api::names::built_in_database;

/// The names of one HarborCluster's objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    cluster: String,
    namespace: String,
}

impl Names {
    /// Returns the names for a HarborCluster.
    pub fn of(cluster: &HarborCluster) -> Self {
        Self { cluster: cluster.name_any(), namespace: cluster.namespace().unwrap_or_default() }
    }

    /// Returns the name of the HarborCluster as the value of a label.
    pub fn label(&self) -> String {
        name([&*self.cluster], naming::LABEL)
    }

    /// Returns the namespace of the HarborCluster.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Returns the name of the Harbor.
    pub fn harbor(&self) -> String {
        child_of::<HarborCluster>(&self.cluster, &[])
    }

    /// Returns the name of the cache and of the Secret with its password.
    pub fn cache(&self) -> String {
        name([&*self.cluster, "redis"], naming::STATEFUL_SET)
    }

    /// Returns the name of the built-in database.
    pub fn database(&self) -> String {
        built_in_database(&self.cluster)
    }

    /// Returns the name of the Secret with the password of the database.
    pub(crate) fn database_password(&self) -> String {
        name([&*self.cluster, "database", "password"], naming::LABEL)
    }

    /// Returns the name of the built-in claim for images.
    pub fn registry(&self) -> String {
        name([&*self.cluster, "registry"], naming::LABEL)
    }

    /// Returns the team of the database for Zalando's operator.
    pub(crate) fn postgres_team(&self) -> String {
        format!("postgresql-{}", self.namespace)
    }

    /// Returns the name of the delegated database. Zalando's operator requires the team as its prefix.
    pub fn postgres(&self) -> String {
        name([&*self.postgres_team(), &*self.cluster], naming::STATEFUL_SET)
    }

    /// Returns the name of the MinIO Tenant, its Ingress, and the Secret with the registry's access key.
    pub fn minio(&self) -> String {
        name(["minio", &*self.cluster], naming::STATEFUL_SET)
    }

    /// Returns the name of the generated Secret with the keys of MinIO.
    pub(crate) fn minio_credentials(&self) -> String {
        name(["minio", &*self.cluster, "creds"], naming::LABEL)
    }

    /// Returns the host name of a Service inside the cluster.
    pub fn host(&self, service: &str) -> String {
        format!("{service}.{}.svc", self.namespace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::blueprint::samples::external;

    #[test]
    fn names_never_change() {
        let names = Names::of(&external());
        let all = [
            names.harbor(),
            names.cache(),
            names.database_password(),
            names.postgres(),
            names.minio(),
            names.minio_credentials(),
        ];
        assert_eq!(
            all.join(" "),
            "sample-harbor sample-redis sample-database-password postgresql-registry-sample minio-sample minio-sample-creds"
        );
        assert_eq!(names.host("minio"), "minio.registry.svc");
    }

    #[test]
    fn b16_long_names_are_shortened_and_stay_apart() {
        let mut cluster = external();
        cluster.metadata.name = Some("the-registry-of-all-teams-of-the-whole-company-in-production".into());
        let names = Names::of(&cluster);
        let all = [
            names.harbor(),
            names.cache(),
            names.database(),
            names.database_password(),
            names.postgres(),
            names.minio(),
        ];
        assert!(all.iter().all(|name| name.len() <= 63), "{all:?}");
        assert_eq!(all.iter().collect::<std::collections::BTreeSet<_>>().len(), all.len());
    }
}
