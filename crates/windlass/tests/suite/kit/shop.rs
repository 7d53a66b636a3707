//! A kind with twelve nodes of all kinds.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Secret, Service, ServiceAccount};
use k8s_openapi::api::networking::v1::Ingress;
use kube::{CustomResource, ResourceExt as _};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use windlass::{
    Blueprint, Controls, Deletion, Kinds, Needs, Plan, PlanError, PlanState, Status, Step, StepState,
};
use windlass_runtime::controller::Error;

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "test.windlass.dev", version = "v1", kind = "Shop", namespaced, status = "ShopStatus")]
#[serde(rename_all = "camelCase")]
pub(crate) struct ShopSpec {
    pub(crate) image: String,
    pub(crate) password_secret: String,
    /// Left out, the shop has no ingress.
    #[serde(default)]
    pub(crate) host: Option<String>,
    /// Pod annotations of the web tier: the stories of KWOK.
    #[serde(default)]
    pub(crate) story: std::collections::BTreeMap<String, String>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ShopStatus {
    #[serde(flatten)]
    pub(crate) standard: Status,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ready_replicas: Option<i64>,
}

/// The outside world: the registered shops.
#[derive(Clone, Default)]
pub(crate) struct Registrar {
    pub(crate) shops: Arc<Mutex<Vec<String>>>,
    pub(crate) calls: Arc<Mutex<usize>>,
    /// The message with which `undo` is refused, if it is.
    pub(crate) refuses: Arc<Mutex<Option<String>>>,
}

pub(crate) struct Register {
    name: String,
    registrar: Registrar,
}

impl Step for Register {
    const UNDOES: bool = true;

    async fn check(&self) -> Result<StepState, Error> {
        *self.registrar.calls.lock() += 1;
        Ok(if self.registrar.shops.lock().contains(&self.name) {
            StepState::Done
        } else {
            StepState::NotDone
        })
    }

    async fn act(&self) -> Result<(), Error> {
        let mut shops = self.registrar.shops.lock();
        if !shops.contains(&self.name) {
            shops.push(self.name.clone());
        }
        Ok(())
    }

    async fn undo(&self) -> Result<StepState, Error> {
        if let Some(why) = self.registrar.refuses.lock().clone() {
            return Ok(StepState::Waiting(why));
        }
        self.registrar.shops.lock().retain(|shop| *shop != self.name);
        Ok(StepState::Done)
    }

    fn poll(&self) -> std::time::Duration {
        std::time::Duration::from_millis(200)
    }
}

#[derive(Clone, Default)]
pub(crate) struct Shops {
    pub(crate) registrar: Registrar,
}

impl Controls for Shops {
    type Owner = Shop;
    const NAME: &'static str = "shop.test.windlass.dev";
    const DELETION: Deletion<Shop> = Deletion::Ordered;

    fn kinds(&self, kinds: &mut Kinds) {
        kinds.owns::<ServiceAccount>().owns::<ConfigMap>().owns::<Secret>().owns::<PersistentVolumeClaim>();
        kinds.owns::<StatefulSet>().owns::<Service>().owns::<Job>().owns::<Deployment>().owns::<Ingress>();
        kinds.requires::<Secret>();
    }

    fn status(&self, shop: &Shop, state: &PlanState<'_>) -> Option<Value> {
        let web = format!("{}-web", shop.name_any());
        let ready = state.live::<Deployment, _>(&web, |live| live.status.ready_replicas.unwrap_or(0));
        Some(json!({"readyReplicas": ready}))
    }
}

impl Blueprint for Shops {
    fn draw(&self, shop: &Shop, needs: &mut Needs<'_>, plan: &mut Plan) -> Result<(), PlanError> {
        let name = shop.name_any();
        let part = |suffix: &str| format!("{name}-{suffix}");
        let password = needs.require::<Secret>(&shop.spec.password_secret);
        let account = plan.add(object::<ServiceAccount>(json!({"metadata": {"name": part("runner")}}))?);
        // An annotation, so that one value goes only into the configuration.
        let greeting = shop.annotations().get("greeting").cloned().unwrap_or_default();
        let config = plan.add(object::<ConfigMap>(
            json!({"metadata": {"name": part("config")}, "data": {"image": shop.spec.image, "greeting": greeting}}),
        )?);
        let key_name = part("key");
        let key = plan.create_once(part("key"), move |random| {
            object::<Secret>(
                json!({"metadata": {"name": key_name}, "stringData": {"key": random.alphanumeric(32)?}}),
            )
        });
        let data = plan.add(object::<PersistentVolumeClaim>(json!({"metadata": {"name": part("data")},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}))?);
        let database = plan
            .add(object::<StatefulSet>(json!({"metadata": {"name": part("db")}, "spec": {
                "replicas": 1, "serviceName": part("db"), "selector": {"matchLabels": {"app": part("db")}},
                "template": pod(&part("db"), &shop.spec.image, &json!({}))}}))?)
            .after([&account, &key, &data, &password]);
        let database_service = plan.add(object::<Service>(service(&part("db")))?);
        let migration = plan
            .task(object::<Job>(json!({"metadata": {"name": part("migrate")}, "spec": {"backoffLimit": 0, "template": {
                "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": shop.spec.image}]}}}}))?)
            .after([&database, &database_service]);
        let web = plan
            .add(object::<Deployment>(json!({"metadata": {"name": part("web")}, "spec": {
                "replicas": 2, "selector": {"matchLabels": {"app": part("web")}},
                "template": pod(&part("web"), &shop.spec.image, &json!(shop.spec.story))}}))?)
            .after([&migration, &config, &password]);
        let web_service = plan.add(object::<Service>(service(&part("web")))?);
        plan.add(object::<Ingress>(json!({"metadata": {"name": part("web")}, "spec": {"rules": [{"host": shop.spec.host,
            "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": {"service": {"name": part("web"), "port": {"number": 80}}}}]}}]}}))?)
            .after([&web_service])
            .when(shop.spec.host.is_some());
        let register = Register {
            name: format!("{}/{name}", shop.namespace().unwrap_or_default()),
            registrar: self.registrar.clone(),
        };
        plan.step("registration", register).after([&web]);
        Ok(())
    }
}

fn object<K: DeserializeOwned>(object: Value) -> Result<K, PlanError> {
    Ok(serde_json::from_value(object)?)
}

fn pod(app: &str, image: &str, annotations: &Value) -> Value {
    json!({"metadata": {"labels": {"app": app}, "annotations": annotations},
        "spec": {"containers": [{"name": "main", "image": image, "ports": [{"containerPort": 80}]}]}})
}

fn service(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"selector": {"app": name}, "ports": [{"port": 80}]}})
}

/// Returns a shop, as a user writes it.
pub(crate) fn shop(name: &str, image: &str) -> Shop {
    let spec = ShopSpec {
        image: image.into(),
        password_secret: "password".into(),
        host: Some("shop.test".into()),
        story: std::collections::BTreeMap::default(),
    };
    Shop::new(name, spec)
}

/// Returns the Secret that shops require.
pub(crate) fn password(value: &str) -> Secret {
    serde_json::from_value(json!({"metadata": {"name": "password"}, "stringData": {"password": value}}))
        .unwrap()
}
