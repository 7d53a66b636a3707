//! Fields that others change are restored with one apply; fields that others add are left alone; a new
//! release of the operator rolls out with one apply for each object.
#![allow(clippy::unwrap_used, clippy::panic)] // a test fails by panicking

use crate::kit;

use anyhow::{Context as _, Result};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use windlass_testenv::{Mark, TestEnv, eventually, or_not_run, within};

use kit::Corner;
use kit::bundle::{Bundle, Bundles, Item, one_by_one};

/// The time for one repair, short so that a table of failing rows does not take a minute for each.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(15);

/// A change that somebody else makes to an object.
enum Change {
    /// A strategic merge patch, as `kubectl patch`, `set` and `label` send it.
    Strategic(Value),
    Merge(Value),
    Json(Value),
    /// A change by the scale subresource, as an autoscaler makes it.
    Scale(i64),
    /// The whole object, as `kubectl replace` sends it.
    Put(fn(&mut Value)),
    Delete,
}

struct Row {
    name: &'static str,
    /// The object that is changed, such as `deployments web`.
    object: (&'static str, &'static str, &'static str),
    /// A change that somebody else made before.
    beside: Option<Change>,
    change: Change,
}

const WEB: (&str, &str, &str) = ("apps/v1", "Deployment", "web");
const SETTINGS: (&str, &str, &str) = ("v1", "ConfigMap", "settings");
const GADGET: (&str, &str, &str) = ("test.windlass.dev/v1", "Gadget", "gadget");

fn deployment(name: &str, extra: &Value) -> Value {
    let mut object = json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "labels": {"team": "ours"}, "annotations": {"note": "ours"}},
        "spec": {"selector": {"matchLabels": {"app": name}}, "template": {
            "metadata": {"labels": {"app": name}},
            "spec": {
                "automountServiceAccountToken": false,
                "volumes": [{"name": "tmp", "emptyDir": {}}],
                "containers": [{"name": "main", "image": "web:1", "args": ["one", "two"],
                    "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
                    "resources": {"limits": {"cpu": "1000m"}},
                    "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}]}]}}}});
    for (field, value) in extra.as_object().unwrap() {
        object["spec"][field] = value.clone();
    }
    object
}

fn items() -> Vec<Item> {
    let settings = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "settings", "finalizers": ["test.windlass.dev/ours"]}, "data": {"a": "1", "b": ""}});
    let gadget = json!({"apiVersion": "test.windlass.dev/v1", "kind": "Gadget", "metadata": {"name": "gadget"},
        "spec": {"ports": [{"port": 80}, {"port": 81}], "armed": false}});
    let objects = [
        deployment("web", &json!({"replicas": 1})),
        deployment("elastic", &json!({})),
        deployment("canary", &json!({"replicas": 0})),
        settings,
        gadget,
    ];
    objects.into_iter().map(Item::of).collect()
}

fn main_container(change: &Value) -> Value {
    let mut container = json!({"name": "main"});
    container.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
    json!({"spec": {"template": {"spec": {"containers": [container]}}}})
}

#[allow(clippy::too_many_lines)] // it is a table
fn drifts() -> Vec<Row> {
    let row = |name, object, change| Row { name, object, beside: None, change };
    let web = |name, change| row(name, WEB, change);
    vec![
        web("image", Change::Strategic(main_container(&json!({"image": "web:hotfix"})))),
        web("env changed", Change::Strategic(main_container(&json!({"env": [{"name": "A", "value": "9"}]})))),
        Row {
            name: "env removed, with one of theirs beside it",
            object: WEB,
            beside: Some(Change::Strategic(main_container(
                &json!({"env": [{"name": "THEIRS", "value": "x"}]}),
            ))),
            change: Change::Strategic(main_container(&json!({"env": [{"$patch": "delete", "name": "B"}]}))),
        },
        web("label", Change::Strategic(json!({"metadata": {"labels": {"team": "theirs"}}}))),
        Row {
            name: "label removed, with one of theirs beside it",
            object: WEB,
            beside: Some(Change::Merge(json!({"metadata": {"labels": {"theirs": "x"}}}))),
            change: Change::Merge(json!({"metadata": {"labels": {"team": null}}})),
        },
        web(
            "the label that our watch selects by",
            Change::Merge(json!({"metadata": {"labels": {windlass::names::label::CONTROLLER: null}}})),
        ),
        web("annotation", Change::Merge(json!({"metadata": {"annotations": {"note": "theirs"}}}))),
        web(
            "our digest",
            Change::Merge(json!({"metadata": {"annotations": {windlass::names::mark::DIGEST: null}}})),
        ),
        web("scale", Change::Scale(2)),
        web("quantity", Change::Strategic(main_container(&json!({"resources": {"limits": {"cpu": "2"}}})))),
        web(
            "bool",
            Change::Strategic(
                json!({"spec": {"template": {"spec": {"automountServiceAccountToken": true}}}}),
            ),
        ),
        // A union: an apply alone would leave both members, which the server refuses.
        web(
            "volume swapped",
            Change::Strategic(json!({"spec": {"template": {"spec": {"volumes": [
                {"name": "tmp", "emptyDir": null, "configMap": {"name": "settings"}}]}}}})),
        ),
        web(
            "element of an atomic list",
            Change::Json(
                json!([{"op": "replace", "path": "/spec/template/spec/containers/0/args/1", "value": "three"}]),
            ),
        ),
        row(
            "element of an atomic list with defaults in it",
            GADGET,
            Change::Json(json!([{"op": "replace", "path": "/spec/ports/1/port", "value": 82}])),
        ),
        row(
            "a default inside of an atomic list",
            GADGET,
            Change::Json(json!([{"op": "replace", "path": "/spec/ports/0/protocol", "value": "UDP"}])),
        ),
        row("finalizer", SETTINGS, Change::Merge(json!({"metadata": {"finalizers": null}}))),
        Row {
            name: "finalizer, with one of theirs beside it",
            object: SETTINGS,
            beside: Some(Change::Json(
                json!([{"op": "add", "path": "/metadata/finalizers/-", "value": "test.windlass.dev/theirs"}]),
            )),
            change: Change::Json(json!([{"op": "remove", "path": "/metadata/finalizers/0"}])),
        },
        row("zero value", SETTINGS, Change::Merge(json!({"data": {"b": "x"}}))),
        row(
            "owner reference",
            SETTINGS,
            Change::Json(json!([{"op": "remove", "path": "/metadata/ownerReferences"}])),
        ),
        web(
            "the whole object",
            Change::Put(|web| {
                web["spec"]["template"]["spec"]["containers"][0]["image"] = "web:replaced".into();
                web["metadata"]["labels"] = json!({"app": "replaced"});
                web["spec"]["template"]["spec"]["containers"][0]["env"] = Value::Null;
            }),
        ),
        web(
            "client-side apply",
            Change::Strategic(
                json!({"metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"},
                "labels": {"team": "theirs"}},
                "spec": {"replicas": 0, "template": {"spec": {"containers": [{"name": "main", "image": "web:csa"}]}}}}),
            ),
        ),
        web("managed fields cleared", Change::Merge(json!({"metadata": {"managedFields": [{}]}}))),
        web("deleted", Change::Delete),
        row("deleted, a kind without pods", GADGET, Change::Delete),
    ]
}

async fn make(corner: &Corner, object: (&str, &str, &str), change: &Change) -> Result<()> {
    let (api_version, kind, name) = object;
    let api = corner.objects(api_version, kind);
    let params = PatchParams { field_manager: Some("somebody".into()), ..PatchParams::default() };
    match change {
        Change::Strategic(patch) => drop(api.patch(name, &params, &Patch::Strategic(patch)).await?),
        Change::Merge(patch) => drop(api.patch(name, &params, &Patch::Merge(patch)).await?),
        Change::Json(patch) => {
            let patch: json_patch::Patch = serde_json::from_value(patch.clone())?;
            api.patch(name, &params, &Patch::Json::<()>(patch)).await?;
        }
        Change::Scale(replicas) => {
            let patch = json!({"spec": {"replicas": replicas}});
            api.patch_scale(name, &params, &Patch::Merge(patch)).await?;
        }
        Change::Put(edit) => {
            // Controllers write the object too: an outdated version is read again.
            eventually(format!("{name} is replaced"), || async {
                let live = api.get(name).await.map_err(|error| error.to_string())?;
                let mut live = serde_json::to_value(live).map_err(|error| error.to_string())?;
                edit(&mut live);
                let live = serde_json::from_value(live).map_err(|error| error.to_string())?;
                let params = PostParams { field_manager: Some("somebody".into()), ..PostParams::default() };
                api.replace(name, &params, &live).await.map_err(|error| error.to_string())
            })
            .await?;
        }
        Change::Delete => drop(api.delete(name, &DeleteParams::background()).await?),
    }
    Ok(())
}

/// The fields of an object that somebody decided on, without those that controllers write.
fn decided(mut object: Value) -> Value {
    let metadata = &mut object["metadata"];
    let mut annotations = metadata["annotations"].take();
    for noise in ["deployment.kubernetes.io/revision", "kubectl.kubernetes.io/last-applied-configuration"] {
        annotations.as_object_mut().map(|annotations| annotations.remove(noise));
    }
    let mut finalizers: Vec<String> =
        serde_json::from_value(metadata["finalizers"].take()).unwrap_or_default();
    finalizers.sort();
    // Additions of others are theirs: they stay, or are lost with the object that was replaced or deleted.
    let mut labels = metadata["labels"].take();
    if let Some(labels) = labels.as_object_mut() {
        labels.retain(|label, _| label == "team" || label.starts_with("windlass.dev/"));
    }
    let metadata = json!({"labels": labels, "annotations": annotations, "finalizers": finalizers,
        "ownerReferences": metadata["ownerReferences"]});
    let mut spec = object["spec"].take();
    // A keyed list: the manager that adds an item decides on its position.
    if let Some(env) = spec.pointer_mut("/template/spec/containers/0/env").and_then(Value::as_array_mut) {
        env.retain(|variable| variable["name"] != "THEIRS");
        env.sort_by_key(|variable| variable["name"].to_string());
    }
    json!({"metadata": metadata, "spec": spec, "data": object["data"]})
}

/// Returns the accepted applies of an object since the mark.
fn applies(corner: &Corner, mark: Mark, kind: &str, name: &str) -> Result<usize> {
    let plural = format!("{}s", kind.to_lowercase());
    let accepted = corner
        .requests_since(mark)?
        .writes()
        .filter(|request| request.resource == plural && request.name == name && request.code < 300)
        .filter(|request| request.uri.contains("force="));
    assert!(accepted.iter().all(|request| request.verb == "patch"), "{accepted}");
    Ok(accepted.count())
}

async fn seen(corner: &Corner, object: (&str, &str, &str)) -> Result<Value> {
    let live = corner.objects(object.0, object.1).get(object.2).await?;
    Ok(decided(serde_json::to_value(live)?))
}

#[tokio::test(flavor = "multi_thread")]
async fn every_change_of_a_planned_field_is_repaired_with_one_apply() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "drift").await?;
    let operator = corner.operate(one_by_one(Bundles::default())).await?;
    corner.bundle("one", items()).await?;
    corner.until::<Bundle>("one", "Ready", "True").await?;
    let mut failed = Vec::new();
    let drifts = drifts();
    let rows = drifts.len();
    for Row { name, object, beside, change } in drifts {
        if let Some(beside) = &beside {
            make(&corner, object, beside).await.context(name)?;
            corner.nudge("one").await?;
        }
        let before = seen(&corner, object).await?;
        let mark = corner.mark()?;
        make(&corner, object, &change).await.context(name)?;
        let repaired = within(PATIENCE, format!("{name} is repaired"), || async {
            let now = seen(&corner, object).await.map_err(|error| error.to_string())?;
            let applies = applies(&corner, mark, object.1, object.2).map_err(|error| error.to_string())?;
            if now == before && applies > 0 {
                Ok(())
            } else {
                Err(format!("{applies} applies, {now}\nwas {before}"))
            }
        })
        .await;
        if let Err(error) = repaired {
            let owner = serde_json::to_value(corner.namespace.api::<Bundle>().get("one").await?.status)?;
            let asked = corner.requests_since(mark)?.filter(|request| request.verb != "watch");
            failed.push(format!("{name}: {error}\nstatus {owner}\nrequests {asked}"));
            continue;
        }
        corner.nudge("one").await?;
        let applies = applies(&corner, mark, object.1, object.2)?;
        if applies != 1 {
            failed.push(format!("{name}: {applies} applies: {:#?}", corner.object_writes(mark)?));
        }
    }
    println!("{rows} drifts, {} not repaired with one apply", failed.len());
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    operator.stop().await?;
    corner
        .objects("v1", "ConfigMap")
        .patch("settings", &PatchParams::default(), &Patch::Merge(json!({"metadata": {"finalizers": null}})))
        .await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_that_others_add_are_left_alone() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "beside").await?;
    let operator = corner.operate(one_by_one(Bundles::default())).await?;
    let mut items = items();
    items.truncate(3);
    corner.bundle("one", items).await?;
    corner.until::<Bundle>("one", "Ready", "True").await?;
    let canary = ("apps/v1", "Deployment", "canary");
    let elastic = ("apps/v1", "Deployment", "elastic");
    let additions = [
        (
            "an env var",
            WEB,
            Change::Strategic(main_container(&json!({"env": [{"name": "C", "value": "3"}]}))),
        ),
        (
            "a sidecar",
            WEB,
            Change::Strategic(
                json!({"spec": {"template": {"spec": {"containers": [{"name": "sidecar", "image": "proxy:1"}]}}}}),
            ),
        ),
        ("an annotation", WEB, Change::Merge(json!({"metadata": {"annotations": {"theirs": "x"}}}))),
        ("a label", WEB, Change::Merge(json!({"metadata": {"labels": {"theirs": "x"}}}))),
        (
            "a field inside of one of ours",
            WEB,
            Change::Strategic(main_container(&json!({"resources": {"limits": {"memory": "1Gi"}}}))),
        ),
        (
            "a restart by annotation of the pods",
            WEB,
            Change::Merge(
                json!({"spec": {"template": {"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "now"}}}}}),
            ),
        ),
        ("replicas that the plan does not set", elastic, Change::Scale(3)),
    ];
    let mark = corner.mark()?;
    let mut theirs = Vec::new();
    for (name, object, change) in &additions {
        make(&corner, *object, change).await.context(*name)?;
        theirs.push((name, *object, seen(&corner, *object).await?));
    }
    // The same watch delivers a drift of another object: when that is repaired, all changes above have been
    // seen.
    make(&corner, canary, &Change::Merge(json!({"metadata": {"labels": {"team": "theirs"}}}))).await?;
    corner
        .until_object(canary.0, canary.1, canary.2, |canary| canary["metadata"]["labels"]["team"] == "ours")
        .await?;
    corner.nudge("one").await?;
    assert_eq!(corner.object_writes(mark)?, ["patch deployments canary"]);
    operator.stop().await?;

    let operator = corner.operate(one_by_one(Bundles::default())).await?;
    corner.nudge("one").await?;
    assert_eq!(corner.object_writes(mark)?, ["patch deployments canary"], "nor after a restart");
    for object in [WEB, elastic] {
        let (name, _, last) = theirs.iter().rfind(|(_, other, _)| *other == object).unwrap();
        assert_eq!(seen(&corner, object).await?, *last, "{name}");
    }
    operator.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_release_of_the_operator_rolls_out_with_one_apply_for_each_object() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "upgrade").await?;
    let operator = corner.operate(one_by_one(Bundles::default())).await?;
    let mut items = items();
    items.remove(3);
    corner.bundle("one", items).await?;
    corner.until::<Bundle>("one", "Ready", "True").await?;
    operator.stop().await?;

    let mark = corner.mark()?;
    let operator = corner.operate(one_by_one(Bundles::default())).await?;
    corner.nudge("one").await?;
    assert_eq!(corner.object_writes(mark)?, Vec::<String>::new(), "a restart changes nothing");
    operator.stop().await?;

    let mark = corner.mark()?;
    let next = Bundles { release: Some("2"), ..Bundles::default() };
    let operator = corner.operate(one_by_one(next)).await?;
    corner.nudge("one").await?;
    let mut writes = corner.object_writes(mark)?;
    writes.sort();
    assert_eq!(
        writes,
        [
            "patch deployments canary",
            "patch deployments elastic",
            "patch deployments web",
            "patch gadgets gadget"
        ]
    );
    let web = corner.objects(WEB.0, WEB.1).get(WEB.2).await?;
    assert_eq!(web.metadata.labels.unwrap()["release"], "2");
    operator.stop().await
}
