//! Snapshots of everything rendered, for the versions that differ most, with and without internal TLS.
//!
//! A snapshot also shows the values of Secrets, under a heading of their own.

use std::fmt::Write as _;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::catalogue::{Component, Release};
use crate::components::{chartmuseum_storage, registry_storage};

use super::chartmuseum::ChartStorage;
use super::redis::{Redis, index};
use super::registry::{Cache, Hook, Middleware, Options, RegistryRedis, Storage};
use super::sample::{self, PASSWORD, release};
use super::{EnvValue, Rendered, SecretKey};
use super::{
    chartmuseum, core_env, exporter, jobservice, notary, portal, proxy, registry, registryctl, trivy,
};

const VERSIONS: [&str; 4] = ["2.6.2", "2.8.6", "2.9.5", "2.15.2"];

fn shown(rendered: &Rendered) -> String {
    let mut text = String::new();
    for (key, content) in &rendered.config {
        if content.contains('\n') {
            let _ = writeln!(text, "=== ConfigMap: {key}\n{content}");
        } else {
            let _ = writeln!(text, "=== ConfigMap: {key} = {content}");
        }
    }
    for (key, content) in &rendered.secret {
        let _ = writeln!(text, "=== Secret: {key} = {}", content.expose());
    }
    text.push_str("=== Environment\n");
    for env in &rendered.env {
        let _ = match &env.value {
            EnvValue::Literal(value) => writeln!(text, "{} = {value}", env.name),
            EnvValue::Secret(SecretKey { name, key }) => {
                writeln!(text, "{} <- Secret {name} [{key}]", env.name)
            }
        };
    }
    text
}

/// Renders all components of a release.
fn harbor(release: &Release, tls: bool) -> Vec<(Component, Rendered)> {
    let mut parts = vec![
        (Component::Core, core_env::render(&sample::core(release, tls), release, "sample-harbor-core")),
        (
            Component::JobService,
            jobservice::render(&sample::jobservice(tls), release, "sample-harbor-jobservice"),
        ),
        (Component::Portal, portal::render(&sample::portal(tls), release)),
        (
            Component::Registry,
            registry::render(&sample::registry(sample::files(), tls), release, "sample-harbor-registry"),
        ),
        (Component::RegistryController, registryctl::render(&sample::registryctl(tls))),
        (Component::Exporter, exporter::render(&sample::exporter(tls), release, "sample-harbor-exporter")),
        (Component::Trivy, trivy::render(&sample::trivy(tls), release, "sample-harbor-trivy")),
        (Component::Proxy, proxy::render(&sample::proxy(tls), release)),
    ];
    if release.image(Component::ChartMuseum).is_some() {
        let storage = ChartStorage::files(Some("team"));
        parts.push((Component::ChartMuseum, chartmuseum::render(&sample::chartmuseum(storage, tls))));
    }
    if release.image(Component::NotaryServer).is_some() {
        let server = notary::render_server(&sample::notary_server(tls), "sample-harbor-notaryserver");
        let signer = notary::render_signer(&sample::notary_signer(), "sample-harbor-notarysigner");
        parts.extend([(Component::NotaryServer, server), (Component::NotarySigner, signer)]);
    }
    parts
}

#[test]
fn each_component_is_rendered_for_its_version() {
    for version in VERSIONS {
        for (tls, kind) in [(false, "plain"), (true, "tls")] {
            for (component, rendered) in harbor(&release(version), tls) {
                let name = format!("{component:?}-{version}-{kind}").to_lowercase();
                insta::assert_snapshot!(name, shown(&rendered));
            }
        }
    }
}

#[test]
fn config_maps_contain_no_secret() {
    for version in VERSIONS {
        for tls in [false, true] {
            for (component, rendered) in harbor(&release(version), tls) {
                let encoded = super::address::percent_encoded(PASSWORD);
                for text in rendered.config.values() {
                    assert!(
                        !text.contains(PASSWORD) && !text.contains(&encoded),
                        "{component:?} {version}: {text}"
                    );
                }
                for env in &rendered.env {
                    let EnvValue::Literal(text) = &env.value else { continue };
                    assert!(
                        !text.contains(PASSWORD) && !text.contains(&encoded),
                        "{component:?} {version}: {}",
                        env.name
                    );
                }
            }
        }
    }
}

#[test]
fn rendering_twice_gives_the_same_bytes() {
    let release = release("2.6.2");
    assert_eq!(harbor(&release, true), harbor(&release, true));
}

#[test]
fn every_reference_into_the_own_secret_is_there() {
    for version in VERSIONS {
        for (component, rendered) in harbor(&release(version), true) {
            let own = format!("sample-harbor-{}", format!("{component:?}").to_lowercase());
            for env in &rendered.env {
                if let EnvValue::Secret(SecretKey { name, key }) = &env.value
                    && *name == own
                {
                    assert!(rendered.secret.contains_key(key), "{component:?} {version}: {}", env.name);
                }
            }
        }
    }
}

fn parsed<T: DeserializeOwned>(driver: Value) -> T {
    serde_json::from_value(driver).unwrap()
}

fn drivers() -> Vec<(&'static str, Storage)> {
    let key = || Some(PASSWORD.into());
    let bare = json!({"region": "eu-west-1", "bucket": "images"});
    let s3 = json!({
        "region": "eu-west-1", "bucket": "images", "accesskey": "0123", "secretkeyRef": "store",
        "regionendpoint": "https://minio.example:9000", "rootdirectory": "/harbor", "skipverify": true,
        "chunksize": 5_242_880, "multipartcopychunksize": 33_554_432, "multipartcopymaxconcurrency": 100,
        "multipartcopythresholdsize": 33_554_432,
    });
    let swift = json!({
        "authurl": "https://keystone.example/v3", "username": "harbor", "passwordRef": "store",
        "container": "images", "prefix": "harbor", "tenant": "team", "domainID": "0123", "accesskey": "temp",
        "secretkeyRef": "store", "authversion": "v3",
    });
    let azure = json!({"accountname": "harbor", "accountkeyRef": "store", "container": "images"});
    let gcs =
        json!({"bucket": "images", "pathPrefix": "/harbor", "chunkSize": "5242880", "keyDataRef": "store"});
    let oss = json!({
        "accessKeyID": "id", "accessSecretRef": "store", "region": "oss-cn-hangzhou", "bucket": "images",
        "endpoint": "oss-cn-hangzhou.aliyuncs.com", "pathPrefix": "/harbor", "encrypt": true,
        "chunksize": 10_485_760,
    });
    vec![
        ("filesystem", sample::files()),
        ("s3", registry_storage::s3(&parsed(s3), key())),
        ("s3-without-keys", registry_storage::s3(&parsed(bare), None)),
        ("swift", registry_storage::swift(&parsed(swift), key(), Some("[".into())).unwrap()),
        ("azure", registry_storage::azure(&parsed(azure), "a2V5Cg==".into()).unwrap()),
        ("gcs", registry_storage::gcs(&parsed(gcs)).unwrap()),
        ("gcs-without-key", registry_storage::gcs(&parsed(json!({"bucket": "images"}))).unwrap()),
        ("oss", registry_storage::oss(&parsed(oss), PASSWORD.into())),
        ("inmemory", Storage::in_memory()),
    ]
}

#[test]
fn the_registry_is_rendered_for_each_storage() {
    let release = release("2.15.2");
    for (name, storage) in drivers() {
        let rendered =
            registry::render(&sample::registry(storage, false), &release, "sample-harbor-registry");
        insta::assert_snapshot!(format!("registry-{name}"), shown(&rendered));
    }
}

#[test]
fn chartmuseum_is_rendered_for_each_storage() {
    let key = |name: &str| SecretKey::new(name, "secret");
    let amazon = json!({
        "bucket": "charts", "prefix": "/harbor", "region": "eu-west-1", "endpoint": "https://minio.example:9000",
        "accessKeyID": "id", "accessSecretRef": "s3",
    });
    let azure = json!({"accountname": "harbor", "accountkeyRef": "azure", "container": "charts"});
    let gcs = json!({"bucket": "charts", "pathPrefix": "harbor", "keyDataSecretRef": "gcs"});
    let openstack = json!({
        "container": "charts", "region": "eu", "authenticationURL": "https://keystone.example/v3",
        "username": "harbor", "passwordRef": "swift", "tenantID": "0123", "domain": "Default",
    });
    let oss = json!({
        "bucket": "charts", "endpoint": "oss-cn-hangzhou.aliyuncs.com", "accessKeyID": "id",
        "accessSecretRef": "oss",
    });
    let storages = [
        ("filesystem", ChartStorage::files(None)),
        ("amazon", chartmuseum_storage::amazon(&parsed(amazon), Some(key("s3")))),
        ("azure", chartmuseum_storage::azure(&parsed(azure), key("azure")).unwrap()),
        ("gcs", chartmuseum_storage::gcs(&parsed(gcs))),
        ("openstack", chartmuseum_storage::openstack(&parsed(openstack), Some(key("swift")))),
        ("oss", chartmuseum_storage::oss(&parsed(oss), key("oss"))),
    ];
    for (name, storage) in storages {
        let rendered = chartmuseum::render(&sample::chartmuseum(storage, false));
        insta::assert_snapshot!(format!("chartmuseum-{name}"), shown(&rendered));
    }
}

#[test]
fn a_registry_with_secret_options_is_a_secret_whole() {
    let options: Options = [("privatekey".to_owned(), PASSWORD.into())].into();
    let mut input = sample::registry(sample::files(), false);
    input.middlewares.storage = vec![Middleware { name: "cloudfront".to_owned(), options: options.clone() }];
    input.log.hooks =
        vec![Hook { kind: "mail".to_owned(), levels: vec!["panic".to_owned()], options: options.clone() }];
    input.reporting = [("bugsnag".to_owned(), options)].into();
    let rendered = registry::render(&input, &release("2.15.2"), "sample-harbor-registry");
    assert!(rendered.config.is_empty());
    insta::assert_snapshot!("registry-with-options", shown(&rendered));
}

#[test]
fn tls_and_the_user_of_redis_reach_the_registry_where_it_knows_them() {
    let mut input = sample::registry(sample::files(), false);
    let server = Redis {
        tls: true,
        username: Some("harbor".to_owned()),
        sentinel_master: Some("mymaster".to_owned()),
        ..sample::redis()
    };
    input.cache = Cache::Redis(RegistryRedis::new(server, index::REGISTRY));
    let text = |version: &str| shown(&registry::render(&input, &release(version), "s"));
    for line in ["REGISTRY_REDIS_ENABLETLS = true", "  username: harbor", "  sentinelMasterSet: mymaster"] {
        assert!(text("2.15.2").contains(line), "{}", text("2.15.2"));
    }
    assert!(text("2.14.0").contains("ENABLETLS") && !text("2.14.0").contains("username"));
    assert!(!text("2.12.4").contains("ENABLETLS"));
}
