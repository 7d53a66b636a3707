//! Changes of a plan and their reversal: a field that the plan no longer has is removed, whatever the server
//! made of it, and fields of others stay.
#![allow(clippy::unwrap_used, clippy::panic)] // a test fails by panicking

use crate::kit;

use anyhow::Result;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use windlass::Controls as _;
use windlass::names::ask;
use windlass_testenv::{TestEnv, eventually, or_not_run, within};

use kit::Corner;
use kit::bundle::{Bundle, BundleSpec, Bundles, Item, one_by_one};

/// The time for one change, short so that many failing ones do not take a minute each.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(20);

/// Returns an object of this name, with these fields in the part that a test is about.
type Make = fn(&str, &Value) -> Value;

fn workload(kind: &str, name: &str, spec: &Value, pods: &Value, container: &Value) -> Value {
    let mut main = json!({"name": "main", "image": "shop:1"});
    extend(&mut main, container);
    let mut pod = json!({"containers": [main]});
    extend(&mut pod, pods);
    let mut whole = json!({"selector": {"matchLabels": {"app": name}},
        "template": {"metadata": {"labels": {"app": name}}, "spec": pod}});
    extend(&mut whole, spec);
    if kind == "StatefulSet" {
        whole["serviceName"] = name.into();
    }
    json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": whole})
}

fn extend(object: &mut Value, more: &Value) {
    object.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
}

fn deployment(name: &str, spec: &Value) -> Value {
    workload("Deployment", name, spec, &json!({}), &json!({}))
}

fn deployment_of_pods(name: &str, pods: &Value) -> Value {
    workload("Deployment", name, &json!({}), pods, &json!({}))
}

fn service(name: &str, spec: &Value) -> Value {
    let mut whole = json!({"selector": {"app": name}});
    extend(&mut whole, spec);
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": whole})
}

fn gadget(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "test.windlass.dev/v1", "kind": "Gadget", "metadata": {"name": name}, "spec": spec})
}

/// The fields of an object that somebody decided on, without those that identify the object.
fn decided(object: &Value, name: &str) -> Value {
    let mut content = object.clone();
    let members = content.as_object_mut().unwrap();
    members.remove("status");
    members.remove("metadata");
    if let Some(spec) = content["spec"].as_object_mut() {
        spec.remove("clusterIP");
        spec.remove("clusterIPs");
    }
    serde_json::from_str(&content.to_string().replace(name, "NAME")).unwrap()
}

async fn read(corner: &Corner, like: &Value) -> Result<Value> {
    let text = |field: &Value| field.as_str().unwrap_or_default().to_owned();
    let api = corner.objects(&text(&like["apiVersion"]), &text(&like["kind"]));
    Ok(serde_json::to_value(api.get(&text(&like["metadata"]["name"])).await?)?)
}

/// An owner with an object that changes from one content to another and back.
struct Way {
    name: &'static str,
    make: Make,
    here: Value,
    there: Value,
}

impl Way {
    /// Changes the content there and back, twice. Each time the object becomes equal to that of a fresh
    /// owner, our manager has no second entry in its `managedFields`, and another reconcile writes nothing.
    async fn go(&self, corner: &Corner) -> Result<()> {
        let Self { name, make, here, there } = self;
        let item = |name: &str, content: &Value| vec![Item::of(make(name, content))];
        for (fresh, content) in [("fresh-here", here), ("fresh-there", there)] {
            let fresh = format!("{name}-{fresh}");
            corner.bundle(&fresh, item(&fresh, content)).await?;
        }
        corner.bundle(name, item(name, here)).await?;
        for (fresh, content) in
            [("fresh-here", here), ("fresh-there", there), ("fresh-here", here), ("fresh-there", there)]
        {
            let spec = BundleSpec { items: item(name, content), ..BundleSpec::default() };
            corner.respec(name, &spec).await?;
            let fresh = format!("{name}-{fresh}");
            let arrived = within(PATIENCE, format!("{name} is like {fresh}"), || async {
                let read =
                    async |name: &str| read(corner, &make(name, content)).await.map_err(|e| e.to_string());
                let expected = decided(&read(&fresh).await?, &fresh);
                let (object, owner) = (read(name).await?, corner.namespace.api::<Bundle>().get(name).await);
                let found = decided(&object, name);
                let owner = owner.map_err(|error| error.to_string())?;
                let seen = owner.status.as_ref().and_then(|status| status.observed_generation);
                if found == expected && seen == owner.metadata.generation {
                    return Ok(object);
                }
                let status = serde_json::to_value(owner.status).map_err(|error| error.to_string())?;
                Err(format!("{found}\nfresh {expected}\nstatus {status}"))
            });
            let object = arrived.await?;
            let entries = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
            let ours = entries.iter().filter(|entry| entry["manager"] == Bundles::NAME);
            let operations: Vec<&Value> = ours.map(|entry| &entry["operation"]).collect();
            assert_eq!(operations, ["Apply"], "{name}: {entries:#?}");
            let mark = corner.mark()?;
            corner.nudge(name).await?;
            assert_eq!(corner.object_writes(mark)?, [""; 0], "{name} has converged");
        }
        Ok(())
    }
}

/// Goes all ways, and reports the reason for each that fails.
async fn go_all(hint: &str, ways: Vec<Way>) -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), hint).await?;
    let operator = corner.operate(one_by_one(Bundles::default())).await?;
    let mut failed = Vec::new();
    for way in ways {
        if let Err(error) = way.go(&corner).await {
            failed.push(error.to_string());
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
    operator.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn seam_n2_the_last_field_of_a_part_goes_and_the_part_stays() -> Result<()> {
    let way = |name, here, there| Way { name, make: gadget, here, there };
    go_all(
        "n2",
        vec![
            way("n2-last", json!({"part": {"labels": {"x": "y"}}}), json!({"part": {}})),
            way(
                "n2-map",
                json!({"part": {"color": "red", "labels": {"x": "y"}}}),
                json!({"part": {"color": "red", "labels": {}}}),
            ),
            way("n2-whole", json!({"part": {"color": "red"}}), json!({})),
            way("n2-null", json!({"loose": {"labels": {"x": "y"}}}), json!({"loose": {}})),
        ],
    )
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn seam_n3_a_default_goes_where_the_strategy_does_not_allow_it() -> Result<()> {
    fn set(name: &str, spec: &Value) -> Value {
        workload("StatefulSet", name, spec, &json!({}), &json!({}))
    }
    fn daemons(name: &str, spec: &Value) -> Value {
        workload("DaemonSet", name, spec, &json!({}), &json!({}))
    }
    fn policy(name: &str, rules: &Value) -> Value {
        let mut spec = json!({"podSelector": {"matchLabels": {"app": name}}, "ingress": [{}]});
        extend(&mut spec, rules);
        json!({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": name}, "spec": spec})
    }
    let way = |name, make, here, there| Way { name, make, here, there };
    let recreate = json!({"strategy": {"type": "Recreate"}});
    let rolling = json!({"strategy": {"type": "RollingUpdate"}});
    let on_delete = json!({"updateStrategy": {"type": "OnDelete"}});
    go_all(
        "n3",
        vec![
            way("n3-web", deployment, json!({}), recreate.clone()),
            way("n3-said", deployment, rolling, recreate),
            way("n3-db", set, json!({}), on_delete.clone()),
            way("n3-agent", daemons, json!({}), on_delete),
            way("n3-wall", policy, json!({}), json!({"egress": [{}]})),
        ],
    )
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn seam_n3_what_somebody_wrote_goes_where_the_strategy_does_not_allow_it() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "n3-edit").await?;
    let operator = corner.operate(one_by_one(Bundles::default())).await?;
    corner.bundle("one", vec![Item::of(deployment("web", &json!({})))]).await?;
    corner.until::<Bundle>("one", "Ready", "True").await?;
    let surge = json!({"spec": {"strategy": {"rollingUpdate": {"maxSurge": 3}}}});
    corner.change("Deployment", "web", surge).await?;
    let items = vec![Item::of(deployment("web", &json!({"strategy": {"type": "Recreate"}})))];
    corner.respec("one", &BundleSpec { items, ..BundleSpec::default() }).await?;
    let strategy = json!({"type": "Recreate"});
    corner.until_object("apps/v1", "Deployment", "web", |web| web["spec"]["strategy"] == strategy).await?;
    operator.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn seam_n4_a_removed_service_account_leaves_the_pods() -> Result<()> {
    fn set(name: &str, pods: &Value) -> Value {
        workload("StatefulSet", name, &json!({}), pods, &json!({}))
    }
    fn daemons(name: &str, pods: &Value) -> Value {
        workload("DaemonSet", name, &json!({}), pods, &json!({}))
    }
    fn cron(name: &str, pods: &Value) -> Value {
        let mut pod = json!({"restartPolicy": "Never", "containers": [{"name": "main", "image": "job:1"}]});
        extend(&mut pod, pods);
        json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": name},
            "spec": {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": {"template": {"spec": pod}}}}})
    }
    let way =
        |name, make| Way { name, make, here: json!({"serviceAccountName": "default"}), there: json!({}) };
    let ways = vec![
        way("n4-web", deployment_of_pods),
        way("n4-db", set),
        way("n4-agent", daemons),
        way("n4-nightly", cron),
    ];
    go_all("n4", ways).await
}

/// A key of a list that somebody changes.
struct Rename {
    name: &'static str,
    object: Value,
    change: Value,
}

#[tokio::test(flavor = "multi_thread")]
async fn seam_n8_a_list_key_that_somebody_changed_is_changed_back() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "n8-edit").await?;
    let operator = corner.operate(one_by_one(Bundles::default())).await?;
    let web = |name: &str| {
        let container = json!({"ports": [{"name": "https", "containerPort": 443}], "args": ["x"],
            "resources": {"limits": {"cpu": "1000m"}}});
        workload("Deployment", name, &json!({}), &json!({}), &container)
    };
    let replace = |path: &str, value: Value| json!([{"op": "replace", "path": path, "value": value}]);
    let containers = "/spec/template/spec/containers/0";
    let renames = [
        Rename {
            name: "a port of a Service",
            object: service("named", &json!({"ports": [{"name": "https", "port": 443}]})),
            change: replace("/spec/ports/0/port", json!(8443)),
        },
        Rename {
            name: "a port with its target",
            object: service("both", &json!({"ports": [{"name": "https", "port": 443, "targetPort": 443}]})),
            change: replace("/spec/ports/0", json!({"name": "https", "port": 8443, "targetPort": 8443})),
        },
        Rename {
            name: "a port without a name",
            object: service("nameless", &json!({"ports": [{"port": 80}]})),
            change: replace("/spec/ports/0/port", json!(8080)),
        },
        Rename {
            name: "a port of a container",
            object: web("inner"),
            change: replace(&format!("{containers}/ports/0/containerPort"), json!(8443)),
        },
        Rename {
            name: "the name of a container",
            object: web("box"),
            change: replace(&format!("{containers}/name"), json!("other")),
        },
    ];
    corner.bundle("one", renames.iter().map(|rename| Item::of(rename.object.clone())).collect()).await?;
    corner.until::<Bundle>("one", "Ready", "True").await?;
    let mut failed = Vec::new();
    for Rename { name, object, change } in &renames {
        let text = |field: &Value| field.as_str().unwrap_or_default().to_owned();
        let (kind, id) = (text(&object["kind"]), text(&object["metadata"]["name"]));
        let before = decided(&read(&corner, object).await?, &id);
        let api = corner.objects(&text(&object["apiVersion"]), &kind);
        let patch: json_patch::Patch = serde_json::from_value(change.clone())?;
        let params = PatchParams { field_manager: Some("somebody".into()), ..PatchParams::default() };
        api.patch(&id, &params, &Patch::Json::<()>(patch)).await?;
        let repaired = within(PATIENCE, format!("{name} is changed back"), || async {
            let now = decided(&read(&corner, object).await.map_err(|error| error.to_string())?, &id);
            if now == before {
                return Ok(());
            }
            let owner =
                corner.namespace.api::<Bundle>().get("one").await.map_err(|error| error.to_string())?;
            let status = serde_json::to_value(owner.status).map_err(|error| error.to_string())?;
            Err(format!("{now}\nwas {before}\nstatus {status}"))
        });
        if let Err(error) = repaired.await {
            failed.push(error.to_string());
            continue;
        }
        corner.nudge("one").await?;
        let mark = corner.mark()?;
        corner.nudge("one").await?;
        assert_eq!(corner.object_writes(mark)?, [""; 0], "{name}: it has converged");
    }
    // The plan changes keys, too.
    let ports = |port| json!({"ports": [{"name": "https", "port": port}]});
    let container = |name: &str, port| json!({"containers": [{"name": name, "image": "shop:1", "ports": [{"name": "https", "containerPort": port}]}]});
    for (name, make, here, there) in [
        ("n8-port", service as Make, ports(443), ports(8443)),
        ("n8-inner", deployment_of_pods, container("main", 443), container("main", 8443)),
        ("n8-box", deployment_of_pods, container("main", 443), container("other", 443)),
    ] {
        if let Err(error) = (Way { name, make, here, there }).go(&corner).await {
            failed.push(error.to_string());
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
    operator.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn seam_n8_what_somebody_added_beside_a_changed_key_stays() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "n8-beside").await?;
    let operator = corner.operate(one_by_one(Bundles::default())).await?;
    let web = deployment("web", &json!({}));
    let ports = service("ports", &json!({"ports": [{"name": "https", "port": 443}]}));
    corner.bundle("one", vec![Item::of(web), Item::of(ports)]).await?;
    corner.until::<Bundle>("one", "Ready", "True").await?;
    let params = PatchParams { field_manager: Some("somebody".into()), ..PatchParams::default() };
    let (deployments, services) = (corner.objects("apps/v1", "Deployment"), corner.objects("v1", "Service"));
    let edit = async |api: &kube::Api<kube::api::DynamicObject>, name: &str, patch: Value| -> Result<()> {
        let patch: json_patch::Patch = serde_json::from_value(patch)?;
        api.patch(name, &params, &Patch::Json::<()>(patch)).await?;
        Ok(())
    };
    let containers = "/spec/template/spec/containers";
    let sidecar = json!({"name": "sidecar", "image": "proxy:1"});
    edit(
        &deployments,
        "web",
        json!([
            {"op": "add", "path": format!("{containers}/-"), "value": sidecar},
            {"op": "replace", "path": format!("{containers}/0/name"), "value": "other"},
        ]),
    )
    .await?;
    edit(
        &services,
        "ports",
        json!([
            {"op": "add", "path": "/spec/ports/-", "value": {"name": "metrics", "port": 9090}},
            {"op": "replace", "path": "/spec/ports/0/port", "value": 8443},
        ]),
    )
    .await?;
    let names = |list: &Value, member: &str| -> Vec<String> {
        let items = list.as_array().into_iter().flatten();
        let mut names: Vec<String> = items.map(|item| item[member].to_string()).collect();
        names.sort();
        names
    };
    corner
        .until_object("apps/v1", "Deployment", "web", |web| {
            names(&web["spec"]["template"]["spec"]["containers"], "name") == ["\"main\"", "\"sidecar\""]
        })
        .await?;
    corner
        .until_object("v1", "Service", "ports", |service| {
            names(&service["spec"]["ports"], "port") == ["443", "9090"]
        })
        .await?;
    operator.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn seam_m10_adoption_leaves_what_third_parties_wrote() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "m10").await?;
    let services = corner.objects("v1", "Service");
    let by = |manager: &str| PatchParams { field_manager: Some(manager.into()), ..PatchParams::default() };
    let mut theirs =
        service("web", &json!({"ports": [{"name": "https", "port": 443}], "sessionAffinity": "ClientIP"}));
    theirs["metadata"]["annotations"] = json!({"former.test/note": "x"});
    let former = PostParams { field_manager: Some("former".into()), ..PostParams::default() };
    services.create(&former, &serde_json::from_value(theirs)?).await?;
    for (manager, metadata) in [
        ("external-dns", json!({"annotations": {"external-dns.test/hostname": "web.test"}})),
        ("kubectl-annotate", json!({"annotations": {"contact": "somebody"}})),
        ("service-lb-controller", json!({"finalizers": ["lb.test/cleanup"]})),
        ("kubectl-annotate", json!({"annotations": {ask::ADOPT: "Bundle/one"}})),
    ] {
        services.patch("web", &by(manager), &Patch::Merge(json!({"metadata": metadata}))).await?;
    }
    let bundles = Bundles { former: Some("former"), ..Bundles::default() };
    let operator = corner.operate(one_by_one(bundles)).await?;
    let ours = service("web", &json!({"ports": [{"name": "https", "port": 8443}]}));
    corner.bundle("one", vec![Item::of(ours)]).await?;
    corner.until::<Bundle>("one", "Ready", "True").await?;

    let web = corner.object("Service", "web").await?;
    let (metadata, spec) = (&web["metadata"], &web["spec"]);
    assert_eq!(metadata["annotations"]["external-dns.test/hostname"], "web.test", "{metadata:#}");
    assert_eq!(metadata["annotations"]["contact"], "somebody", "{metadata:#}");
    assert_eq!(metadata["finalizers"], json!(["lb.test/cleanup"]));
    assert_eq!(metadata["annotations"]["former.test/note"], Value::Null, "the predecessor's goes");
    assert_eq!(spec["sessionAffinity"], "None", "the predecessor's goes");
    assert_eq!(spec["ports"].as_array().map(Vec::len), Some(1), "{spec:#}");
    eventually("an event lists what was dropped", || async {
        let events = corner.events_of("one").await.map_err(|error| error.to_string())?;
        let adopted = events.iter().find(|(kind, reason, _)| kind == "Normal" && reason == "Adopted");
        match adopted {
            Some((_, _, note))
                if [
                    ".metadata.annotations.former.test/note",
                    ".spec.sessionAffinity",
                    "former",
                    "Service web",
                ]
                .iter()
                .all(|part| note.contains(part))
                    && !note.contains("external-dns") =>
            {
                Ok(())
            }
            _ => Err(format!("{events:?}")),
        }
    })
    .await?;
    operator.stop().await?;
    services.patch("web", &by("test"), &Patch::Merge(json!({"metadata": {"finalizers": null}}))).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn seam_m10_a_third_partys_port_of_the_same_name_makes_way() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "m10-port").await?;
    let services = corner.objects("v1", "Service");
    let theirs = service(
        "web",
        &json!({"ports": [{"name": "https", "port": 443}, {"name": "metrics", "port": 9090}]}),
    );
    services.create(&PostParams::default(), &serde_json::from_value(theirs)?).await?;
    let operator = corner.operate(one_by_one(Bundles::default())).await?;
    let ours = service("web", &json!({"ports": [{"name": "https", "port": 8443}]}));
    corner.bundle("one", vec![Item::of(ours)]).await?;
    corner.until_message::<Bundle>("one", "Ready", "False", "is not ours").await?;
    corner.change("Service", "web", json!({"metadata": {"annotations": {ask::ADOPT: "Bundle/one"}}})).await?;
    corner.until::<Bundle>("one", "Ready", "True").await?;
    let web = corner.object("Service", "web").await?;
    let mut ports: Vec<&Value> =
        web["spec"]["ports"].as_array().unwrap().iter().map(|port| &port["port"]).collect();
    ports.sort_by_key(|port| port.as_i64());
    assert_eq!(ports, [8443, 9090]);
    operator.stop().await
}
