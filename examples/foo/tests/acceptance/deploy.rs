//! The manifests: as they are checked in, applied to a cluster, and the operator under exactly what they
//! grant.

use std::path::Path;

use anyhow::Result;
use foo::api::{Foo, FooSpec};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::api::{Api, PostParams};
use serde_json::json;
use windlass_operator::manifests::{Install, Manifests};
use windlass_testenv::world::{Program, Scraper, install, rights};
use windlass_testenv::{Options, TestEnv, eventually, or_not_run};

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

/// The operator's Deployment, on a cluster of its own: everything as it is checked in.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_manifests_apply_and_grant_exactly_what_the_program_needs() -> Result<()> {
    let env = or_not_run!(TestEnv::private(Options::private()).await);
    let client = env.client();
    for document in manifests()?.stream().split("---\n") {
        install::apply(&client, document).await?;
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
    let replaced = ["--log-format", "--metrics-bind-address", "--health-probe-bind-address"];
    let kept = |arg: &&str| !replaced.iter().any(|flag| arg.starts_with(flag));
    let args = args.iter().map(String::as_str).filter(kept);
    let args: Vec<&str> = args.chain(["--health-probe-bind-address=127.0.0.1:0"]).collect();
    let directory = tempfile::tempdir()?;
    let kubeconfig = directory.path().join("kubeconfig");
    std::fs::write(&kubeconfig, install::account_config(&env, HOME, "sample-controller").await?)?;
    let log = env.requests()?;
    let mark = log.mark()?;
    let program = Program::start(env!("CARGO_BIN_EXE_foo"), &kubeconfig, &args, &[("POD_NAMESPACE", HOME)])?;
    program.controller_ready("foo").await?;

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

    let scraper = Scraper::new(&env, HOME, "sample-controller");
    let (reader, url) = (scraper.account("prometheus").await?, program.fact("metrics")?);
    scraper.grant("prometheus").await?;
    let (code, text) = scraper.scrape(url, Some(&reader)).await?;
    assert_eq!(code, 200, "{text}");
    // The right to change its certificate is used when the certificate is renewed, or was emptied.
    let secrets: Api<Secret> = Api::namespaced(client.clone(), HOME);
    let empty = kube::api::Patch::Merge(
        json!({"data": {"authorities.json": "", "ca.crt": "", "tls.crt": "", "tls.key": ""}}),
    );
    secrets.patch("sample-controller-metrics", &kube::api::PatchParams::default(), &empty).await?;
    eventually("the certificate of the metrics to be renewed", || async {
        let secret = secrets.get("sample-controller-metrics").await.map_err(|error| error.to_string())?;
        let filled = secret.data.iter().flatten().all(|(_, value)| !value.0.is_empty());
        if filled { Ok(()) } else { Err("it is empty".to_owned()) }
    })
    .await?;
    program.stop()?;

    let requests = log.since(mark)?.by_user(&format!("system:serviceaccount:{HOME}:sample-controller"));
    assert!(rights::missing(&requests).is_empty(), "a right is missing: {requests}");
    assert!(requests.resource("leases").verb("patch").count() > 0, "{requests}");
    let unused = rights::unused(&manifests()?.stream(), &requests)?;
    assert!(unused.is_empty(), "{unused:?} is granted and was not used: {requests}");
    Ok(())
}
