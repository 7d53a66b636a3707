//! What the objects of a HarborCluster are called.
//!
//! Names are API: data is found by them, also by the next HarborCluster of the same name. None may ever change.

use kube::ResourceExt as _;
use windlass::naming::{self, name};

use crate::api::HarborCluster;
use crate::api::children::child_of;

/// The names of one HarborCluster's objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    cluster: String,
    namespace: String,
}

impl Names {
    /// Of this one.
    pub fn of(cluster: &HarborCluster) -> Self {
        Self { cluster: cluster.name_any(), namespace: cluster.namespace().unwrap_or_default() }
    }

    /// Its own name, as the value of a label.
    pub fn label(&self) -> String {
        name([&*self.cluster], naming::LABEL)
    }

    /// The namespace.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The Harbor.
    pub fn harbor(&self) -> String {
        child_of::<HarborCluster>(&self.cluster, &[])
    }

    /// The cache, and the Secret with its password.
    pub fn cache(&self) -> String {
        name([&*self.cluster, "redis"], naming::STATEFUL_SET)
    }

    /// The database that we run.
    pub fn database(&self) -> String {
        name([&*self.cluster, "database"], naming::STATEFUL_SET)
    }

    /// The Secret with the password of the database.
    pub fn database_password(&self) -> String {
        name([&*self.cluster, "database", "password"], naming::LABEL)
    }

    /// The claim in which images are, where it is ours.
    pub fn registry(&self) -> String {
        name([&*self.cluster, "registry"], naming::LABEL)
    }

    /// The team that Zalando's operator thinks is behind a database.
    pub fn postgres_team(&self) -> String {
        format!("postgresql-{}", self.namespace)
    }

    /// The database that Zalando's operator runs: it wants the team in front.
    pub fn postgres(&self) -> String {
        name([&*self.postgres_team(), &*self.cluster], naming::STATEFUL_SET)
    }

    /// The tenant of MinIO, its Ingress, and the Secret with the key that the registry has.
    pub fn minio(&self) -> String {
        name(["minio", &*self.cluster], naming::STATEFUL_SET)
    }

    /// The Secret with the keys of MinIO, where the user gives none.
    pub fn minio_credentials(&self) -> String {
        name(["minio", &*self.cluster, "creds"], naming::LABEL)
    }

    /// The Service of something, as it is known everywhere in the cluster.
    pub fn host(&self, service: &str) -> String {
        format!("{service}.{}.svc", self.namespace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::blueprint::samples::external;

    #[test]
    fn names_are_those_of_ever() {
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
