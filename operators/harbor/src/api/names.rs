//! Annotations and labels: those that these kinds have always had, and a few of ours. They are written into clusters, and so
//! never change.

/// Annotations on the kinds, which users or a parent set.
pub mod annotation {
    /// Which instance of the operator is responsible.
    pub const CLASS: &str = "goharbor.io/harbor-class";
    /// `true`: NetworkPolicies are made.
    pub const NETWORK_POLICIES: &str = "goharbor.io/network-policies";
    /// On components: the version of Harbor that they belong to.
    pub const VERSION: &str = "harbor.goharbor.io/version";
    /// On components: which Ingress controller is in front.
    pub const INGRESS_CONTROLLER: &str = "goharbor.io/ingress-controller";
    /// On generated Secrets: never made anew.
    pub const IMMUTABLE: &str = "goharbor.io/immutable";
    /// On children: that somebody manages them.
    pub const WARNING: &str = "goharbor.io/warning";
    /// On a HarborCluster: which of `cache`, `database` and `storage` may change their kind, separated by commas, because
    /// somebody has moved what was in them.
    pub const DATA_MOVED: &str = "harbor.windlass.dev/data-moved";
}

/// The blueprints that make what others read: field managers, and values of Windlass's label.
pub mod blueprint {
    /// Makes the components of a Harbor, and their Secrets.
    pub const HARBOR: &str = "harbor.goharbor.io";
    /// Makes the Harbor of a HarborCluster, and what it needs.
    pub const HARBOR_CLUSTER: &str = "harborcluster.goharbor.io";
}

/// Labels on children.
pub mod label {
    /// Which controller made it.
    pub const CONTROLLER: &str = "goharbor.io/operator-controller";
    /// Of which version.
    pub const OPERATOR_VERSION: &str = "goharbor.io/operator-version";
    /// On a Harbor: which HarborCluster made it.
    pub const CLUSTER: &str = "goharbor.io/harbor-cluster";
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
            label::OPERATOR_VERSION,
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
            "goharbor.io/operator-version",
            "goharbor.io/harbor-cluster",
            "harbor.goharbor.io",
            "harborcluster.goharbor.io",
            "conversion.windlass.dev/",
        ];
        assert_eq!(all, expected);
    }
}
