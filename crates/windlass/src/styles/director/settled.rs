//! The question whether the built-in controllers have caught up with a workload.

/// A workload and its pods, as the caches of the operator have them.
///
/// The set and its pods come from two watches, and one may be older than the other: a StatefulSet that is
/// ready by its status may have pods that the operator has not seen yet. A decision about members that is
/// made in between takes a missing pod for a missing member.
///
/// ```
/// use windlass::WorkloadFacts;
///
/// let facts = WorkloadFacts { generation: 2, observed_generation: Some(2), replicas: 3, pods: 2 };
/// assert_eq!(facts.why_unsettled().as_deref(), Some("3 pods are promised, and 2 are there"));
/// assert_eq!(WorkloadFacts { pods: 3, ..facts }.why_unsettled(), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkloadFacts {
    /// The generation of the workload.
    pub generation: i64,
    /// The generation that its controller has seen, by its status.
    pub observed_generation: Option<i64>,
    /// The number of replicas that its spec asks for.
    pub replicas: i64,
    /// The number of its pods in the cache that are not being deleted.
    pub pods: usize,
}

impl WorkloadFacts {
    /// Returns the reason why the built-in controllers have not caught up, if they have not.
    pub fn why_unsettled(&self) -> Option<String> {
        let Self { generation, observed_generation, replicas, pods } = *self;
        if observed_generation != Some(generation) {
            return Some(format!("its controller has not seen generation {generation} yet"));
        }
        let promised = usize::try_from(replicas).unwrap_or_default();
        (pods != promised).then(|| format!("{promised} pods are promised, and {pods} are there"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workload_is_settled_when_its_controller_and_its_pods_have_followed() {
        let settled = WorkloadFacts { generation: 4, observed_generation: Some(4), replicas: 3, pods: 3 };
        assert_eq!(settled.why_unsettled(), None);
        for observed_generation in [None, Some(3)] {
            let behind = WorkloadFacts { observed_generation, ..settled };
            let why = "its controller has not seen generation 4 yet";
            assert_eq!(behind.why_unsettled().as_deref(), Some(why));
        }
        for pods in [2, 4] {
            assert!(WorkloadFacts { pods, ..settled }.why_unsettled().is_some(), "{pods} pods");
        }
    }
}
