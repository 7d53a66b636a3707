//! A finished plan: its graph, and facts about the plan as a whole.

use windlass_graph::{Graph, Key};
use windlass_runtime::key::ObjectKey;
use windlass_runtime::resource::ResourceType;

use super::Drafting;
use super::draft::{Draft, Index};
use super::node::Place;
use crate::error::PlanError;

/// A finished plan.
pub(crate) struct Drawn {
    pub(crate) graph: Graph<Place>,
    /// Advice for the user: settings that work but should be changed.
    pub(crate) advice: Vec<String>,
    /// The objects that the plan mentions without planning them, with the time of their deletion.
    pub(crate) departures: Vec<Departure>,
}

/// An object that the plan mentions without planning it, and the time of its deletion.
pub(crate) struct Departure {
    pub(crate) resource: ResourceType,
    pub(crate) key: ObjectKey,
    /// The nodes that must be ready before the object is deleted; none if it is deleted first.
    pub(crate) replaced_by: Vec<usize>,
}

impl Drawn {
    pub(crate) fn places(&self) -> impl Iterator<Item = &Place> {
        self.graph.iter().map(|(_, place)| place)
    }

    /// Returns whether the plan contains this object.
    pub(crate) fn holds(&self, resource: &ResourceType, key: &ObjectKey) -> bool {
        let is_it = |(planned, at): (&ResourceType, &ObjectKey)| is_same(planned, at, resource, key);
        self.places().filter_map(Place::object).any(is_it)
    }

    /// Returns when an object that has left the plan is deleted, if the plan says so.
    pub(crate) fn departure(&self, resource: &ResourceType, key: &ObjectKey) -> Option<&Departure> {
        self.departures.iter().find(|departure| is_same(&departure.resource, &departure.key, resource, key))
    }

    /// Returns whether every object that the plan asked for is known and exists, and every node could be
    /// drawn. Only a complete plan prunes.
    pub(crate) fn is_complete(&self) -> bool {
        !self.places().any(|place| place.node.is_incomplete())
    }
}

fn is_same(planned: &ResourceType, at: &ObjectKey, resource: &ResourceType, key: &ObjectKey) -> bool {
    planned.group == resource.group && planned.kind == resource.kind && at == key
}

pub(super) fn finish(drafting: Drafting) -> Result<Drawn, PlanError> {
    let Drafting { needs, planned, errors, advice } = drafting;
    if !errors.is_empty() {
        return Err(all(&errors));
    }
    let mut graph: Graph<Place> = Graph::new();
    // The place of each draft in the graph; a draft that is not planned has none.
    let (mut of_needs, mut of_planned): (Vec<Option<Key>>, Vec<Option<Key>>) = (Vec::new(), Vec::new());
    let count = needs.len();
    let mut unwanted = Vec::new();
    for (at, draft) in needs.into_iter().chain(planned).enumerate() {
        let key = if draft.enabled {
            let place_of = |index: Index| match index {
                Index::Need(at) => of_needs.get(at).copied().flatten(),
                Index::Planned(at) => of_planned.get(at).copied().flatten(),
            };
            let before = draft.after.iter().filter_map(|edge| Some((place_of(edge.to)?, edge.content)));
            let before: Vec<(Key, bool)> = before.collect();
            let keys: Vec<Key> = before.iter().map(|(key, _)| *key).collect();
            let order = keys.iter().filter_map(|key| graph.get(*key)).map(|place| place.order + 1).max();
            let contents = before.iter().filter(|(_, content)| *content).map(|(key, _)| key.index());
            let (id, index, contents) = (draft.id.clone(), graph.len(), contents.collect());
            let (node, options, order) = (draft.node, draft.options, order.unwrap_or(0));
            let after = keys.iter().map(|key| key.index()).collect();
            let place = Place { id: draft.id, node, options, index, after, contents, order };
            let added = graph.add_after(place, &keys);
            Some(added.map_err(|error| PlanError::new(format!("{id} cannot be planned: {error}")))?)
        } else {
            unwanted.push(draft);
            None
        };
        if at < count { of_needs.push(key) } else { of_planned.push(key) }
    }
    let place_of = |index: &Index| match index {
        Index::Need(at) => of_needs.get(*at).copied().flatten(),
        Index::Planned(at) => of_planned.get(*at).copied().flatten(),
    };
    let departure = |draft: Draft| {
        let (resource, key) = draft.node.object()?;
        let replaced_by = match (&draft.replaced_by, draft.options.pruned_first) {
            (_, true) => Vec::new(),
            // A replacement that is not planned delays nothing.
            (Some(by), _) => by.iter().filter_map(place_of).map(Key::index).collect(),
            (None, false) => return None,
        };
        Some(Departure { resource: resource.clone(), key: key.clone(), replaced_by })
    };
    let departures = unwanted.into_iter().filter_map(departure).collect();
    Ok(Drawn { graph, advice, departures })
}

fn all(errors: &[PlanError]) -> PlanError {
    PlanError::new(errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
}

#[cfg(test)]
mod tests {
    use crate::plan::Plan;
    use k8s_openapi::api::batch::v1::Job;
    use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim};
    use serde_json::json;

    fn map(name: &str) -> ConfigMap {
        serde_json::from_value(json!({"metadata": {"name": name}})).unwrap()
    }

    #[test]
    fn the_order_of_a_node_is_the_length_of_the_longest_chain_before_it() {
        let mut plan = Plan::new(Some("shop"));
        let a = plan.add(map("a"));
        let b = plan.add(map("b")).after([&a]);
        plan.add(map("c")).after([&a, &b]);
        plan.add(map("d"));
        let drawn = plan.finish().unwrap();
        assert_eq!(drawn.places().map(|node| node.order).collect::<Vec<_>>(), [0, 1, 2, 0]);
        assert_eq!(drawn.places().map(|node| node.id.as_str()).collect::<Vec<_>>()[1], "ConfigMap b");
    }

    #[test]
    fn a_node_with_a_false_condition_is_left_out_and_delays_no_other_node() {
        let mut plan = Plan::new(Some("shop"));
        let a = plan.add(map("a")).when(false);
        plan.add(map("b")).after([a]);
        let drawn = plan.finish().unwrap();
        assert_eq!(drawn.places().count(), 1);
        assert!(drawn.places().all(|node| node.order == 0));
    }

    #[test]
    fn all_errors_of_a_plan_are_reported_at_once() {
        let mut plan = Plan::new(Some("shop"));
        let mut other = Plan::new(None);
        let a = plan.add(map("a"));
        let b = plan.add(map("b"));
        a.after([&b]).after([other.step("x", crate::plan::drawn::tests::Nothing)]);
        plan.add(map(""));
        let error = plan.finish().err().unwrap().to_string();
        assert_eq!(
            error,
            "ConfigMap a comes after ConfigMap b, which is planned later; ConfigMap a comes after a node of another plan; \
             a ConfigMap of the plan has no name: set metadata.name"
        );
    }

    #[test]
    fn an_object_that_is_planned_twice_is_an_error() {
        let mut plan = Plan::new(Some("shop"));
        plan.add(map("a"));
        plan.add(map("a"));
        assert!(plan.finish().err().unwrap().to_string().starts_with("ConfigMap a cannot be planned"));
    }

    #[test]
    fn a_task_is_named_after_its_content() {
        let job = |image: &str| -> Job {
            serde_json::from_value(json!({"metadata": {"name": "migrate"}, "spec": {"template": {"spec": {
                "containers": [{"name": "main", "image": image}], "restartPolicy": "Never"}}}}))
            .unwrap()
        };
        let name = |image| {
            let mut plan = Plan::new(Some("shop"));
            plan.task(job(image));
            let drawn = plan.finish().unwrap();
            drawn.places().next().unwrap().object().unwrap().1.name().to_owned()
        };
        assert_eq!(name("a"), name("a"));
        assert_ne!(name("a"), name("b"));
        assert_eq!(name("a"), "migrate-46a5b27e2b");
    }

    #[test]
    fn a_persistent_volume_claim_is_retained_unless_the_plan_says_delete() {
        let claim = || -> PersistentVolumeClaim {
            serde_json::from_value(json!({"metadata": {"name": "data"}})).unwrap()
        };
        let retained = |delete: bool| {
            let mut plan = Plan::new(Some("shop"));
            let planned = plan.add(claim());
            if delete {
                planned.delete();
            }
            plan.finish().unwrap().places().all(crate::plan::node::Place::retained)
        };
        assert!(retained(false));
        assert!(!retained(true));
    }

    struct Nothing;

    impl crate::Step for Nothing {
        async fn check(&self) -> Result<crate::StepState, windlass_runtime::controller::Error> {
            Ok(crate::StepState::Done)
        }

        async fn act(&self) -> Result<(), windlass_runtime::controller::Error> {
            Ok(())
        }
    }
}
