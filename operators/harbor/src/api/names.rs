//! Annotations and labels: those of the upstream kinds, and a few of this operator. They are written into
//! clusters and therefore never change.

/// Annotations that users or parent objects set.
pub(crate) mod annotation {
    /// Class of the object: the operator instance with this class reconciles it.
    pub(crate) const CLASS: &str = "goharbor.io/harbor-class";
    /// `true` creates NetworkPolicies for the object, any other value creates none.
    pub(crate) const NETWORK_POLICIES: &str = "goharbor.io/network-policies";
    /// On components: the version of the Harbor that they belong to.
    pub(crate) const VERSION: &str = "harbor.goharbor.io/version";
    /// On components: the Ingress controller in front of them.
    pub(crate) const INGRESS_CONTROLLER: &str = "goharbor.io/ingress-controller";
    /// On generated Secrets: never regenerate the content.
    pub(crate) const IMMUTABLE: &str = "goharbor.io/immutable";
    /// On children: a warning that a controller manages the object.
    pub(crate) const WARNING: &str = "goharbor.io/warning";
    /// On a HarborCluster: comma-separated list of `cache`, `database` and `storage` whose kind may change
    /// because their data has been migrated.
    pub(crate) const DATA_MOVED: &str = "harbor.windlass.dev/data-moved";
}

/// Names of blueprints whose objects other blueprints read: field managers, and values of a label of
/// Windlass.
pub(crate) mod blueprint {
    /// Blueprint that creates the components of a Harbor and their Secrets.
    pub(crate) const HARBOR: &str = "harbor.goharbor.io";
    /// Blueprint that creates the Harbor of a HarborCluster, with its database, cache and storage.
    pub(crate) const HARBOR_CLUSTER: &str = "harborcluster.goharbor.io";
}

/// Labels of child objects.
pub(crate) mod label {
    /// Name of the controller that created the object.
    pub(crate) const CONTROLLER: &str = "goharbor.io/operator-controller";
    /// On a Harbor: name of the HarborCluster that created it.
    pub(crate) const CLUSTER: &str = "goharbor.io/harbor-cluster";
}

/// Returns the name of the built-in database of a HarborCluster, and of the claim with its data.
pub(crate) fn built_in_database(cluster: &str) -> String {
    windlass::naming::name([cluster, "database"], windlass::naming::STATEFUL_SET)
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_in_clusters_never_change() {
        use super::*;
        let all = [
            annotation::CLASS,
            annotation::NETWORK_POLICIES,
            annotation::VERSION,
            annotation::INGRESS_CONTROLLER,
            annotation::IMMUTABLE,
            annotation::WARNING,
            annotation::DATA_MOVED,
            label::CONTROLLER,
            label::CLUSTER,
            blueprint::HARBOR,
            blueprint::HARBOR_CLUSTER,
            crate::api::conversion::KEPT,
        ];
        let expected = [
            "goharbor.io/harbor-class",
            "goharbor.io/network-policies",
            "harbor.goharbor.io/version",
            "goharbor.io/ingress-controller",
            "goharbor.io/immutable",
            "goharbor.io/warning",
            "harbor.windlass.dev/data-moved",
            "goharbor.io/operator-controller",
            "goharbor.io/harbor-cluster",
            "harbor.goharbor.io",
            "harborcluster.goharbor.io",
            "conversion.windlass.dev/",
        ];
        assert_eq!(all, expected);
    }
}
