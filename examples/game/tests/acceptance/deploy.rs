//! The manifests: as they are checked in, applied to a cluster, and the operator under exactly what they
//! grant.

use std::path::Path;

use anyhow::{Context as _, Result};
use game::api::{Game, Phase};
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Namespace, Service};
use k8s_openapi::api::networking::v1::Ingress;
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::{Resource, ResourceExt as _};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use windlass_operator::manifests::{Install, Manifests};
use windlass_testenv::world::{Namespaced, Program, Scraper, install, rights};
use windlass_testenv::{Options, TestEnv, eventually, or_not_run};

use crate::world::{foreign_deployment, foreign_ingress, foreign_service, phase};

const HOME: &str = "mygame-system";

fn manifests() -> Result<Manifests> {
    let operator = game::operator();
    Ok(Manifests::of(&operator, &Install::of(&operator))?)
}

#[test]
fn the_manifests_that_are_checked_in_are_up_to_date() -> Result<()> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy");
    if let Err(mut stale) = manifests()?.check(&directory) {
        stale.refresh = "cargo run -p game -- manifests --out examples/game/deploy".to_owned();
        panic!("{stale}");
    }
    Ok(())
}

/// Applies the manifests as they are checked in to a private cluster. Then the program runs in place of the
/// operator's Pod, with its arguments and its account. The webhooks are unchanged except for their address:
/// no Service leads out of this control plane.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_manifests_apply_and_grant_exactly_what_the_program_needs() -> Result<()> {
    let env = or_not_run!(TestEnv::private(Options::private()).await);
    let client = env.client();
    for document in manifests()?.stream().split("---\n") {
        install::apply(&client, document).await?;
    }
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), HOME);
    let deployment = eventually("its two Pods to pass the restricted standard, and run", || async {
        let found = deployments.get("mygame").await.map_err(|error| error.to_string())?;
        let available = found.status.as_ref().and_then(|status| status.available_replicas);
        if available == Some(2) { Ok(found) } else { Err(format!("{:?}", found.status)) }
    })
    .await?;

    let args = json!(deployment.spec)["template"]["spec"]["containers"][0]["args"].clone();
    let args: Vec<String> = serde_json::from_value(args)?;
    let replaced = ["--log-format", "--metrics-bind-address", "--health-probe-bind-address"];
    let kept = |arg: &&str| !replaced.iter().any(|flag| arg.starts_with(flag));
    let ours = [
        "--webhook-bind-address=127.0.0.1:0",
        "--webhook-name=127.0.0.1",
        "--health-probe-bind-address=127.0.0.1:0",
    ];
    let args: Vec<&str> = args.iter().map(String::as_str).filter(kept).chain(ours).collect();
    let directory = tempfile::tempdir()?;
    let kubeconfig = directory.path().join("kubeconfig");
    std::fs::write(&kubeconfig, install::account_config(&env, HOME, "mygame").await?)?;
    let log = env.requests()?;
    let mark = log.mark()?;
    let program = Program::start(env!("CARGO_BIN_EXE_game"), &kubeconfig, &args, &[("POD_NAMESPACE", HOME)])?;
    program.controller_ready("mygame").await?;
    let webhooks = program.fact("webhooks")?;
    redirect::<MutatingWebhookConfiguration>(&client, webhooks, "mutate").await?;
    redirect::<ValidatingWebhookConfiguration>(&client, webhooks, "validate").await?;

    let arcade = serde_json::from_value(json!({"metadata": {"name": "arcade"}}))?;
    Api::<Namespace>::all(client.clone()).create(&PostParams::default(), &arcade).await?;
    let games: Api<Game> = Api::namespaced(client.clone(), "arcade");
    // A Fail policy refuses it until both webhooks are reached: then they have been asked.
    let web: Game = serde_json::from_value(json!({"metadata": {"name": "web"}, "spec": {}}))?;
    let web = eventually("the webhooks to be reached", || async {
        games.create(&PostParams::default(), &web).await.map_err(|error| error.to_string())
    })
    .await?;
    assert_eq!((&web.spec.image[..], &web.spec.host[..]), ("alexwhen/docker-2048", "web.arcade.mygame.io"));
    until_running(&games).await?;

    // What an earlier version of the operator left behind goes.
    let labels = json!({"windlass.dev/controller": "mygame", "windlass.dev/owner": web.uid()});
    let owner = web.controller_owner_ref(&()).context("no owner")?;
    leave_behind::<Deployment>(&client, foreign_deployment("old"), &labels, json!([owner])).await?;
    leave_behind::<Service>(&client, foreign_service("old"), &labels, json!([owner])).await?;
    leave_behind::<Ingress>(&client, foreign_ingress("old"), &labels, json!([owner])).await?;

    // An event is worth its right, too.
    let wrong = Patch::Merge(json!({"spec": {"host": "no host at all"}}));
    games.patch("web", &PatchParams::default(), &wrong).await?;
    eventually("the Game to fail", || async {
        let game = games.get("web").await.map_err(|error| error.to_string())?;
        if phase(&game) == Some(Phase::Failed) { Ok(()) } else { Err(format!("{:?}", game.status)) }
    })
    .await?;

    let lease = Api::<Lease>::namespaced(client.clone(), HOME).get("mygame").await?;
    assert!(lease.spec.unwrap().holder_identity.is_some_and(|holder| !holder.is_empty()), "it leads");
    let scraper = Scraper::new(&env, HOME, "mygame");
    let reader = scraper.account("prometheus").await?;
    scraper.grant("prometheus").await?;
    let (code, text) = scraper.scrape(program.fact("metrics")?, Some(&reader)).await?;
    assert_eq!(code, 200, "{text}");
    program.stop()?;

    let requests = log.since(mark)?.by_user(&format!("system:serviceaccount:{HOME}:mygame"));
    assert!(rights::missing(&requests).is_empty(), "a right is missing: {requests}");
    let unused = rights::unused(&manifests()?.stream(), &requests)?;
    assert!(unused.is_empty(), "{unused:?} is granted and was not used: {requests}");
    Ok(())
}

async fn until_running(games: &Api<Game>) -> Result<()> {
    let running = eventually("the Game to run", || async {
        let game = games.get("web").await.map_err(|error| error.to_string())?;
        if phase(&game) == Some(Phase::Running) { Ok(()) } else { Err(format!("{:?}", game.status)) }
    });
    Ok(running.await?)
}

/// Waits until the operator has put its authority into a configuration, and has it call the program directly.
async fn redirect<K>(client: &kube::Client, webhooks: &str, verb: &str) -> Result<()>
where
    K: Resource<DynamicType = ()> + Clone + Serialize + DeserializeOwned + std::fmt::Debug,
{
    let (api, name) = (Api::<K>::all(client.clone()), format!("mygame.{HOME}"));
    let mut found = eventually(format!("the authority in {}", K::kind(&())), || async {
        let found = api.get(&name).await.map_err(|error| error.to_string())?;
        let found = json!(found);
        let trusted = found["webhooks"][0]["clientConfig"]["caBundle"].is_string();
        if trusted { Ok(found) } else { Err(found.to_string()) }
    })
    .await?;
    let config: &mut Value = &mut found["webhooks"][0]["clientConfig"];
    let url = format!("{webhooks}/{verb}-myapp-qingwave-github-io-v1-game");
    *config = json!({"url": url, "caBundle": config["caBundle"]});
    api.replace(&name, &PostParams::default(), &serde_json::from_value(found)?).await?;
    Ok(())
}

/// Puts an object there that belongs to a Game and is in no plan, and waits until it is pruned.
async fn leave_behind<K: Namespaced>(
    client: &kube::Client,
    mut object: Value,
    labels: &Value,
    owners: Value,
) -> Result<()> {
    object["metadata"]["labels"] = labels.clone();
    object["metadata"]["ownerReferences"] = owners;
    let api: Api<K> = Api::namespaced(client.clone(), "arcade");
    let left = api.create(&PostParams::default(), &serde_json::from_value(object)?).await?;
    let gone = eventually(format!("the {} of old to be pruned", K::kind(&())), || async {
        match api.get_opt(&left.name_any()).await {
            Ok(None) => Ok(()),
            Ok(Some(found)) => Err(format!("{:?}", found.meta())),
            Err(error) => Err(error.to_string()),
        }
    });
    Ok(gone.await?)
}
