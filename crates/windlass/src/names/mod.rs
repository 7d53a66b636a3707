//! Persisted names: everything that is written into clusters, and therefore never changes; and the builder of
//! child names.
//!
//! A renamed label orphans every object that carries the old one, a renamed annotation rolls every workload,
//! a renamed finalizer blocks every deletion. All of them are in this module, so that a change of one is
//! noticed in review. The field manager is the [name of the controller](crate::Controls::NAME), which is
//! under the same rule.

pub mod naming;

/// Labels on the objects of a plan.
pub mod label {
    /// The controller that an object belongs to; the value is the [controller's name](crate::Controls::NAME).
    /// Watches select by it, also on the pods of planned workloads.
    pub const CONTROLLER: &str = "windlass.dev/controller";
    /// The uid of the owner: the inventory of all objects that belong to it, including those that cannot
    /// carry an owner reference.
    pub const OWNER: &str = "windlass.dev/owner";
}

/// Annotations on the objects of a plan, written by the controller.
pub mod mark {
    /// The digest of the desired object when it was last applied.
    pub const DIGEST: &str = "windlass.dev/digest";
    /// The combined digest of the contents of the object's dependencies, and its token in the pod template.
    pub const DEPENDENCIES: &str = "windlass.dev/dependencies";
    /// The number of nodes before the object in the longest chain: objects that are pruned together are
    /// deleted in the opposite order.
    pub const ORDER: &str = "windlass.dev/order";
    /// `unplanned`: the object is kept when it leaves the plan, and deleted with its owner. `<Kind>/<name>`
    /// of its owner: the object outlives that owner too, and is taken over by the next owner of that name.
    /// `false`: the object is not kept, even if its kind is kept by default.
    pub const RETAIN: &str = "windlass.dev/retain";
    /// `first`: when the object leaves the plan, it is deleted at once, before everything else is ready.
    pub const PRUNE: &str = "windlass.dev/prune";
    /// The value of [`PRUNE`].
    pub const FIRST: &str = "first";
    /// On a renewed object: the time of the next renewal.
    pub const DUE: &str = "windlass.dev/due";
    /// On a renewed object: the digest of what it was made from, and the keys of its data.
    pub const MADE_FROM: &str = "windlass.dev/made-from";
    /// On a renewed object: the time at which it was made.
    pub const MADE_AT: &str = "windlass.dev/made-at";
    /// On an object that holds data: the version of the software that the data has; see
    /// [`Plan::record`](crate::Plan::record).
    pub const DATA_VERSION: &str = "windlass.dev/data-version";
    /// In pod templates: a token that changes with the content of a dependency, and so rolls the pods.
    pub const TEMPLATE: &str = "windlass.dev/dependencies";
}

/// Annotations that users set, on owners unless stated otherwise.
pub mod ask {
    /// `true`, or an end time (RFC 3339): the owner is observed and its objects are not written; only its
    /// status and its deletion are handled.
    pub const PAUSED: &str = "windlass.dev/paused";
    /// The reason of a pause, for the condition `Paused`.
    pub const PAUSED_BECAUSE: &str = "windlass.dev/paused-because";
    /// The instance of the operator that is responsible for the owner; if unset, the instance without a
    /// class.
    pub const CLASS: &str = "windlass.dev/class";
    /// On an object that has the name of a planned one: `<Kind>/<name>` of the owner that may adopt it. On an
    /// owner: `true`, if it may adopt all such objects.
    pub const ADOPT: &str = "windlass.dev/adopt";
    /// Names of generated objects, separated by commas, that may be generated again.
    pub const REGENERATE: &str = "windlass.dev/regenerate";
    /// The generation at which more than half of the owner's objects may be pruned without a change of its
    /// spec.
    pub const ALLOW_PRUNE: &str = "windlass.dev/allow-prune";
}

/// Suffix of the controller's name: the field manager of the marks on a generated object that existed before
/// the controller knew of it.
pub const MARKS: &str = ".marks";

/// Suffix of the controller's name: the field manager of [`DATA_VERSION`](mark::DATA_VERSION).
pub const RECORDS: &str = ".records";

/// Finalizer on owners that are deleted in order, or that have effects outside of the cluster.
pub const FINALIZER: &str = "windlass.dev/teardown";

/// A second finalizer on owners with a plan that has effects outside of the cluster: such an owner can be
/// deleted only while its plan can be drawn, since the plan is needed to undo them.
pub const UNDO_FINALIZER: &str = "windlass.dev/undo";

/// Fields of every status.
pub mod status {
    /// The generation of the spec that the status was computed for.
    pub const OBSERVED: &str = "observedGeneration";
    /// The last generation with a complete plan, while that is not the observed one.
    pub const COMPLETE: &str = "completeGeneration";
    /// The objects that were generated once.
    pub const GENERATED: &str = "generated";
    /// The decisions of a director's actors.
    pub const DECISIONS: &str = "decisions";
}

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
            mark::PRUNE,
            mark::FIRST,
            mark::DUE,
            mark::MADE_FROM,
            mark::MADE_AT,
            mark::TEMPLATE,
            ask::PAUSED,
            ask::PAUSED_BECAUSE,
            ask::CLASS,
            ask::ADOPT,
            ask::REGENERATE,
            ask::ALLOW_PRUNE,
            FINALIZER,
            UNDO_FINALIZER,
            MARKS,
            RECORDS,
            mark::DATA_VERSION,
            digest_key::SUFFIX,
            digest_key::TYPE,
            digest_key::FIELD,
            status::OBSERVED,
            status::COMPLETE,
            status::GENERATED,
            status::DECISIONS,
        ];
        assert_eq!(
            all.join(" "),
            "windlass.dev/controller windlass.dev/owner windlass.dev/digest windlass.dev/dependencies windlass.dev/order \
             windlass.dev/retain windlass.dev/prune first windlass.dev/due windlass.dev/made-from windlass.dev/made-at windlass.dev/dependencies \
             windlass.dev/paused windlass.dev/paused-because windlass.dev/class windlass.dev/adopt windlass.dev/regenerate windlass.dev/allow-prune \
             windlass.dev/teardown windlass.dev/undo .marks .records windlass.dev/data-version -digest-key windlass.dev/digest-key key \
             observedGeneration completeGeneration generated decisions"
        );
    }
}
