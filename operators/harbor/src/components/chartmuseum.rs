//! ChartMuseum: the Helm chart repository, up to Harbor 2.7.

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use windlass::{Kinds, PlanError};

use crate::api::chartmuseum::{
    ChartFormFields, ChartIndex, ChartMuseum, ChartMuseumDisable, ChartMuseumLog, ChartMuseumServer,
    ChartMuseumSpec,
};
use crate::api::names::blueprint;
use crate::catalogue::{self, Release};
use crate::config::SecretKey;
use crate::config::chartmuseum as file;
use crate::wiring::{self, certificate, is_tls};
use crate::workload::{
    Check, ComponentObjects, Container, Deployed, Pod, Probes, RenderContext, Sources, Strategy, Trust,
    config_map, count, duration, mount, policy, seconds_of, secret, service,
};

use super::chartmuseum_storage::{Stored, stored};

impl Deployed for ChartMuseum {
    const BLUEPRINT: &'static str = "chartmuseum.goharbor.io";
    const COMPONENT: catalogue::Component = catalogue::Component::ChartMuseum;

    fn requires(kinds: &mut Kinds) {
        kinds.looks_at_made_by::<PersistentVolumeClaim>(blueprint::HARBOR_CLUSTER);
    }

    fn objects(
        &self,
        context: &RenderContext<'_>,
        sources: &mut Sources<'_>,
    ) -> Result<ComponentObjects, PlanError> {
        let (site, spec, served) = (context.site, &self.spec, self.spec.served());
        let mut trust = Trust::default();
        let Stored { storage, volumes } = stored(&spec.chart.storage, sources)?;
        let input = input(spec, context.release, storage, sources, &mut trust)?;
        let rendered = file::render(&input);
        let port = served.scheme();
        let probes = Probes::of(Check::Http { path: "/health", port, served });
        let container = Container::new("chartmuseum", &context.image, probes)
            .env(rendered.env.clone())
            .port(port, served.container_port())
            .mount(mount("configuration", file::CONFIG_DIR));
        let mut pod = Pod::of(container, &spec.component);
        pod.volumes.push(config_map("configuration", site.name()));
        for (volume, mount) in volumes {
            pod.volumes.push(volume);
            if let Some((container, _)) = pod.containers.first_mut() {
                container.mounts.push(mount);
            }
        }
        let bearer = spec.authentication.as_ref().and_then(|authentication| authentication.bearer.as_ref());
        if let Some(bearer) = bearer {
            sources.files("spec.authentication.bearer.certificateRef", &bearer.certificate_ref, &["tls.crt"]);
            let volume = secret("auth-certificates", &bearer.certificate_ref, &[("tls.crt", "tls.crt")]);
            let directory = file::BEARER_CERT_PATH.trim_end_matches("/tls.crt");
            pod = pod.with(volume, directory);
        }
        let tls = spec.server.as_ref().and_then(|server| server.tls.as_ref());
        if let Some(name) = certificate(sources, "spec.server.tls", tls)? {
            pod = pod.with(secret("internal-certificates", name, &[]), file::SSL_DIR);
            trust.add(sources, "spec.server.tls.certificateRef", name, "ca.crt");
        }
        trust.add_all(sources, "spec.certificateRefs", &spec.certificate_refs);
        let pod = pod.trusting(trust);
        let files = spec.chart.storage.filesystem.iter().map(|files| &files.volume_source);
        let exclusive = sources.exclusive(files);
        let front = service::service(site, site.name(), &[service::Port::served(served)]);
        let objects = ComponentObjects::new(site, rendered, pod, vec![front]);
        Ok(ComponentObjects {
            secret: None,
            strategy: if exclusive { Strategy::Recreate } else { Strategy::Rolling },
            policies: vec![policy::ingress(site, [served.container_port()])],
            ..objects
        })
    }
}

fn input(
    spec: &ChartMuseumSpec,
    release: &Release,
    storage: file::ChartStorage,
    sources: &mut Sources<'_>,
    trust: &mut Trust,
) -> Result<file::ChartMuseum, PlanError> {
    let charts = &spec.chart;
    let server: ChartMuseumServer = spec.server.clone().unwrap_or_default();
    let log: ChartMuseumLog = spec.log.clone().unwrap_or_default();
    let disable: ChartMuseumDisable = spec.disable.clone().unwrap_or_default();
    let index: ChartIndex = charts.index.clone().unwrap_or_default();
    let fields: ChartFormFields = charts.post_form_field_name.clone().unwrap_or_default();
    let repo = charts.repo.clone().unwrap_or_default();
    let authentication = spec.authentication.as_ref();
    let basic = authentication.and_then(|authentication| authentication.basic_auth_ref.as_deref());
    let bearer = authentication.and_then(|authentication| authentication.bearer.as_ref());
    let time = |field: &str, time: &Option<_>| time.as_ref().map(|time| duration(field, time)).transpose();
    Ok(file::ChartMuseum {
        tls: is_tls(spec.served()),
        read_timeout: time("spec.server.readTimeout", &server.read_timeout)?,
        write_timeout: time("spec.server.writeTimeout", &server.write_timeout)?,
        cors_allow_origin: server.cors_allow_origin,
        anonymous_get: authentication.is_some_and(|authentication| authentication.anonymous_get),
        basic_auth: basic.map(|secret| -> (SecretKey, SecretKey) {
            let field = "spec.authentication.basicAuthRef";
            (sources.key(field, secret, "username"), sources.key(field, secret, "password"))
        }),
        bearer: bearer.map(|bearer| (bearer.realm.clone(), bearer.service.clone())),
        allow_overwrite: charts.allow_overwrite,
        only_semver2: charts.only_semver2,
        chart_url: charts.url.clone(),
        depth: (!repo.depth_dynamic).then(|| count(repo.depth)),
        index_limit: count(index.parallel_limit.unwrap_or(0)),
        timestamp_tolerance: seconds_of(
            "spec.chart.index.storageTimestampTolerance",
            index.storage_timestamp_tolerance.as_ref(),
            1,
        )?,
        max_storage_objects: charts.storage.max_storage_object.unwrap_or(0),
        max_upload_size: server.max_upload_size,
        chart_field: fields.chart,
        provenance_field: fields.provenance,
        disable: file::Disable {
            api: disable.api,
            delete: disable.delete,
            force_overwrite: disable.force_overwrite,
            metrics: disable.metrics,
            statefiles: disable.statefiles,
        },
        debug: log.debug,
        log_health: log.health,
        log_json: log.json,
        log_latency_integer: log.latency_integer,
        cache: cache(spec, release, sources, trust)?,
        storage,
    })
}

fn cache(
    spec: &ChartMuseumSpec,
    release: &Release,
    sources: &mut Sources<'_>,
    trust: &mut Trust,
) -> Result<Option<file::ChartCache>, PlanError> {
    let Some(redis) = spec.cache.as_ref().and_then(|cache| cache.redis.as_ref()) else { return Ok(None) };
    let (field, password) = ("spec.cache.redis", redis.server.password_ref.as_deref());
    let mut server = wiring::redis_with(sources, trust, field, &redis.server, release, None)?;
    // ChartMuseum accepts one address only, except with Sentinel.
    if server.sentinel_master.is_none() {
        server.addresses.truncate(1);
    }
    Ok(Some(file::ChartCache {
        server,
        database: wiring::redis_database(field, redis.database)?,
        password: password
            .map(|secret| sources.key("spec.cache.redis.passwordRef", secret, "redis-password")),
    }))
}
