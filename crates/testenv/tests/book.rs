//! The code of the book's page on testing, so that it is compiled and run.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;
use windlass_testenv::proxy::{Action, Fault, Match, RequestVerb};
use windlass_testenv::{Rules, TestEnv, or_not_run, rule};

mod my_operator {
    use k8s_openapi::api::apps::v1::Deployment;
    use kube::api::{Api, Patch, PatchParams};
    use serde_json::json;

    /// Applies a Deployment, as a small operator does once.
    pub(crate) async fn run_once(client: kube::Client, namespace: &str) -> Result<(), kube::Error> {
        let labels = json!({"app": "mine"});
        let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "mine"}, "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "mine:1"}]}}}});
        let deployments: Api<Deployment> = Api::namespaced(client, namespace);
        deployments.patch("mine", &PatchParams::apply("my-operator"), &Patch::Apply(deployment)).await?;
        Ok(())
    }
}

#[tokio::test]
async fn my_operator_creates_a_deployment() -> anyhow::Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let namespace = env.namespace("my-test").await?; // gone when dropped
    let rights = Rules::default().in_namespace(rule("apps", &["deployments"], &["patch", "create"]));
    let user = namespace.client_for("my-operator", &rights).await?; // exactly these rights

    let log = env.requests()?;
    let mark = log.mark()?;
    my_operator::run_once(user.client()?, namespace.name()).await?;

    let writes = log.since(mark)?.by_user(user.name()).writes();
    assert_eq!(writes.count(), 1, "{writes}"); // counted by the API server, not by us
    Ok(())
}

#[tokio::test]
async fn a_fault_is_a_value() -> anyhow::Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let namespace = env.namespace("my-fault").await?;
    let user = namespace.client_for("my-operator", &Rules::everything()).await?;
    let proxy = env.fault_proxy().await?;
    let maps: Api<ConfigMap> = Api::namespaced(user.client_through(&proxy.url())?, namespace.name());

    let second = Fault::on(Match::verb(RequestVerb::Apply).resource("configmaps")).nth(2);
    let lost = proxy.add(second.then(Action::DropAfter));

    let apply = async |value: &str| {
        let map =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"k": value}});
        maps.patch("m", &PatchParams::apply("me"), &Patch::Apply(map)).await
    };
    apply("one").await?;
    assert!(apply("two").await.is_err(), "the answer is lost");
    lost.wait_for_hits(1).await?;
    let stored = namespace.api::<ConfigMap>().get("m").await?;
    assert_eq!(
        stored.data.and_then(|data| data.get("k").cloned()).as_deref(),
        Some("two"),
        "but it was done"
    );
    Ok(())
}
