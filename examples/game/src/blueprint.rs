//! The objects of a Game, and the order in which they are applied.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::networking::v1::Ingress;
use kube::ResourceExt as _;
use serde_json::{Value, json};
use windlass::{Blueprint, Controls, Kinds, Needs, Plan, PlanError, PlanState};

use crate::api::{Game, Phase};

/// Label of every object of a Game and of its pods; the value is the Game's name.
pub const LABEL: &str = "qingwave.github.io/game";

/// The blueprint of a Game: a Deployment, a Service for its pods, and an Ingress for the Service.
#[derive(Clone, Copy, Debug)]
pub struct GameBlueprint;

impl Controls for GameBlueprint {
    type Owner = Game;
    const NAME: &'static str = "mygame";

    fn kinds(&self, kinds: &mut Kinds) {
        kinds.owns::<Deployment>().owns::<Service>().owns::<Ingress>();
    }

    fn status(&self, game: &Game, state: &PlanState<'_>) -> Option<Value> {
        let name = game.name_any();
        let ready = state.live::<Deployment, _>(&name, |live| live.status.ready_replicas).flatten();
        let phase = match (state.is_failed(), state.is_ready()) {
            (true, _) => Phase::Failed,
            (false, true) => Phase::Running,
            (false, false) => Phase::NotReady,
        };
        Some(json!({
            "phase": phase,
            "replicas": game.spec.replicas,
            "readyReplicas": ready.unwrap_or(0),
            "labelSelector": format!("{LABEL}={name}"),
        }))
    }
}

impl Blueprint for GameBlueprint {
    fn draw(&self, game: &Game, _: &mut Needs<'_>, plan: &mut Plan) -> Result<(), PlanError> {
        plan.add(deployment(game)?);
        let service = plan.add(service(game)?);
        plan.add(ingress(game)?).after([service]);
        Ok(())
    }
}

fn deployment(game: &Game) -> Result<Deployment, PlanError> {
    let (name, labels) = (game.name_any(), labels(game));
    Ok(serde_json::from_value(json!({
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "replicas": game.spec.replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "main", "image": game.spec.image}]},
            },
        },
    }))?)
}

fn service(game: &Game) -> Result<Service, PlanError> {
    let (name, labels) = (game.name_any(), labels(game));
    Ok(serde_json::from_value(json!({
        "metadata": {"name": name, "labels": labels},
        "spec": {"selector": labels, "ports": [{"protocol": "TCP", "port": 80, "targetPort": 80}]},
    }))?)
}

fn ingress(game: &Game) -> Result<Ingress, PlanError> {
    let (name, labels) = (game.name_any(), labels(game));
    let backend = json!({"service": {"name": name, "port": {"number": 80}}});
    Ok(serde_json::from_value(json!({
        "metadata": {"name": name, "labels": labels},
        "spec": {"rules": [{
            "host": game.host(),
            "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]},
        }]},
    }))?)
}

fn labels(game: &Game) -> BTreeMap<&'static str, String> {
    [(LABEL, game.name_any())].into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::GameSpec;

    fn game(host: &str) -> Game {
        let spec = GameSpec { replicas: 2, image: "2048:1".into(), host: host.into() };
        let mut game = Game::new("web", spec);
        game.metadata.namespace = Some("fun".into());
        game
    }

    #[test]
    fn a_game_without_a_host_has_one_of_its_name_and_namespace() {
        assert_eq!(game("").host(), "web.fun.mygame.io");
        assert_eq!(game("2048.example.com").host(), "2048.example.com");
    }

    #[test]
    fn the_ingress_of_a_game_waits_for_its_service() -> Result<(), PlanError> {
        let plan = windlass::preview(&GameBlueprint, &game("2048.example.com"))?.text().to_string();
        let expected = "Service web: planned: apply\n   └─ Ingress web: planned: apply";
        assert!(plan.contains(expected), "{plan}");
        Ok(())
    }
}
