//! The nginx before core and portal, where Harbor is exposed by a Service rather than an Ingress.

use crate::catalogue::{Feature, Release};

use super::address::Address;
use super::nginx::{self, Families, Text};
use super::rendered::Rendered;

/// The key of `nginx.conf` in the ConfigMap.
pub const CONFIG_KEY: &str = "nginx.conf";
/// Where `nginx.conf` is mounted.
pub const CONFIG_PATH: &str = "/etc/nginx/nginx.conf";
/// Where the certificate that users see is mounted.
pub const SSL_DIR: &str = "/etc/nginx/cert";

/// What the proxy is to be told.
#[derive(Debug, Clone)]
pub struct Proxy {
    /// Core's Service. It has to exist before nginx starts, which asks for its address once.
    pub core: Address,
    /// The portal's Service, if there is a portal.
    pub portal: Option<Address>,
    /// Whether core and portal speak TLS.
    pub internal_tls: bool,
    /// Where users are sent who come without TLS, if TLS is offered: what follows `https://`, such as `harbor.example:30443`.
    pub https: Option<String>,
    /// Where it listens.
    pub families: Families,
}

/// Renders the proxy for one release.
pub fn render(proxy: &Proxy, release: &Release) -> Rendered {
    Rendered { config: [(CONFIG_KEY.to_owned(), nginx_conf(proxy, release))].into(), ..Rendered::default() }
}

/// The paths of core.
#[derive(Debug)]
struct Route {
    path: &'static str,
    /// Whether core is to see the port that the user wrote: it is part of the URLs that core answers with.
    host_with_port: bool,
    long: bool,
    cookies: bool,
}

const ROUTES: [Route; 4] = [
    Route { path: "/c/", host_with_port: false, long: false, cookies: true },
    Route { path: "/api/", host_with_port: false, long: false, cookies: true },
    Route { path: "/v2/", host_with_port: true, long: true, cookies: false },
    Route { path: "/service/", host_with_port: true, long: false, cookies: true },
];

const CHARTS: Route = Route { path: "/chartrepo/", host_with_port: false, long: false, cookies: true };

fn nginx_conf(proxy: &Proxy, release: &Release) -> String {
    let mut text = Text::default();
    nginx::preamble(&mut text, 3096);
    text.block("http", |http| {
        nginx::temporary_files(http);
        http.line("tcp_nodelay on;")
            // Requests can be passed on unbuffered only so.
            .line("proxy_http_version 1.1;")
            .line("access_log /dev/stdout;");
        http.block("upstream core", |upstream| {
            upstream.line(format!("server {};", proxy.core));
        });
        if let Some(portal) = &proxy.portal {
            http.block("upstream portal", |upstream| {
                upstream.line(format!("server {portal};"));
            });
        }
        // A proxy before this one knows better than we how the user came.
        http.block("map $http_x_forwarded_proto $x_forwarded_proto", |map| {
            map.line("default $http_x_forwarded_proto;").line("\"\" $scheme;");
        });
        match &proxy.https {
            Some(address) => {
                http.block("server", |server| {
                    server.lines(proxy.families.listen(8443, true));
                    nginx::tls(server, release, SSL_DIR);
                    locations(server, proxy, release, true);
                });
                http.block("server", |server| {
                    server.lines(proxy.families.listen(8080, false));
                    server
                        .line("server_tokens off;")
                        .line(format!("return 308 https://{address}$request_uri;"));
                });
            }
            None => {
                http.block("server", |server| {
                    server.lines(proxy.families.listen(8080, false));
                    locations(server, proxy, release, false);
                });
            }
        }
    });
    text.finish()
}

fn locations(server: &mut Text, proxy: &Proxy, release: &Release, https: bool) {
    let scheme = if proxy.internal_tls { "https" } else { "http" };
    server
        .line("server_tokens off;")
        // Layers of any size, sent in chunks.
        .line("client_max_body_size 0;")
        .line("chunked_transfer_encoding on;")
        .line("add_header X-Frame-Options DENY;")
        .line("add_header Content-Security-Policy \"frame-ancestors 'none'\";");
    if https {
        server.line("add_header Strict-Transport-Security \"max-age=31536000; includeSubDomains; preload\";");
    }
    if proxy.portal.is_some() {
        server.block("location /", |location| {
            location.line(format!("proxy_pass {scheme}://portal/;"));
            headers(location, "$http_host");
            if https {
                location.line("proxy_cookie_path / \"/; HttpOnly; Secure\";");
            }
        });
    } else {
        // Otherwise nginx would show a page of its own.
        server.block("location /", |location| {
            location.line("return 404;");
        });
    }
    let charts = release.has(Feature::ChartMuseum).then_some(&CHARTS);
    for route in ROUTES.iter().chain(charts) {
        server.block(&format!("location {}", route.path), |location| {
            location.line(format!("proxy_pass {scheme}://core{};", route.path));
            headers(location, if route.host_with_port { "$http_host" } else { "$host" });
            if https && route.cookies {
                location.line("proxy_cookie_path / \"/; Secure\";");
            }
            if route.long && (https || release.has(Feature::PlainProxyLongTransfers)) {
                location.line("proxy_send_timeout 900;").line("proxy_read_timeout 900;");
            }
        });
    }
    for closed in ["/v1/", "/service/notifications"] {
        server.block(&format!("location {closed}"), |location| {
            location.line("return 404;");
        });
    }
}

fn headers(location: &mut Text, host: &str) {
    location
        .line(format!("proxy_set_header Host {host};"))
        .line("proxy_set_header X-Real-IP $remote_addr;")
        .line("proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;")
        .line("proxy_set_header X-Forwarded-Proto $x_forwarded_proto;")
        .line("proxy_buffering off;")
        .line("proxy_request_buffering off;");
}
