//! Redis and Sentinel, by rendered URLs.

use harbor_operator::config::redis::{Redis, index};
use tempfile::TempDir;

use crate::kit::redis::{RedisServer, ask};
use crate::kit::tls::Tls;
use crate::{every_character, redis_at, seconds};

#[test]
fn redis_accepts_connections_with_a_rendered_url() {
    let dir = TempDir::new().unwrap();
    let open = RedisServer::start(dir.path(), None, None, "");
    let url = redis_at(open.port, None).url_with_idle_timeout(index::TRIVY, seconds(30));
    assert!(ask(url.expose(), None, &["CLIENT", "INFO"]).contains(" db=5 "));
    let password = every_character();
    let closed =
        RedisServer::start(dir.path(), Some(&password), None, "user harbor on >pa:ss@w/rd ~* &* +@all");
    let asked = |redis: &Redis| ask(redis.url(index::JOBSERVICE).expose(), None, &["CLIENT", "INFO"]);
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
    assert_eq!(ask(url.expose(), Some(&tls.authority), &["PING"]).trim(), "PONG");
    let other = TempDir::new().unwrap();
    let stranger = Tls::new(other.path());
    assert!(ask(url.expose(), Some(&stranger.authority), &["PING"]).contains("certificate verify failed"));
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
    // What Harbor makes of it: the hosts are Sentinels, and are asked without a password; then comes the
    // master's name, then the database.
    let rest = url.strip_prefix("redis+sentinel://:s3cret@").unwrap();
    let [hosts, name, database] = rest.split('/').collect::<Vec<_>>()[..] else { panic!("{url}") };
    assert_eq!(database, "0");
    let found = ask(&format!("redis://{hosts}"), None, &["SENTINEL", "get-master-addr-by-name", name]);
    assert_eq!(found.lines().collect::<Vec<_>>(), ["127.0.0.1", &master.port.to_string()]);
    let direct = redis_at(master.port, Some(password)).url(index::CORE);
    assert_eq!(ask(direct.expose(), None, &["PING"]).trim(), "PONG");
}
