//! Installing custom resource definitions.

use std::time::Duration;

use crate::digest;
use crate::error::{Error, Result};
use crate::eventually::{eventually, within};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{Api, ObjectMeta, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt as _};

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
        until_it_can_own(client, definition, &version.name).await;
    }
    Ok(())
}

/// Admission learns of new kinds later than everybody else: until then it forbids, to anybody, children that would block the deletion
/// of such an owner. A cluster that does not check that, or does not let us try, is not waited for.
async fn until_it_can_own(client: &Client, definition: &CustomResourceDefinition, version: &str) {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let owner = OwnerReference {
        api_version: format!("{}/{version}", definition.spec.group),
        kind: definition.spec.names.kind.clone(),
        name: "nobody".to_owned(),
        uid: "00000000-0000-4000-8000-000000000000".to_owned(),
        block_owner_deletion: Some(true),
        controller: None,
    };
    let metadata = ObjectMeta {
        generate_name: Some("windlass-testenv-".to_owned()),
        owner_references: Some(vec![owner]),
        ..ObjectMeta::default()
    };
    let child = ConfigMap { metadata, ..ConfigMap::default() };
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    let known = within(Duration::from_secs(30), "admission to know the kind", || async {
        match maps.create(&dry_run, &child).await {
            Err(kube::Error::Api(status)) if status.code == 403 => Err(status.message.clone()),
            _ => Ok(()),
        }
    });
    let _ = known.await;
}
