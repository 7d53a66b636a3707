//! nginx, on the configurations of portal and proxy.

use std::net::TcpListener;

use harbor_operator::config::portal::{Families, Portal};
use harbor_operator::config::proxy::Proxy;
use harbor_operator::config::{Address, portal, proxy};
use tempfile::TempDir;

use crate::kit::http::Client;
use crate::kit::nginx::{Nginx, echo, session};
use crate::kit::tls::Tls;
use crate::{VERSIONS, release};

/// Every choice of IP families, as far as this machine has them: nginx opens its sockets even to test a
/// configuration.
fn families() -> Vec<Families> {
    let mut all = vec![Families::V4];
    if TcpListener::bind(("::1", 0)).is_ok() {
        all.extend([Families::BOTH, Families { v4: false, v6: true }, Families { v4: false, v6: false }]);
    } else {
        eprintln!("without IPv6 on this machine, only configurations for IPv4 are tested");
    }
    all
}

#[test]
fn nginx_accepts_the_portals_configuration() {
    let dir = TempDir::new().unwrap();
    let tls = Tls::new(dir.path());
    for version in VERSIONS {
        for families in families() {
            for encrypted in [false, true] {
                let input = Portal { tls: encrypted, max_connections: 1024, families };
                let rendered = portal::render(&input, &release(version));
                Nginx::write(&rendered.config[portal::CONFIG_KEY], dir.path(), &tls).test();
            }
        }
    }
}

#[test]
fn nginx_accepts_the_proxys_configuration() {
    let dir = TempDir::new().unwrap();
    let tls = Tls::new(dir.path());
    for version in VERSIONS {
        for families in families() {
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
                    plain_url: https.is_none(),
                    families,
                };
                let rendered = proxy::render(&input, &release(version));
                Nginx::write(&rendered.config[proxy::CONFIG_KEY], dir.path(), &tls).test();
            }
        }
    }
}

#[test]
fn the_proxy_routes_requests_to_core_and_portal() {
    let dir = TempDir::new().unwrap();
    let tls = Tls::new(dir.path());
    let input = Proxy {
        core: Address::new("127.0.0.1", echo("core")),
        portal: Some(Address::new("127.0.0.1", echo("portal"))),
        internal_tls: false,
        https: Some("harbor.example:30443".to_owned()),
        plain_url: false,
        families: Families::V4,
    };
    let rendered = proxy::render(&input, &release("2.15.2"));
    let nginx = Nginx::write(&rendered.config[proxy::CONFIG_KEY], dir.path(), &tls);
    let _server = nginx.start();
    let client = Client { tls: Some(tls.client()), ..Client::new(nginx.secure.port()) };
    let (host, with_port) = ("Host: localhost\n", format!("Host: localhost:{}\n", nginx.secure.port()));
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
    let plain = Client::new(nginx.plain.port()).ask("GET", "/harbor?a=b", b"");
    assert_eq!(
        (plain.status, plain.header("location")),
        (308, Some("https://harbor.example:30443/harbor?a=b"))
    );
}

#[test]
fn users_d2_a_browser_signs_in_over_http_with_internal_tls() {
    let dir = TempDir::new().unwrap();
    let tls = Tls::new(dir.path());
    let sign_in = |plain_url: bool| {
        let input = Proxy {
            core: Address::new("127.0.0.1", session()),
            portal: None,
            internal_tls: true,
            https: None,
            plain_url,
            families: Families::V4,
        };
        let rendered = proxy::render(&input, &release("2.15.2"));
        // The small server does not speak TLS; all the rest is as Core with internal TLS sees it.
        let text = rendered.config[proxy::CONFIG_KEY].replace("https://core", "http://core");
        let nginx = Nginx::write(&text, dir.path(), &tls);
        let _server = nginx.start();
        let client = Client::new(nginx.plain.port());
        let first = client.ask("GET", "/c/login", b"");
        assert_eq!(first.status, 403);
        let cookie = first.header("set-cookie").unwrap().to_owned();
        // A browser keeps no cookie marked Secure from an http page.
        let kept = (!cookie.contains("Secure")).then(|| cookie.split(';').next().unwrap().to_owned());
        Client { cookie: kept, ..client }.ask("POST", "/c/login", b"").status
    };
    assert_eq!(sign_in(true), 200);
    assert_eq!(sign_in(false), 403, "an https URL: the flag stays");
}
