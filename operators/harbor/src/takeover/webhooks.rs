//! Detection of webhooks that the upstream operator has left behind.
//!
//! They fail closed: once the upstream operator is stopped, the API server refuses every request that they
//! match, such as all Pods in namespaces with image rewriting, and every change of a Harbor. This operator
//! does not delete them. The leader logs a warning that names them and says what to do. An operator that is
//! limited to namespaces cannot see them and logs nothing.

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use serde_json::Value;
use windlass_operator::{BoxError, Setup};
use windlass_runtime::access::{Access, Verb};
use windlass_runtime::cache::Selection;
use windlass_runtime::client::{Client, ClientError};
use windlass_runtime::manager::{Context, Runnable, Stage};
use windlass_runtime::resource::ResourceType;

/// Names of upstream's webhook configurations.
const NAMES: [&str; 8] = [
    "mharborcluster.kb.io",
    "vharborcluster.kb.io",
    "vharbor.kb.io",
    "vharborproject.kb.io",
    "vjobservice.kb.io",
    "vregistry.kb.io",
    "hsc.goharbor.io",
    "mimg.kb.io",
];

fn kinds() -> [ResourceType; 2] {
    [ResourceType::of::<MutatingWebhookConfiguration>(), ResourceType::of::<ValidatingWebhookConfiguration>()]
}

/// Returns a message for each webhook configuration that exists.
///
/// # Errors
/// The API server could not be asked.
pub async fn left_over(client: &Client) -> Result<Vec<String>, ClientError> {
    let mut messages = Vec::new();
    for kind in kinds() {
        let all = client.objects_of::<Value>(kind.clone()).list(&Selection::all()).await?;
        messages.extend(all.iter().flat_map(|configuration| warnings(&kind, configuration)));
    }
    Ok(messages)
}

fn warnings(kind: &ResourceType, configuration: &Value) -> Vec<String> {
    let name = configuration["metadata"]["name"].as_str().unwrap_or_default();
    let hooks = configuration["webhooks"].as_array().into_iter().flatten();
    let known = hooks.filter(|hook| NAMES.iter().any(|known| hook["name"] == *known));
    known.map(|hook| warning(kind, name, hook)).collect()
}

fn warning(kind: &ResourceType, configuration: &str, hook: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or("?").to_owned();
    let service = &hook["clientConfig"]["service"];
    let refused = if hook["name"] == "mimg.kb.io" {
        "no Pod can be created in the namespaces that it selects"
    } else {
        "the API server refuses all requests that it matches"
    };
    format!(
        "{} {configuration} has the webhook {}, which belongs to the upstream operator: because Service {}/{} no longer answers, {refused}. \
         Delete it: kubectl delete {} {configuration}",
        kind.kind,
        text(&hook["name"]),
        text(&service["namespace"]),
        text(&service["name"]),
        kind.kind.to_lowercase(),
    )
}

/// Adds a task that the leader runs once at its start.
///
/// # Errors
/// A task of the same name exists.
pub(crate) fn watchman(setup: &mut Setup<'_>) -> Result<(), BoxError> {
    if !setup.settings().namespaces.is_empty() {
        return Ok(());
    }
    setup.needs(kinds().iter().fold(Access::none(), |access, kind| access.on(kind, "", [Verb::List])));
    let client = setup.client().clone();
    let look = move |context: Context| {
        let client = client.clone();
        async move {
            context.ready();
            match left_over(&client).await {
                Ok(all) => {
                    for remedy in &all {
                        tracing::warn!(remedy, "a webhook of the upstream operator is still registered");
                    }
                }
                Err(error) => {
                    tracing::debug!(%error, "could not list the webhook configurations of the upstream operator");
                }
            }
            Ok::<(), BoxError>(())
        }
    };
    Ok(setup.add(Stage::Controllers, Runnable::new("takeover", look))?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_webhooks_of_the_upstream_operator_are_named_with_the_remedy() {
        let [mutating, _] = kinds();
        let service = json!({"service": {"namespace": "harbor-operator-ns", "name": "webhook-service"}});
        let configuration = json!({"metadata": {"name": "mutating-webhook-configuration"}, "webhooks": [
            {"name": "mimg.kb.io", "failurePolicy": "Fail", "clientConfig": service},
            {"name": "other.example.com", "clientConfig": {"url": "https://a"}},
        ]});
        let messages = warnings(&mutating, &configuration);
        assert_eq!(messages.len(), 1, "{messages:?}");
        for part in [
            "mimg.kb.io",
            "Service harbor-operator-ns/webhook-service",
            "no Pod can be created",
            "kubectl delete mutatingwebhookconfiguration mutating-webhook-configuration",
        ] {
            assert!(messages[0].contains(part), "{part}: {}", messages[0]);
        }
        assert!(warnings(&mutating, &json!({"metadata": {"name": "empty"}})).is_empty());
    }
}
