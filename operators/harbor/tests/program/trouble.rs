//! Tests the messages that a user reads when something around a Harbor is wrong, and that the Harbor
//! continues by itself when that is fixed.

use anyhow::Result;
use harbor_operator::api::{Core, Harbor};
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::core::v1::ResourceQuota;
use kube::api::{Api, DeleteParams, PostParams};
use serde_json::{Value, json};
use windlass_testenv::{Story, TestEnv, or_not_run};

use crate::world::{World, harbor, status_and_message};

impl World {
    /// Waits until the Harbor says this of why it is not ready.
    async fn complains(&self, words: &[&str]) -> Result<()> {
        self.see("sample", &format!("not ready, with {words:?}"), |harbor: &Harbor| {
            let (truth, message) = status_and_message(harbor, "Ready");
            truth == "False" && words.iter().all(|words| message.contains(words))
        })
        .await?;
        Ok(())
    }
}

#[tokio::test]
async fn an_exceeded_quota_is_named_and_raising_it_resumes_the_harbor() -> Result<()> {
    let world = World::new(or_not_run!(TestEnv::shared().await), "quota").await?;
    let hard = |most: &str| json!({"spec": {"hard": {"count/deployments.apps": most}}});
    let mut quota = hard("1");
    quota["metadata"] = json!({"name": "small"});
    world.put::<ResourceQuota>(quota).await?;
    // It counts for nobody before its controller has seen it.
    let is_counted =
        |quota: &ResourceQuota| quota.status.as_ref().is_some_and(|status| status.hard.is_some());
    world.see("small", "counted", is_counted).await?;
    let operator = world.operator().await?;
    world.put::<Harbor>(harbor()).await?;
    world.complains(&["exceeded quota: small", "count/deployments.apps"]).await?;
    world.change::<ResourceQuota>("small", hard("20")).await?;
    world.ready().await?;
    // Not to the world's own end: that the server has refused something is what this is about.
    Ok(operator.stop().await?)
}

#[tokio::test]
async fn a_missing_image_is_named_with_its_component() -> Result<()> {
    let world = World::new(or_not_run!(TestEnv::shared().await), "image").await?;
    let operator = world.operator().await?;
    let mut sample = harbor();
    let image = "registry.example.com/no/such:1";
    sample["spec"]["core"] =
        json!({"image": image, "templateAnnotations": Story::ImagePullError.annotations()});
    world.put::<Harbor>(sample).await?;
    world.complains(&["Core sample-harbor", "ImagePullBackOff", image]).await?;
    let right = json!({"spec": {"core": {"image": null, "templateAnnotations": null}}});
    world.change::<Harbor>("sample", right).await?;
    world.ready().await?;
    world.end(operator).await
}

/// A validation of Cores in one namespace that nobody answers for.
fn unanswered(namespace: &str) -> Value {
    json!({
        "metadata": {"name": format!("nobody.{namespace}")},
        "webhooks": [{
            "name": "nobody.windlass.dev", "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "failurePolicy": "Fail", "clientConfig": {"url": "https://127.0.0.1:1/validate"},
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
            "rules": [{
                "apiGroups": ["goharbor.io"], "apiVersions": ["*"], "resources": ["cores"],
                "operations": ["CREATE", "UPDATE"], "scope": "*",
            }],
        }],
    })
}

#[tokio::test]
async fn a_webhook_that_does_not_answer_is_named_and_its_return_resumes_the_harbor() -> Result<()> {
    let world = World::new(or_not_run!(TestEnv::shared().await), "webhook").await?;
    let validations = Api::<ValidatingWebhookConfiguration>::all(world.env.client());
    let nobody = serde_json::from_value(unanswered(world.namespace.name()))?;
    let made = validations.create(&PostParams::default(), &nobody).await?;
    let operator = world.operator().await?;
    world.put::<Harbor>(harbor()).await?;
    world.complains(&["Core sample-harbor", "nobody.windlass.dev"]).await?;
    assert!(world.namespace.api::<Core>().get_opt("sample-harbor").await?.is_none());
    let name = made.metadata.name.unwrap_or_default();
    drop(validations.delete(&name, &DeleteParams::default()).await?);
    world.ready().await?;
    world.end(operator).await
}
