//! Renewed objects: the context that their makers get.
#![allow(clippy::unwrap_used, clippy::panic)] // a test fails by panicking

use crate::kit;

use anyhow::Result;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt as _;
use serde_json::{Value, json};
use windlass::{
    Blueprint, Controls, Deletion, Kinds, Needs, Plan, PlanController, PlanError, RenewContext, Renewed,
};
use windlass_testenv::{TestEnv, or_not_run};

use kit::Corner;
use kit::bundle::Bundle;

/// An authority and two of its certificates, without cryptography: the authority records the certificates
/// that it was shown.
struct Authorities;

impl Controls for Authorities {
    type Owner = Bundle;
    const NAME: &'static str = "authority.test.windlass.dev";
    const DELETION: Deletion<Bundle> = Deletion::GarbageCollected;

    fn kinds(&self, kinds: &mut Kinds) {
        kinds.owns::<Secret>();
    }
}

impl Blueprint for Authorities {
    fn draw(&self, bundle: &Bundle, _: &mut Needs<'_>, plan: &mut Plan) -> Result<(), PlanError> {
        let recipe = bundle.annotations().get("recipe").cloned().unwrap_or_default();
        let authority = plan.renew("ca", recipe, |context| {
            let shown = context.dependents::<Secret>();
            let mut shown: Vec<String> =
                shown.iter().map(|leaf| format!("{}={}", leaf.name_any(), made(leaf))).collect();
            shown.sort();
            secret("ca", &shown.join(","), context)
        });
        for name in ["leaf-a", "leaf-b"] {
            let leaf = plan.renew(name, "leaf", move |context| {
                let authority: Option<Secret> = context.before("ca");
                let shown = authority.map(|authority| made(&authority)).unwrap_or_default();
                secret(name, &format!("<{shown}>"), context)
            });
            let _ = leaf.after([&authority]);
        }
        Ok(())
    }
}

fn made(secret: &Secret) -> String {
    let data = secret.data.as_ref().and_then(|data| data.get("made"));
    data.map(|made| String::from_utf8_lossy(&made.0).into_owned()).unwrap_or_default()
}

fn secret(name: &str, made: &str, context: &RenewContext<'_>) -> Result<Renewed<Secret>, PlanError> {
    let data = k8s_openapi::ByteString(made.as_bytes().to_vec());
    let object = serde_json::from_value(json!({"metadata": {"name": name}, "data": {"made": data}}))
        .map_err(|error| PlanError::new(error.to_string()))?;
    let due: Timestamp = context.now() + SignedDuration::from_hours(24);
    Ok(Renewed { object, due })
}

#[tokio::test(flavor = "multi_thread")]
async fn the_maker_of_an_authority_is_shown_the_certificates_that_exist() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "renewal").await?;
    let operator = corner.operate(PlanController::of(Authorities)).await?;
    corner.bundle("one", Vec::new()).await?;
    corner.until::<Bundle>("one", "Ready", "True").await?;
    let content = |name: &'static str, expected: &'static str| {
        let is_made = move |object: &Value| {
            let secret: Option<Secret> = serde_json::from_value(object.clone()).ok();
            secret.is_some_and(|secret| made(&secret) == expected)
        };
        corner.until_object("v1", "Secret", name, is_made)
    };
    content("ca", "").await?;
    content("leaf-a", "<>").await?;

    corner.ask("one", "recipe", "another").await?;
    content("ca", "leaf-a=<>,leaf-b=<>").await?;
    content("leaf-b", "<leaf-a=<>,leaf-b=<>>").await?;
    operator.stop().await
}
