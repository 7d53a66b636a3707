//! Every object of every component as it would be applied, for the releases that differ most, plain and with
//! internal TLS.
//!
//! A snapshot shows the values of Secrets as they are stored: in these tests they are no secrets.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test fails by panicking

mod sample;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use harbor_operator::api::{
    ChartMuseum, Core, Exporter, JobService, NotaryServer, NotarySigner, Portal, Registry, Trivy,
};
use harbor_operator::catalogue::Release;
use harbor_operator::workload::{ComponentBlueprint, Deployed};
use sample::{KINDS, claim, component, stored_secrets};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use windlass::{PlanError, Sketch, sketch};

const VERSIONS: [&str; 4] = ["2.6.2", "2.8.6", "2.9.5", "2.15.2"];

fn drawn<C: Deployed>(owner: &Value, objects: &[Value]) -> Result<Sketch, PlanError> {
    let mut owner = owner.clone();
    owner["metadata"]["namespace"] = json!("registry");
    let owner: C = serde_json::from_value(owner).unwrap();
    sketch(&ComponentBlueprint::<C>::new(Arc::default()), &owner, objects)
}

fn draw(owner: &Value, objects: &[Value]) -> Result<Sketch, PlanError> {
    match owner["kind"].as_str().unwrap() {
        "Portal" => drawn::<Portal>(owner, objects),
        "Core" => drawn::<Core>(owner, objects),
        "Registry" => drawn::<Registry>(owner, objects),
        "JobService" => drawn::<JobService>(owner, objects),
        "Trivy" => drawn::<Trivy>(owner, objects),
        "Exporter" => drawn::<Exporter>(owner, objects),
        "ChartMuseum" => drawn::<ChartMuseum>(owner, objects),
        "NotaryServer" => drawn::<NotaryServer>(owner, objects),
        "NotarySigner" => drawn::<NotarySigner>(owner, objects),
        other => panic!("{other}"),
    }
}

/// Everything that components take from.
fn everything(version: &str, tls: bool) -> Vec<Value> {
    let mut all = stored_secrets();
    all.push(claim("ReadWriteOnce"));
    all.push(component("RegistryController", version, tls));
    all
}

/// All components that a release has, plain or with TLS, as they would be applied.
fn all(version: &'static str, tls: bool) -> impl Iterator<Item = (&'static str, Sketch)> {
    let release = Release::of(&version.parse().unwrap()).unwrap();
    let there = KINDS.into_iter().filter(move |(_, part)| release.image(*part).is_some());
    there.map(move |(kind, _)| {
        let sketch = draw(&component(kind, version, tls), &everything(version, tls)).unwrap();
        assert!(sketch.waiting.is_empty(), "{kind} {version}: {:?}", sketch.waiting);
        (kind, sketch)
    })
}

#[test]
fn each_component_is_drawn_for_its_release() {
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    let _bound = settings.bind_to_scope();
    for version in VERSIONS {
        for (tls, how) in [(false, "plain"), (true, "tls")] {
            for (kind, sketch) in all(version, tls) {
                let objects: Vec<String> = sketch
                    .objects
                    .iter()
                    .map(|object| serde_saphyr::to_string(object.body()).unwrap())
                    .collect();
                insta::assert_snapshot!(
                    format!("{}-{version}-{how}", kind.to_lowercase()),
                    objects.join("---\n")
                );
            }
        }
    }
}

fn shown(sketch: &Sketch) -> String {
    let objects = sketch.objects.iter().filter(|object| object.resource().kind != "Service");
    objects.map(|object| serde_saphyr::to_string(object.body()).unwrap()).collect::<Vec<_>>().join("---\n")
}

/// Draws the parts that depend on the store: configuration, Secrets, volumes. One release is enough, because
/// other tests show the files of each release.
#[test]
fn registries_and_chart_museums_are_drawn_for_each_store() {
    let key = |name: &str| json!({"kind": "Secret", "metadata": {"name": name}, "data": {"secret": "eA==", "GCS_KEY_DATA": "e30=", "ca.crt": "eA=="}});
    let registries = [
        (
            "s3",
            json!({"s3": {"accesskey": "id", "secretkeyRef": "store", "certificateRef": "store", "region": "r",
            "bucket": "b", "regionendpoint": "https://minio.example", "rootdirectory": "/harbor"}}),
        ),
        ("s3-without-keys", json!({"s3": {"region": "r", "bucket": "b"}})),
        (
            "swift",
            json!({"swift": {"authurl": "https://keystone.example/v3", "username": "u", "passwordRef": "store",
            "container": "c", "prefix": "p", "accesskey": "t", "secretkeyRef": "store", "authversion": "3"}}),
        ),
        ("azure", json!({"azure": {"accountname": "a", "accountkeyRef": "store", "container": "c"}})),
        ("gcs", json!({"gcs": {"bucket": "b", "keyDataRef": "store", "pathPrefix": "p"}})),
        (
            "oss",
            json!({"oss": {"accessKeyID": "id", "accessSecretRef": "store", "region": "oss-r", "bucket": "b",
            "endpoint": "oss.example", "pathPrefix": "p"}}),
        ),
        ("inmemory", json!({"inmemory": {}})),
    ];
    let charts = [
        (
            "amazon",
            json!({"amazon": {"accessKeyID": "id", "accessSecretRef": "store", "bucket": "b", "prefix": "p"}}),
        ),
        ("azure", json!({"azure": {"accountname": "a", "accountkeyRef": "store", "container": "c"}})),
        ("gcs", json!({"gcs": {"bucket": "b", "keyDataSecretRef": "store"}})),
        (
            "openstack",
            json!({"openstack": {"authenticationURL": "https://keystone.example/v3", "container": "c",
            "username": "u", "passwordRef": "store", "tenantID": "t"}}),
        ),
        (
            "oss",
            json!({"oss": {"accessKeyID": "id", "accessSecretRef": "store", "bucket": "b", "endpoint": "oss.example"}}),
        ),
    ];
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    let _bound = settings.bind_to_scope();
    for (name, driver) in registries {
        let mut owner = component("Registry", "2.15.2", false);
        owner["spec"]["storage"]["driver"] = driver;
        let mut objects = everything("2.15.2", false);
        objects.push(key("store"));
        let sketch = draw(&owner, &objects).unwrap();
        assert!(sketch.waiting.is_empty(), "{name}: {:?}", sketch.waiting);
        insta::assert_snapshot!(format!("registry-store-{name}"), shown(&sketch));
    }
    for (name, storage) in charts {
        let mut owner = component("ChartMuseum", "2.6.2", false);
        owner["spec"]["chart"]["storage"] = storage;
        let mut objects = everything("2.6.2", false);
        objects.push(key("store"));
        let sketch = draw(&owner, &objects).unwrap();
        assert!(sketch.waiting.is_empty(), "{name}: {:?}", sketch.waiting);
        insta::assert_snapshot!(format!("chartmuseum-store-{name}"), shown(&sketch));
    }
}

#[test]
fn a_registry_with_options_of_middlewares_has_its_file_in_a_secret() {
    let mut owner = component("Registry", "2.15.2", false);
    owner["spec"]["middlewares"] = json!({"storage": [{"name": "cloudfront", "optionsRef": "options"}]});
    let mut objects = everything("2.15.2", false);
    objects.push(
        json!({"kind": "Secret", "metadata": {"name": "options"}, "data": {"privatekey": "aHVudGVyMg=="}}),
    );
    let sketch = draw(&owner, &objects).unwrap();
    assert!(!names(&sketch).contains(&"ConfigMap sample-harbor-registry".to_owned()), "{:?}", names(&sketch));
    for object in &sketch.objects {
        assert!(!object.body().to_string().contains("hunter2"), "{:?}", names(&sketch));
    }
    let deployment = sketch.objects.iter().find(|object| object.makes_pods()).unwrap().body();
    let volumes = deployment["spec"]["template"]["spec"]["volumes"].as_array().unwrap();
    let file = volumes.iter().find(|volume| volume["name"] == "registry-config").unwrap();
    assert_eq!(file["secret"]["secretName"], "sample-harbor-registry");
}

/// Visits every pod template.
fn templates(visit: impl Fn(&str, &Value)) {
    for version in VERSIONS {
        for tls in [false, true] {
            for (kind, sketch) in all(version, tls) {
                for object in sketch.objects.iter().filter(|object| object.makes_pods()) {
                    visit(&format!("{kind} {version} tls={tls}"), &object.body()["spec"]["template"]);
                }
            }
        }
    }
}

#[test]
fn pods_pass_the_restricted_level_of_pod_security() {
    templates(|who, template| {
        let pod = &template["spec"];
        let context = &pod["securityContext"];
        assert_eq!(context["runAsNonRoot"], true, "{who}");
        assert_eq!(context["runAsUser"], 10_000, "{who}");
        assert_eq!(context["seccompProfile"]["type"], "RuntimeDefault", "{who}");
        assert_eq!(pod["automountServiceAccountToken"], false, "{who}");
        assert_eq!(pod["enableServiceLinks"], false, "{who}");
        for container in pod["containers"].as_array().unwrap() {
            let own = &container["securityContext"];
            assert_eq!(own["allowPrivilegeEscalation"], false, "{who}");
            assert_eq!(own["capabilities"]["drop"], json!(["ALL"]), "{who}");
            for probe in ["startupProbe", "livenessProbe", "readinessProbe"] {
                assert!(container[probe].is_object(), "{who} has no {probe}");
            }
            assert!(container["lifecycle"]["preStop"].is_object(), "{who}");
        }
    });
}

#[test]
fn every_mounted_volume_exists_and_certificates_are_mounted_as_directories() {
    templates(|who, template| {
        let pod = &template["spec"];
        let volumes = pod["volumes"].as_array().cloned().unwrap_or_default();
        let names: Vec<&Value> = volumes.iter().map(|volume| &volume["name"]).collect();
        let unique: std::collections::BTreeSet<String> = names.iter().map(ToString::to_string).collect();
        assert_eq!(unique.len(), names.len(), "{who}: {names:?}");
        for container in pod["containers"].as_array().unwrap() {
            let mounts = container["volumeMounts"].as_array().cloned().unwrap_or_default();
            let paths: std::collections::BTreeSet<String> =
                mounts.iter().map(|mount| mount["mountPath"].to_string()).collect();
            assert_eq!(paths.len(), mounts.len(), "{who}: two mounts at one path");
            for mount in &mounts {
                let volume = volumes.iter().find(|volume| volume["name"] == mount["name"]);
                let volume = volume.unwrap_or_else(|| panic!("{who}: no volume {}", mount["name"]));
                let certificate = volume["name"].as_str().unwrap().contains("certificates");
                assert!(!certificate || mount["subPath"].is_null(), "{who}: {mount}");
            }
        }
    });
}

/// The server refuses a volume with two files of one name.
#[test]
fn an_authority_named_twice_is_one_file_and_two_that_would_share_a_name_do_not() {
    let mut owner = component("Core", "2.15.2", true);
    // A Harbor has one Redis, which Core is told of as its own and as the registry's.
    for redis in ["/spec/redis", "/spec/components/registry/redis"] {
        owner.pointer_mut(redis).unwrap()["certificateRef"] = json!("redis-ca");
    }
    // Its file would be called as that of internal TLS is.
    owner["spec"]["certificateRefs"] = json!(["ca"]);
    let mut objects = everything("2.15.2", true);
    for name in ["redis-ca", "ca"] {
        objects.push(json!({"kind": "Secret", "metadata": {"name": name}, "data": {"ca.crt": "eA=="}}));
    }
    let sketch = draw(&owner, &objects).unwrap();
    assert!(sketch.waiting.is_empty(), "{:?}", sketch.waiting);
    let deployment = sketch.objects.iter().find(|object| object.makes_pods()).unwrap().body();
    let volumes = deployment["spec"]["template"]["spec"]["volumes"].as_array().unwrap();
    let trusted = volumes.iter().find(|volume| volume["name"] == "trusted-certificates").unwrap();
    let files: Vec<(&str, &str)> = trusted["projected"]["sources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|source| &source["secret"])
        .map(|secret| (secret["name"].as_str().unwrap(), secret["items"][0]["path"].as_str().unwrap()))
        .collect();
    assert_eq!(files, [("redis-ca", "redis-ca-redis.crt"), ("tls", "ca.crt"), ("ca", "other-ca.crt")]);
}

#[test]
fn pod_templates_do_not_contain_the_operators_version() {
    templates(|who, template| {
        let metadata = template["metadata"].to_string();
        assert!(!metadata.contains(env!("CARGO_PKG_VERSION")), "{who}: {metadata}");
        assert!(!metadata.contains("operator-version"), "{who}: {metadata}");
    });
}

#[test]
fn a15_no_password_is_outside_of_secrets() {
    for version in VERSIONS {
        for (kind, sketch) in all(version, true) {
            for object in &sketch.objects {
                let text = object.body().to_string();
                let secret = object.resource().kind == "Secret";
                for password in ["re:dis", "re%3Adis", "\"database\"", ":database@", "Harbor12345"] {
                    // A reference to the Secret of that name is none.
                    let shown = text.replace("\"name\":\"database\"", "");
                    assert!(secret || !shown.contains(password), "{kind} {version}: {password} in {shown}");
                }
            }
        }
    }
}

#[test]
fn drawing_twice_gives_the_same_bytes() {
    for (kind, sketch) in all("2.6.2", true) {
        let again = draw(&component(kind, "2.6.2", true), &everything("2.6.2", true)).unwrap();
        let bodies =
            |sketch: &Sketch| sketch.objects.iter().map(|object| object.body().clone()).collect::<Vec<_>>();
        assert_eq!(bodies(&sketch), bodies(&again), "{kind}");
    }
}

#[test]
fn a_plan_is_shown_whole_without_a_cluster() {
    let mut owner = component("Core", "2.15.2", false);
    owner["metadata"]["namespace"] = json!("registry");
    let owner: Core = serde_json::from_value(owner).unwrap();
    let plan = windlass::preview(&ComponentBlueprint::<Core>::new(Arc::default()), &owner).unwrap();
    let text = plan.text().to_string();
    assert!(text.contains("Deployment sample-harbor-core: planned: apply, also after "), "{text}");
    assert!(text.contains("Secret csrf: planned: required") && !text.contains("pending"), "{text}");
}

fn names(sketch: &Sketch) -> Vec<String> {
    let name = |object: &windlass::Desired| format!("{} {}", object.resource().kind, object.key().name());
    sketch.objects.iter().map(name).collect()
}

#[test]
fn without_a_secret_the_rest_is_drawn_and_what_depends_on_it_waits_by_name() {
    for (kind, part) in KINDS {
        let missing: &[&str] = match kind {
            "Portal" => &["tls"],
            "Core" => &["csrf", "redis"],
            "Registry" => &["registry-http"],
            "JobService" => &["jobservice-secret"],
            "Trivy" => &["github"],
            "ChartMuseum" => &["core-secret"],
            _ => &["database"],
        };
        let there: Vec<Value> = everything("2.6.2", true)
            .into_iter()
            .filter(|object| !missing.iter().any(|name| object["metadata"]["name"] == *name))
            .collect();
        let sketch = draw(&component(kind, "2.6.2", true), &there).unwrap();
        assert!(names(&sketch).iter().any(|name| name.starts_with("Service ")), "{part:?}");
        assert!(!names(&sketch).iter().any(|name| name.starts_with("Deployment ")), "{part:?}");
        for name in missing {
            let input = (
                format!("Secret {name}"),
                "it does not exist: create it, or change the reference to it".to_owned(),
            );
            assert!(sketch.waiting.contains(&input), "{part:?}: {:?}", sketch.waiting);
        }
        let held = sketch.waiting.iter().find(|(id, _)| id.starts_with("Deployment ")).unwrap();
        assert!(missing.iter().all(|name| held.1.contains(name)), "{part:?}: {held:?}");
    }
}

#[test]
fn a_missing_key_is_named_with_the_field_that_asks_for_it() {
    let mut objects = everything("2.15.2", false);
    for object in &mut objects {
        if object["metadata"]["name"] == "csrf" {
            object["data"] = json!({"secret": "eA=="});
        }
    }
    let sketch = draw(&component("Core", "2.15.2", false), &objects).unwrap();
    let (_, why) = sketch.waiting.iter().find(|(id, _)| id.starts_with("Deployment ")).unwrap();
    assert_eq!(
        why,
        "spec.csrfKeyRef: Secret csrf has no text under the key key: add it, or name another Secret"
    );
}

#[test]
fn the_password_of_the_database_is_found_under_what_others_call_it() {
    for key in ["postgres-password", "postgresql-password", "password"] {
        let mut objects = everything("2.15.2", false);
        for object in &mut objects {
            if object["metadata"]["name"] == "database" {
                object["data"] = json!({key: "eA=="});
            }
        }
        let sketch = draw(&component("Exporter", "2.15.2", false), &objects).unwrap();
        let deployment = sketch.objects.iter().find(|object| object.makes_pods()).unwrap();
        let env = deployment.body()["spec"]["template"]["spec"]["containers"][0]["env"].as_array().unwrap();
        let password = env.iter().find(|env| env["name"] == "HARBOR_DATABASE_PASSWORD").unwrap();
        assert_eq!(password["valueFrom"]["secretKeyRef"], json!({"name": "database", "key": key}));
    }
}

#[test]
fn a_password_that_harbor_would_cut_is_waited_for_with_the_remedy() {
    let mut objects = everything("2.15.2", false);
    for object in &mut objects {
        if object["metadata"]["name"] == "database" {
            object["data"] = json!({"postgres-password": "c2VjcmV0Cg=="}); // with a line break at the end
        }
    }
    let sketch = draw(&component("Core", "2.15.2", false), &objects).unwrap();
    let (_, why) = sketch.waiting.iter().find(|(id, _)| id.starts_with("Deployment ")).unwrap();
    assert!(
        why.contains("Secret database") && why.contains("line break") && !why.contains("secret\n"),
        "{why}"
    );
}

#[test]
fn pods_are_replaced_before_or_after_their_successors_as_their_claim_allows() {
    for (mode, strategy) in [("ReadWriteOnce", "Recreate"), ("ReadWriteMany", "RollingUpdate")] {
        let mut objects = stored_secrets();
        objects.extend([claim(mode), component("RegistryController", "2.15.2", false)]);
        let sketch = draw(&component("Registry", "2.15.2", false), &objects).unwrap();
        let deployment = sketch.objects.iter().find(|object| object.makes_pods()).unwrap();
        assert_eq!(deployment.body()["spec"]["strategy"]["type"], strategy);
    }
    let mut objects = stored_secrets();
    objects.push(component("RegistryController", "2.15.2", false));
    let sketch = draw(&component("Registry", "2.15.2", false), &objects).unwrap();
    assert!(
        sketch.waiting.iter().any(|(id, _)| id == "PersistentVolumeClaim images"),
        "{:?}",
        sketch.waiting
    );
}

#[test]
fn a_component_of_no_version_is_refused_with_the_remedy() {
    for (kind, _) in KINDS {
        let mut owner = component(kind, "2.6.2", false);
        owner["metadata"]["annotations"] = json!({});
        let error = draw(&owner, &everything("2.6.2", false)).unwrap_err().to_string();
        assert!(
            error.contains("harbor.goharbor.io/version") && error.contains("spec.image"),
            "{kind}: {error}"
        );
        owner["spec"]["image"] = json!("mirror.example/it:dev");
        let sketch = draw(&owner, &everything("2.6.2", false)).unwrap();
        let deployment = sketch.objects.iter().find(|object| object.makes_pods()).unwrap();
        let container = &deployment.body()["spec"]["template"]["spec"]["containers"][0];
        assert_eq!(container["image"], "mirror.example/it:dev", "{kind}");
    }
}

/// Settings of pods that a user may set.
fn asked() -> Value {
    let term = json!({"labelSelector": {"matchLabels": {"a": "b"}}, "topologyKey": "zone"});
    json!({
        "replicas": 3, "serviceAccountName": "robot", "nodeSelector": {"disk": "ssd"}, "priorityClassName": "high",
        "automountServiceAccountToken": true,
        "tolerations": [{"key": "k", "operator": "Exists"}], "resources": {"limits": {"cpu": 1}},
        "imagePullPolicy": "Always", "imagePullSecrets": [{"name": "pull"}],
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}},
        "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}],
        "extraEnv": [{"name": "GDPR_DELETE_USER", "value": "true"}], "extraVolumes": [{"name": "more", "emptyDir": {}}],
        "extraVolumeMounts": [{"name": "more", "mountPath": "/more"}],
        "templateLabels": {"team": "a"}, "templateAnnotations": {"note": "b"},
    })
}

fn extend(owner: &mut Value, asked: &Value) {
    owner["spec"].as_object_mut().unwrap().extend(asked.as_object().unwrap().clone());
}

/// The Deployment of what was drawn.
fn deployment(sketch: &Sketch) -> &Value {
    sketch.objects.iter().find(|object| object.makes_pods()).unwrap().body()
}

#[test]
fn pod_settings_of_the_spec_reach_the_pods() {
    let asked = asked();
    for (kind, _) in KINDS {
        let mut owner = component(kind, "2.6.2", false);
        extend(&mut owner, &asked);
        let sketch = draw(&owner, &everything("2.6.2", false)).unwrap();
        let budgets = names(&sketch).iter().filter(|name| name.starts_with("PodDisruptionBudget ")).count();
        assert_eq!(budgets, 1, "{kind}");
        let deployment = deployment(&sketch);
        let template = &deployment["spec"]["template"];
        let (pod, container) = (&template["spec"], &template["spec"]["containers"][0]);
        assert_eq!(deployment["spec"]["replicas"], 3, "{kind}");
        assert_eq!(template["metadata"]["labels"]["team"], "a", "{kind}");
        assert_eq!(template["metadata"]["annotations"]["note"], "b", "{kind}");
        for field in [
            "serviceAccountName",
            "automountServiceAccountToken",
            "nodeSelector",
            "priorityClassName",
            "tolerations",
            "affinity",
            "imagePullSecrets",
            "topologySpreadConstraints",
        ] {
            assert_eq!(pod[field], asked[field], "{kind}: {field}");
        }
        assert_eq!(container["resources"]["limits"]["cpu"], "1", "{kind}");
        assert_eq!(container["imagePullPolicy"], "Always", "{kind}");
        for (there, field) in [
            (&container["env"], "extraEnv"),
            (&container["volumeMounts"], "extraVolumeMounts"),
            (&pod["volumes"], "extraVolumes"),
        ] {
            assert!(there.as_array().unwrap().contains(&asked[field][0]), "{kind}: {field}");
        }
    }
    let mut owner = component("Core", "2.15.2", false);
    owner["spec"]["extraEnv"] = json!([{"name": "CORE_URL", "value": "x"}]);
    let error = draw(&owner, &everything("2.15.2", false)).unwrap_err().to_string();
    assert!(error.starts_with("spec.extraEnv: \"CORE_URL\" is set by the operator"), "{error}");
}

#[test]
fn settings_of_registryctl_reach_the_pods_of_the_registry() {
    let asked = asked();
    let mut there = everything("2.15.2", false);
    let controller = there.iter_mut().find(|object| object["kind"] == "RegistryController").unwrap();
    extend(controller, &asked);
    let mut registry = component("Registry", "2.15.2", false);
    extend(&mut registry, &json!({"imagePullSecrets": [{"name": "own"}]}));
    let sketch = draw(&registry, &there).unwrap();
    let pod = &deployment(&sketch)["spec"]["template"]["spec"];
    assert_eq!(pod["imagePullSecrets"], json!([{"name": "own"}, {"name": "pull"}]));
    assert!(pod["volumes"].as_array().unwrap().contains(&asked["extraVolumes"][0]));
    let beside = &pod["containers"][1];
    assert!(beside["volumeMounts"].as_array().unwrap().contains(&asked["extraVolumeMounts"][0]));
    assert!(beside["env"].as_array().unwrap().contains(&asked["extraEnv"][0]));
    // Where pods run is the registry's to say.
    assert!(pod["nodeSelector"].is_null());
}

#[test]
fn the_secret_of_a_registry_arrives_as_it_is_whatever_is_in_it() {
    // The registry reads its environment as YAML: `plain0`, and `*star: [`.
    for (encoded, name) in [("cGxhaW4w", "odd"), ("KnN0YXI6IFs=", "sample-harbor-registry")] {
        let mut there = everything("2.15.2", false);
        there.push(json!({"kind": "Secret", "metadata": {"name": "odd"}, "data": {"secret": encoded}}));
        let mut registry = component("Registry", "2.15.2", false);
        registry["spec"]["http"]["secretRef"] = json!("odd");
        let sketch = draw(&registry, &there).unwrap();
        let env = deployment(&sketch)["spec"]["template"]["spec"]["containers"][0]["env"].clone();
        let all = env.as_array().unwrap();
        let variable = all.iter().find(|variable| variable["name"] == "REGISTRY_HTTP_SECRET").unwrap();
        assert_eq!(variable["valueFrom"]["secretKeyRef"]["name"], name, "{variable}");
    }
}

#[test]
fn contour_gets_the_annotation_of_the_tls_port() {
    let annotation = |controller: &str, tls: bool| {
        let mut owner = component("Core", "2.15.2", tls);
        owner["metadata"]["annotations"]["goharbor.io/ingress-controller"] = json!(controller);
        let sketch = draw(&owner, &everything("2.15.2", tls)).unwrap();
        let service = sketch.objects.iter().find(|object| object.resource().kind == "Service").unwrap();
        service.body()["metadata"]["annotations"]["projectcontour.io/upstream-protocol.tls"].clone()
    };
    assert!(annotation("contour", true).is_string());
    assert!(annotation("contour", false).is_null(), "there is none");
    assert!(annotation("default", true).is_null(), "nobody would read it");
}

#[test]
fn a13_network_policies_are_created_where_enabled_and_open_the_served_ports() {
    for (kind, _) in KINDS {
        let mut owner = component(kind, "2.6.2", true);
        let plain = draw(&owner, &everything("2.6.2", true)).unwrap();
        assert!(!names(&plain).iter().any(|name| name.starts_with("NetworkPolicy ")), "{kind}");
        owner["metadata"]["annotations"]["goharbor.io/network-policies"] = json!("true");
        let sketch = draw(&owner, &everything("2.6.2", true)).unwrap();
        let ports: Vec<Value> = sketch
            .objects
            .iter()
            .filter(|object| object.makes_pods())
            .flat_map(|object| {
                object.body()["spec"]["template"]["spec"]["containers"].as_array().unwrap().clone()
            })
            .flat_map(|container| container["ports"].as_array().unwrap().clone())
            .map(|port| port["containerPort"].clone())
            .collect();
        let is_policy = |object: &&windlass::Desired| object.key().name().ends_with("-ingress");
        let policy = sketch.objects.iter().find(is_policy).unwrap_or_else(|| panic!("{kind}")).body();
        let open: Vec<Value> = policy["spec"]["ingress"][0]["ports"]
            .as_array()
            .unwrap()
            .iter()
            .map(|port| port["port"].clone())
            .collect();
        assert_eq!(open, ports, "{kind}");
    }
}

/// The volumes of the pods of a component, and its whole rendering.
fn pods(kind: &str, change: impl FnOnce(&mut Value)) -> (Value, String) {
    let version = if kind.starts_with("Notary") { "2.6.2" } else { "2.15.2" };
    let mut owner = component(kind, version, false);
    change(&mut owner["spec"]);
    let mut all = everything(version, false);
    all.push(json!({"kind": "Secret", "metadata": {"name": "db-ca"}, "data": {"ca.crt": "YXV0aG9yaXR5"}}));
    let sketch = draw(&owner, &all).unwrap();
    assert!(sketch.waiting.is_empty(), "{kind}: {:?}", sketch.waiting);
    let deployment = sketch.objects.iter().find(|object| object.makes_pods()).unwrap();
    let volumes = deployment.body()["spec"]["template"]["spec"]["volumes"].clone();
    let text = sketch.objects.iter().map(|object| object.body().to_string()).collect();
    (volumes, text)
}

#[test]
fn users_d3_components_trust_the_authority_of_their_database() {
    for kind in ["Core", "Exporter"] {
        let (volumes, _) = pods(kind, |spec| spec["database"]["certificateRef"] = json!("db-ca"));
        let text = volumes.to_string();
        assert!(text.contains(r#""items":[{"key":"ca.crt","path":"db-ca-database.crt"}]"#), "{kind}: {text}");
    }
    for kind in ["NotaryServer", "NotarySigner"] {
        let (volumes, text) =
            pods(kind, |spec| spec["storage"]["postgres"]["certificateRef"] = json!("db-ca"));
        assert!(volumes.to_string().contains(r#""secretName":"db-ca""#), "{kind}: {volumes}");
        assert!(text.contains(r#""mountPath":"/etc/notary-database""#), "{kind}: {text}");
        let url = text.split(r#""DB_URL":""#).nth(1).and_then(|rest| rest.split('"').next()).unwrap();
        let url = String::from_utf8(BASE64_STANDARD.decode(url).unwrap()).unwrap();
        assert!(url.ends_with("&sslrootcert=/etc/notary-database/ca.crt"), "{kind}: {url}");
    }
}

#[test]
fn users_n7_a_component_whose_release_ignores_the_certificate_of_redis_gets_advice() {
    for (kind, path) in [
        ("Core", "/spec/redis"),
        ("Core", "/spec/components/registry/redis"),
        ("JobService", "/spec/workerPool/redisPool"),
        ("Registry", "/spec/redis"),
        ("Trivy", "/spec/redis"),
        ("Exporter", "/spec/jobservice/redisPool"),
        ("ChartMuseum", "/spec/cache/redis"),
    ] {
        let advice = |version: &str, certificate: bool| {
            let mut owner = component(kind, version, false);
            if certificate {
                owner.pointer_mut(path).unwrap()["certificateRef"] = json!("redis-ca");
            }
            let mut all = everything(version, false);
            all.push(
                json!({"kind": "Secret", "metadata": {"name": "redis-ca"}, "data": {"ca.crt": "YXV0aG9yaXR5"}}),
            );
            draw(&owner, &all).unwrap().advice
        };
        let old = if kind == "ChartMuseum" { "2.6.2" } else { "2.12.4" };
        let found = advice(old, true).join("\n");
        let field = format!("{}.certificateRef", path[1..].replace('/', "."));
        for part in [&*field, old, "clear text", "2.13.0"] {
            assert!(found.contains(part), "{kind}: {part} in {found:?}");
        }
        assert!(advice(old, false).is_empty(), "{kind}");
        if kind != "ChartMuseum" {
            assert!(advice("2.13.0", true).is_empty(), "{kind}");
        }
    }
}

/// The variables of the pods of a component: literal values, and values of its own Secret.
fn variables(kind: &str, version: &str, change: &dyn Fn(&mut Value)) -> Result<Map<String, Value>, String> {
    let mut owner = component(kind, version, false);
    change(&mut owner["spec"]);
    let sketch = draw(&owner, &everything(version, false)).map_err(|error| error.to_string())?;
    assert!(sketch.waiting.is_empty(), "{kind}: {:?}", sketch.waiting);
    let of_kind = |kind: &str| {
        let mut bodies = sketch.objects.iter().map(windlass::Desired::body);
        bodies.find(|body| body["kind"] == kind).unwrap()
    };
    let secret = of_kind("Secret");
    let container = &of_kind("Deployment")["spec"]["template"]["spec"]["containers"][0];
    let mut all = Map::new();
    for variable in container["env"].as_array().unwrap() {
        let from = &variable["valueFrom"]["secretKeyRef"];
        let own = from["name"] == secret["metadata"]["name"];
        let stored = secret["data"][from["key"].as_str().unwrap_or_default()].as_str().filter(|_| own);
        let value = match stored {
            Some(stored) => json!(String::from_utf8(BASE64_STANDARD.decode(stored).unwrap()).unwrap()),
            None => variable["value"].clone(),
        };
        all.insert(variable["name"].as_str().unwrap().to_owned(), value);
    }
    if kind == "Trivy" {
        all.extend(of_kind("ConfigMap")["data"].as_object().unwrap().clone());
    }
    Ok(all)
}

/// The variables that a change adds; everything else must stay as it was.
fn added(kind: &str, version: &str, change: &dyn Fn(&mut Value)) -> Result<Value, String> {
    let (before, after) = (variables(kind, version, &|_| ())?, variables(kind, version, change)?);
    for (name, value) in &before {
        assert_eq!(after.get(name), Some(value), "{kind} {version}: {name}");
    }
    Ok(after.into_iter().filter(|(name, _)| !before.contains_key(name)).collect::<Map<_, _>>().into())
}

#[test]
fn the_cache_layer_is_configured_in_core_and_job_service_as_their_release_reads_it() {
    let redis = json!({"host": "redis", "passwordRef": "redis", "database": 0});
    for kind in ["Core", "JobService"] {
        let layer = |spec: &mut Value| {
            spec["cacheLayer"] = json!({"expireHours": 48});
            if kind == "JobService" {
                spec["cacheLayer"]["redis"] = redis.clone();
            }
        };
        for (version, own) in [("2.6.2", false), ("2.7.2", false), ("2.7.3", true), ("2.15.2", true)] {
            let mut found = added(kind, version, &layer).unwrap();
            let found = found.as_object_mut().unwrap();
            let urls = found.remove("_REDIS_URL_CACHE_LAYER");
            assert_eq!(urls.is_some(), own, "{kind} {version}");
            if let Some(url) = urls {
                let url = url.as_str().unwrap();
                assert!(url.starts_with("redis://:") && url.contains("/7?idle_timeout_seconds="), "{url}");
            }
            if kind == "JobService" {
                let core = found.remove("_REDIS_URL_CORE").unwrap();
                assert!(core.as_str().unwrap().contains("@redis:6379/0?"), "{core}");
            }
            let expected = json!({"CACHE_ENABLED": "true", "CACHE_EXPIRE_HOURS": "48"});
            assert_eq!(Value::Object(found.clone()), expected, "{kind} {version}");
        }
        let error = added(kind, "2.5.6", &layer).unwrap_err();
        for part in ["spec.cacheLayer.expireHours", "2.5.6", "2.6.0 or newer"] {
            assert!(error.contains(part), "{part} in {error}");
        }
    }
    let usual = |spec: &mut Value| spec["cacheLayer"] = json!({});
    assert_eq!(added("Core", "2.15.2", &usual).unwrap()["CACHE_EXPIRE_HOURS"], "24");
}

#[test]
fn trivy_downloads_its_databases_from_the_repositories_of_the_spec() {
    let mirror = |spec: &mut Value| {
        spec["update"]["dbRepository"] = json!("mirror.example.com/trivy-db");
        spec["update"]["javaDBRepository"] = json!("mirror.example.com/trivy-java-db");
    };
    let expected = json!({
        "SCANNER_TRIVY_DB_REPOSITORY": "mirror.example.com/trivy-db",
        "SCANNER_TRIVY_JAVA_DB_REPOSITORY": "mirror.example.com/trivy-java-db",
    });
    assert_eq!(added("Trivy", "2.15.2", &mirror).unwrap(), expected);
    let error = added("Trivy", "2.14.4", &mirror).unwrap_err();
    for part in ["spec.update.dbRepository", "mirror.example.com/trivy-db", "2.14.4", "2.15.0 or newer"] {
        assert!(error.contains(part), "{part} in {error}");
    }
}
