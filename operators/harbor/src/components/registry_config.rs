//! Converts the spec of a Registry into the input of its configuration file.

use std::time::Duration;

use windlass::PlanError;

use crate::api::registry::{RegistryHttp, RegistryMiddleware, RegistrySpec};
use crate::api::registry_health::RegistryHealth;
use crate::api::registry_storage::BlobDescriptorCache;
use crate::catalogue::Release;
use crate::config::registry as file;
use crate::config::yaml::survives;
use crate::wiring;
use crate::workload::{Sources, Trust, count, duration, port, seconds_of};

use super::registry_storage::Stored;

/// Seconds that running uploads may continue when a pod stops; less than the grace period of the pod.
const DRAIN: u64 = 60;

pub(super) fn input(
    spec: &RegistrySpec,
    release: &Release,
    stored: &Stored,
    sources: &mut Sources<'_>,
    trust: &mut Trust,
) -> Result<file::Registry, PlanError> {
    let usual = RegistryHttp::default();
    let section = spec.http.as_ref().unwrap_or(&usual);
    let storage = &spec.storage;
    let cached = storage.cache.as_ref().and_then(|cache| cache.blob_descriptor);
    let cache = match (cached, redis(spec, release, sources, trust)?) {
        (Some(BlobDescriptorCache::Redis), Some(redis)) => file::Cache::Redis(redis),
        (Some(BlobDescriptorCache::Redis), None) => {
            let message = "spec.storage.cache.blobdescriptor: \"redis\", but spec.redis is missing: set the address of Redis, or use inmemory";
            return Err(PlanError::new(message));
        }
        (Some(BlobDescriptorCache::InMemory) | None, _) => file::Cache::InMemory,
    };
    let http_secret = section.secret_ref.as_deref();
    let maintenance = storage.maintenance.as_ref();
    Ok(file::Registry {
        log: log(spec, sources),
        http: http(section)?,
        http_secret: http_secret.map(|secret| {
            let key = sources.one_of("spec.http.secretRef", secret, &[file::HTTP_SECRET, "secret"]);
            match sources.text(&key).filter(|text| !survives(text.expose())) {
                Some(text) => file::HttpSecret::Quoted(text),
                None => file::HttpSecret::Plain(key),
            }
        }),
        reporting: spec
            .reporting
            .iter()
            .map(|(name, secret)| (name.clone(), sources.options(&format!("spec.reporting.{name}"), secret)))
            .collect(),
        storage: stored.driver.clone(),
        cache,
        // Harbor cannot delete images unless deletion is enabled.
        delete: storage.delete.as_ref().is_none_or(|delete| delete.enabled),
        redirect_disabled: storage.redirect.as_ref().is_some_and(|redirect| redirect.disable),
        read_only: maintenance.and_then(|all| all.read_only.as_ref()).is_some_and(|section| section.enabled),
        upload_purging: match maintenance
            .and_then(|all| all.upload_purging.as_ref())
            .filter(|section| section.enabled)
        {
            Some(purging) => Some(file::UploadPurging {
                age: duration("spec.storage.maintenance.uploadPurging.age", &purging.age)?,
                interval: duration("spec.storage.maintenance.uploadPurging.interval", &purging.interval)?,
                dry_run: purging.dry_run,
            }),
            None => None,
        },
        middlewares: middlewares(spec, sources),
        schema1: schema1(spec),
        validation: validation(spec),
        auth: auth(spec),
        notifications: notifications(spec)?,
        health: health(spec.health.as_ref())?,
        outbound: wiring::outbound(spec.proxy.as_ref(), []),
    })
}

fn log(spec: &RegistrySpec, sources: &mut Sources<'_>) -> file::Log {
    let log = &spec.log;
    let hooks = log.hooks.iter().enumerate().map(|(n, hook)| file::Hook {
        kind: hook.kind.clone(),
        levels: hook.levels.clone(),
        options: sources.options(&format!("spec.log.hooks[{n}].optionsRef"), &hook.options_ref),
    });
    file::Log {
        access_log_disabled: log.access_log.as_ref().is_some_and(|access| access.disabled),
        level: log.level.to_string(),
        formatter: log.formatter.to_string(),
        fields: log.fields.clone(),
        hooks: hooks.collect(),
    }
}

fn http(section: &RegistryHttp) -> Result<file::Http, PlanError> {
    let debug = section.debug.as_ref();
    Ok(file::Http {
        net: section.net.to_string(),
        host: section.host.clone(),
        prefix: section.prefix.clone(),
        headers: section.headers.clone(),
        http2_disabled: section.http2.as_ref().is_some_and(|http2| http2.disabled),
        relative_urls: section.relative_urls,
        drain_timeout: Some(seconds_of("spec.http.drainTimeout", section.drain_timeout.as_ref(), DRAIN)?),
        tls: section.tls.is_some(),
        debug: match debug {
            Some(debug) => {
                let prometheus = debug.prometheus.as_ref().filter(|prometheus| prometheus.enabled);
                Some(file::Debug {
                    port: port("spec.http.debug.port", debug.port)?,
                    metrics_path: prometheus.map(|prometheus| prometheus.path.clone()),
                })
            }
            None => None,
        },
    })
}

fn middlewares(spec: &RegistrySpec, sources: &mut Sources<'_>) -> file::Middlewares {
    let Some(section) = &spec.middlewares else { return file::Middlewares::default() };
    let mut all = |kind: &str, section: &[RegistryMiddleware]| {
        let one = |(n, middleware): (usize, &RegistryMiddleware)| {
            let field = format!("spec.middlewares.{kind}[{n}].optionsRef");
            let options = middleware.options_ref.as_ref().map(|secret| sources.options(&field, secret));
            file::Middleware { name: middleware.name.clone(), options: options.unwrap_or_default() }
        };
        section.iter().enumerate().map(one).collect::<Vec<_>>()
    };
    file::Middlewares {
        registry: all("registry", &section.registry),
        repository: all("repository", &section.repository),
        storage: all("storage", &section.storage),
    }
}

fn redis(
    spec: &RegistrySpec,
    release: &Release,
    sources: &mut Sources<'_>,
    trust: &mut Trust,
) -> Result<Option<file::RegistryRedis>, PlanError> {
    let Some(section) = &spec.redis else { return Ok(None) };
    let server = wiring::redis(sources, trust, "spec.redis", &section.connection.server, release)?;
    let database = wiring::redis_database("spec.redis", section.connection.database)?;
    let mut redis = file::RegistryRedis::new(server, database);
    let times = [
        ("spec.redis.dialTimeout", &section.dial_timeout, &mut redis.dial_timeout),
        ("spec.redis.readTimeout", &section.read_timeout, &mut redis.read_timeout),
        ("spec.redis.writeTimeout", &section.write_timeout, &mut redis.write_timeout),
    ];
    for (field, value, time) in times {
        if let Some(value) = value {
            *time = duration(field, value)?;
        }
    }
    if let Some(pool) = &section.pool {
        redis.idle_timeout = duration("spec.redis.pool.idleTimeout", &pool.idle_timeout)?;
        redis.max_active = count(pool.max_active);
        redis.max_idle = count(pool.max_idle);
    }
    Ok(Some(redis))
}

fn schema1(spec: &RegistrySpec) -> file::Schema1 {
    let schema1 = spec.compatibility.as_ref().and_then(|compatibility| compatibility.schema1.as_ref());
    schema1.map_or(file::Schema1::default(), |schema1| file::Schema1 {
        enabled: schema1.enabled,
        key: schema1.certificate_ref.is_some(),
    })
}

fn validation(spec: &RegistrySpec) -> file::Validation {
    let Some(section) = &spec.validation else { return file::Validation::default() };
    let urls = section.manifests.as_ref().and_then(|manifests| manifests.urls.as_ref());
    file::Validation {
        disabled: section.disabled.unwrap_or(false),
        allow: urls.map(|urls| urls.allow.clone()).unwrap_or_default(),
        deny: urls.map(|urls| urls.deny.clone()).unwrap_or_default(),
    }
}

fn auth(spec: &RegistrySpec) -> Option<file::Auth> {
    let section = spec.authentication.as_ref()?;
    if let Some(passwords) = &section.ht_passwd {
        return Some(file::Auth::Htpasswd { realm: passwords.realm.clone() });
    }
    if let Some(token) = &section.token {
        return Some(file::Auth::Token {
            realm: token.realm.clone(),
            service: token.service.clone(),
            issuer: token.issuer.clone(),
            autoredirect: token.autoredirect.unwrap_or(false),
        });
    }
    let silly = section.silly.as_ref()?;
    Some(file::Auth::Silly { realm: silly.realm.clone(), service: silly.service.clone() })
}

fn notifications(spec: &RegistrySpec) -> Result<file::Notifications, PlanError> {
    let Some(section) = &spec.notifications else {
        return Ok(file::Notifications { include_references: true, endpoints: Vec::new() });
    };
    let endpoint = |(n, endpoint): (usize, &crate::api::registry_health::NotificationEndpoint)| {
        let field = |name: &str| format!("spec.notifications.endpoints[{n}].{name}");
        let ignore = endpoint.ignore.clone().unwrap_or_default();
        Ok(file::Endpoint {
            name: endpoint.name.clone(),
            disabled: endpoint.disabled,
            url: endpoint.url.clone(),
            headers: endpoint.headers.clone(),
            timeout: duration(&field("timeout"), &endpoint.timeout)?,
            threshold: count(endpoint.threshold),
            backoff: duration(&field("backoff"), &endpoint.backoff)?,
            ignored_media_types: endpoint.ignored_media_types.clone(),
            ignore_media_types: ignore.media_types,
            ignore_actions: ignore.actions,
        })
    };
    Ok(file::Notifications {
        include_references: section.events.as_ref().is_none_or(|events| events.include_references),
        endpoints: section.endpoints.iter().enumerate().map(endpoint).collect::<Result<_, PlanError>>()?,
    })
}

fn health(section: Option<&RegistryHealth>) -> Result<file::Health, PlanError> {
    let usual = file::HealthCheck { interval: Duration::from_secs(5), threshold: 3 };
    let Some(section) = section else {
        return Ok(file::Health {
            storage: Some(usual),
            files: Vec::new(),
            http: Vec::new(),
            tcp: Vec::new(),
        });
    };
    let storage = match &section.storage_driver {
        None => Some(usual),
        Some(check) if check.enabled => Some(file::HealthCheck {
            interval: duration("spec.health.storageDriver.interval", &check.interval)?,
            threshold: count(check.threshold),
        }),
        Some(_) => None,
    };
    let files = section
        .file
        .iter()
        .map(|check| Ok((check.path.clone(), duration("spec.health.file.interval", &check.interval)?)));
    let http = section.http.iter().map(|check| {
        Ok(file::HttpCheck {
            uri: check.uri.clone(),
            headers: check.headers.clone(),
            status: count(check.status_code),
            timeout: duration("spec.health.http.timeout", &check.timeout)?,
            check: file::HealthCheck {
                interval: duration("spec.health.http.interval", &check.interval)?,
                threshold: count(check.threshold),
            },
        })
    });
    let tcp = section.tcp.iter().map(|check| {
        Ok(file::TcpCheck {
            address: check.address.clone(),
            timeout: duration("spec.health.tcp.timeout", &check.timeout)?,
            check: file::HealthCheck {
                interval: duration("spec.health.tcp.interval", &check.interval)?,
                threshold: count(check.threshold),
            },
        })
    });
    Ok(file::Health {
        storage,
        files: files.collect::<Result<_, PlanError>>()?,
        http: http.collect::<Result<_, PlanError>>()?,
        tcp: tcp.collect::<Result<_, PlanError>>()?,
    })
}
