//! The registry, on its rendered file and environment.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use harbor_operator::components::registry::RegistryBlueprint;
use harbor_operator::config::redis::{Redis, index};
use harbor_operator::config::registry::{
    Auth, CONFIG_KEY, Cache, HTPASSWD_PATH, Health, HealthCheck, Http, Log, Middlewares, Notifications,
    Registry, RegistryRedis, STORAGE_DIR, Schema1, Storage, UploadPurging, Validation,
};
use harbor_operator::config::{Confidential, Rendered, htpasswd, outbound, registry};
use serde_json::json;
use sha2::Digest as _;
use tempfile::TempDir;

use crate::drawn::Drawn;
use crate::kit::http::Client;
use crate::kit::redis::{RedisServer, ask};
use crate::kit::registry::RegistryServer;
use crate::kit::s3::S3Server;
use crate::kit::tls::Tls;
use crate::sample::{claim, component, stored_secrets};
use crate::{VERSIONS, every_character, redis_at, release, seconds};

const USER: &str = "harbor_registry_user";

/// The registry of a Harbor.
fn registry_with(storage: Storage, redis: Option<Redis>, tls: bool) -> Registry {
    Registry {
        log: Log {
            access_log_disabled: false,
            level: "info".to_owned(),
            formatter: "text".to_owned(),
            fields: BTreeMap::from([("service".to_owned(), "registry".to_owned())]),
            hooks: Vec::new(),
        },
        http: Http {
            net: "tcp".to_owned(),
            host: None,
            prefix: None,
            headers: BTreeMap::from([("X-Content-Type-Options".to_owned(), vec!["nosniff".to_owned()])]),
            http2_disabled: false,
            relative_urls: true,
            drain_timeout: Some(seconds(60)),
            tls,
            debug: None,
        },
        http_secret: None,
        reporting: BTreeMap::new(),
        storage,
        cache: redis
            .map_or(Cache::InMemory, |redis| Cache::Redis(RegistryRedis::new(redis, index::REGISTRY))),
        delete: true,
        redirect_disabled: true,
        read_only: false,
        upload_purging: Some(UploadPurging {
            age: seconds(168 * 3600),
            interval: seconds(24 * 3600),
            dry_run: false,
        }),
        middlewares: Middlewares::default(),
        schema1: Schema1 { enabled: true, key: false },
        validation: Validation { disabled: true, ..Validation::default() },
        auth: Some(Auth::Htpasswd { realm: "harbor-registry-basic-realm".to_owned() }),
        notifications: Notifications { include_references: true, endpoints: Vec::new() },
        health: Health {
            storage: Some(HealthCheck { interval: seconds(5), threshold: 3 }),
            files: Vec::new(),
            http: Vec::new(),
            tcp: Vec::new(),
        },
        outbound: outbound::Outbound::default(),
    }
}

fn files() -> Storage {
    Storage::filesystem(100)
}

/// Pushes a blob, pulls it, deletes it.
fn push_and_pull(client: &Client, blob: &[u8]) {
    let hex = sha2::Sha256::digest(blob).iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    });
    let digest = format!("sha256:{hex}");
    let begun = client.ask("POST", "/v2/library/test/blobs/uploads/", b"");
    assert_eq!(begun.status, 202, "{begun:?}");
    let location = begun.header("location").unwrap().to_owned();
    assert!(location.starts_with('/'), "a relative URL, not {location}");
    let separator = if location.contains('?') { '&' } else { '?' };
    let pushed = client.ask("PUT", &format!("{location}{separator}digest={digest}"), blob);
    assert_eq!(pushed.status, 201, "{pushed:?}");
    let path = format!("/v2/library/test/blobs/{digest}");
    let pulled = client.ask("GET", &path, b"");
    assert_eq!((pulled.status, pulled.body.as_slice()), (200, blob));
    assert_eq!(pulled.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(client.ask("DELETE", &path, b"").status, 202);
    assert_eq!(client.ask("GET", &path, b"").status, 404);
}

#[test]
fn the_registry_runs_on_what_is_rendered_and_keeps_a_blob_for_whom_the_htpasswd_names() {
    let dir = TempDir::new().unwrap();
    let password = "pässword with: every#thing";
    let redis_password = every_character();
    let redis = RedisServer::start(dir.path(), Some(&redis_password), None, "");
    let users = htpasswd::line(USER, &password.into(), 4, [7; 16]).unwrap();
    let input = registry_with(files(), Some(redis_at(redis.port, Some(&redis_password))), false);
    let rendered = registry::render(&input, &release("2.15.2"), "registry");
    let server = RegistryServer::start(dir.path(), &rendered, &users, None);
    let client = Client::new(server.port);
    assert_eq!(client.ask("GET", "/", b"").status, 200, "the probe's path is open");
    assert_eq!(client.ask("GET", "/v2/", b"").status, 401);
    assert_eq!(client.by(USER, "another").ask("GET", "/v2/", b"").status, 401);
    let client = client.by(USER, password);
    assert_eq!(client.ask("GET", "/v2/", b"").status, 200);
    push_and_pull(&client, &b"a layer".repeat(100_000));
    assert!(dir.path().join("storage/docker/registry/v2").is_dir(), "the bytes lie below the root directory");
    let url = redis_at(redis.port, Some(&redis_password)).url(index::REGISTRY);
    let remembered: u32 = ask(url.expose(), None, &["DBSIZE"]).trim().parse().unwrap();
    assert!(remembered > 0, "the registry remembers blobs in database 1 of Redis");
}

/// From the resource on: a file that is mounted elsewhere than the registry looks for it, or a variable that
/// names a Secret which nobody has, is seen here only.
#[test]
fn the_registry_runs_on_what_is_drawn_of_a_resource() {
    let dir = TempDir::new().unwrap();
    // As the samples have it.
    let redis_password = "re:dis";
    let redis = RedisServer::start(dir.path(), Some(redis_password), None, "");
    let users = htpasswd::line(USER, &"secret".into(), 4, [7; 16]).unwrap();
    let mut owner = component("Registry", "2.15.2", false);
    owner["metadata"]["namespace"] = json!("registry");
    owner["spec"]["redis"]["host"] = json!("127.0.0.1");
    owner["spec"]["redis"]["port"] = json!(redis.port);
    let mut inputs = stored_secrets();
    inputs.extend([claim("ReadWriteOnce"), component("RegistryController", "2.15.2", false)]);
    let passwords =
        inputs.iter_mut().find(|object| object["metadata"]["name"] == "registry-basicauth").unwrap();
    passwords["data"]["htpasswd"] = json!(BASE64_STANDARD.encode(users.expose()));

    let owner = serde_json::from_value(owner).unwrap();
    let sketch = windlass::sketch(&RegistryBlueprint::new(Arc::default()), &owner, &inputs).unwrap();
    let drawn = Drawn::of(&sketch, inputs);
    let container = drawn.container();
    assert_eq!(container["args"][0], "serve");
    let text = drawn.file(container["args"][1].as_str().unwrap());
    assert!(text.contains(HTPASSWD_PATH) && text.contains(STORAGE_DIR), "{text}");
    let mounts = container["volumeMounts"].as_array().unwrap();
    assert!(mounts.iter().any(|mount| mount["mountPath"] == STORAGE_DIR), "{mounts:?}");
    let users = Confidential::new(drawn.file(HTPASSWD_PATH));
    let rendered = Rendered {
        config: [(CONFIG_KEY.to_owned(), text)].into(),
        env: drawn.environment(),
        ..Rendered::default()
    };

    let server = RegistryServer::start(dir.path(), &rendered, &users, None);
    let client = Client::new(server.port);
    assert_eq!(client.ask("GET", "/v2/", b"").status, 401);
    push_and_pull(&client.by(USER, "secret"), &b"a layer".repeat(1_000));
    assert!(dir.path().join("storage/docker/registry/v2").is_dir(), "the bytes lie below the root directory");
    let url = redis_at(redis.port, Some(redis_password)).url(index::REGISTRY);
    let remembered: u32 = ask(url.expose(), None, &["DBSIZE"]).trim().parse().unwrap();
    assert!(remembered > 0, "the registry remembers blobs in database 1 of Redis");
}

#[test]
fn the_registry_speaks_internal_tls() {
    let dir = TempDir::new().unwrap();
    let tls = Tls::new(dir.path());
    let users = htpasswd::line(USER, &"secret".into(), 4, [7; 16]).unwrap();
    for version in VERSIONS {
        let rendered =
            registry::render(&registry_with(Storage::in_memory(), None, true), &release(version), "registry");
        let server = RegistryServer::start(dir.path(), &rendered, &users, Some(&tls));
        let client = Client { tls: Some(tls.client()), ..Client::new(server.port) }.by(USER, "secret");
        push_and_pull(&client, version.as_bytes());
    }
}

#[test]
fn passwords_survive_the_registrys_environment() {
    let dir = TempDir::new().unwrap();
    let users = htpasswd::line(USER, &"secret".into(), 4, [7; 16]).unwrap();
    for password in [
        "*star",
        "0123",
        "1e3",
        "a: b",
        "a #b",
        "[list",
        "{map",
        "\"quoted\"",
        "'",
        "~",
        "null",
        "yes",
        "!tag",
        "&anchor",
        "%x",
        "@x",
    ] {
        let redis = RedisServer::start(dir.path(), Some(password), None, "");
        let input = registry_with(Storage::in_memory(), Some(redis_at(redis.port, Some(password))), false);
        let rendered = registry::render(&input, &release("2.15.2"), "registry");
        let mut server = RegistryServer::start(dir.path(), &rendered, &users, None);
        push_and_pull(&Client::new(server.port).by(USER, "secret"), b"blob");
        let url = redis_at(redis.port, Some(password)).url(index::REGISTRY);
        let remembered = ask(url.expose(), None, &["DBSIZE"]);
        assert_ne!(remembered.trim(), "0", "{password}: {}", server.server.log());
    }
}

#[test]
fn the_keys_of_s3_survive_the_registrys_file_and_environment() {
    let dir = TempDir::new().unwrap();
    let users = htpasswd::line(USER, &"secret".into(), 4, [7; 16]).unwrap();
    for (access, secret) in
        [("0123", every_character()), ("1e3", "0123".to_owned()), ("AKIA", "*star".to_owned())]
    {
        let s3 = S3Server::start();
        let storage = Storage::new("s3")
            .with("region", "eu-west-1")
            .with("bucket", "images")
            .with("regionendpoint", format!("http://127.0.0.1:{}", s3.port))
            .with("rootdirectory", "/harbor")
            .with("accesskey", access)
            .with("encrypt", false)
            .with("secure", false)
            .with("skipverify", false)
            .with("v4auth", true)
            .with("chunksize", 5_242_880_i64)
            .with("storageclass", "STANDARD")
            .with("multipartcopychunksize", 33_554_432_i64)
            .with("multipartcopymaxconcurrency", 100_i64)
            .with("multipartcopythresholdsize", 33_554_432_i64)
            .secret("secretkey", Some(secret.as_str().into()));
        let rendered = registry::render(&registry_with(storage, None, false), &release("2.15.2"), "registry");
        let server = RegistryServer::start(dir.path(), &rendered, &users, None);
        let client = Client::new(server.port).by(USER, "secret");
        assert_eq!(client.ask("GET", "/v2/library/test/tags/list", b"").status, 404, "nothing is stored");
        let request = s3.request();
        assert!(
            request.target.starts_with("/images?") && request.target.contains("harbor%2F"),
            "{request:?}"
        );
        assert_eq!(request.access_key(), access);
        assert!(request.is_signed_with(&secret), "{secret}: {request:?}");
        assert!(!request.is_signed_with("another"));
    }
}

#[test]
fn the_registry_uses_s3_without_keys() {
    let dir = TempDir::new().unwrap();
    let users = htpasswd::line(USER, &"secret".into(), 4, [7; 16]).unwrap();
    let storage = Storage::new("s3")
        .with("region", "eu-west-1")
        .with("bucket", "images")
        .with("encrypt", false)
        .with("secure", true)
        .with("skipverify", false)
        .with("v4auth", true);
    let rendered = registry::render(&registry_with(storage, None, false), &release("2.15.2"), "registry");
    assert!(rendered.secret.is_empty());
    let server = RegistryServer::start(dir.path(), &rendered, &users, None);
    assert_eq!(Client::new(server.port).by(USER, "secret").ask("GET", "/v2/", b"").status, 200);
}
