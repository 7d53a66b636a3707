//! What we render, given to the programs that read it: distribution, nginx, PostgreSQL and Redis of Debian's packages.
//!
//! All servers listen on 127.0.0.1, on ports of their own, and end with their test. Missing programs are fetched into the project's cache.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)] // a test fails by panicking

#[path = "kit/mod.rs"]
mod kit;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use harbor_operator::catalogue::Release;
use harbor_operator::config::database::{Database, SslMode, check_word};
use harbor_operator::config::portal::{Families, Portal};
use harbor_operator::config::proxy::Proxy;
use harbor_operator::config::redis::{Redis, index};
use harbor_operator::config::registry::{
    Auth, Cache, FileSystem, Health, HealthCheck, Http, Log, Middlewares, Notifications, Registry,
    RegistryRedis, S3, S3Keys, Schema1, Storage, UploadPurging, Validation,
};
use harbor_operator::config::{Address, Confidential, htpasswd, portal, proxy, registry};
use sha2::Digest as _;
use tempfile::TempDir;

use kit::http::Client;
use kit::nginx::Nginx;
use kit::postgres::PostgresServer;
use kit::redis::RedisServer;
use kit::registry::RegistryServer;
use kit::s3::S3Server;
use kit::tls::Tls;

const VERSIONS: [&str; 4] = ["2.6.2", "2.8.6", "2.9.5", "2.15.2"];
const USER: &str = "harbor_registry_user";

/// Every printable character of ASCII, and some that are not.
fn every_character() -> String {
    (' '..='~').chain(['é', '→', '😀']).collect()
}

fn release(version: &str) -> Release {
    Release::of(&version.parse().unwrap()).unwrap()
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn redis_at(port: u16, password: Option<&str>) -> Redis {
    Redis {
        addresses: vec![Address::new("127.0.0.1", port)],
        sentinel_master: None,
        username: None,
        password: password.map(Confidential::from),
        tls: false,
    }
}

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
        outbound: harbor_operator::config::outbound::Outbound::default(),
    }
}

fn files() -> Storage {
    Storage::FileSystem(FileSystem { max_threads: 100 })
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
    let remembered: u32 = kit::redis::ask(url.expose(), None, &["DBSIZE"]).trim().parse().unwrap();
    assert!(remembered > 0, "the registry remembers blobs in database 1 of Redis");
}

#[test]
fn the_registry_speaks_internal_tls() {
    let dir = TempDir::new().unwrap();
    let tls = Tls::new(dir.path());
    let users = htpasswd::line(USER, &"secret".into(), 4, [7; 16]).unwrap();
    for version in VERSIONS {
        let rendered =
            registry::render(&registry_with(Storage::InMemory, None, true), &release(version), "registry");
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
        let input = registry_with(Storage::InMemory, Some(redis_at(redis.port, Some(password))), false);
        let rendered = registry::render(&input, &release("2.15.2"), "registry");
        let mut server = RegistryServer::start(dir.path(), &rendered, &users, None);
        push_and_pull(&Client::new(server.port).by(USER, "secret"), b"blob");
        let url = redis_at(redis.port, Some(password)).url(index::REGISTRY);
        let remembered = kit::redis::ask(url.expose(), None, &["DBSIZE"]);
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
        let storage = Storage::S3(S3 {
            region: "eu-west-1".to_owned(),
            bucket: "images".to_owned(),
            region_endpoint: Some(format!("http://127.0.0.1:{}", s3.port)),
            root_directory: Some("/harbor".to_owned()),
            keys: Some(S3Keys { access: access.to_owned(), secret: secret.as_str().into() }),
            v4_auth: true,
            chunk_size: Some(5_242_880),
            storage_class: Some("STANDARD".to_owned()),
            multipart_copy_chunk_size: Some(33_554_432),
            multipart_copy_max_concurrency: Some(100),
            multipart_copy_threshold_size: Some(33_554_432),
            ..S3::default()
        });
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
    let storage = Storage::S3(S3 {
        region: "eu-west-1".to_owned(),
        bucket: "images".to_owned(),
        secure: true,
        v4_auth: true,
        ..S3::default()
    });
    let rendered = registry::render(&registry_with(storage, None, false), &release("2.15.2"), "registry");
    assert!(rendered.secret.is_empty());
    let server = RegistryServer::start(dir.path(), &rendered, &users, None);
    assert_eq!(Client::new(server.port).by(USER, "secret").ask("GET", "/v2/", b"").status, 200);
}

#[test]
fn nginx_accepts_the_portals_configuration() {
    let dir = TempDir::new().unwrap();
    let tls = Tls::new(dir.path());
    for version in VERSIONS {
        for encrypted in [false, true] {
            let input = Portal { tls: encrypted, max_connections: 1024, families: Families::V4 };
            let rendered = portal::render(&input, &release(version));
            Nginx::write(&rendered.config[portal::CONFIG_KEY], dir.path(), &tls).test();
        }
    }
}

#[test]
fn nginx_accepts_the_proxys_configuration() {
    let dir = TempDir::new().unwrap();
    let tls = Tls::new(dir.path());
    for version in VERSIONS {
        for (internal_tls, https) in [
            (false, None),
            (false, Some("harbor.example")),
            (true, Some("harbor.example:30443")),
            (true, None),
        ] {
            let input = Proxy {
                core: Address::new("localhost", 80),
                portal: Some(Address::new("localhost", 81)),
                internal_tls,
                https: https.map(str::to_owned),
                families: Families::V4,
            };
            let rendered = proxy::render(&input, &release(version));
            Nginx::write(&rendered.config[proxy::CONFIG_KEY], dir.path(), &tls).test();
        }
    }
}

#[test]
fn the_proxy_passes_on_to_core_and_portal_what_is_theirs() {
    let dir = TempDir::new().unwrap();
    let tls = Tls::new(dir.path());
    let input = Proxy {
        core: Address::new("127.0.0.1", kit::nginx::echo("core")),
        portal: Some(Address::new("127.0.0.1", kit::nginx::echo("portal"))),
        internal_tls: false,
        https: Some("harbor.example:30443".to_owned()),
        families: Families::V4,
    };
    let rendered = proxy::render(&input, &release("2.15.2"));
    let nginx = Nginx::write(&rendered.config[proxy::CONFIG_KEY], dir.path(), &tls);
    let _server = nginx.start();
    let client = Client { tls: Some(tls.client()), ..Client::new(nginx.secure) };
    let (host, with_port) = ("Host: localhost\n", format!("Host: localhost:{}\n", nginx.secure));
    for (path, who, host) in [
        ("/", "portal", with_port.as_str()),
        ("/harbor/projects", "portal", &with_port),
        ("/api/v2.0/ping", "core", host),
        ("/c/login", "core", host),
        ("/v2/library/x/blobs/uploads/", "core", &with_port),
        ("/service/token?service=harbor-registry", "core", &with_port),
        ("/chartrepo/x", "portal", &with_port),
    ] {
        let answer = client.ask("GET", path, b"");
        let text = String::from_utf8(answer.body.clone()).unwrap() + "\n";
        assert!(text.starts_with(&format!("{who}\nGET {path} ")) && text.contains(host), "{path}: {text}");
        assert!(text.contains("X-Forwarded-Proto: https\n"), "{text}");
        let cookie = answer.header("set-cookie").unwrap();
        assert_eq!(cookie.contains("Secure"), !path.starts_with("/v2/"), "{path}: {cookie}");
        assert!(answer.header("strict-transport-security").is_some());
    }
    for path in ["/v1/_ping", "/service/notifications"] {
        assert_eq!(client.ask("GET", path, b"").status, 404, "{path}");
    }
    let plain = Client::new(nginx.plain).ask("GET", "/harbor?a=b", b"");
    assert_eq!(
        (plain.status, plain.header("location")),
        (308, Some("https://harbor.example:30443/harbor?a=b"))
    );
}

fn database_at(port: u16, user: &str, name: &str, ssl_mode: SslMode) -> Database {
    Database {
        addresses: vec![Address::new("localhost", port)],
        username: Some(user.to_owned()),
        name: name.to_owned(),
        ssl_mode,
    }
}

/// The words that core and exporter make of their environment.
fn words(port: u16, user: &str, password: &str, mode: SslMode) -> String {
    format!("host=localhost port={port} user={user} password={password} dbname=postgres sslmode={mode}")
}

#[test]
fn postgresql_lets_in_whoever_comes_with_a_rendered_url() {
    let dir = TempDir::new().unwrap();
    let (user, password) = ("har@bor:user", every_character());
    let server = PostgresServer::start(dir.path(), user, &password, None);
    let ask = |database: &Database, password: &str| {
        kit::postgres::ask(database.url(Some(&password.into())).expose(), None, "select current_user")
    };
    for mode in [SslMode::Disable, SslMode::Prefer] {
        assert_eq!(ask(&database_at(server.port, user, "postgres", mode), &password).as_deref(), Ok(user));
    }
    let wrong = ask(&database_at(server.port, user, "postgres", SslMode::Disable), "another").unwrap_err();
    assert!(wrong.contains("password authentication failed"), "{wrong}");
    let secure = ask(&database_at(server.port, user, "postgres", SslMode::Require), &password).unwrap_err();
    assert!(secure.contains("server does not support SSL"), "{secure}");
    // A database whose name needs escaping as well.
    let url =
        database_at(server.port, user, "postgres", SslMode::Disable).url(Some(&password.as_str().into()));
    kit::postgres::ask(url.expose(), None, "create database \"notary/server?\"").unwrap();
    let named = database_at(server.port, user, "notary/server?", SslMode::Disable)
        .url(Some(&password.as_str().into()));
    assert_eq!(
        kit::postgres::ask(named.expose(), None, "select current_database()").as_deref(),
        Ok("notary/server?")
    );
}

#[test]
fn postgresql_lets_in_core_with_every_password_that_passes_our_check_and_no_other() {
    let dir = TempDir::new().unwrap();
    let server = PostgresServer::start(dir.path(), "harbor", "first", None);
    let admin = words(server.port, "harbor", "first", SslMode::Disable);
    let usable: String =
        every_character().chars().filter(|character| ![' ', '\\'].contains(character)).collect();
    for (password, works) in [
        (usable.as_str(), true),
        ("a'b", true),
        ("two words", false),
        ("back\\slash", false),
        ("'quoted", false),
    ] {
        assert_eq!(check_word(password).is_ok(), works, "{password}");
        let literal = password.replace('\'', "''");
        let statement = format!("drop role if exists core; create role core login password '{literal}'");
        for statement in statement.split("; ") {
            kit::postgres::ask(&admin, None, statement).unwrap();
        }
        let answer =
            kit::postgres::ask(&words(server.port, "core", password, SslMode::Disable), None, "select 1");
        assert_eq!(answer.is_ok(), works, "{password}: {answer:?}");
    }
}

#[test]
fn postgresql_over_tls_is_verified() {
    let dir = TempDir::new().unwrap();
    let tls = Tls::new(dir.path());
    let password = every_character();
    let server = PostgresServer::start(dir.path(), "harbor", &password, Some(&tls));
    let ask = |mode: SslMode, authority: Option<&Path>| {
        let url = database_at(server.port, "harbor", "postgres", mode).url(Some(&password.as_str().into()));
        kit::postgres::ask(
            url.expose(),
            authority,
            "select ssl from pg_stat_ssl where pid = pg_backend_pid()",
        )
    };
    for mode in [SslMode::Require, SslMode::VerifyCa, SslMode::VerifyFull] {
        assert_eq!(ask(mode, Some(&tls.authority)).as_deref(), Ok("t"), "{mode}");
    }
    let other = TempDir::new().unwrap();
    let stranger = Tls::new(other.path());
    let refused = ask(SslMode::VerifyFull, Some(&stranger.authority)).unwrap_err();
    assert!(refused.contains("certificate verify failed"), "{refused}");
    assert!(ask(SslMode::Disable, None).is_err());
}

#[test]
fn redis_lets_in_whoever_comes_with_a_rendered_url() {
    let dir = TempDir::new().unwrap();
    let open = RedisServer::start(dir.path(), None, None, "");
    let url = redis_at(open.port, None).url_with_idle_timeout(index::TRIVY, seconds(30));
    assert!(kit::redis::ask(url.expose(), None, &["CLIENT", "INFO"]).contains(" db=5 "));
    let password = every_character();
    let closed =
        RedisServer::start(dir.path(), Some(&password), None, "user harbor on >pa:ss@w/rd ~* &* +@all");
    let asked =
        |redis: &Redis| kit::redis::ask(redis.url(index::JOBSERVICE).expose(), None, &["CLIENT", "INFO"]);
    let info = asked(&redis_at(closed.port, Some(&password)));
    assert!(info.contains(" db=2 ") && info.contains(" user=default "), "{info}");
    let user = Redis { username: Some("harbor".to_owned()), ..redis_at(closed.port, Some("pa:ss@w/rd")) };
    assert!(asked(&user).contains(" user=harbor "), "{}", asked(&user));
    let wrong = asked(&redis_at(closed.port, Some("another")));
    assert!(wrong.contains("WRONGPASS") || wrong.contains("NOAUTH"), "{wrong}");
}

#[test]
fn redis_over_tls_is_verified() {
    let dir = TempDir::new().unwrap();
    let tls = Tls::new(dir.path());
    let password = every_character();
    let server = RedisServer::start(dir.path(), Some(&password), Some(&tls), "");
    let redis = Redis { tls: true, ..redis_at(server.port, Some(&password)) };
    let url = redis.url(index::CORE);
    assert_eq!(kit::redis::ask(url.expose(), Some(&tls.authority), &["PING"]).trim(), "PONG");
    let other = TempDir::new().unwrap();
    let stranger = Tls::new(other.path());
    assert!(
        kit::redis::ask(url.expose(), Some(&stranger.authority), &["PING"])
            .contains("certificate verify failed")
    );
}

#[test]
fn a_sentinel_knows_the_master_that_the_url_names() {
    let dir = TempDir::new().unwrap();
    let password = "s3cret";
    let master = RedisServer::start(dir.path(), Some(password), None, "");
    let sentinel = RedisServer::start_sentinel(dir.path(), "mymaster", master.port, password);
    let redis =
        Redis { sentinel_master: Some("mymaster".to_owned()), ..redis_at(sentinel.port, Some(password)) };
    let url = redis.url(index::CORE).expose().to_owned();
    // What Harbor makes of it: the hosts are Sentinels, and are asked without a password; then comes the master's name, then the database.
    let rest = url.strip_prefix("redis+sentinel://:s3cret@").unwrap();
    let [hosts, name, database] = rest.split('/').collect::<Vec<_>>()[..] else { panic!("{url}") };
    assert_eq!(database, "0");
    let found =
        kit::redis::ask(&format!("redis://{hosts}"), None, &["SENTINEL", "get-master-addr-by-name", name]);
    assert_eq!(found.lines().collect::<Vec<_>>(), ["127.0.0.1", &master.port.to_string()]);
    let direct = redis_at(master.port, Some(password)).url(index::CORE);
    assert_eq!(kit::redis::ask(direct.expose(), None, &["PING"]).trim(), "PONG");
}
