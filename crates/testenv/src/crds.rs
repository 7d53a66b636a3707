//! Installing custom resource definitions.

use std::time::Duration;

use crate::digest;
use crate::error::{Error, Result};
use crate::eventually::{eventually, within};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, Patch, PatchParams};
use kube::{Client, ResourceExt as _};
use serde_json::json;

/// Carries the digest of what was installed, to notice another content.
const DIGEST: &str = "testenv.windlass.dev/digest";

pub(crate) async fn install(
    client: &Client,
    definitions: &[CustomResourceDefinition],
    may_replace: bool,
) -> Result<()> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    for definition in definitions {
        let name = definition.name_any();
        let mut desired = definition.clone();
        let digest = digest_of(definition)?;
        if !may_replace {
            let live = api.get_opt(&name).await.map_err(Error::api(format!("reading definition {name}")))?;
            if live.is_some_and(|live| live.annotations().get(DIGEST) != Some(&digest)) {
                return Err(Error::CrdDiffers { name });
            }
        }
        desired.annotations_mut().insert(DIGEST.to_owned(), digest);
        api.patch(&name, &PatchParams::apply("windlass-testenv").force(), &Patch::Apply(&desired))
            .await
            .map_err(Error::api(format!("installing definition {name}")))?;
    }
    for definition in definitions {
        until_served(client, &api, definition).await?;
    }
    Ok(())
}

fn digest_of(definition: &CustomResourceDefinition) -> Result<String> {
    let text = serde_json::to_vec(definition).map_err(|error| Error::Api {
        action: "encoding a definition".to_owned(),
        message: error.to_string(),
    })?;
    Ok(digest::short([text.as_slice()], 8))
}

/// Established is not enough: for a moment after it the API still answers 404.
async fn until_served(
    client: &Client,
    api: &Api<CustomResourceDefinition>,
    definition: &CustomResourceDefinition,
) -> Result<()> {
    let name = definition.name_any();
    eventually(format!("definition {name} to be established"), || async {
        let live = api.get(&name).await.map_err(|error| error.to_string())?;
        let conditions = live.status.and_then(|status| status.conditions).unwrap_or_default();
        match conditions.iter().find(|condition| condition.type_ == "Established") {
            Some(condition) if condition.status == "True" => Ok(()),
            _ => Err(conditions
                .iter()
                .map(|c| format!("{}={} ({})", c.type_, c.status, c.message.as_deref().unwrap_or_default()))
                .collect::<Vec<_>>()
                .join(", ")),
        }
    })
    .await?;
    for version in definition.spec.versions.iter().filter(|version| version.served) {
        let path =
            format!("/apis/{}/{}/{}", definition.spec.group, version.name, definition.spec.names.plural);
        eventually(format!("{path} to be served"), || async {
            let request = http::Request::get(format!("{path}?limit=1"))
                .body(Vec::new())
                .map_err(|error| error.to_string())?;
            match client.request_text(request).await {
                Ok(_) => Ok(()),
                // It answers, if only that it is broken: a conversion webhook is not our affair.
                Err(kube::Error::Api(status)) if status.code != 404 => Ok(()),
                Err(error) => Err(error.to_string()),
            }
        })
        .await?;
    }
    Ok(())
}

/// A user of every cluster that may create ServiceAccounts and may not update any finalizers. The admission
/// check is skipped for users that may update all of them, such as administrators.
const CHECKED_USER: &str = "system:kube-controller-manager";

/// Admission learns of new kinds up to half a minute later than the rest of the server: until then it forbids
/// children that would block the deletion of such an owner, whatever the rights are. Waits for the end of
/// that, so that whatever is forbidden later is a right that is missing. A cluster that does not check that,
/// or does not let us try, is not waited for.
pub(crate) async fn until_they_can_own(client: &Client, definitions: &[CustomResourceDefinition]) {
    for definition in definitions {
        for version in definition.spec.versions.iter().filter(|version| version.served) {
            until_it_can_own(client, definition, &version.name).await;
        }
    }
}

async fn until_it_can_own(client: &Client, definition: &CustomResourceDefinition, version: &str) {
    let child = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {
        "generateName": "windlass-testenv-",
        "ownerReferences": [{
            "apiVersion": format!("{}/{version}", definition.spec.group),
            "kind": definition.spec.names.kind,
            "name": "nobody",
            "uid": "00000000-0000-4000-8000-000000000000",
            "blockOwnerDeletion": true,
        }],
    }});
    let known = within(Duration::from_mins(1), "admission to know the kind", || async {
        let request = http::Request::post("/api/v1/namespaces/default/serviceaccounts?dryRun=All")
            .header("Impersonate-User", CHECKED_USER)
            .header(http::header::CONTENT_TYPE, "application/json")
            .body(child.to_string().into_bytes())
            .map_err(|error| error.to_string())?;
        match client.request_text(request).await {
            Err(kube::Error::Api(status)) if status.message.contains("cannot find RESTMapping") => {
                Err(status.message.clone())
            }
            _ => Ok(()),
        }
    });
    let _ = known.await;
}
