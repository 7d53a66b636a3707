//! `fanout`: five children for every Widget, and its status. All that an author has to write is here: what
//! belongs to a Widget, and what its status says.

use std::collections::BTreeMap;

use anyhow::Result;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service, ServiceAccount};
use kube::ResourceExt as _;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use windlass::{
    Blueprint, Controls, Deletion, Kinds, Needs, Plan, PlanController, PlanError, PlanMetrics, PlanState,
};
use windlass_runtime::events::{Recorder, RecorderOptions};
use windlass_runtime::manager::Stage;

use crate::api::Widget;
use crate::args::{Common, FanoutArgs};
use crate::program::Program;
use crate::wire::say;

/// An account, a configuration, a secret, a service, and a deployment that rolls when the configuration
/// changes.
#[derive(Clone, Copy)]
struct Fanout<const FINALIZER: bool>;

const NAME: &str = "bench";

impl<const FINALIZER: bool> Controls for Fanout<FINALIZER> {
    type Owner = Widget;
    const NAME: &'static str = NAME;
    // The rights are the same with and without a finalizer, so that both runs ask the server for the same.
    const DELETION: Deletion<Widget> =
        if FINALIZER { Deletion::Ordered } else { Deletion::OrderedWhen(|_| false) };

    fn kinds(&self, kinds: &mut Kinds) {
        kinds
            .owns::<ServiceAccount>()
            .owns::<ConfigMap>()
            .owns::<Secret>()
            .owns::<Service>()
            .owns::<Deployment>();
    }

    fn status(&self, _: &Widget, state: &PlanState<'_>) -> Option<Value> {
        let ready = state.is_ready();
        Some(json!({"ready": ready, "phase": if ready { "Ready" } else { "Pending" }}))
    }
}

impl<const FINALIZER: bool> Blueprint for Fanout<FINALIZER> {
    fn draw(&self, widget: &Widget, _: &mut Needs<'_>, plan: &mut Plan) -> Result<(), PlanError> {
        plan.add(account(widget)?);
        let config = plan.add(config(widget)?);
        plan.add(secret(widget)?);
        plan.add(service(widget)?);
        plan.add(deployment(widget)?).after([config]);
        Ok(())
    }
}

fn account(widget: &Widget) -> Result<ServiceAccount, PlanError> {
    Ok(serde_json::from_value(json!({"metadata": metadata(widget)}))?)
}

fn config(widget: &Widget) -> Result<ConfigMap, PlanError> {
    // The prefix keeps a Widget's own keys apart from color and size.
    let own = widget.spec.config.iter().map(|(key, value)| (format!("config.{key}"), value.clone()));
    let mut data: BTreeMap<String, String> = own.collect();
    data.insert("color".into(), widget.spec.color.clone());
    data.insert("size".into(), widget.spec.size.to_string());
    Ok(serde_json::from_value(json!({"metadata": metadata(widget), "data": data}))?)
}

fn secret(widget: &Widget) -> Result<Secret, PlanError> {
    let token = hex(&Sha256::digest(widget.spec.notes.as_bytes())[..16]);
    Ok(serde_json::from_value(json!({"metadata": metadata(widget), "stringData": {"token": token}}))?)
}

fn service(widget: &Widget) -> Result<Service, PlanError> {
    Ok(serde_json::from_value(json!({
        "metadata": metadata(widget),
        "spec": {"selector": labels(widget), "ports": [{"port": 80, "protocol": "TCP", "targetPort": 8080}]},
    }))?)
}

fn deployment(widget: &Widget) -> Result<Deployment, PlanError> {
    let (name, spec) = (widget.name_any(), &widget.spec);
    Ok(serde_json::from_value(json!({
        "metadata": metadata(widget),
        "spec": {
            "replicas": spec.replicas,
            "selector": {"matchLabels": labels(widget)},
            "template": {
                "metadata": {"labels": labels(widget)},
                "spec": {
                    "containers": [{
                        "name": "widget", "image": spec.image, "args": spec.args, "env": spec.env,
                        "volumeMounts": [{"name": "config", "mountPath": "/etc/widget"}],
                    }],
                    "volumes": [{"name": "config", "configMap": {"name": name}}],
                },
            },
        },
    }))?)
}

fn metadata(widget: &Widget) -> Value {
    json!({"name": widget.name_any()})
}

fn labels(widget: &Widget) -> BTreeMap<&'static str, String> {
    [("app", widget.name_any())].into()
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn controller<B: Blueprint>(blueprint: B, common: &Common, metrics: &PlanMetrics) -> PlanController<B> {
    PlanController::of(blueprint).workers(common.workers).metrics(metrics)
}

pub(crate) async fn run(common: &Common, args: &FanoutArgs) -> Result<()> {
    let mut program = Program::new(common).await?;
    let (recorder, publisher) = Recorder::new(&program.client, RecorderOptions::new(NAME))?;
    let metrics = PlanMetrics::shown_in(program.manager.metrics());
    let controller = if args.finalizer {
        controller(Fanout::<true>, common, &metrics).build(&program.client, &program.cache, &recorder)?
    } else {
        controller(Fanout::<false>, common, &metrics).build(&program.client, &program.cache, &recorder)?
    };
    let follows: Vec<_> = controller.follows().collect();
    program.manager.controller(controller)?;
    program.manager.add(Stage::Everywhere, publisher.into_runnable())?;
    program
        .run(async move {
            for mut followed in follows {
                followed.state.wait_for(windlass_runtime::cache::SyncState::is_synced).await?;
            }
            say(&json!({"event": "started"}))?;
            std::future::pending().await
        })
        .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::WidgetSpec;

    #[test]
    fn a_widget_has_five_children_and_the_deployment_waits_for_its_configuration() {
        let mut widget =
            Widget::new("w", WidgetSpec { size: 1, color: "red".into(), ..WidgetSpec::default() });
        widget.metadata.namespace = Some("n".into());
        let plan = windlass::preview(&Fanout::<true>, &widget).unwrap();
        let text = plan.text().to_string();
        assert!(text.starts_with("5 planned"), "{text}");
        assert!(text.contains("ConfigMap w: planned: apply\n│  └─ Deployment w"), "{text}");
    }
}
