//! The safety contract of plans, and the behaviour of the server that it relies on.
#![allow(clippy::unwrap_used, clippy::panic)] // a test fails by panicking

use crate::kit;

use anyhow::Result;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use windlass::PlanController;
use windlass::names::{ask, label};
use windlass_testenv::proxy::{Action, Fault, Match, RequestVerb};
use windlass_testenv::{TestEnv, eventually, or_not_run};

use kit::bundle::{Bundle, BundleSpec, Bundles, Item, one_by_one};
use kit::shop::{Shop, Shops, password, shop};
use kit::{Corner, Operator};

fn map(name: &str, data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}

async fn apply(api: &Api<DynamicObject>, manager: &str, force: bool, object: &Value) -> kube::Result<Value> {
    let params = PatchParams { force, ..PatchParams::apply(manager) };
    let name = object["metadata"]["name"].as_str().unwrap();
    api.patch(name, &params, &Patch::Apply(object)).await.map(|object| serde_json::to_value(object).unwrap())
}

/// Returns code and number of causes of a refusal.
fn refusal(result: kube::Result<Value>) -> (u16, usize) {
    match result {
        Err(kube::Error::Api(status)) => {
            (status.code, status.details.as_ref().map_or(0, |details| details.causes.len()))
        }
        other => panic!("{other:?}"),
    }
}

fn entry(object: &Value, manager: &str) -> Value {
    let entries = object["metadata"]["managedFields"].as_array().unwrap();
    let of = |entry: &&Value| entry["manager"] == manager && entry["operation"] == "Apply";
    entries.iter().find(of).map_or(Value::Null, |entry| entry["fieldsV1"].clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_behaves_as_the_safety_contract_requires() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "facts").await?;
    let maps = corner.objects("v1", "ConfigMap");
    let with = |mut object: Value, field: &str, value: &str| {
        object["metadata"][field] = value.into();
        object
    };
    let wanted = map("a", &json!({"k": "v", "empty": ""}));
    let created = apply(&maps, "us", true, &with(wanted.clone(), "resourceVersion", "1")).await?;
    assert_eq!(created["data"]["k"], "v", "a version that nothing has creates");
    let again = with(wanted.clone(), "resourceVersion", "1");
    assert_eq!(refusal(apply(&maps, "us", true, &again).await), (409, 0), "and never merges");
    let gone = with(map("gone", &json!({})), "uid", "0b8d1c1e-9b1f-4f0e-8a63-7a5d1f0c2e9d");
    assert_eq!(
        refusal(apply(&maps, "us", true, &gone).await),
        (409, 0),
        "a uid that is gone creates nothing"
    );
    let stranger = with(wanted.clone(), "uid", "0b8d1c1e-9b1f-4f0e-8a63-7a5d1f0c2e9d");
    match apply(&maps, "us", true, &stranger).await {
        Err(kube::Error::Api(status)) => {
            let fields: Vec<_> = status.details.iter().flat_map(|details| &details.causes).collect();
            assert_eq!(status.code, 422, "{status:?}");
            assert!(fields.iter().all(|cause| cause.field == "metadata.uid"), "{status:?}");
        }
        other => panic!("another incarnation was written: {other:?}"),
    }
    let other = map("a", &json!({"k": "theirs"}));
    assert_eq!(refusal(apply(&maps, "them", false, &other).await), (409, 1), "a field conflict has causes");

    let same = apply(&maps, "us", true, &wanted).await?;
    let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
    assert_eq!(version(&same), version(&created), "a re-apply that changes nothing changes no version");
    let beside = Patch::Merge(json!({"data": {"theirs": "x"}}));
    maps.patch("a", &PatchParams::default(), &beside).await?;
    let ours = json!({"f:data": {"f:empty": {}, "f:k": {}}});
    assert_eq!(entry(&serde_json::to_value(maps.get("a").await?)?, "us"), ours, "what others add is theirs");
    maps.patch("a", &PatchParams::default(), &Patch::Merge(json!({"data": {"k": "x"}}))).await?;
    let after = serde_json::to_value(maps.get("a").await?)?;
    assert_eq!(
        entry(&after, "us"),
        json!({"f:data": {"f:empty": {}}}),
        "what others change leaves our entry"
    );

    let services = corner.objects("v1", "Service");
    let zeros = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "z"},
        "spec": {"publishNotReadyAddresses": false, "externalIPs": [], "ports": [{"port": 80}]}});
    let stored = apply(&services, "us", true, &zeros).await?;
    assert!(stored["spec"].get("publishNotReadyAddresses").is_none(), "a zero value is dropped");
    let fields = entry(&stored, "us");
    assert!(fields["f:spec"].get("f:publishNotReadyAddresses").is_some(), "but stays in our entry: {fields}");
    assert!(fields["f:spec"].get("f:externalIPs").is_some(), "{fields}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_foreign_object_is_not_changed_and_its_deletion_is_noticed() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "foreign").await?;
    let maps = corner.objects("v1", "ConfigMap");
    let theirs = serde_json::from_value(map("a", &json!({"theirs": "x"})))?;
    maps.create(&PostParams::default(), &theirs).await?;
    let operator = corner.operate(one_by_one(Bundles::default())).await?;
    corner.bundle("one", vec![Item::of(map("a", &json!({"ours": "y"})))]).await?;
    let (reason, message) = corner.until_message::<Bundle>("one", "Ready", "False", "ConfigMap a").await?;
    assert_eq!(reason, "Collision");
    assert!(message.contains("windlass.dev/adopt=Bundle/one"), "the remedy: {message}");
    corner.nudge("one").await?;
    assert_eq!(maps.get("a").await?.data["data"], json!({"theirs": "x"}), "disjoint keys are no invitation");

    maps.delete("a", &DeleteParams::default()).await?;
    corner.until::<Bundle>("one", "Ready", "True").await?;
    assert_eq!(maps.get("a").await?.data["data"], json!({"ours": "y"}));
    operator.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_was_replaced_between_our_read_and_our_write_is_not_overwritten() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "replaced").await?;
    let proxy = corner.env.fault_proxy().await?;
    let config = corner.user.config_through(&proxy.url())?;
    let operator = Operator::with(config, corner.namespace.name(), one_by_one(Bundles::default()))?;
    operator.ready().await?;
    corner.bundle("one", vec![Item::of(map("a", &json!({"ours": "1"})))]).await?;
    corner.until::<Bundle>("one", "Ready", "True").await?;

    let patches = Match::verb(RequestVerb::Apply).resource("configmaps").name("a");
    let held = proxy.add(Fault::on(patches).first().then(Action::Hold));
    let items = vec![Item::of(map("a", &json!({"ours": "2"})))];
    corner.respec("one", &BundleSpec { items, ..BundleSpec::default() }).await?;
    held.wait_for_hits(1).await?;
    let maps = corner.objects("v1", "ConfigMap");
    maps.delete("a", &DeleteParams::default()).await?;
    maps.create(&PostParams::default(), &serde_json::from_value(map("a", &json!({"theirs": "x"})))?).await?;
    held.release();
    corner.until_message::<Bundle>("one", "Ready", "False", "is not ours").await?;
    assert_eq!(maps.get("a").await?.data["data"], json!({"theirs": "x"}));
    operator.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_deleted_with_its_owner_is_not_created_again_if_the_watch_of_owners_is_late() -> Result<()>
{
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "going").await?;
    let proxy = corner.env.fault_proxy().await?;
    let config = corner.user.config_through(&proxy.url())?;
    let operator = Operator::with(config, corner.namespace.name(), one_by_one(Bundles::default()))?;
    operator.ready().await?;
    corner.bundle("one", vec![Item::of(map("a", &json!({"k": "v"})))]).await?;
    corner.until::<Bundle>("one", "Ready", "True").await?;

    let late = proxy.freeze_watches(&Match::watches().resource("bundles"));
    let mark = corner.mark()?;
    corner.delete("Bundle", "one").await?;
    corner.gone("ConfigMap", "a").await?;
    // The operator has seen that its object is gone, and asks the server for the owner before it creates the
    // object again.
    proxy.wait_for_request(&Match::verb(RequestVerb::Get).resource("bundles").name("one")).await?;
    drop(late);
    // The same watch delivers another owner: when that is ready, the deletion of the first has been seen.
    corner.bundle("two", vec![Item::of(map("b", &json!({"k": "v"})))]).await?;
    corner.until::<Bundle>("two", "Ready", "True").await?;
    assert_eq!(corner.object_writes(mark)?, ["patch configmaps b"]);
    assert!(corner.objects("v1", "ConfigMap").get_opt("a").await?.is_none());
    operator.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_complete_plan_prunes_and_more_than_half_of_the_objects_only_if_explained() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "prune").await?;
    let names = ["a", "b", "c"];
    let item = |name: &&str| Item::of(map(name, &json!({"k": "v"})));
    let spec = BundleSpec { items: names.iter().map(item).collect(), ..BundleSpec::default() };
    let operator = corner.operate(one_by_one(Bundles::default())).await?;
    corner.bundle("one", spec.items.clone()).await?;
    corner.until::<Bundle>("one", "Ready", "True").await?;
    let deletes = |mark| -> Result<Vec<String>> {
        Ok(corner.object_writes(mark)?.into_iter().filter(|write| write.starts_with("delete")).collect())
    };

    let mark = corner.mark()?;
    corner.respec("one", &BundleSpec { broken: true, items: vec![], ..spec.clone() }).await?;
    assert_eq!(corner.until::<Bundle>("one", "Failed", "True").await?.0, "DrawFailed");
    let secrets = vec!["missing".to_owned()];
    corner.respec("one", &BundleSpec { items: vec![], secrets, ..spec.clone() }).await?;
    let (reason, _) = corner.until_message::<Bundle>("one", "Ready", "False", "Secret missing").await?;
    assert_eq!(reason, "InputMissing");
    assert_eq!(deletes(mark)?, Vec::<String>::new(), "neither without a draw nor without an input");
    corner.respec("one", &spec).await?;
    corner.until::<Bundle>("one", "Ready", "True").await?;
    operator.stop().await?;

    // A release of the operator that leaves out two of three items.
    let forgetful = Bundles { most: Some(1), ..Bundles::default() };
    let operator = corner.operate(one_by_one(forgetful)).await?;
    let (reason, message) = corner.until::<Bundle>("one", "Degraded", "True").await?;
    assert_eq!(reason, "PruneHeldBack");
    corner.nudge("one").await?;
    assert_eq!(deletes(mark)?, Vec::<String>::new(), "{message}");
    let (annotation, generation) = message.rsplit_once(' ').unwrap().1.split_once('=').unwrap();
    assert_eq!(annotation, ask::ALLOW_PRUNE);
    corner.ask("one", annotation, generation).await?;
    eventually("both are gone", || async {
        let gone = deletes(mark).map_err(|error| error.to_string())?;
        if gone == ["delete configmaps b", "delete configmaps c"]
            || gone == ["delete configmaps c", "delete configmaps b"]
        {
            Ok(())
        } else {
            Err(format!("{gone:?}"))
        }
    })
    .await?;
    operator.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_of_the_predecessors_of_an_adopted_object_are_removed_with_the_plan() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "adopt").await?;
    let maps = corner.objects("v1", "ConfigMap");
    let theirs = json!({"old": "x", "k": "theirs"});
    let former = PostParams { field_manager: Some("former".into()), ..PostParams::default() };
    for name in ["posted", "updated", "before"] {
        maps.create(&former, &serde_json::from_value(map(name, &theirs))?).await?;
    }
    let params = PatchParams { field_manager: Some("somebody".into()), ..PatchParams::default() };
    maps.patch("updated", &params, &Patch::Merge(json!({"data": {"older": "y"}}))).await?;
    // Fields from before managed fields existed: with the first apply the server assigns them to a manager.
    let cleared = Patch::Merge(json!({"metadata": {"managedFields": [{}]}}));
    maps.patch("before", &PatchParams::default(), &cleared).await?;
    let first = apply(&maps, "gitops", true, &map("before", &json!({"gitops": "z"}))).await?;
    assert!(first.to_string().contains("before-first-apply"), "{first}");

    let bundles = Bundles { former: Some("former"), ..Bundles::default() };
    let operator = corner.operate(one_by_one(bundles)).await?;
    let items = ["posted", "updated", "before"].map(|name| Item::of(map(name, &json!({"k": "ours"}))));
    corner.bundle("one", items.to_vec()).await?;
    corner.until_message::<Bundle>("one", "Ready", "False", "is not ours").await?;
    for name in ["posted", "updated", "before"] {
        let consent = Patch::Merge(json!({"metadata": {"annotations": {ask::ADOPT: "Bundle/one"}}}));
        maps.patch(name, &params, &consent).await?;
    }
    corner.until::<Bundle>("one", "Ready", "True").await?;
    for (name, data) in [
        ("posted", json!({"k": "ours"})),
        ("updated", json!({"k": "ours", "older": "y"})),
        ("before", json!({"k": "ours", "gitops": "z"})),
    ] {
        assert_eq!(maps.get(name).await?.data["data"], data, "{name}");
    }
    operator.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_immutable_field_follows_its_policy() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "immutable").await?;
    let operator = corner.operate(one_by_one(Bundles::default())).await?;
    let workload = |kind: &str, name: &str, app: &str, extra: &Value| {
        let mut object = json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": {"replicas": 1,
            "selector": {"matchLabels": {"set": name}}, "template": {"metadata": {"labels": {"set": name, "app": app}},
            "spec": {"containers": [{"name": "main", "image": "x:1"}]}}}});
        object["spec"].as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        Item::of(object)
    };
    let binding = |role: &str| {
        Item::of(
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "rights"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role},
            "subjects": [{"kind": "ServiceAccount", "name": "default"}]}),
        )
    };
    let spec = |selector: &str, service: &str, role: &str| {
        let selector = json!({"selector": {"matchLabels": {"set": "web", "app": selector}}});
        let items = vec![
            workload("StatefulSet", "db", "db", &json!({"serviceName": service})).recreate(),
            binding(role),
            workload(
                "Deployment",
                "web",
                selector["selector"]["matchLabels"]["app"].as_str().unwrap(),
                &selector,
            ),
        ];
        BundleSpec { items, ..BundleSpec::default() }
    };
    corner.bundle("one", spec("web", "one", "one").items).await?;
    corner.until::<Bundle>("one", "Ready", "True").await?;
    let pods = corner.namespace.api::<k8s_openapi::api::core::v1::Pod>();
    let pod = pods.get("db-0").await?.metadata.uid;
    let mark = corner.mark()?;
    corner.respec("one", &spec("other", "two", "two")).await?;
    let (reason, message) = corner.until_message::<Bundle>("one", "Ready", "False", "spec.selector").await?;
    assert_eq!(reason, "Immutable", "{message}");
    corner
        .until_object("apps/v1", "StatefulSet", "db", |set| {
            set["spec"]["serviceName"] == "two" && set["metadata"]["deletionTimestamp"].is_null()
        })
        .await?;
    corner
        .until_object("rbac.authorization.k8s.io/v1", "RoleBinding", "rights", |rights| {
            rights["roleRef"]["name"] == "two"
        })
        .await?;
    assert_eq!(pods.get("db-0").await?.metadata.uid, pod, "the pod was left in place");
    for _ in 0..2 {
        corner.nudge("one").await?;
    }
    assert_eq!(corner.writes_of(mark, "deployments web")?.len(), 1, "no storm of refusals");

    corner.objects("apps/v1", "Deployment").delete("web", &DeleteParams::background()).await?;
    corner.until::<Bundle>("one", "Ready", "True").await?;
    operator.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reported_conflict_names_the_manager_and_the_field() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "conflict").await?;
    let operator = corner.operate(one_by_one(Bundles::default())).await?;
    corner.bundle("one", vec![Item::of(map("a", &json!({"k": "1"}))).report_conflicts()]).await?;
    corner.until::<Bundle>("one", "Ready", "True").await?;
    let maps = corner.objects("v1", "ConfigMap");
    let params = PatchParams { field_manager: Some("somebody".into()), ..PatchParams::default() };
    maps.patch("a", &params, &Patch::Merge(json!({"data": {"k": "theirs"}}))).await?;
    let (reason, message) = corner.until_message::<Bundle>("one", "Ready", "False", "somebody").await?;
    assert_eq!(reason, "FieldConflict");
    assert!(message.contains(".data.k"), "{message}");
    assert_eq!(maps.get("a").await?.data["data"], json!({"k": "theirs"}));
    operator.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_generated_object_is_never_changed_and_generated_again_only_on_request() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "generated").await?;
    let secrets = corner.namespace.api::<Secret>();
    let controller = |shops: &Shops| PlanController::of(shops.clone()).workers(1);
    let shops = Shops::default();
    let operator = corner.operate(controller(&shops)).await?;
    secrets.create(&PostParams::default(), &password("one")).await?;
    corner.namespace.api::<Shop>().create(&PostParams::default(), &shop("one", "shop:1")).await?;
    corner.until::<Shop>("one", "Ready", "True").await?;
    let first = secrets.get("one-key").await?.data.unwrap();
    operator.stop().await?;
    let operator = corner.operate(controller(&shops)).await?;

    let strip = |label: &str| Patch::Merge(json!({"metadata": {"labels": {label: null}}}));
    for lost in [label::CONTROLLER, label::OWNER] {
        secrets.patch("one-key", &PatchParams::default(), &strip(lost)).await?;
        let labelled = corner
            .until_object("v1", "Secret", "one-key", |secret| !secret["metadata"]["labels"][lost].is_null())
            .await?;
        assert_eq!(labelled["data"], serde_json::to_value(&first)?, "its content is as it was");
    }

    secrets.delete("one-key", &DeleteParams::default()).await?;
    let (reason, message) = corner.until_message::<Shop>("one", "Ready", "False", "one-key").await?;
    assert_eq!(reason, "GeneratedLost", "{message}");
    assert!(secrets.get_opt("one-key").await?.is_none(), "not made again");
    let allow = Patch::Merge(json!({"metadata": {"annotations": {ask::REGENERATE: "one-key"}}}));
    corner.namespace.api::<Shop>().patch("one", &PatchParams::default(), &allow).await?;
    corner.until::<Shop>("one", "Ready", "True").await?;
    assert_ne!(secrets.get("one-key").await?.data.unwrap(), first);
    operator.stop().await?;
    let release = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    corner.namespace.api::<Shop>().patch("one", &PatchParams::default(), &release).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_status_that_names_generated_objects_without_their_kind_is_understood() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "older").await?;
    let start = || corner.operate(PlanController::of(Shops::default()));
    let operator = start().await?;
    corner.namespace.api::<Secret>().create(&PostParams::default(), &password("first")).await?;
    corner.namespace.api::<Shop>().create(&PostParams::default(), &shop("one", "shop:1")).await?;
    corner.until::<Shop>("one", "Ready", "True").await?;
    corner.look_again(&operator, "Shop", "one").await?;
    operator.stop().await?;

    // The status as an older version wrote it.
    let mut older = corner.object("Shop", "one").await?;
    assert_eq!(older["status"]["generated"], json!(["Secret/one-key"]));
    older["status"]["generated"] = json!(["one-key"]);
    let status = json!({"apiVersion": older["apiVersion"], "kind": older["kind"], "metadata": {"name": "one"},
        "status": older["status"]});
    let params = PatchParams::apply("shop.test.windlass.dev").force();
    corner.namespace.api::<Shop>().patch_status("one", &params, &Patch::Apply(status)).await?;

    let mark = corner.mark()?;
    let operator = start().await?;
    corner.look_again(&operator, "Shop", "one").await?;
    assert_eq!(corner.writes_since(mark)?, [""; 0], "another spelling is worth no write");
    operator.stop().await?;

    // The object is lost before the entry was rewritten.
    corner.delete("Secret", "one-key").await?;
    let operator = start().await?;
    let (reason, message) = corner.until_message::<Shop>("one", "Ready", "False", "Secret one-key").await?;
    assert_eq!(reason, "GeneratedLost", "{message}");
    assert!(corner.of_kind("Secret").get_opt("one-key").await?.is_none(), "it was not made anew");

    let allow = json!({"metadata": {"annotations": {ask::REGENERATE: "one-key"}}});
    corner.change("Shop", "one", allow).await?;
    corner.until::<Shop>("one", "Ready", "True").await?;
    assert_eq!(corner.object("Shop", "one").await?["status"]["generated"], json!(["Secret/one-key"]));
    operator.stop().await
}
