//! The common parts of Harbor's two nginx configurations.

use crate::catalogue::{Feature, Release};

/// The IP families that a server listens on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Families {
    /// Listens on IPv4.
    pub v4: bool,
    /// Listens on IPv6.
    pub v6: bool,
}

impl Families {
    /// Listens on both families.
    pub const BOTH: Self = Self { v4: true, v6: true };
    /// Listens on IPv4 only.
    pub const V4: Self = Self { v4: true, v6: false };

    /// Returns the `listen` directives for a port. Without any family, both are used, because a server that
    /// listens nowhere is useless.
    pub(crate) fn listen(self, port: u16, tls: bool) -> Vec<String> {
        let ssl = if tls { " ssl" } else { "" };
        let neither = !self.v4 && !self.v6;
        let v4 = (self.v4 || neither).then(|| format!("listen {port}{ssl};"));
        let v6 = (self.v6 || neither).then(|| format!("listen [::]:{port}{ssl};"));
        v4.into_iter().chain(v6).collect()
    }
}

/// A text with nested blocks.
#[derive(Debug, Default)]
pub(crate) struct Text {
    text: String,
    depth: usize,
}

impl Text {
    pub(crate) fn line(&mut self, line: impl AsRef<str>) -> &mut Self {
        for _ in 0..self.depth {
            self.text.push_str("  ");
        }
        self.text.push_str(line.as_ref());
        self.text.push('\n');
        self
    }

    pub(crate) fn lines(&mut self, lines: impl IntoIterator<Item = impl AsRef<str>>) -> &mut Self {
        for line in lines {
            self.line(line);
        }
        self
    }

    pub(crate) fn block(&mut self, head: &str, body: impl FnOnce(&mut Self)) -> &mut Self {
        self.line(format!("{head} {{"));
        self.depth += 1;
        body(self);
        self.depth -= 1;
        self.line("}")
    }

    pub(crate) fn finish(self) -> String {
        self.text
    }
}

/// Writes the lines before `http`. The root file system may be read-only, so all files are written below
/// `/tmp`.
pub(crate) fn preamble(text: &mut Text, connections: u32) {
    text.line("worker_processes auto;").line("pid /tmp/nginx.pid;");
    text.block("events", |events| {
        events.line(format!("worker_connections {connections};"));
    });
}

/// Writes the directories of nginx's temporary files.
pub(crate) fn temporary_files(http: &mut Text) {
    http.lines(
        ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|kind| format!("{kind}_temp_path /tmp/{kind}_temp;")),
    );
}

/// Writes the certificate and the TLS settings of a server.
pub(crate) fn tls(server: &mut Text, release: &Release, directory: &str) {
    let protocols = if release.has(Feature::Tls13) { "TLSv1.2 TLSv1.3" } else { "TLSv1.2" };
    server
        .line(format!("ssl_certificate {directory}/tls.crt;"))
        .line(format!("ssl_certificate_key {directory}/tls.key;"))
        .line(format!("ssl_protocols {protocols};"))
        .line("ssl_ciphers ECDHE+AESGCM:ECDHE+CHACHA20:!aNULL;")
        .line("ssl_prefer_server_ciphers on;")
        .line("ssl_session_cache shared:SSL:10m;");
}
