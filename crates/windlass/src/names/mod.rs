//! Persisted names: everything that is written into clusters, and therefore never changes; and the builder of child names.
//!
//! A renamed label orphans every object that carries the old one, a renamed annotation rolls every workload, a renamed
//! finalizer blocks every deletion. All of them are in this module, so that a change of one is seen for what it is. The
//! field manager is the [name of the controller](crate::Controls::NAME), which is under the same rule.

pub mod naming;

/// Labels on the objects of a plan.
pub mod label {
    /// The controller that an object belongs to; the value is the [controller's name](crate::Controls::NAME). Watches
    /// select by it, also on the pods of planned workloads.
    pub const CONTROLLER: &str = "windlass.dev/controller";
    /// The uid of the owner: the inventory of what belongs to it, also of what cannot carry an owner reference.
    pub const OWNER: &str = "windlass.dev/owner";
}

/// Annotations on the objects of a plan, written by the controller.
pub mod mark {
    /// The digest of the desired object when it was last applied.
    pub const DIGEST: &str = "windlass.dev/digest";
    /// What the content of its dependencies came to, and the token of it that the pod template carries.
    pub const DEPENDENCIES: &str = "windlass.dev/dependencies";
    /// How many nodes came before it in the longest chain: what is pruned together goes in the opposite order.
    pub const ORDER: &str = "windlass.dev/order";
    /// `unplanned`: the object is kept when it leaves the plan, and goes with its owner. `<Kind>/<name>` of its owner: it
    /// outlives that owner too, and is taken back by the next one of that name. `false`: neither, though its kind usually does.
    pub const RETAIN: &str = "windlass.dev/retain";
    /// On a renewed object: when it is to be made anew.
    pub const DUE: &str = "windlass.dev/due";
    /// On a renewed object: what it was made from, and the keys of its data.
    pub const MADE_FROM: &str = "windlass.dev/made-from";
    /// On a renewed object: when it was made.
    pub const MADE_AT: &str = "windlass.dev/made-at";
    /// In pod templates: changes when the content of a dependency does, and so rolls the pods.
    pub const TEMPLATE: &str = "windlass.dev/dependencies";
}

/// Annotations that users set, on owners unless said otherwise.
pub mod ask {
    /// `true`: nothing is done for this owner, but for its deletion, until it is taken away.
    pub const PAUSED: &str = "windlass.dev/paused";
    /// Which instance of the operator is responsible; without it, the one that has no class.
    pub const CLASS: &str = "windlass.dev/class";
    /// On an object that is in our way: `<Kind>/<name>` of the owner that may take it over. On an owner: `true`, it may take
    /// over everything that is in its way.
    pub const ADOPT: &str = "windlass.dev/adopt";
    /// Names of generated objects, separated by commas, that may be generated anew.
    pub const REGENERATE: &str = "windlass.dev/regenerate";
    /// The generation at which more than half of the owner's objects may be pruned without a change of its spec.
    pub const ALLOW_PRUNE: &str = "windlass.dev/allow-prune";
}

/// Suffix of the controller's name: the field manager of the marks on a generated object that existed before the
/// controller knew of it.
pub const MARKS: &str = ".marks";

/// Finalizer on owners whose deletion has an order, or effects outside of the cluster.
pub const FINALIZER: &str = "windlass.dev/teardown";

/// The Secret that holds the digest key of an installation.
pub(crate) mod digest_key {
    /// Suffix of the Secret's name, after the name of the operator or controller.
    pub(crate) const SUFFIX: &str = "-digest-key";
    /// The type of the Secret.
    pub(crate) const TYPE: &str = "windlass.dev/digest-key";
    /// The key of the Secret's data that holds the 32 bytes.
    pub(crate) const FIELD: &str = "key";
}

#[cfg(test)]
mod tests {
    #[test]
    fn persisted_names_never_change() {
        use super::*;
        let all = [
            label::CONTROLLER,
            label::OWNER,
            mark::DIGEST,
            mark::DEPENDENCIES,
            mark::ORDER,
            mark::RETAIN,
            mark::DUE,
            mark::MADE_FROM,
            mark::MADE_AT,
            mark::TEMPLATE,
            ask::PAUSED,
            ask::CLASS,
            ask::ADOPT,
            ask::REGENERATE,
            ask::ALLOW_PRUNE,
            FINALIZER,
            MARKS,
            digest_key::SUFFIX,
            digest_key::TYPE,
            digest_key::FIELD,
        ];
        assert_eq!(
            all.join(" "),
            "windlass.dev/controller windlass.dev/owner windlass.dev/digest windlass.dev/dependencies windlass.dev/order \
             windlass.dev/retain windlass.dev/due windlass.dev/made-from windlass.dev/made-at windlass.dev/dependencies windlass.dev/paused windlass.dev/class windlass.dev/adopt \
             windlass.dev/regenerate windlass.dev/allow-prune windlass.dev/teardown .marks -digest-key windlass.dev/digest-key key"
        );
    }
}
