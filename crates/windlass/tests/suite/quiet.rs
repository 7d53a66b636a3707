//! An idle operator costs nothing: no requests while the cluster matches the plans, and no writes after a
//! restart, whatever the server made of the applied objects.
#![allow(clippy::unwrap_used, clippy::panic)] // a test fails by panicking

use crate::kit;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::Result;
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::admissionregistration::v1::{MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use serde_json::{Value, json};
use windlass::PlanController;
use windlass_testenv::{TestEnv, eventually, or_not_run, within};

use kit::Corner;
use kit::bundle::{Bundle, Bundles, Item, one_by_one};
use kit::shop::{Shop, Shops, password, shop};

/// The number of owners, with twelve nodes each.
const OWNERS: usize = 200;

/// The number of heartbeats of a node, about ten seconds each, during which no request may be made.
const HEARTBEATS: usize = 6;

#[tokio::test(flavor = "multi_thread")]
async fn many_converged_owners_cost_no_request_and_a_restart_costs_lists_only() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "quiet").await?;
    let shops = Shops::default();
    let operator = corner.operate(PlanController::of(shops.clone())).await?;
    corner.namespace.api::<Secret>().create(&PostParams::default(), &password("one")).await?;
    let api = corner.namespace.api::<Shop>();
    let (began, mark) = (Instant::now(), corner.mark()?);
    let create = |index: usize| {
        let api = api.clone();
        async move { api.create(&PostParams::default(), &shop(&format!("shop-{index}"), "shop:1")).await }
    };
    futures::stream::iter(0..OWNERS).map(create).buffer_unordered(16).try_collect::<Vec<_>>().await?;
    converged(&api).await?;
    // Events are written at a limited rate.
    within(Duration::from_mins(2), "all events are written", || async {
        let (recorded, written) = (
            operator.metric("windlass_events_recorded_total"),
            operator.metric("windlass_events_written_total"),
        );
        let dropped = operator.metric("windlass_events_dropped_total");
        if written + dropped >= recorded { Ok(()) } else { Err(format!("{written} of {recorded}")) }
    })
    .await?;
    println!(
        "{OWNERS} owners of 12 nodes came up in {:?}: {}",
        began.elapsed(),
        corner.requests_since(mark)?
    );

    let mark = corner.mark()?;
    corner.namespace.env().heartbeats(HEARTBEATS).await?;
    let asked = corner.requests_since(mark)?;
    println!("in {HEARTBEATS} heartbeats of rest: {asked}");
    // A watch that the server ends is opened again.
    let others = asked.filter(|request| request.verb != "watch");
    assert!(others.is_empty(), "{others}");
    operator.stop().await?;

    let mark = corner.mark()?;
    let operator = corner.operate(PlanController::of(shops)).await?;
    let visited = |result: &str| {
        let lines = operator.metrics();
        let of = |line: &&str| {
            line.starts_with("windlass_node_total") && line.contains(&format!("result=\"{result}\""))
        };
        let count = |line: &str| {
            line.rsplit_once(' ').and_then(|(_, count)| count.parse::<f64>().ok()).unwrap_or(0.0)
        };
        lines.lines().filter(of).map(count).sum::<f64>()
    };
    #[allow(clippy::cast_precision_loss)] // a few thousand
    let all = (OWNERS * 12) as f64;
    eventually("every node was visited", || async {
        let seen = visited("unchanged");
        if seen >= all { Ok(()) } else { Err(format!("{seen} of {all}")) }
    })
    .await?;
    let asked = corner.requests_since(mark)?;
    println!("after a restart: {asked}");
    let others = asked.filter(|request| !matches!(&*request.verb, "list" | "watch"));
    assert!(others.is_empty(), "{others}");
    operator.stop().await?;

    // The shops have finalizers: without an operator the namespace would stay.
    let patch = kube::api::Patch::Merge(json!({"metadata": {"finalizers": null}}));
    let release = |index: usize| {
        let (api, patch) = (api.clone(), patch.clone());
        async move { api.patch(&format!("shop-{index}"), &kube::api::PatchParams::default(), &patch).await }
    };
    futures::stream::iter(0..OWNERS).map(release).buffer_unordered(16).try_collect::<Vec<_>>().await?;
    Ok(())
}

/// Waits until all shops are ready, and their final status is written.
async fn converged(api: &Api<Shop>) -> Result<()> {
    within(Duration::from_mins(5), "all shops are ready", || async {
        let shops = api.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
        let ready = |shop: &&Shop| {
            let status = shop.status.as_ref();
            status.is_some_and(|status| {
                status.ready_replicas == Some(2)
                    && status.standard.observed_generation == shop.metadata.generation
                    && status
                        .standard
                        .conditions
                        .iter()
                        .any(|condition| condition.type_ == "Ready" && condition.status == "True")
            })
        };
        let ready = shops.iter().filter(ready).count();
        if ready == OWNERS { Ok(()) } else { Err(format!("{ready} of {OWNERS}")) }
    })
    .await?;
    Ok(())
}

/// Returns objects that the server stores differently from how they were applied.
#[allow(clippy::too_many_lines)] // it is a table
fn awkward() -> Vec<Value> {
    let container = json!({"name": "main", "image": "web:1", "ports": [{"containerPort": 80}, {"containerPort": 53, "protocol": "UDP"}],
        "command": [], "args": [], "env": [{"name": "EMPTY", "value": ""}], "envFrom": [], "tty": false, "workingDir": "",
        "resources": {"limits": {"cpu": "1000m", "memory": "1024Mi"}, "requests": {"cpu": "0.5", "memory": "1073741824"}},
        "securityContext": {}, "volumeMounts": [{"name": "tmp", "mountPath": "/tmp", "readOnly": false, "subPath": ""}],
        "livenessProbe": {"httpGet": {"path": "/", "port": 80}, "initialDelaySeconds": 0}});
    let template = |app: &str| {
        json!({"metadata": {"labels": {"app": app}, "annotations": {}}, "spec": {
            "containers": [container], "initContainers": [], "volumes": [{"name": "tmp", "emptyDir": {}}], "securityContext": {},
            "nodeSelector": {}, "tolerations": [], "imagePullSecrets": [], "hostNetwork": false, "priority": 0,
            "automountServiceAccountToken": false, "affinity": {}, "serviceAccountName": "", "hostAliases": []}})
    };
    let meta = |name: &str| json!({"name": name, "labels": {}, "annotations": {"empty": ""}, "finalizers": [], "namespace": null});
    let selector = |app: &str| json!({"matchLabels": {"app": app}});
    vec![
        json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": meta("db"), "spec": {
            "replicas": 0, "serviceName": "db", "selector": selector("db"), "template": template("db"), "minReadySeconds": 0,
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1024Mi"}}}}]}}),
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta("zero"), "spec": {
            "replicas": 0, "paused": false, "minReadySeconds": 0, "selector": selector("zero"), "template": template("zero"),
            "strategy": {}, "revisionHistoryLimit": 0}}),
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta("rewritten"), "spec": {
            "replicas": 1, "selector": selector("rewritten"), "template": template("rewritten"),
            "strategy": {"rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 0}}}}),
        json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": meta("every"), "spec": {
            "selector": selector("every"), "template": template("every"), "updateStrategy": {}}}),
        json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": meta("once"), "spec": {"backoffLimit": 0, "suspend": false,
            "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "once:1"}]}}}}),
        json!({"apiVersion": "v1", "kind": "Service", "metadata": meta("ports"), "spec": {"type": "NodePort", "selector": {"app": "zero"},
            "externalIPs": [], "publishNotReadyAddresses": false, "sessionAffinity": "",
            "ports": [{"name": "http", "port": 80}, {"name": "dns", "port": 80, "protocol": "UDP", "targetPort": "dns"}]}}),
        json!({"apiVersion": "v1", "kind": "Service", "metadata": meta("address"), "spec": {"selector": {}, "ports": [{"port": 80}]}}),
        json!({"apiVersion": "v1", "kind": "Service", "metadata": meta("headless"), "spec": {"clusterIP": "None", "ports": [{"port": 80}]}}),
        json!({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": meta("walls"), "spec": {"podSelector": {},
            "policyTypes": [], "ingress": [{"from": [{"podSelector": {}}], "ports": [{"port": 80}]}, {}], "egress": []}}),
        json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": meta("door"), "spec": {"rules": [{"host": "shop.test",
            "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "ports", "port": {"number": 80}}}}]}}],
            "tls": [{"hosts": ["shop.test"], "secretName": "empty"}]}}),
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": meta("reader"),
            "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]}),
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": meta("reader"),
            "roleRef": {"apiGroup": "", "kind": "Role", "name": "reader"}, "subjects": [{"kind": "ServiceAccount", "name": "runner"},
                {"kind": "User", "name": "jane"}]}),
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta("runner"), "automountServiceAccountToken": false,
            "imagePullSecrets": [], "secrets": []}),
        json!({"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", "metadata": meta("elastic"), "spec": {"maxReplicas": 3,
            "targetCPUUtilizationPercentage": 80, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "zero"}}}),
        json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta("claim"), "spec": {"accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1073741824"}}}}),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta("empty"), "data": {"": null, "a": ""}, "binaryData": {}, "immutable": false}),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta("nothing")}),
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": meta("empty"), "stringData": {"a": "", "b": "x"}, "type": ""}),
        json!({"apiVersion": "test.windlass.dev/v1", "kind": "Gadget", "metadata": meta("gadget"), "spec": {"ports": [{"port": 80}, {}],
            "armed": false, "words": ""}}),
        json!({"apiVersion": "test.windlass.dev/v1", "kind": "Gadget", "metadata": meta("bare"), "spec": {"ports": []}}),
        json!({"apiVersion": "test.windlass.dev/v1", "kind": "Bundle", "metadata": meta("inner"), "spec": {"items": [{"object":
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "innermost"}}}], "secrets": [], "broken": false}}),
    ]
}

/// Counts the writes of each object, by its kind and name.
fn tally(writes: Vec<String>) -> BTreeMap<String, usize> {
    let mut tally = BTreeMap::new();
    for write in writes {
        *tally.entry(write).or_default() += 1;
    }
    tally
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_the_server_changes_on_write_is_applied_once() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "awkward").await?;
    let policy = Mirror::put_up(&corner).await?;
    let operator = corner.operate(one_by_one(Bundles::default())).await?;
    let mark = corner.mark()?;
    corner.bundle("one", awkward().into_iter().map(Item::of).collect()).await?;
    corner.until::<Bundle>("one", "Ready", "True").await?;
    let rewritten = corner.namespace.api::<Deployment>().get("rewritten").await?;
    let image = serde_json::to_value(rewritten)?["spec"]["template"]["spec"]["containers"][0]["image"].take();
    assert_eq!(image, "mirror.test/web:1", "admission rewrote it");

    for _ in 0..3 {
        corner.nudge("one").await?;
    }
    let first = tally(corner.object_writes(mark)?);
    let more: Vec<_> = first.iter().filter(|(_, times)| **times != 1).collect();
    assert!(more.is_empty(), "written more than once: {more:#?}");
    assert_eq!(first.len(), awkward().len() + 1, "all of them, and what the inner bundle has: {first:#?}");
    operator.stop().await?;

    let mark = corner.mark()?;
    let operator = corner.operate(one_by_one(Bundles::default())).await?;
    for _ in 0..2 {
        corner.nudge("one").await?;
    }
    assert_eq!(corner.object_writes(mark)?, Vec::<String>::new(), "after a restart");
    println!("{} awkward objects: one apply each, none after a restart", first.len());
    operator.stop().await?;
    policy.take_down().await
}

/// A third party's admission policy that takes images from a mirror, in one namespace.
struct Mirror {
    policies: Api<MutatingAdmissionPolicy>,
    bindings: Api<MutatingAdmissionPolicyBinding>,
    name: String,
}

impl Mirror {
    async fn put_up(corner: &Corner) -> Result<Self> {
        let name = format!("mirror-{}", corner.namespace.name());
        let policies: Api<MutatingAdmissionPolicy> = Api::all(corner.env.client());
        let bindings: Api<MutatingAdmissionPolicyBinding> = Api::all(corner.env.client());
        let rewritten = "Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{
            containers: object.spec.template.spec.containers.map(c, Object.spec.template.spec.containers{
                name: c.name, image: c.image.startsWith('mirror.test/') ? c.image : 'mirror.test/' + c.image})}}}}";
        let policy = json!({"metadata": {"name": name}, "spec": {
            "matchConstraints": {"namespaceSelector": corner.namespace.selector(), "resourceRules": [
                {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["deployments"]}]},
            "failurePolicy": "Fail", "reinvocationPolicy": "Never",
            "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": rewritten}}]}});
        policies.create(&PostParams::default(), &serde_json::from_value(policy)?).await?;
        let binding = json!({"metadata": {"name": name}, "spec": {"policyName": name}});
        bindings.create(&PostParams::default(), &serde_json::from_value(binding)?).await?;
        let mirror = Self { policies, bindings, name };
        let probe = json!({"metadata": {"name": "probe"}, "spec": {"selector": {"matchLabels": {"app": "probe"}}, "template": {
            "metadata": {"labels": {"app": "probe"}}, "spec": {"containers": [{"name": "main", "image": "probe:1"}]}}}});
        let probe: Deployment = serde_json::from_value(probe)?;
        let deployments = corner.namespace.api::<Deployment>();
        eventually("the policy works", || async {
            let dry = PostParams { dry_run: true, ..PostParams::default() };
            let probe = deployments.create(&dry, &probe).await.map_err(|error| error.to_string())?;
            let probe = serde_json::to_value(probe).map_err(|error| error.to_string())?;
            let image = &probe["spec"]["template"]["spec"]["containers"][0]["image"];
            if image == "mirror.test/probe:1" { Ok(()) } else { Err(image.to_string()) }
        })
        .await?;
        Ok(mirror)
    }

    async fn take_down(self) -> Result<()> {
        self.bindings.delete(&self.name, &DeleteParams::default()).await?;
        self.policies.delete(&self.name, &DeleteParams::default()).await?;
        Ok(())
    }
}
