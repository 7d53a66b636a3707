//! A finished plan: its graph, and what must be known about all of it.

use windlass_graph::{Graph, Key};
use windlass_runtime::key::ObjectKey;
use windlass_runtime::resource::ResourceType;

use super::Drafting;
use super::draft::Index;
use super::node::Place;
use crate::error::PlanError;

/// A finished plan.
pub(crate) struct Drawn {
    pub(crate) graph: Graph<Place>,
    /// What the user should do otherwise.
    pub(crate) advice: Vec<String>,
}

impl Drawn {
    pub(crate) fn places(&self) -> impl Iterator<Item = &Place> {
        self.graph.iter().map(|(_, place)| place)
    }

    /// Returns whether the plan has a place for this object.
    pub(crate) fn holds(&self, resource: &ResourceType, key: &ObjectKey) -> bool {
        let same = |(planned, at): (&ResourceType, &ObjectKey)| {
            planned.group == resource.group && planned.kind == resource.kind && at == key
        };
        self.places().filter_map(Place::object).any(same)
    }

    /// Returns whether everything that the plan asked for is known and there, and every node could be drawn. Only a complete plan
    /// prunes.
    pub(crate) fn is_complete(&self) -> bool {
        !self.places().any(|place| place.node.is_incomplete())
    }
}

pub(super) fn finish(drafting: Drafting) -> Result<Drawn, PlanError> {
    let Drafting { needs, planned, errors, advice } = drafting;
    if !errors.is_empty() {
        return Err(all(&errors));
    }
    let mut graph: Graph<Place> = Graph::new();
    // The place of each draft in the graph; one that is not wanted has none.
    let (mut of_needs, mut of_planned): (Vec<Option<Key>>, Vec<Option<Key>>) = (Vec::new(), Vec::new());
    let count = needs.len();
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
            None
        };
        if at < count { of_needs.push(key) } else { of_planned.push(key) }
    }
    Ok(Drawn { graph, advice })
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
    fn nodes_know_how_many_come_before_them() {
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
    fn what_is_not_wanted_is_not_there_and_holds_nobody_back() {
        let mut plan = Plan::new(Some("shop"));
        let a = plan.add(map("a")).when(false);
        plan.add(map("b")).after([a]);
        let drawn = plan.finish().unwrap();
        assert_eq!(drawn.places().count(), 1);
        assert!(drawn.places().all(|node| node.order == 0));
    }

    #[test]
    fn everything_that_is_wrong_is_said_at_once() {
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
    fn one_object_has_one_place() {
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
    fn claims_are_kept_unless_the_plan_says_delete() {
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
