//! The manifests: as they are checked in, applied to a cluster, and the operator under exactly what they grant.

use std::path::Path;

use anyhow::{Context as _, Result};
use foo::api::{Foo, FooSpec};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::api::{Api, PostParams};
use serde_json::{Value, json};
use windlass_operator::manifests::{Install, Manifests};
use windlass_testenv::{Options, TestEnv, eventually, or_not_run};

use crate::program::Program;

const HOME: &str = "sample-controller-system";

fn manifests() -> Result<Manifests> {
    let operator = foo::operator();
    Ok(Manifests::of(&operator, &Install::of(&operator))?)
}

#[test]
fn the_manifests_that_are_checked_in_are_up_to_date() -> Result<()> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy");
    if let Err(mut stale) = manifests()?.check(&directory) {
        stale.refresh = "cargo run -p foo -- manifests --out examples/foo/deploy".to_owned();
        panic!("{stale}");
    }
    Ok(())
}

/// Applies a document as it is written, so that the server's own reader of YAML has a say too.
async fn apply(client: &kube::Client, text: &str) -> Result<Value> {
    let object: Value = serde_saphyr::from_str(text)?;
    let (api_version, kind) = (object["apiVersion"].as_str().unwrap(), object["kind"].as_str().unwrap());
    let root = if api_version == "v1" { "api".to_owned() } else { "apis".to_owned() };
    let plural = format!("{}s", kind.to_lowercase());
    let place = object["metadata"]["namespace"]
        .as_str()
        .map(|name| format!("namespaces/{name}/"))
        .unwrap_or_default();
    let name = object["metadata"]["name"].as_str().context("no name")?;
    let path = format!(
        "/{root}/{api_version}/{place}{plural}/{name}?fieldManager=user&force=true&fieldValidation=Strict"
    );
    let request = http::Request::patch(&path)
        .header("content-type", "application/apply-patch+yaml")
        .body(text.as_bytes().to_vec())?;
    client.request(request).await.with_context(|| format!("{path}\n{text}"))
}

/// The operator's Deployment, on a cluster of its own: everything as it is checked in.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_manifests_apply_and_grant_exactly_what_the_program_needs() -> Result<()> {
    let env = or_not_run!(TestEnv::private(Options::private()).await);
    let client = env.client();
    for document in manifests()?.stream().split("---\n") {
        apply(&client, document).await?;
    }
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), HOME);
    let deployment = eventually("its Pod to pass the restricted standard, and run", || async {
        let found = deployments.get("sample-controller").await.map_err(|error| error.to_string())?;
        let available = found.status.as_ref().and_then(|status| status.available_replicas);
        if available == Some(1) { Ok(found) } else { Err(format!("{:?}", found.status)) }
    })
    .await?;

    eventually("those who may view to view Foos too", || async {
        let view =
            Api::<ClusterRole>::all(client.clone()).get("view").await.map_err(|error| error.to_string())?;
        let resources = view.rules.iter().flatten().flat_map(|rule| rule.resources.iter().flatten());
        resources.filter(|resource| *resource == "foos").map(drop).next().ok_or("not yet".to_owned())
    })
    .await?;

    // Its Pod is only played: we are its Pod now, with its arguments and its account.
    let container = &deployment.spec.unwrap().template.spec.unwrap().containers[0];
    let args = container.args.clone().unwrap_or_default();
    let ours = |arg: &&String| !arg.starts_with("--log-format") && !arg.starts_with("--metrics-bind-address");
    let args: Vec<&str> = args.iter().filter(ours).map(String::as_str).collect();
    let directory = tempfile::tempdir()?;
    let kubeconfig = directory.path().join("kubeconfig");
    std::fs::write(&kubeconfig, account_config(&env, HOME, "sample-controller").await?)?;
    let log = env.requests()?;
    let mark = log.mark()?;
    let program = Program::start(&kubeconfig, &args, &[("POD_NAMESPACE", HOME)])?;
    program.ready().await?;

    let shop = serde_json::from_value(json!({"metadata": {"name": "shop"}}))?;
    Api::<Namespace>::all(client.clone()).create(&PostParams::default(), &shop).await?;
    let foos: Api<Foo> = Api::namespaced(client.clone(), "shop");
    let wanted = Foo::new("web", FooSpec { deployment_name: "web".into(), replicas: Some(2) });
    foos.create(&PostParams::default(), &wanted).await?;
    eventually("the Foo to be available", || async {
        let foo = foos.get("web").await.map_err(|error| error.to_string())?;
        let status = foo.status.map(|status| status.available_replicas);
        if status == Some(2) { Ok(()) } else { Err(format!("{status:?}")) }
    })
    .await?;
    let rename = json!({"spec": {"deploymentName": "other"}});
    foos.patch("web", &kube::api::PatchParams::default(), &kube::api::Patch::Merge(rename)).await?;
    let children: Api<Deployment> = Api::namespaced(client.clone(), "shop");
    eventually("the old Deployment to be deleted", || async {
        let old = children.get_opt("web").await.map_err(|error| error.to_string())?;
        if old.is_none() { Ok(()) } else { Err("it is there".to_owned()) }
    })
    .await?;
    let lease = Api::<Lease>::namespaced(client.clone(), HOME).get("sample-controller").await?;
    assert!(lease.spec.unwrap().holder_identity.is_some_and(|holder| !holder.is_empty()), "it leads");
    program.stop()?;

    let requests = log.since(mark)?.by_user(&format!("system:serviceaccount:{HOME}:sample-controller"));
    assert!(requests.code(403).is_empty(), "a right is missing: {requests}");
    assert!(requests.resource("leases").verb("patch").count() > 0, "{requests}");
    unused_rights(&requests)
}

/// Every right that is granted was used, watches and their lists aside: they come as three, whichever of them the server takes.
fn unused_rights(requests: &windlass_testenv::Requests) -> Result<()> {
    let text = manifests()?.stream();
    let objects: Vec<Value> = serde_saphyr::from_multiple(&text)?;
    let for_users = |object: &Value| {
        object["metadata"]["labels"]["rbac.authorization.k8s.io/aggregate-to-edit"].is_string()
    };
    let ours = |object: &&Value| !for_users(object);
    for rule in objects.iter().filter(ours).filter_map(|object| object["rules"].as_array()).flatten() {
        for resource in rule["resources"].as_array().unwrap() {
            let resource = resource.as_str().unwrap();
            // Checked by the admission of blockOwnerDeletion, which asks for nothing in the audit log.
            if resource.ends_with("/finalizers") {
                continue;
            }
            for verb in rule["verbs"].as_array().unwrap().iter().filter_map(Value::as_str) {
                let used = requests.iter().any(|request| {
                    let slash = if request.subresource.is_empty() { "" } else { "/" };
                    let asked = format!("{}{slash}{}", request.resource, request.subresource);
                    // An apply that creates is a patch that needs `create` as well.
                    asked == resource && (request.verb == verb || (verb == "create" && request.code == 201))
                });
                let of_a_watch = matches!(verb, "get" | "list" | "watch");
                // A series of events is counted up only after a pause.
                let rare = resource == "events" && verb == "patch";
                assert!(
                    used || of_a_watch || rare,
                    "{verb} of {resource} is granted and was not used: {requests}"
                );
            }
        }
    }
    Ok(())
}

/// A kubeconfig with a token of this account.
async fn account_config(env: &TestEnv, namespace: &str, account: &str) -> Result<String> {
    let request = TokenRequest {
        spec: Some(TokenRequestSpec { expiration_seconds: Some(3600), ..TokenRequestSpec::default() }),
        ..TokenRequest::default()
    };
    let accounts: Api<ServiceAccount> = Api::namespaced(env.client(), namespace);
    let answer = accounts.create_token_request(account, &PostParams::default(), &request).await?;
    let token = answer.status.map(|status| status.token).context("no token")?;
    let facts = env.facts("a certificate authority")?;
    Ok(json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "account",
        "clusters": [{"name": "c", "cluster": {"server": facts.server, "certificate-authority": facts.pki.join("ca.crt")}}],
        "users": [{"name": "u", "user": {"token": token}}],
        "contexts": [{"name": "account", "context": {"cluster": "c", "user": "u"}}],
    })
    .to_string())
}
