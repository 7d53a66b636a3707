//! The plan of a Harbor: its objects and their order.
//!
//! Order of the start: credentials and certificates, the registry, Core, all other components, and finally
//! the Ingress or Service. Order of an upgrade: Core before all others, because it migrates the database.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Secret, Service};
use k8s_openapi::api::networking::v1::{Ingress, NetworkPolicy};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use serde_json::{Value, json};
use windlass::live::Live;
use windlass::{
    Blueprint, Controls, Deletion, Kinds, Needs, Plan, PlanError, PlanState, Planned, Predecessor, Readiness,
    Takeover, readiness,
};

use crate::api::harbor::DeletionPolicy;
use crate::api::names::blueprint;
use crate::api::{
    ChartMuseum, Core, Exporter, Harbor, JobService, NotaryServer, NotarySigner, Portal, Registry,
    RegistryController, Trivy,
};
use crate::catalogue::Component;
use crate::settings::HarborSettings;
use crate::takeover;
use crate::workload::in_progress;

use super::certificates::Certificates;
use super::certmanager::{Certificate, Issuer};
use super::components::Wiring;
use super::credentials::Credential;
use super::names::Names;
use super::secrets::Secrets;
use super::tls::Authority;
use super::{data, expose, password, policies, proxy, upgrade};

/// The blueprint of a Harbor.
#[derive(Clone, Debug, Default)]
pub struct HarborBlueprint {
    settings: HarborSettings,
}

impl HarborBlueprint {
    /// Returns the blueprint with the operator's settings.
    pub fn new(settings: HarborSettings) -> Self {
        Self { settings }
    }
}

impl Controls for HarborBlueprint {
    type Owner = Harbor;
    const NAME: &'static str = blueprint::HARBOR;
    /// The garbage collector deletes a Harbor's objects by their owner references; objects that hold data
    /// have none unless the spec says to delete them. Nothing has to be undone, so a Harbor can be deleted
    /// without the operator.
    const DELETION: Deletion<Harbor> = Deletion::NoLongerOrdered;

    fn kinds(&self, kinds: &mut Kinds) {
        kinds.owns::<Secret>().owns_if_installed::<Certificate>();
        kinds.owns::<Registry>().owns::<RegistryController>().owns::<Core>().owns::<JobService>();
        kinds.owns::<Portal>().owns::<ChartMuseum>().owns::<Exporter>().owns::<Trivy>();
        kinds.owns::<NotaryServer>().owns::<NotarySigner>();
        kinds.owns::<Ingress>().owns::<NetworkPolicy>();
        kinds.owns::<Service>().owns::<ConfigMap>().owns::<Deployment>().owns::<PodDisruptionBudget>();
        kinds.reads_made_by::<Secret>(blueprint::HARBOR_CLUSTER).requires::<PersistentVolumeClaim>();
    }

    fn status(&self, harbor: &Harbor, seen: &PlanState<'_>) -> Option<Value> {
        let standing = harbor.status.as_ref().and_then(|status| status.other.get(upgrade::FIELD).cloned());
        let version = if seen.is_ready() { Some(json!(harbor.spec.common.version)) } else { standing };
        let in_progress = in_progress(seen);
        let schema = seen.live::<Core, _>(Names::of(harbor).base(), upgrade::schema).flatten();
        let conditions: Vec<Value> = [in_progress].into_iter().chain(schema).collect();
        Some(json!({
            "operator": {"controllerName": "harbor", "controllerVersion": env!("CARGO_PKG_VERSION")},
            upgrade::FIELD: version,
            "conditions": conditions,
        }))
    }

    fn takeover(&self) -> Takeover<Harbor> {
        let settings = self.settings.clone();
        takeover::from_upstream().writers::<Certificate>().writers::<Issuer>().wait_while(
            move |harbor: &Harbor| takeover::awaits(&harbor.metadata, &takeover::HARBOR_CLUSTER, &settings),
        )
    }
}

impl Blueprint for HarborBlueprint {
    fn draw(&self, harbor: &Harbor, needs: &mut Needs<'_>, plan: &mut Plan) -> Result<(), PlanError> {
        let own_certificate = proxy_certificate(harbor).map(|name| needs.require::<Secret>(name));
        // Both ask for objects before the first `?`.
        let password = password::check(harbor, needs);
        let standing = data::standing(harbor, needs)?;
        password?;
        let wish = upgrade::wish(harbor, standing.as_ref())?;
        let wiring = Wiring::of(harbor, wish.release, &self.settings)?;
        let common = wiring.common();
        for advice in [dropped_session(&wiring), wiring.ignored_certificate()].into_iter().flatten() {
            plan.advise(advice);
        }
        let secrets = Secrets::plan(&wiring, &self.settings, plan);
        let certificates = Certificates::plan(&wiring, &self.settings, plan);
        let of = |part| certificates.of(part);

        let registry = |plan: &mut Plan, before: Option<&Planned>| {
            let controller = plan
                .add(wiring.registry_controller())
                // The RegistryController runs in the registry's pods and is ready with them; the registry in
                // turn waits for the object to exist.
                .ready_when(|_| Readiness::Ready)
                .after(of(Component::RegistryController))
                .after([&secrets.core, &secrets.job_service])
                .after(before);
            let needs = [&secrets.registry_users, &secrets.registry_http, &controller];
            component(plan.add(wiring.registry())).after(needs).after(of(Component::Registry)).after(before)
        };
        // The data is brought to another version by Core.
        let key = wiring.credential(Credential::EncryptionKey);
        let is_retained = common.deletion_policy() == DeletionPolicy::Retain;
        let former = standing.filter(|_| wish.upgrading && is_retained).map(|standing| {
            plan.record_if_absent::<Secret>(&key, standing.to_string()).after([&secrets.encryption_key])
        });
        let core = |plan: &mut Plan, before: Option<&Planned>| {
            component(plan.add(wiring.core()))
                .after(former.as_ref())
                .after(secrets.of_core())
                .after(of(Component::Core))
                .after(certificates.public.as_ref())
                .after(before)
        };
        let (registry, core) = if wish.upgrading {
            let core = core(plan, None);
            (registry(plan, Some(&core)), core)
        } else {
            let registry = registry(plan, None);
            let core = core(plan, Some(&registry));
            (registry, core)
        };
        plan.record::<Secret>(&key, common.version.clone()).behind([&core]).when(is_retained);
        // Components that start at once, unless an upgrade migrates the database.
        let migrated = wish.upgrading.then_some(&core);

        component(plan.add(wiring.job_service()))
            .after([&core, &registry, &secrets.core, &secrets.job_service, &secrets.registry_users])
            .after(of(Component::JobService));
        let portal = component(plan.add(wiring.portal()))
            .after(of(Component::Portal))
            .after(migrated)
            .when(common.portal.is_some());
        component(plan.add(wiring.chart_museum()))
            .after([&secrets.core])
            .after(of(Component::ChartMuseum))
            .after(migrated)
            .when(common.chartmuseum.is_some());
        component(plan.add(wiring.exporter()))
            .after([&core, &secrets.encryption_key])
            .after(of(Component::Exporter))
            .when(common.exporter.is_some());
        let token = wiring.github_token().map(|secret| plan.add(secret));
        component(plan.add(wiring.trivy()))
            .after([&core])
            .after(of(Component::Trivy))
            .after(certificates.public.as_ref())
            .after(token.as_ref())
            .when(common.trivy.is_some());
        let notary = self.notary(&wiring, &secrets, &certificates, migrated, plan);

        if let (Some(ingress), Some(spec)) = (expose::core(&wiring)?, &common.expose.core.ingress) {
            let ingress = plan.add(ingress).after(certificates.public.as_ref());
            if !expose::makes_its_certificate(spec) {
                ingress.after([&core, &registry, &portal]);
            }
        }
        if let (Some(ingress), Some(server)) = (expose::notary(&wiring)?, notary) {
            plan.add(ingress).after([&server]).after(certificates.notary.as_ref());
        }
        if let Some(objects) = proxy::objects(&wiring)? {
            let (config, _) = (plan.add(objects.config), plan.add(objects.service));
            let certificate = own_certificate.or(certificates.public.clone());
            plan.add(objects.deployment).after([&config, &core, &portal]).after(certificate.as_ref());
            if let Some(budget) = objects.budget {
                plan.add(budget);
            }
        }
        for policy in policies::all(&wiring)? {
            plan.add(policy).when(wiring.has_policies());
        }
        Ok(())
    }
}

impl HarborBlueprint {
    /// Adds both components of Notary with their Secrets. Returns the server.
    fn notary(
        &self,
        wiring: &Wiring<'_>,
        secrets: &Secrets,
        certificates: &Certificates,
        migrated: Option<&Planned>,
        plan: &mut Plan,
    ) -> Option<Planned> {
        let (common, names) = (wiring.common(), &wiring.names);
        common.notary.as_ref()?;
        let key = Credential::NotarySignerKey.plan(names, 0, common.deletion_policy(), plan);
        let name = names.with("notarysigner-authority");
        let own = self.settings.notary_authority_duration;
        let issuers = ["notarysigner-authority", "notarysigner-authentication"];
        let signing = Authority::plan(names, &name, own, self.settings.notary_signer, plan)
            .instead_of(&name, issuers.map(|issuer| names.with(issuer)));
        let asking = signing.issuing(self.settings.notary_server);
        let (signer, server) = (names.hosts(Component::NotarySigner), names.hosts(Component::NotaryServer));
        let certificate = |authority: &Authority, name: String, hosts, plan: &mut Plan| {
            authority
                .certificate(names, &name, hosts, plan)
                .takes_over(Predecessor::written_by::<Certificate>(name))
        };
        let signer = certificate(&signing, wiring.notary_signer_certificate(), signer, plan);
        let server = certificate(&asking, wiring.notary_server_certificate(), server, plan);
        let signer = component(plan.add(wiring.notary_signer())).after([&signer, &key]).after(migrated);
        Some(
            component(plan.add(wiring.notary_server()))
                .after([&signer, &server, &secrets.token])
                .after(certificates.of(Component::NotaryServer))
                .after(migrated),
        )
    }
}

/// A component is ready when its own controller says so in the status.
fn component(planned: Planned) -> Planned {
    planned.ready_when(|live: &Live| match live.status.condition("Ready") {
        Some(_) => readiness::by_conditions(live),
        None => Readiness::waiting("its controller has not reconciled it yet"),
    })
}

/// Returns the name of the user's certificate Secret for the proxy.
fn proxy_certificate(harbor: &Harbor) -> Option<&str> {
    let expose = &harbor.spec.common.expose.core;
    expose.service.as_ref().and(expose.certificate())
}

/// Returns advice if browsers drop the session cookie: the clients use an http URL, Core with internal TLS
/// marks the cookie Secure, and an Ingress passes it on as it is. The proxy of this operator removes
/// the flag.
fn dropped_session(wiring: &Wiring<'_>) -> Option<String> {
    let common = wiring.common();
    let dropped = wiring.has_tls()
        && common.expose.core.ingress.is_some()
        && common.external_url.starts_with("http://");
    dropped.then(|| {
        format!(
            "spec.externalURL: {:?} is an http URL, and internalTLS is enabled: Core marks its session \
             cookie Secure, browsers drop it, and nobody can sign in to the portal: use an https URL \
             (expose.core.tls.builtIn: true generates a certificate), or disable internalTLS",
            common.external_url
        )
    })
}

#[cfg(test)]
pub(super) mod samples {
    use super::*;
    use crate::catalogue::{Release, Version};

    /// Returns a minimal Harbor.
    pub(crate) fn harbor(version: &str, tls: bool) -> Harbor {
        let object = json!({
            "apiVersion": "goharbor.io/v1beta1", "kind": "Harbor",
            "metadata": {"name": "sample", "namespace": "registry"},
            "spec": {
                "externalURL": "https://harbor.example.com",
                "harborAdminPasswordRef": "admin",
                "version": version,
                "internalTLS": {"enabled": tls},
                "expose": {"core": {"ingress": {"host": "harbor.example.com"}, "tls": {"certificateRef": "public"}}},
                "portal": {},
                "database": {"hosts": [{"host": "db"}], "username": "harbor", "passwordRef": "db", "sslMode": "disable"},
                "redis": {"host": "redis"},
                "imageChartStorage": {"filesystem": {"registryPersistentVolume": {"claimName": "images"}}},
            },
        });
        serde_json::from_value(object).unwrap()
    }

    /// Returns a Harbor with all components.
    pub(crate) fn full(version: &str, tls: bool) -> Harbor {
        let mut harbor = serde_json::to_value(harbor(version, tls)).unwrap();
        let spec = &mut harbor["spec"];
        for (part, of) in [
            ("core", json!({"metrics": {"enabled": true}})),
            ("jobservice", json!({"metrics": {"enabled": true}})),
            ("registry", json!({"metrics": {"enabled": true}})),
            ("chartmuseum", json!({})),
            ("exporter", json!({})),
            ("notary", json!({})),
            ("trivy", json!({"storage": {}})),
        ] {
            spec[part] = of;
        }
        spec["imageChartStorage"]["filesystem"]["chartPersistentVolume"] = json!({"claimName": "charts"});
        spec["expose"]["notary"] = json!({"ingress": {"host": "notary.example.com"}});
        serde_json::from_value(harbor).unwrap()
    }

    /// Calls a function with the wiring of a Harbor.
    pub(crate) fn wired<T>(harbor: &Harbor, ask: impl FnOnce(&Wiring<'_>) -> T) -> T {
        let version: Version = harbor.spec.common.version.parse().unwrap();
        let settings = HarborSettings::default();
        ask(&Wiring::of(harbor, Release::of(&version).unwrap(), &settings).unwrap())
    }
}

#[cfg(test)]
mod tests {
    use super::samples::{full, harbor};
    use super::*;

    fn plan(harbor: &Harbor) -> String {
        windlass::preview(&HarborBlueprint::default(), harbor).unwrap().text().to_string()
    }

    /// Returns all objects that are applied as they are.
    fn objects(harbor: &Harbor) -> Vec<Value> {
        let sketch = windlass::sketch(&HarborBlueprint::default(), harbor, &[]).unwrap();
        sketch.objects.iter().map(|object| object.body().clone()).collect()
    }

    fn one<'a>(objects: &'a [Value], kind: &str) -> &'a Value {
        objects.iter().find(|object| object["kind"] == kind).unwrap_or_else(|| panic!("no {kind}"))
    }

    #[test]
    fn the_plan_of_a_small_harbor() {
        for version in ["2.6.2", "2.15.2"] {
            for tls in [false, true] {
                let name = format!("plan_{version}_{}", if tls { "tls" } else { "plain" });
                insta::assert_snapshot!(name, plan(&harbor(version, tls)));
            }
        }
        insta::assert_snapshot!("plan_2.6.2_full", plan(&full("2.6.2", true)));
    }

    #[test]
    fn users_d3_the_authority_of_the_database_reaches_all_its_clients() {
        let mut harbor = full("2.6.2", false);
        let database = harbor.spec.database.as_mut().unwrap();
        database.certificate_ref = Some("db-ca".to_owned());
        let objects = objects(&harbor);
        for kind in ["Core", "Exporter"] {
            assert_eq!(one(&objects, kind)["spec"]["database"]["certificateRef"], "db-ca", "{kind}");
        }
        for kind in ["NotaryServer", "NotarySigner"] {
            let postgres = &one(&objects, kind)["spec"]["storage"]["postgres"];
            assert_eq!(postgres["certificateRef"], "db-ca", "{kind}");
        }
        assert_eq!(one(&objects, "JobService")["spec"]["certificateRefs"], json!(["db-ca"]));
    }

    #[test]
    fn the_specs_of_the_components() {
        let text = |harbor: &Harbor| -> String {
            let each = |object: &Value| serde_json::to_string_pretty(object).unwrap();
            objects(harbor).iter().map(each).collect::<Vec<_>>().join("\n---\n")
        };
        for version in ["2.6.2", "2.8.6", "2.9.5", "2.15.2"] {
            for tls in [false, true] {
                let name = format!("objects_{version}_{}", if tls { "tls" } else { "plain" });
                insta::assert_snapshot!(name, text(&harbor(version, tls)));
            }
        }
        insta::assert_snapshot!("objects_2.6.2_full", text(&full("2.6.2", true)));
        // Exposed by a Service, with NetworkPolicies, and with a token key from cert-manager.
        let mut other = serde_json::to_value(harbor("2.15.2", true)).unwrap();
        other["metadata"]["annotations"] = json!({"goharbor.io/network-policies": "true"});
        other["spec"]["core"] = json!({"tokenIssuer": {"name": "issuer"}});
        other["spec"]["expose"] = json!({"core": {"tls": {}, "service": {
            "type": "LoadBalancer", "proxy": {"replicas": 2}}}});
        insta::assert_snapshot!("objects_2.15.2_service", text(&serde_json::from_value(other).unwrap()));
    }

    #[test]
    fn users_d2_an_http_url_behind_an_ingress_with_internal_tls_gives_advice() {
        let advice = |url: &str, tls: bool, expose: Value| {
            let mut harbor = serde_json::to_value(harbor("2.15.2", tls)).unwrap();
            harbor["spec"]["externalURL"] = json!(url);
            harbor["spec"]["expose"] = json!({"core": expose});
            samples::wired(&serde_json::from_value(harbor).unwrap(), dropped_session)
        };
        let ingress = || json!({"ingress": {"host": "harbor.example.com"}});
        let found = advice("http://harbor.example.com", true, ingress()).unwrap();
        for part in ["spec.externalURL", "http://harbor.example.com", "https", "builtIn", "internalTLS"] {
            assert!(found.contains(part), "{part} in {found}");
        }
        assert_eq!(advice("https://harbor.example.com", true, ingress()), None);
        assert_eq!(advice("http://harbor.example.com", false, ingress()), None);
        let service = json!({"service": {"type": "ClusterIP"}});
        assert_eq!(advice("http://harbor.example.com", true, service), None, "the proxy removes the flag");
    }

    #[test]
    fn users_n7_a_stored_harbor_whose_release_ignores_the_certificate_of_redis_gets_advice() {
        let advice = |version: &str, certificate: Option<&str>| {
            let mut harbor = harbor(version, false);
            harbor.spec.redis.as_mut().unwrap().certificate_ref = certificate.map(str::to_owned);
            windlass::sketch(&HarborBlueprint::default(), &harbor, &[]).unwrap().advice
        };
        let found = advice("2.12.4", Some("redis-ca"));
        assert_eq!(found.len(), 1, "{found:?}");
        for part in ["spec.redis.certificateRef", "2.12.4", "clear text", "2.13.0", "remove certificateRef"] {
            assert!(found[0].contains(part), "{part} in {found:?}");
        }
        assert!(advice("2.12.4", None).is_empty());
        assert!(advice("2.13.0", Some("redis-ca")).is_empty());
    }

    #[test]
    fn the_cache_layer_and_the_repositories_of_trivy_reach_the_components() {
        let mut value = serde_json::to_value(harbor("2.15.2", false)).unwrap();
        value["spec"]["core"] = json!({"cacheLayer": {"expireHours": 12}});
        value["spec"]["trivy"] =
            json!({"storage": {}, "dbRepository": "mirror/db", "javaDBRepository": "mirror/java"});
        let objects = objects(&serde_json::from_value(value).unwrap());
        assert_eq!(one(&objects, "Core")["spec"]["cacheLayer"], json!({"expireHours": 12}));
        let layer = json!({"expireHours": 12, "redis": {"host": "redis", "database": 0}});
        assert_eq!(one(&objects, "JobService")["spec"]["cacheLayer"], layer);
        let update = json!({"dbRepository": "mirror/db", "javaDBRepository": "mirror/java", "skip": false});
        assert_eq!(one(&objects, "Trivy")["spec"]["update"], update);
    }

    #[test]
    fn drawing_twice_gives_the_same() {
        for harbor in [harbor("2.15.2", true), full("2.6.2", true)] {
            assert_eq!(objects(&harbor), objects(&harbor));
        }
    }

    #[test]
    fn a1_a2_credentials_are_generated_once_and_nothing_of_a_spec_is_in_them() {
        let kept = |harbor: &Harbor| -> Vec<String> {
            plan(harbor).lines().filter(|line| line.contains("generate once")).map(str::to_owned).collect()
        };
        let before = full("2.6.2", true);
        let mut after = before.clone();
        after.spec.common.log_level = crate::api::log::LogLevel::Debug;
        after.spec.common.external_url = "https://other.example.com".into();
        assert_eq!(kept(&before), kept(&after));
        for credential in ["sample-harbor-registry-basicauth", "sample-harbor-notarysigner-encryption-key"] {
            assert!(kept(&before).iter().any(|line| line.contains(credential)), "{credential}");
            assert!(objects(&before).iter().all(|object| object["metadata"]["name"] != credential));
        }
    }

    #[test]
    fn a3_every_secret_that_a_component_needs_comes_before_it_and_is_named_in_it() {
        // Components watch the Secrets that they name and replace their pods when these change, so it is
        // enough that all are named.
        let objects = objects(&full("2.6.2", true));
        let names: Vec<String> = plan(&full("2.6.2", true))
            .lines()
            .filter_map(|line| {
                let node = line.trim_start_matches(|c: char| !c.is_ascii_alphabetic());
                node.strip_prefix("Secret ")?.split(": planned").next().map(str::to_owned)
            })
            .collect();
        assert!(names.len() > 20, "{names:?}");
        let all = serde_json::to_string(&objects).unwrap();
        for name in names.iter().filter(|name| !name.ends_with("-authority")) {
            assert!(all.contains(&format!("\"{name}\"")), "nobody uses {name}");
        }
    }

    #[test]
    fn a8_notary_without_an_ingress_is_accepted() {
        let mut harbor = full("2.6.2", false);
        harbor.spec.common.expose.notary = None;
        let kinds: Vec<Value> = objects(&harbor);
        let ingresses = kinds.iter().filter(|object| object["kind"] == "Ingress").count();
        assert_eq!(ingresses, 1);
        assert!(kinds.iter().any(|object| object["kind"] == "NotaryServer"));
    }

    #[test]
    fn a10_trivy_and_ingresses_are_followed() {
        let mut kinds = Kinds::default();
        HarborBlueprint::default().kinds(&mut kinds);
        let rights = format!("{:?}", windlass::PlanController::of(HarborBlueprint::default()).access());
        for kind in ["trivies", "ingresses", "exporters"] {
            assert!(rights.contains(kind), "{kind} in {rights}");
        }
    }

    #[test]
    fn a15_applied_objects_contain_no_secret() {
        let settings = HarborSettings { github_token: Some("hunter2".into()), ..HarborSettings::default() };
        let sketch = windlass::sketch(&HarborBlueprint::new(settings), &full("2.6.2", true), &[]).unwrap();
        for object in &sketch.objects {
            let body = object.body();
            assert!(body["kind"] == "Secret" || !body.to_string().contains("hunter2"));
        }
        let token = sketch.objects.iter().find(|object| object.body()["kind"] == "Secret").unwrap();
        assert_eq!(token.body()["type"], "goharbor.io/github");
    }

    #[test]
    fn the_keys_that_data_needs_outlive_the_harbor_unless_it_says_otherwise() {
        let retained = |harbor: &Harbor| -> Vec<String> {
            let plan = plan(harbor);
            let lines = plan.lines().filter(|line| line.contains("retained"));
            lines
                .filter_map(|line| line.split("Secret ").nth(1)?.split(':').next())
                .map(str::to_owned)
                .collect()
        };
        let mut harbor = full("2.6.2", false);
        let kept = ["sample-harbor-core-encryptionkey", "sample-harbor-notarysigner-encryption-key"];
        assert_eq!(retained(&harbor), kept);
        harbor.spec.common.deletion_policy = Some(crate::api::harbor::DeletionPolicy::Delete);
        assert!(retained(&harbor).is_empty());
    }

    #[test]
    fn removing_an_optional_component_removes_its_objects_and_changes_core_only() {
        let whole = full("2.6.2", true);
        let mut without = whole.clone();
        without.spec.common.trivy = None;
        let ids = |harbor: &Harbor| -> Vec<String> {
            let mut ids: Vec<String> = plan(harbor)
                .lines()
                .skip(1)
                .filter_map(|line| {
                    let node = line.trim_start_matches(|c: char| !c.is_ascii_alphabetic());
                    node.split(": planned").next().map(str::to_owned)
                })
                .collect();
            ids.sort();
            ids.dedup();
            ids
        };
        let (with, left) = (ids(&whole), ids(&without));
        let gone: Vec<&String> = with.iter().filter(|id| !left.contains(id)).collect();
        assert_eq!(gone, ["Secret sample-harbor-internal-tls-trivy", "Trivy sample-harbor"]);
        let (before, after) = (objects(&whole), objects(&without));
        let changed: Vec<&Value> = after.iter().filter(|object| !before.contains(object)).collect();
        assert_eq!(changed.iter().map(|object| &object["kind"]).collect::<Vec<_>>(), ["Core"]);
    }

    #[test]
    fn an_upgrade_begins_with_core() {
        let mut harbor = full("2.7.4", true);
        harbor.status = serde_json::from_value(json!({"version": "2.6.2"})).unwrap();
        insta::assert_snapshot!("plan_upgrade", plan(&harbor));
    }

    #[test]
    fn images_come_from_the_repository_of_the_spec_or_of_the_settings() {
        let mut harbor = harbor("2.15.2", false);
        let image = |harbor: &Harbor, settings: &HarborSettings| {
            let sketch = windlass::sketch(&HarborBlueprint::new(settings.clone()), harbor, &[]).unwrap();
            let objects: Vec<Value> = sketch.objects.iter().map(|object| object.body().clone()).collect();
            one(&objects, "Core")["spec"]["image"].as_str().unwrap().to_owned()
        };
        let mirror =
            HarborSettings { image_repository: Some("mirror/x".into()), ..HarborSettings::default() };
        assert_eq!(image(&harbor, &HarborSettings::default()), "goharbor/harbor-core:v2.15.2");
        assert_eq!(image(&harbor, &mirror), "mirror/x/harbor-core:v2.15.2");
        let source =
            json!({"repository": "own", "tagSuffix": "-dev", "imagePullSecrets": [{"name": "pull"}]});
        harbor.spec.common.image_source = Some(serde_json::from_value(source).unwrap());
        assert_eq!(image(&harbor, &mirror), "own/harbor-core:v2.15.2-dev");
        assert_eq!(one(&objects(&harbor), "Portal")["spec"]["imagePullSecrets"][0]["name"], "pull");
        harbor.spec.common.core = serde_json::from_value(json!({"image": "mine:1"})).unwrap();
        assert_eq!(image(&harbor, &mirror), "mine:1");
    }

    #[test]
    fn the_exporter_counts_the_jobs_of_its_own_harbor() {
        let objects = objects(&full("2.6.2", false));
        let queue = &one(&objects, "Exporter")["spec"]["jobservice"]["redisPool"]["namespace"];
        assert_eq!(queue, "jobservice::registry::sample-harbor");
        assert_eq!(one(&objects, "JobService")["spec"]["workerPool"]["redisPool"].get("namespace"), None);
    }

    #[test]
    fn a_harbor_of_the_older_version_without_a_database_says_what_is_missing() {
        let mut harbor = harbor("2.6.2", false);
        harbor.spec.database = None;
        let error = windlass::preview(&HarborBlueprint::default(), &harbor).unwrap_err().to_string();
        assert_eq!(error, "spec.database is missing: set it");
    }
}
