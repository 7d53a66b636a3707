//! PostgreSQL, by rendered URLs and by the words that core makes of its environment.

use std::path::Path;

use harbor_operator::api::HarborCluster;
use harbor_operator::cluster::HarborClusterBlueprint;
use harbor_operator::config::Address;
use harbor_operator::config::database::{Database, SslMode, check_word};
use harbor_operator::schema::{Reading, Schema, Target};
use serde_json::json;
use tempfile::TempDir;

use crate::every_character;
use crate::kit::postgres::{BuiltInDatabase, PostgresServer, ask as psql};
use crate::kit::tls::Tls;

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
fn postgresql_accepts_connections_with_a_rendered_url() {
    let dir = TempDir::new().unwrap();
    let (user, password) = ("har@bor:user", every_character());
    let server = PostgresServer::start(dir.path(), user, &password, None);
    let ask = |database: &Database, password: &str| {
        psql(database.url(Some(&password.into())).expose(), None, "select current_user")
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
    psql(url.expose(), None, "create database \"notary/server?\"").unwrap();
    let named = database_at(server.port, user, "notary/server?", SslMode::Disable)
        .url(Some(&password.as_str().into()));
    assert_eq!(psql(named.expose(), None, "select current_database()").as_deref(), Ok("notary/server?"));
}

#[test]
fn postgresql_accepts_core_with_exactly_the_passwords_that_pass_our_check() {
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
            psql(&admin, None, statement).unwrap();
        }
        let answer = psql(&words(server.port, "core", password, SslMode::Disable), None, "select 1");
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
        psql(url.expose(), authority, "select ssl from pg_stat_ssl where pid = pg_backend_pid()")
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

fn target(mut database: Database, password: &str, authority: Option<&Path>) -> Target {
    // The operator takes a name without a dot for a Service in the user's namespace.
    for address in database.addresses.iter_mut().filter(|address| address.host == "localhost") {
        "127.0.0.1".clone_into(&mut address.host);
    }
    Target {
        database,
        password: password.into(),
        authorities: authority
            .map(|path| std::fs::read_to_string(path).unwrap().into())
            .into_iter()
            .collect(),
        namespace: "shop".to_owned(),
        forbidden: false,
    }
}

#[tokio::test]
async fn the_schema_of_a_database_is_read_as_core_left_it() {
    let dir = TempDir::new().unwrap();
    let password = every_character();
    let server = PostgresServer::start(dir.path(), "harbor", &password, None);
    let database = database_at(server.port, "harbor", "postgres", SslMode::Disable);
    let url = database.url(Some(&password.as_str().into()));
    let run = |statement: &str| psql(url.expose(), None, statement).unwrap();
    let there = target(database.clone(), &password, None);
    assert_eq!(there.read().await, Reading::Empty, "no table");
    run("create table schema_migrations (version bigint not null primary key, dirty boolean not null)");
    assert_eq!(there.read().await, Reading::Empty, "no row");
    run("insert into schema_migrations values (171, false)");
    assert_eq!(there.read().await, Reading::At(Schema { version: 171, dirty: false }));
    run("update schema_migrations set version = 180, dirty = true");
    assert_eq!(there.read().await, Reading::At(Schema { version: 180, dirty: true }));
    // A database that does not offer TLS, to one that would like it.
    let prefers = Database { ssl_mode: SslMode::Prefer, ..database.clone() };
    assert!(matches!(target(prefers, &password, None).read().await, Reading::At(_)));

    let why = |reading: Reading| match reading {
        Reading::Unread(why) => why,
        other => panic!("it was read: {other:?}"),
    };
    let wrong = why(target(database.clone(), "hunter2", None).read().await);
    assert!(wrong.contains("password authentication failed") && !wrong.contains("hunter2"), "{wrong}");
    let secure = Database { ssl_mode: SslMode::Require, ..database.clone() };
    let insecure = why(target(secure, &password, None).read().await);
    assert!(insecure.contains("does not support TLS"), "{insecure}");
    let nowhere = Database { addresses: vec![Address::new("127.0.0.1", 1)], ..database };
    let refused = why(target(nowhere, &password, None).read().await);
    assert!(refused.contains("127.0.0.1:1") && refused.contains("refused"), "{refused}");
}

#[tokio::test]
async fn the_schema_is_read_over_tls_as_the_mode_verifies_the_server() {
    let dir = TempDir::new().unwrap();
    let tls = Tls::new(dir.path());
    let server = PostgresServer::start(dir.path(), "harbor", "secret", Some(&tls));
    let other = TempDir::new().unwrap();
    let stranger = Tls::new(other.path());
    for (mode, authority, read) in [
        (SslMode::Require, None, true),
        (SslMode::VerifyCa, Some(&tls.authority), true),
        (SslMode::VerifyFull, Some(&tls.authority), true),
        (SslMode::VerifyCa, Some(&stranger.authority), false),
        (SslMode::VerifyFull, Some(&stranger.authority), false),
        (SslMode::Disable, None, false),
    ] {
        let database = database_at(server.port, "harbor", "postgres", mode);
        let reading = target(database, "secret", authority.map(std::path::PathBuf::as_path)).read().await;
        assert_eq!(reading == Reading::Empty, read, "{mode}: {reading:?}");
    }
    // Notary's URL names the authority as libpq does.
    let url = database_at(server.port, "harbor", "postgres", SslMode::VerifyFull).url(Some(&"secret".into()));
    let url = format!("{}&sslrootcert={}", url.expose(), tls.authority.display());
    assert_eq!(psql(&url, None, "select 1").as_deref(), Ok("1"));
}

/// The scripts of the built-in database, by name.
fn scripts() -> Vec<(String, String)> {
    let built_in = |size: &str| json!({"kind": "BuiltIn", "spec": {"builtIn": {"storage": size}}});
    let cluster: HarborCluster = serde_json::from_value(json!({
        "apiVersion": "goharbor.io/v1beta1", "kind": "HarborCluster",
        "metadata": {"name": "sample", "namespace": "registry"},
        "spec": {
            "externalURL": "https://harbor.example.com", "harborAdminPasswordRef": "admin", "version": "2.15.2",
            "expose": {"core": {"ingress": {"host": "harbor.example.com"}}},
            "cache": built_in("1Gi"), "database": built_in("1Gi"), "storage": built_in("1Gi"),
        },
    }))
    .unwrap();
    let sketch = windlass::sketch(&HarborClusterBlueprint::default(), &cluster, &[]).unwrap();
    let mut bodies = sketch.objects.iter().map(windlass::Desired::body);
    let map = bodies.find(|body| body["metadata"]["name"] == "sample-database-init").unwrap();
    let data = map["data"].as_object().unwrap().iter();
    data.map(|(name, text)| (name.clone(), text.as_str().unwrap().to_owned())).collect()
}

#[test]
fn users_d4_an_interrupted_first_start_of_the_built_in_database_is_repeated_and_never_ready() {
    for interrupted_after in ["initdb", "password", "core.sql"] {
        let dir = TempDir::new().unwrap();
        let database = BuiltInDatabase::new(dir.path(), &scripts());
        database.is_interrupted(interrupted_after);
        assert!(database.exists("initialising") && database.exists("pg15/PG_VERSION"), "{interrupted_after}");
        let server = database.starts();
        assert_eq!(database.ready(server.port), Ok("1".to_owned()), "{interrupted_after}");
        assert!(!database.exists("initialising"));
        // Data survives the next start.
        BuiltInDatabase::ask(server.port, "create table precious (n int)").unwrap();
        drop(server);
        let server = database.starts();
        assert_eq!(BuiltInDatabase::ask(server.port, "select count(*) from precious").as_deref(), Ok("0"));
        assert_eq!(database.ready(server.port), Ok("1".to_owned()));
    }
}

#[test]
fn users_d4_the_built_in_database_is_ready_only_as_a_client_sees_it() {
    let dir = TempDir::new().unwrap();
    let database = BuiltInDatabase::new(dir.path(), &scripts());
    let server = database.starts();
    assert_eq!(database.ready(server.port), Ok("1".to_owned()));
    // As a first start of an older version of the operator may have left it, without a mark.
    BuiltInDatabase::ask_in("postgres", server.port, "alter database core allow_connections false").unwrap();
    let error = database.ready(server.port).unwrap_err();
    assert!(error.contains(r#"database "core" is not currently accepting connections"#), "{error}");
    BuiltInDatabase::ask_in("postgres", server.port, "alter database core allow_connections true").unwrap();
    BuiltInDatabase::ask_in("postgres", server.port, "alter user postgres password 'another'").unwrap();
    let error = database.ready(server.port).unwrap_err();
    assert!(error.contains("password authentication failed"), "{error}");
}

#[test]
fn users_d4_a_database_with_data_is_not_initialised_again_but_reported() {
    let dir = TempDir::new().unwrap();
    let database = BuiltInDatabase::new(dir.path(), &scripts());
    drop(database.starts());
    database.write("initialising", "");
    let message = database.fails_to_start();
    assert!(message.contains("nothing is deleted") && message.contains("initialising"), "{message}");
    assert!(database.exists("pg15/PG_VERSION"));
    database.remove("initialising");
    let server = database.starts();
    assert_eq!(database.ready(server.port), Ok("1".to_owned()));
}
