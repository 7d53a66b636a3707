//! A finished plan: its graph, and what must be known about all of it.

use std::borrow::Cow;

use windlass_graph::{Graph, Key};
use windlass_runtime::key::ObjectKey;
use windlass_runtime::resource::ResourceType;

use super::Drafts;
use super::draft::{Draft, Verb};
use crate::error::DrawError;

/// A node of the graph.
pub(crate) struct Node {
    pub(crate) draft: Draft,
    /// Its place in the graph, and that of what it comes after.
    pub(crate) index: usize,
    pub(crate) after: Vec<usize>,
    /// The length of the longest chain before it.
    pub(crate) order: usize,
}

impl Node {
    /// The object that it is about, if it is about one of ours.
    pub(crate) fn object(&self) -> Option<(&ResourceType, &ObjectKey)> {
        match &self.draft.verb {
            Verb::Apply(desired) => Some((&desired.resource, &desired.key)),
            Verb::CreateOnce { resource, key, .. }
            | Verb::Renew { resource, key, .. }
            | Verb::Pending { resource, key, .. } => Some((resource, key)),
            Verb::Step(_) | Verb::Input(_) | Verb::Broken => None,
        }
    }

    /// Whether its object outlives its place in the plan, and its owner.
    pub(crate) fn retained(&self) -> bool {
        let data = |(resource, _): (&ResourceType, &ObjectKey)| is_data(resource);
        self.draft.retain.unwrap_or_else(|| self.object().is_some_and(data))
    }
}

/// Whether objects of a kind hold data that nobody can make again.
pub(crate) fn is_data(resource: &ResourceType) -> bool {
    resource.group.is_empty() && resource.kind == "PersistentVolumeClaim"
}

impl windlass_graph::Node for Node {
    fn id(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.draft.id)
    }
}

/// A finished plan.
pub(crate) struct Drawn {
    pub(crate) graph: Graph<Node>,
    /// What the user should do otherwise.
    pub(crate) advice: Vec<String>,
}

impl Drawn {
    pub(crate) fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.graph.iter().map(|(_, node)| node)
    }

    /// Whether the plan has a place for this object.
    pub(crate) fn holds(&self, resource: &ResourceType, key: &ObjectKey) -> bool {
        let same = |(planned, at): (&ResourceType, &ObjectKey)| {
            planned.group == resource.group && planned.kind == resource.kind && at == key
        };
        self.nodes().filter_map(Node::object).any(same)
    }
}

pub(super) fn finish(drafts: Drafts, _home: Option<&str>) -> Result<Drawn, DrawError> {
    let Drafts { nodes, errors, advice } = drafts;
    if !errors.is_empty() {
        return Err(all(&errors));
    }
    let mut graph: Graph<Node> = Graph::new();
    // Where each draft came to stand; one that is not wanted stands nowhere.
    let mut places: Vec<Option<Key>> = Vec::with_capacity(nodes.len());
    for draft in nodes {
        if !draft.enabled {
            places.push(None);
            continue;
        }
        let keys: Vec<Key> = draft.after.iter().filter_map(|index| places[*index]).collect();
        let order =
            keys.iter().filter_map(|key| graph.get(*key)).map(|node| node.order + 1).max().unwrap_or(0);
        let (index, after) = (graph.len(), keys.iter().map(|key| key.index()).collect());
        let id = draft.id.clone();
        let place = graph
            .add_after(Node { draft, index, after, order }, &keys)
            .map_err(|error| DrawError::new(format!("{id} cannot be planned: {error}")))?;
        places.push(Some(place));
    }
    Ok(Drawn { graph, advice })
}

fn all(errors: &[DrawError]) -> DrawError {
    DrawError::new(errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
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
        assert_eq!(drawn.nodes().map(|node| node.order).collect::<Vec<_>>(), [0, 1, 2, 0]);
        assert_eq!(drawn.nodes().map(|node| node.draft.id.as_str()).collect::<Vec<_>>()[1], "ConfigMap b");
    }

    #[test]
    fn what_is_not_wanted_is_not_there_and_holds_nobody_back() {
        let mut plan = Plan::new(Some("shop"));
        let a = plan.add(map("a")).when(false);
        plan.add(map("b")).after([a]);
        let drawn = plan.finish().unwrap();
        assert_eq!(drawn.nodes().count(), 1);
        assert!(drawn.nodes().all(|node| node.after.is_empty()));
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
            drawn.nodes().next().unwrap().object().unwrap().1.name().to_owned()
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
            plan.finish().unwrap().nodes().all(super::Node::retained)
        };
        assert!(retained(false));
        assert!(!retained(true));
    }

    struct Nothing;

    impl crate::step::Step for Nothing {
        async fn check(&self) -> Result<crate::StepState, windlass_runtime::controller::Error> {
            Ok(crate::StepState::Done)
        }

        async fn act(&self) -> Result<(), windlass_runtime::controller::Error> {
            Ok(())
        }
    }
}
