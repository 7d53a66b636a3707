//! Validation of a Harbor.

use windlass_runtime::webhook::Findings;

use super::component::ComponentSpec;
use super::driver::ImageChartStorage;
use super::harbor::{Harbor, HarborCommon};
use super::network::{ExposeComponent, ServiceType};
use super::validation::{Judged, Previous, VersionRules, component, network, trace};

impl Judged for Harbor {
    fn same(&self, old: &Self) -> bool {
        self.spec == old.spec
    }

    fn check(&self, versions: &dyn VersionRules, found: &mut Findings) {
        let spec = &self.spec;
        common(&spec.common, found);
        versions.check_features(&spec.common, found);
        if spec.database.is_none() {
            found.required("spec.database", "set the address of PostgreSQL");
        }
        match &spec.redis {
            None => found.required("spec.redis", "set the address of Redis"),
            Some(redis) => versions.check_redis(&spec.common.version, "spec.redis", redis, found),
        }
        match &spec.image_chart_storage {
            None => found.required("spec.imageChartStorage", "set the storage of images"),
            Some(storage) => stores(storage, found),
        }
        let files = spec.image_chart_storage.as_ref().is_some_and(|storage| storage.filesystem.is_some());
        together(&spec.common, files, found);
    }

    fn check_change(&self, old: Option<&Self>, versions: &dyn VersionRules, found: &mut Findings) {
        let old = old.map(|old| {
            let status = old.status.as_ref().map(|status| (&status.other, &*status.conditions));
            Previous::of(&old.spec.common, status)
        });
        versions.judge(old.as_ref(), &self.spec.common, found);
        if let Some(old) = old {
            switched_tls(old.common, &self.spec.common, found);
        }
    }
}

/// Warns of a change of internal TLS: the components change their ports and protocols one after the other.
pub(super) fn switched_tls(old: &HarborCommon, new: &HarborCommon, found: &mut Findings) {
    if old.has_internal_tls() != new.has_internal_tls() {
        found.warn(
            "spec.internalTLS.enabled: the change replaces the pods of all components, and until all have changed \
             some requests fail with status 502 (about 14 seconds in our measurements): make it when nobody \
             pushes or pulls",
        );
    }
}

fn stores(storage: &ImageChartStorage, found: &mut Findings) {
    let names: Vec<_> = storage.stores().into_iter().map(super::driver::Store::name).collect();
    if names.len() != 1 {
        found.invalid(
            "spec.imageChartStorage",
            names,
            "set exactly one of s3, swift, azure, gcs, oss, filesystem",
        );
    }
}

/// Validates what a Harbor and a HarborCluster have in common.
pub(super) fn common(new: &HarborCommon, found: &mut Findings) {
    if let Err(why) = host_of(&new.external_url) {
        found.invalid(
            "spec.externalURL",
            &new.external_url,
            format!("{why}: write it as https://harbor.example.com"),
        );
    }
    network(new.network.as_ref(), found);
    trace(new.trace.as_ref(), found);
    if new.notary.is_some() && new.expose.notary.is_none() {
        found.required(
            "spec.expose.notary",
            "notary is enabled: set how it is exposed; {} exposes it inside the cluster only",
        );
    }
    exposed("spec.expose.core", &new.expose.core, found);
    if let Some(logs) = new.jobservice.as_ref().and_then(|jobs| jobs.job_logs.as_ref()) {
        match (logs.database, &logs.claim_name) {
            (true, Some(claim)) => found.invalid(
                "spec.jobservice.jobLogs.claimName",
                claim,
                "database is true too: keep one of them, because the logs of jobs are in one place",
            ),
            (false, None) => {
                found.required("spec.jobservice.jobLogs", "set database to true, or claimName");
            }
            (true, None) | (false, Some(_)) => {}
        }
    }
    for (name, spec) in components(new) {
        component(&format!("spec.{name}"), spec, found);
    }
}

fn exposed(path: &str, door: &ExposeComponent, found: &mut Findings) {
    let Some(service) = &door.service else { return };
    if door.ingress.is_some() {
        found.forbidden(format!("{path}.service"), "an ingress is set too: keep one of them");
    }
    for (field, port) in
        [("httpNodePort", service.http_node_port), ("httpsNodePort", service.https_node_port)]
    {
        if let Some(port) = port.filter(|_| service.kind == ServiceType::ClusterIp) {
            let remedy =
                "a Service of type ClusterIP has no ports on nodes: leave it out, or use type NodePort";
            found.invalid(format!("{path}.service.{field}"), port, remedy);
        }
    }
}

/// Returns all components in the spec, with their field names.
fn components(spec: &HarborCommon) -> Vec<(&'static str, &ComponentSpec)> {
    let notary = spec.notary.as_ref();
    let all = [
        ("core", spec.core.as_ref().map(|part| &part.component)),
        ("jobservice", spec.jobservice.as_ref().map(|part| &part.component)),
        ("registry", spec.registry.as_ref().map(|part| &part.component)),
        ("registryctl", spec.registryctl.as_ref().map(|part| &part.component)),
        ("portal", spec.portal.as_ref().map(|part| &part.component)),
        ("chartmuseum", spec.chartmuseum.as_ref().map(|part| &part.component)),
        ("exporter", spec.exporter.as_ref().map(|part| &part.component)),
        ("notary.server", notary.and_then(|part| part.server.as_ref()).map(|part| &part.component)),
        ("notary.signer", notary.and_then(|part| part.signer.as_ref()).map(|part| &part.component)),
        ("trivy", spec.trivy.as_ref().map(|part| &part.component)),
    ];
    all.into_iter().filter_map(|(name, part)| Some((name, part?))).collect()
}

/// Reports different scheduling of the registry and its controller, which run in the same pods and share a
/// volume.
pub(super) fn together(spec: &HarborCommon, files: bool, found: &mut Findings) {
    let Some(controller) = spec.registryctl.as_ref().map(|part| &part.component).filter(|_| files) else {
        return;
    };
    let none = ComponentSpec::default();
    let registry = spec.registry.as_ref().map_or(&none, |part| &part.component);
    if !controller.node_selector.is_empty() && controller.node_selector != registry.node_selector {
        found.invalid(
            "spec.registryctl.nodeSelector",
            &controller.node_selector,
            "it runs in the registry's pods: leave it out, or write what registry.nodeSelector says",
        );
    }
    if !controller.tolerations.is_empty() && controller.tolerations != registry.tolerations {
        found.invalid(
            "spec.registryctl.tolerations",
            &controller.tolerations,
            "it runs in the registry's pods: leave it out, or write what registry.tolerations says",
        );
    }
}

/// Returns the host of an http or https URL, or the error in it.
fn host_of(url: &str) -> Result<&str, &'static str> {
    if url.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err("it contains a space");
    }
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let rest = rest.ok_or("it is not an http or https URL")?;
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let place = authority.rsplit_once('@').map_or(authority, |(_, place)| place);
    // An IPv6 address contains colons itself, inside brackets.
    let (host, port) = match place.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (place, None),
    };
    if port.is_some_and(|port| !port.is_empty() && port.parse::<u16>().is_err()) {
        return Err("its port is not a number up to 65535");
    }
    if host.is_empty() { Err("it has no host") } else { Ok(host) }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::api::{JobService, Registry};
    use serde_json::{Value, json};

    struct AnyVersion;

    impl VersionRules for AnyVersion {
        fn judge(&self, _: Option<&Previous<'_>>, new: &HarborCommon, found: &mut Findings) {
            if new.version == "9.9.9" {
                found.invalid("spec.version", &new.version, "choose another");
            }
        }
    }

    pub(in crate::api) fn base() -> Value {
        json!({
            "externalURL": "https://harbor.example.com",
            "harborAdminPasswordRef": "admin",
            "version": "2.6.2",
            "expose": {"core": {"ingress": {"host": "harbor.example.com"}}},
        })
    }

    pub(in crate::api) fn merged(mut base: Value, patch: Value) -> Value {
        json_patch(&mut base, patch);
        base
    }

    fn json_patch(base: &mut Value, patch: Value) {
        match (base, patch) {
            (Value::Object(base), Value::Object(patch)) => {
                for (name, value) in patch {
                    if value.is_null() {
                        base.remove(&name);
                    } else {
                        json_patch(base.entry(name).or_insert(Value::Null), value);
                    }
                }
            }
            (base, patch) => *base = patch,
        }
    }

    pub(in crate::api) fn object<K: serde::de::DeserializeOwned>(spec: Value) -> K {
        serde_json::from_value(json!({"metadata": {"name": "x"}, "spec": spec})).unwrap()
    }

    fn harbor(patch: Value) -> Harbor {
        let own = json!({
            "database": {"hosts": [{"host": "db"}]},
            "redis": {"host": "redis"},
            "imageChartStorage": {"filesystem": {"registryPersistentVolume": {"claimName": "images"}}},
        });
        object(merged(merged(base(), own), patch))
    }

    pub(in crate::api) fn judged<K: Judged>(old: Option<&K>, new: &K) -> String {
        let mut found = Findings::default();
        new.judge(old, &AnyVersion, &mut found);
        if found.is_fine() { String::new() } else { format!("{found:?}") }
    }

    #[test]
    fn valid_objects_are_accepted() {
        assert_eq!(judged(None, &harbor(json!({}))), "");
    }

    #[test]
    fn refusals_of_a_harbor_name_the_field_and_the_remedy() {
        let two = json!({"s3": {"region": "r", "bucket": "b"}});
        let cases = [
            (json!({"database": null}), "spec.database", "set the address of PostgreSQL"),
            (json!({"redis": null}), "spec.redis", "set the address of Redis"),
            (json!({"imageChartStorage": null}), "spec.imageChartStorage", "set the storage of images"),
            (json!({"imageChartStorage": two}), "spec.imageChartStorage", "set exactly one of"),
            (json!({"externalURL": "https://"}), "spec.externalURL", "it has no host"),
            (json!({"externalURL": "https://a b"}), "spec.externalURL", "space"),
            (json!({"externalURL": "https://a:x"}), "spec.externalURL", "port"),
            (json!({"version": "9.9.9"}), "spec.version", "choose another"),
            (
                json!({"network": {"ipFamilies": ["IPv5"]}}),
                "spec.network.ipFamilies[0]",
                "write IPv4 or IPv6",
            ),
            (json!({"notary": {}}), "spec.expose.notary", "set how it is exposed"),
            (json!({"jobservice": {"jobLogs": {}}}), "spec.jobservice.jobLogs", "set database to true"),
            (
                json!({"jobservice": {"jobLogs": {"database": true, "claimName": "logs"}}}),
                "spec.jobservice.jobLogs.claimName",
                "keep one of them",
            ),
            (json!({"expose": {"core": {"service": {}}}}), "spec.expose.core.service", "keep one of them"),
            (
                json!({"registryctl": {"nodeSelector": {"a": "b"}}}),
                "spec.registryctl.nodeSelector",
                "registry's pods",
            ),
            (json!({"core": {"affinity": {"nodeAffinity": 5}}}), "spec.core.affinity", "as in a Pod"),
            (
                json!({"trace": {"enabled": true, "provider": "jaeger", "jaeger": {"mode": "agent"}}}),
                "spec.trace.jaeger.agent",
                "use mode collector",
            ),
        ];
        for (patch, field, remedy) in cases {
            let found = judged(None, &harbor(patch));
            assert!(found.contains(&format!("{field:?}")) && found.contains(remedy), "{field}: {found}");
        }
    }

    #[test]
    fn valid_external_urls_are_accepted() {
        for url in [
            "http://h",
            "https://a.b:8443/path?x#y",
            "https://[::1]:443",
            "https://u@h:1",
            "https://[::1]",
            "https://hörbar",
        ] {
            assert!(host_of(url).is_ok(), "{url}");
        }
    }

    #[test]
    fn errors_of_the_stored_object_are_warnings_at_an_update_of_something_else() {
        let bad = harbor(json!({"externalURL": "https://"}));
        let changed = harbor(json!({"externalURL": "https://", "portal": {}}));
        let mut found = Findings::default();
        changed.judge(Some(&bad), &AnyVersion, &mut found);
        assert!(
            found.is_fine() && format!("{found:?}").contains("spec.externalURL: Invalid value"),
            "{found:?}"
        );
        let worse = harbor(json!({"externalURL": "http://"}));
        assert!(judged(Some(&bad), &worse).contains("spec.externalURL"), "another bad value");
    }

    #[test]
    fn users_n17_a_misspelt_field_is_refused_on_change_and_a_warning_where_it_was_before() {
        let typo = || json!({"core": {"affinity": {"nodeAfinity": {"a": 1}}}});
        let found = judged(None, &harbor(typo()));
        assert!(
            found.contains("\"spec.core.affinity.nodeAfinity\"") && found.contains("spelling"),
            "{found}"
        );
        let mut found = Findings::default();
        let edited = harbor(merged(typo(), json!({"portal": {}})));
        edited.judge(Some(&harbor(typo())), &AnyVersion, &mut found);
        assert!(found.is_fine() && format!("{found:?}").contains("nodeAfinity"), "{found:?}");
        let more = harbor(
            json!({"core": {"affinity": {"nodeAfinity": {"a": 1}}, "extraEnv": [{"name": "A", "vale": "b"}]}}),
        );
        let found = judged(Some(&harbor(typo())), &more);
        assert!(found.contains("spec.core.extraEnv[0].vale"), "{found}");
    }

    #[test]
    fn users_n13_a_child_of_a_harbor_is_not_refused_for_what_the_user_wrote_there() {
        let with = |owner: Value| -> crate::api::Portal {
            let metadata = json!({"name": "x", "ownerReferences": [owner]});
            let spec = json!({"resources": {"limits": {"memory": "lots"}}});
            serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap()
        };
        let owner = |version: &str| json!({"apiVersion": version, "kind": "Harbor", "name": "h", "uid": "1", "controller": true});
        assert_eq!(judged(None, &with(owner("goharbor.io/v1beta1"))), "");
        assert!(judged(None, &with(owner("apps/v1"))).contains("spec.resources.limits.memory"));
    }

    #[test]
    fn users_a_change_of_internal_tls_on_an_existing_harbor_gives_a_warning() {
        let with = |tls: Value| harbor(json!({"internalTLS": tls}));
        let warning = |old: Option<&Harbor>, new: &Harbor| {
            let mut found = Findings::default();
            new.judge(old, &AnyVersion, &mut found);
            assert!(found.is_fine(), "{found:?}");
            format!("{found:?}").contains("spec.internalTLS.enabled: the change replaces the pods")
        };
        let (unset, off, on) =
            (harbor(json!({})), with(json!({"enabled": false})), with(json!({"enabled": true})));
        for (old, new, expected) in
            [(&unset, &on, true), (&on, &off, true), (&on, &unset, true), (&unset, &off, false)]
        {
            assert_eq!(warning(Some(old), new), expected);
        }
        assert!(!warning(None, &on), "a new Harbor has no requests to lose");
        let edited = harbor(json!({"internalTLS": {"enabled": true}, "portal": {}}));
        assert!(!warning(Some(&on), &edited), "another change");
    }

    #[test]
    fn a_job_service_without_loggers_and_a_registry_with_two_stores_are_refused() {
        let spec = json!({
            "secretRef": "a", "core": {"url": "http://core", "secretRef": "a"}, "workerPool": {}, "loggers": {"files": null},
            "registry": {"url": "http://r", "controllerURL": "http://r", "credentials": {"username": "u", "passwordRef": "p"}},
            "tokenService": {"url": "http://t"},
        });
        let found = judged(None, &object::<JobService>(spec));
        assert!(found.contains("spec.loggers") && !found.contains("spec.jobLoggers"), "{found}");
        let registry =
            json!({"storage": {"driver": {"inmemory": {}, "filesystem": {"volumeSource": {"emptyDir": 3}}}}});
        let found = judged(None, &object::<Registry>(registry));
        assert!(found.contains("set exactly one") && found.contains("filesystem.volumeSource"), "{found}");
    }
}
