//! Portal: an nginx that serves files.

use crate::catalogue::{Feature, Release};

use super::nginx::{self, Text};
use super::rendered::Rendered;

pub use super::nginx::Families;

/// The key of `nginx.conf` in the ConfigMap.
pub const CONFIG_KEY: &str = "nginx.conf";
/// Mount path of `nginx.conf`.
pub(crate) const CONFIG_PATH: &str = "/etc/nginx/nginx.conf";
/// Mount path of the internal TLS certificate.
pub const SSL_DIR: &str = "/etc/portal/ssl";

/// The settings of Portal.
#[derive(Debug, Clone)]
pub struct Portal {
    /// Enables internal TLS between the components.
    pub tls: bool,
    /// Connections of one nginx worker. 0 stands for 1024.
    pub max_connections: u32,
    /// The IP families to listen on.
    pub families: Families,
}

/// Renders the portal for one release.
pub fn render(portal: &Portal, release: &Release) -> Rendered {
    Rendered { config: [(CONFIG_KEY.to_owned(), nginx_conf(portal, release))].into(), ..Rendered::default() }
}

fn nginx_conf(portal: &Portal, release: &Release) -> String {
    let mut text = Text::default();
    let connections = if portal.max_connections == 0 { 1024 } else { portal.max_connections };
    nginx::preamble(&mut text, connections);
    text.block("http", |http| {
        nginx::temporary_files(http);
        http.line("access_log /dev/stdout;").line("include /etc/nginx/mime.types;");
        http.block("server", |server| {
            server.lines(portal.families.listen(if portal.tls { 8443 } else { 8080 }, portal.tls));
            if portal.tls {
                nginx::tls(server, release, SSL_DIR);
            }
            server
                .line("server_name localhost;")
                .line("server_tokens off;")
                .line("root /usr/share/nginx/html;")
                .line("index index.html index.htm;")
                .line("gzip on;")
                .line("gzip_min_length 1000;")
                .line("gzip_proxied expired no-cache no-store private auth;")
                .line(
                    "gzip_types text/plain text/css text/xml application/json application/javascript application/xml \
                     image/svg+xml;",
                );
            if release.has(Feature::PortalDeveloperCentre) {
                server.block("location /devcenter-api-2.0", |location| {
                    location.line("try_files $uri $uri/ /swagger-ui-index.html;");
                });
            }
            server.block("location /", |location| {
                location.line("try_files $uri $uri/ /index.html;");
            });
            server.block("location = /index.html", |location| {
                location.line("add_header Cache-Control \"no-store, no-cache, must-revalidate\";");
            });
        });
    });
    text.finish()
}
