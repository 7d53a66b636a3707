//! Webhooks that the first operator of these kinds has left behind.
//!
//! They fail closed. Once it is stopped, nobody answers, and the API server refuses what they were asked about: every Pod in namespaces
//! that had its images rewritten, and every change of a Harbor. They are not ours to delete, so the leader says which they are, and
//! what to do, in its log. Where the operator may look at single namespaces only, it cannot see them, and says nothing.

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use serde_json::Value;
use windlass_operator::{BoxError, Setup};
use windlass_runtime::access::{Access, Verb};
use windlass_runtime::cache::Selection;
use windlass_runtime::client::{Client, ClientError};
use windlass_runtime::manager::{Context, Part, Stage};
use windlass_runtime::resource::ResourceType;

/// What it called them.
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

/// What to say of each that is there.
///
/// # Errors
/// The API server does not tell.
pub async fn left_over(client: &Client) -> Result<Vec<String>, ClientError> {
    let mut said = Vec::new();
    for kind in kinds() {
        let all = client.objects_of::<Value>(kind.clone()).list(&Selection::all()).await?;
        said.extend(all.iter().flat_map(|configuration| warnings(&kind, configuration)));
    }
    Ok(said)
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
        "the API server refuses to change what it was asked about"
    };
    format!(
        "{} {configuration} has the webhook {}, of the operator that this one succeeds: since Service {}/{} does not answer any more, {refused}. \
         Delete it: kubectl delete {} {configuration}",
        kind.kind,
        text(&hook["name"]),
        text(&service["namespace"]),
        text(&service["name"]),
        kind.kind.to_lowercase(),
    )
}

/// Has the leader look once, when it starts.
///
/// # Errors
/// Two parts of one name.
pub fn watchman(setup: &mut Setup<'_>) -> Result<(), BoxError> {
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
                Ok(all) => all.iter().for_each(|said| tracing::warn!("{said}")),
                Err(error) => tracing::debug!(%error, "webhooks of others could not be looked for"),
            }
            Ok::<(), BoxError>(())
        }
    };
    Ok(setup.add(Stage::Controllers, Part::new("takeover", look))?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_webhooks_of_the_first_operator_are_named_with_the_remedy() {
        let [mutating, _] = kinds();
        let service = json!({"service": {"namespace": "harbor-operator-ns", "name": "webhook-service"}});
        let configuration = json!({"metadata": {"name": "mutating-webhook-configuration"}, "webhooks": [
            {"name": "mimg.kb.io", "failurePolicy": "Fail", "clientConfig": service},
            {"name": "other.example.com", "clientConfig": {"url": "https://a"}},
        ]});
        let said = warnings(&mutating, &configuration);
        assert_eq!(said.len(), 1, "{said:?}");
        for part in [
            "mimg.kb.io",
            "Service harbor-operator-ns/webhook-service",
            "no Pod can be created",
            "kubectl delete mutatingwebhookconfiguration mutating-webhook-configuration",
        ] {
            assert!(said[0].contains(part), "{part}: {}", said[0]);
        }
        assert!(warnings(&mutating, &json!({"metadata": {"name": "empty"}})).is_empty());
    }
}
