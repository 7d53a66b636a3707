//! The PersistentVolumeClaim of a built-in server. It is a node of the plan and not a template of the
//! StatefulSet, so that it can be expanded.
//!
//! A claim outlives its HarborCluster. One that exists keeps what Kubernetes does not allow to change: its
//! class, its access modes, and its size if the spec asks for less. The condition Advice says so.

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, PersistentVolumeClaimSpec};
use serde_json::{Value, json};
use windlass::{Needs, Plan, PlanError, Planned};
use windlass_runtime::json::typed;

use crate::api::harborcluster_parts::BuiltInVolume;
use crate::api::syntax;
use crate::cluster::Site;

/// The description of a claim.
pub(super) struct Claim<'c> {
    /// Name of the claim.
    pub(super) name: &'c str,
    /// Path of its settings in the spec, for messages.
    pub(super) field: &'static str,
    /// Settings of the volume.
    pub(super) volume: &'c BuiltInVolume,
    /// Default size of the volume.
    pub(super) usual_size: &'static str,
    /// Access modes; the default is `ReadWriteOnce`.
    pub(super) modes: &'c [String],
}

impl Claim<'_> {
    /// Adds the claim to the plan.
    pub(super) fn plan(
        self,
        site: &Site<'_>,
        needs: &Needs<'_>,
        plan: &mut Plan,
    ) -> Result<Planned, PlanError> {
        let there = needs.observed::<PersistentVolumeClaim>(self.name)?;
        let there = there.and_then(|object| object.get()).and_then(|claim| claim.spec);
        let (spec, advice) = self.spec(there.as_ref());
        for advice in advice {
            plan.advise(advice);
        }
        let claim: Value = json!({"metadata": site.metadata(self.name), "spec": spec});
        Ok(site.keep(plan.add(typed::<PersistentVolumeClaim>(&claim)?)))
    }

    /// Returns the spec of the claim, and what the spec of the HarborCluster asks for in vain because the
    /// claim exists.
    fn spec(&self, there: Option<&PersistentVolumeClaimSpec>) -> (Value, Vec<String>) {
        let modes =
            if self.modes.is_empty() { vec!["ReadWriteOnce".to_owned()] } else { self.modes.to_vec() };
        let size = self.volume.storage.clone().unwrap_or_else(|| self.usual_size.to_owned());
        let class = self.volume.storage_class_name.clone();
        let live_class = there.and_then(|live| live.storage_class_name.clone());
        let live_modes = there.and_then(|live| live.access_modes.clone());
        let live_size = there
            .and_then(|live| Some(live.resources.as_ref()?.requests.as_ref()?.get("storage")?.0.clone()));

        let mut advice = Vec::new();
        let mut note = |field: &str, asked: Value, kept: Value| {
            let (kept, set) = match kept {
                Value::Null => ("no value".to_owned(), "leave it unset".to_owned()),
                kept => (kept.to_string(), format!("set {kept}")),
            };
            advice.push(format!(
                "{}.{field}: {asked} has no effect, because PersistentVolumeClaim {} exists and keeps {kept}: \
                 {set}, or create another HarborCluster with the new value and move the data to it",
                self.field, self.name
            ));
        };
        let class = match (class, live_class) {
            (Some(asked), Some(live)) if asked != live => {
                note("storageClassName", json!(asked), json!(live));
                Some(live)
            }
            // A claim that is bound cannot get a class any more.
            (Some(asked), None) if there.is_some_and(|live| live.volume_name.is_some()) => {
                note("storageClassName", json!(asked), Value::Null);
                None
            }
            (asked, live) => live.or(asked),
        };
        let modes = match live_modes {
            Some(live) if live != modes => {
                note("accessModes", json!(modes), json!(live));
                live
            }
            _ => modes,
        };
        let size = match live_size {
            Some(live) if !is_at_least(&size, &live) => {
                note("storage", json!(size), json!(live));
                live
            }
            _ => size,
        };
        let spec = json!({
            "accessModes": modes,
            "storageClassName": class,
            "resources": {"requests": {"storage": size}},
        });
        (spec, advice)
    }
}

/// Returns true if a size is not below another one. A size that cannot be read is below every other.
fn is_at_least(size: &str, other: &str) -> bool {
    syntax::size(size).is_ok_and(|size| syntax::size(other).is_ok_and(|other| size >= other))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(volume: Value, modes: &[&str], there: Option<Value>) -> (Value, String) {
        let volume: BuiltInVolume = serde_json::from_value(volume).unwrap();
        let modes: Vec<String> = modes.iter().map(|mode| (*mode).to_owned()).collect();
        let claim = Claim {
            name: "sample-database",
            field: "spec.database.spec.builtIn",
            volume: &volume,
            usual_size: "10Gi",
            modes: &modes,
        };
        let there = there.map(|spec| serde_json::from_value(spec).unwrap());
        let (spec, advice) = claim.spec(there.as_ref());
        (spec, advice.join("; "))
    }

    fn live(class: Option<&str>, size: &str) -> Value {
        json!({
            "accessModes": ["ReadWriteOnce"], "storageClassName": class,
            "resources": {"requests": {"storage": size}},
        })
    }

    #[test]
    fn users_n6_a_claim_that_exists_keeps_class_modes_and_size_and_the_advice_says_so() {
        let asked = json!({"storageClassName": "fast", "storage": "5Gi"});
        let there = live(Some("slow"), "10Gi");
        let (spec, advice) = spec(asked, &["ReadWriteMany"], Some(there.clone()));
        assert_eq!(spec, there);
        for part in [
            "spec.database.spec.builtIn.storageClassName: \"fast\" has no effect",
            "keeps \"slow\"",
            "spec.database.spec.builtIn.accessModes",
            "spec.database.spec.builtIn.storage: \"5Gi\"",
            "sample-database",
            "another HarborCluster",
        ] {
            assert!(advice.contains(part), "{part} in {advice}");
        }
        assert!(!advice.contains("delete"), "{advice}");
    }

    #[test]
    fn users_n6_what_can_change_follows_the_spec() {
        let unset = || json!({});
        assert_eq!(spec(unset(), &[], None), (live(None, "10Gi"), String::new()));
        let fast = || json!({"storageClassName": "fast", "storage": "20Gi"});
        assert_eq!(spec(fast(), &[], None), (live(Some("fast"), "20Gi"), String::new()));
        assert_eq!(
            spec(fast(), &[], Some(live(Some("fast"), "10Gi"))),
            (live(Some("fast"), "20Gi"), String::new())
        );
        // A class that the cluster chose is kept, and one is set where there was none.
        let chosen = live(Some("standard"), "10Gi");
        assert_eq!(spec(unset(), &[], Some(chosen.clone())), (chosen, String::new()));
        assert_eq!(spec(fast(), &[], Some(live(None, "20Gi"))), (live(Some("fast"), "20Gi"), String::new()));
        let mut bound = live(None, "20Gi");
        bound["volumeName"] = json!("pv");
        let (kept, advice) = spec(fast(), &[], Some(bound));
        assert_eq!(kept, live(None, "20Gi"));
        assert!(advice.contains("\"fast\" has no effect") && advice.contains("leave it unset"), "{advice}");
    }

    #[test]
    fn users_n13_a_size_that_cannot_be_read_does_not_block_a_claim_that_exists() {
        let there = live(Some("slow"), "10Gi");
        let (spec, advice) = spec(json!({"storage": "ten gigs"}), &[], Some(there.clone()));
        assert_eq!(spec, there);
        assert!(advice.contains("\"ten gigs\" has no effect"), "{advice}");
    }
}
