//! A Redis, and its own client.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use super::packages::Packages;
use super::process::{Server, on_free_port};
use super::tls::Tls;

/// A running Redis.
#[derive(Debug)]
pub(crate) struct RedisServer {
    _server: Server,
    pub(crate) port: u16,
}

impl RedisServer {
    /// Starts Redis with a password and further lines of its configuration, with TLS or without.
    pub(crate) fn start(dir: &Path, password: Option<&str>, tls: Option<&Tls>, more: &str) -> Self {
        let (server, port) = on_free_port(|port| {
            let mut text =
                format!("bind 127.0.0.1\nsave \"\"\nappendonly no\ndir {}\n{more}\n", dir.display());
            if let Some(password) = password {
                let _ = writeln!(text, "requirepass {}", quoted(password));
            }
            let _ = match tls {
                None => writeln!(text, "port {port}"),
                Some(tls) => writeln!(
                    text,
                    "port 0\ntls-port {port}\ntls-cert-file {}\ntls-key-file {}\ntls-ca-cert-file {}\ntls-auth-clients no",
                    tls.certificate.display(),
                    tls.key.display(),
                    tls.authority.display()
                ),
            };
            start(dir, &format!("redis-{port}.conf"), &text, &[])
        });
        Self { _server: server, port }
    }

    /// Starts a Sentinel that watches a Redis under a name.
    pub(crate) fn start_sentinel(dir: &Path, name: &str, master: u16, password: &str) -> Self {
        let (server, port) = on_free_port(|port| {
            let text = format!(
                "bind 127.0.0.1\nport {port}\ndir {}\nsentinel monitor {name} 127.0.0.1 {master} 1\nsentinel auth-pass {name} {}\n",
                dir.display(),
                quoted(password),
            );
            start(dir, &format!("sentinel-{port}.conf"), &text, &["--sentinel"])
        });
        Self { _server: server, port }
    }
}

fn start(dir: &Path, name: &str, text: &str, more: &[&str]) -> Result<Server, String> {
    let file = dir.join(name);
    fs::write(&file, text).unwrap();
    let ready = |line: &str| line.contains("Ready to accept connections") || line.contains("Sentinel ID is");
    let mut command = Packages::get().command("redis-server");
    Server::start(command.arg(&file).args(more), ready).map(|(server, _)| server)
}

/// A word as Redis' own configuration takes it.
fn quoted(word: &str) -> String {
    word.bytes().fold("\"".to_owned(), |mut text, byte| {
        let _ = write!(text, "\\x{byte:02x}");
        text
    }) + "\""
}

/// Asks a Redis by URL, with Redis' own client; gives what it printed.
///
/// A URL without a user name gets the name `default`: this client would send an empty name, and Harbor's
/// clients send none.
pub(crate) fn ask(url: &str, authority: Option<&Path>, words: &[&str]) -> String {
    let mut command = Packages::get().command("redis-cli");
    let url = url.replacen("://:", "://default:", 1);
    command.args(["--no-auth-warning", "-u", &url]);
    if let Some(authority) = authority {
        command.arg("--cacert").arg(authority);
    }
    output(command.args(words))
}

/// Returns the output of a command, even if the command failed.
pub(crate) fn output(command: &mut Command) -> String {
    let output = command.output().unwrap();
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}
