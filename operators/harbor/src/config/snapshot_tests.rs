//! Everything rendered, as it stands, for the versions that differ most, plain and with internal TLS.
//!
//! A snapshot shows the values of Secrets also, under a heading of their own: in these tests they are no secrets.

use std::fmt::Write as _;

use crate::catalogue::{Component, Release};

use super::chartmuseum::{ChartStorage, Identity};
use super::redis::{Redis, index};
use super::registry::{
    Azure, Cache, Gcs, Hook, Middleware, Options, Oss, RegistryRedis, S3, S3Keys, Storage, Swift,
};
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

/// All components of a release, in one Harbor.
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
        let storage = ChartStorage::FileSystem { prefix: Some("team".to_owned()) };
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
fn what_goes_into_a_config_map_holds_no_secret() {
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

fn drivers() -> Vec<(&'static str, Storage)> {
    let some = |text: &str| Some(text.to_owned());
    let s3 = S3 {
        region: "eu-west-1".to_owned(),
        bucket: "images".to_owned(),
        secure: true,
        v4_auth: true,
        storage_class: some("STANDARD"),
        ..S3::default()
    };
    let keys = Some(S3Keys { access: "0123".to_owned(), secret: PASSWORD.into() });
    vec![
        ("filesystem", sample::files()),
        (
            "s3",
            Storage::S3(S3 {
                keys,
                region_endpoint: some("https://minio.example:9000"),
                root_directory: some("/harbor"),
                skip_verify: true,
                chunk_size: Some(5_242_880),
                multipart_copy_chunk_size: Some(33_554_432),
                multipart_copy_max_concurrency: Some(100),
                multipart_copy_threshold_size: Some(33_554_432),
                ..s3.clone()
            }),
        ),
        ("s3-without-keys", Storage::S3(s3)),
        (
            "swift",
            Storage::Swift(Swift {
                auth_url: "https://keystone.example/v3".to_owned(),
                username: some("harbor"),
                password: Some(PASSWORD.into()),
                container: "images".to_owned(),
                prefix: some("harbor"),
                tenant: some("team"),
                domain_id: some("0123"),
                access_key: some("temp"),
                secret_key: Some("[".into()),
                auth_version: Some(3),
                endpoint_type: some("public"),
                ..Swift::default()
            }),
        ),
        (
            "azure",
            Storage::Azure(Azure {
                account_name: "harbor".to_owned(),
                account_key: "a2V5Cg==".into(),
                container: "images".to_owned(),
                realm: "core.windows.net".to_owned(),
            }),
        ),
        (
            "gcs",
            Storage::Gcs(Gcs {
                bucket: "images".to_owned(),
                root_directory: some("/harbor"),
                chunk_size: some("5242880"),
                key_file: true,
            }),
        ),
        ("gcs-without-key", Storage::Gcs(Gcs { bucket: "images".to_owned(), ..Gcs::default() })),
        (
            "oss",
            Storage::Oss(Oss {
                access_key_id: "id".to_owned(),
                access_key_secret: PASSWORD.into(),
                region: "oss-cn-hangzhou".to_owned(),
                bucket: "images".to_owned(),
                endpoint: some("oss-cn-hangzhou.aliyuncs.com"),
                root_directory: some("/harbor"),
                internal: false,
                encrypt: true,
                secure: true,
                chunk_size: Some(10_485_760),
            }),
        ),
        ("inmemory", Storage::InMemory),
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
    let some = |text: &str| Some(text.to_owned());
    let storages = [
        ("filesystem", ChartStorage::FileSystem { prefix: None }),
        (
            "amazon",
            ChartStorage::Amazon {
                bucket: "charts".to_owned(),
                prefix: some("/harbor"),
                region: some("eu-west-1"),
                endpoint: some("https://minio.example:9000"),
                server_side_encryption: None,
                access_key_id: some("id"),
                secret_key: Some(SecretKey::new("s3", "secret")),
            },
        ),
        (
            "azure",
            ChartStorage::Azure {
                container: "charts".to_owned(),
                prefix: some("/azure/harbor/charts"),
                account_name: "harbor".to_owned(),
                account_key: SecretKey::new("azure", "secret"),
                base_url: some("core.windows.net"),
            },
        ),
        ("gcs", ChartStorage::Gcs { bucket: "charts".to_owned(), prefix: some("harbor"), key_file: true }),
        (
            "openstack",
            ChartStorage::OpenStack {
                container: "charts".to_owned(),
                prefix: None,
                region: some("eu"),
                auth_url: "https://keystone.example/v3".to_owned(),
                user: Some(Identity::Name("harbor".to_owned())),
                password: Some(SecretKey::new("swift", "secret")),
                tenant: Some(Identity::Id("0123".to_owned())),
                domain: Some(Identity::Name("Default".to_owned())),
            },
        ),
        (
            "oss",
            ChartStorage::Oss {
                bucket: "charts".to_owned(),
                prefix: None,
                endpoint: "oss-cn-hangzhou.aliyuncs.com".to_owned(),
                access_key_id: "id".to_owned(),
                secret_key: SecretKey::new("oss", "secret"),
            },
        ),
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
