//! What a Game is made of.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::networking::v1::Ingress;
use kube::ResourceExt as _;
use serde_json::{Value, json};
use windlass::{Blueprint, DrawError, Kinds, Plan, Resolved, Seen};

use crate::api::{Game, Phase};

/// On everything that belongs to a Game, and on its Pods.
pub const LABEL: &str = "qingwave.github.io/game";

/// A Deployment, a Service in front of it, and an Ingress in front of that.
#[derive(Clone, Copy, Debug)]
pub struct GameBlueprint;

impl Blueprint for GameBlueprint {
    type Owner = Game;
    const NAME: &'static str = "mygame";

    fn kinds(&self, kinds: &mut Kinds) {
        kinds.owns::<Deployment>().owns::<Service>().owns::<Ingress>();
    }

    fn draw(&self, game: &Game, _: &Resolved, plan: &mut Plan) -> Result<(), DrawError> {
        plan.add(deployment(game)?);
        let service = plan.add(service(game)?);
        plan.add(ingress(game)?).after([service]);
        Ok(())
    }

    fn status(&self, game: &Game, seen: &Seen<'_>) -> Option<Value> {
        let ready =
            seen.live::<Deployment, _>(&game.name_any(), |live| live.status.ready_replicas.unwrap_or(0));
        let failed = seen.report().is_none_or(|report| report.failures().next().is_some());
        let phase = match failed {
            true => Phase::Failed,
            false if seen.is_ready() => Phase::Running,
            false => Phase::NotReady,
        };
        Some(json!({
            "phase": phase,
            "replicas": game.spec.replicas,
            "readyReplicas": ready.unwrap_or(0),
            "labelSelector": format!("{LABEL}={}", game.name_any()),
        }))
    }
}

fn deployment(game: &Game) -> Result<Deployment, DrawError> {
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

fn service(game: &Game) -> Result<Service, DrawError> {
    let (name, labels) = (game.name_any(), labels(game));
    Ok(serde_json::from_value(json!({
        "metadata": {"name": name, "labels": labels},
        "spec": {"selector": labels, "ports": [{"protocol": "TCP", "port": 80, "targetPort": 80}]},
    }))?)
}

fn ingress(game: &Game) -> Result<Ingress, DrawError> {
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
