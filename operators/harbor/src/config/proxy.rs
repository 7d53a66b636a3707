//! The nginx in front of Core and Portal, used when Harbor is exposed by a Service.

use crate::catalogue::{Feature, Release};

use super::address::Address;
use super::nginx::{self, Families, Text};
use super::rendered::Rendered;

/// The key of `nginx.conf` in the ConfigMap.
pub const CONFIG_KEY: &str = "nginx.conf";
/// Mount path of `nginx.conf`.
pub(crate) const CONFIG_PATH: &str = "/etc/nginx/nginx.conf";
/// Mount path of the public certificate.
pub const SSL_DIR: &str = "/etc/nginx/cert";

/// The settings of the proxy.
#[derive(Debug, Clone)]
pub struct Proxy {
    /// The Service of Core. It must exist before nginx starts, because nginx resolves the name once.
    pub core: Address,
    /// The Service of Portal, if there is one.
    pub portal: Option<Address>,
    /// True if Core and Portal use TLS.
    pub internal_tls: bool,
    /// The authority to which HTTP requests are redirected if TLS is served: the part after `https://`, such
    /// as `harbor.example:30443`.
    pub https: Option<String>,
    /// True if clients use an http URL. With internal TLS, Core marks its session cookie `Secure`, and
    /// browsers would drop it: the proxy removes the flag.
    pub plain_url: bool,
    /// The IP families to listen on.
    pub families: Families,
}

/// Renders the proxy for one release.
pub fn render(proxy: &Proxy, release: &Release) -> Rendered {
    Rendered { config: [(CONFIG_KEY.to_owned(), nginx_conf(proxy, release))].into(), ..Rendered::default() }
}

/// The paths of Core.
#[derive(Debug)]
struct Route {
    path: &'static str,
    /// True if Core needs the port of the client's URL, because it is part of the URLs in Core's responses.
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
            // Required to pass requests on unbuffered.
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
        // A proxy in front of this one knows the client's scheme.
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
        // Image layers of any size, sent in chunks.
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
        // Otherwise nginx would show its default page.
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
            } else if proxy.internal_tls && proxy.plain_url && route.cookies {
                location.line("proxy_cookie_flags ~ nosecure;");
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
