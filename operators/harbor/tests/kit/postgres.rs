//! A PostgreSQL, and its own client.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::packages::Packages;
use super::process::{Server, is_root, on_free_port};
use super::tls::Tls;

/// Who PostgreSQL runs as if the tests run as root, which it refuses to: `nobody`.
const NOBODY: u32 = 65534;

/// A running PostgreSQL.
#[derive(Debug)]
pub(crate) struct PostgresServer {
    _server: Server,
    pub(crate) port: u16,
}

impl PostgresServer {
    /// Starts PostgreSQL with a superuser and its password, with TLS or without.
    pub(crate) fn start(dir: &Path, user: &str, password: &str, tls: Option<&Tls>) -> Self {
        let data = dir.join("data");
        fs::create_dir(&data).unwrap();
        let secret = dir.join("password");
        fs::write(&secret, format!("{password}\n")).unwrap();
        let mut given: Vec<PathBuf> = vec![data.clone(), secret.clone()];
        given.extend(tls.map(|tls| tls.key.clone()));
        for path in &given {
            fs::set_permissions(path, fs::Permissions::from_mode(if path.is_dir() { 0o700 } else { 0o600 }))
                .unwrap();
            if is_root() {
                chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
            }
        }
        // For the other user to get there.
        fs::set_permissions(dir, fs::Permissions::from_mode(0o755)).unwrap();
        let output = unprivileged("initdb")
            .args(["--no-sync", "--encoding=UTF8", "--locale=C", "--auth=scram-sha-256"])
            .arg(format!("--username={user}"))
            .arg(format!("--pwfile={}", secret.display()))
            .arg("-D")
            .arg(&data)
            .current_dir(dir)
            .output()
            .unwrap();
        assert!(output.status.success(), "initdb: {}", String::from_utf8_lossy(&output.stderr));
        let (server, port) = on_free_port(|port| {
            let mut command = unprivileged("postgres");
            command.arg("-D").arg(&data).args(["-h", "127.0.0.1", "-p", &port.to_string()]);
            let mut set = |name: &str, value: &str| {
                command.arg("-c").arg(format!("{name}={value}"));
            };
            set("unix_socket_directories", "");
            set("fsync", "off");
            set("lc_messages", "C");
            if let Some(tls) = tls {
                set("ssl", "on");
                set("ssl_cert_file", &tls.certificate.display().to_string());
                set("ssl_key_file", &tls.key.display().to_string());
                // Without TLS nobody comes in.
                fs::write(data.join("pg_hba.conf"), "hostssl all all all scram-sha-256\n").unwrap();
            }
            Server::start(command.current_dir(dir), |line| line.contains("database system is ready"))
                .map(|(server, _)| server.with_children())
        });
        Self { _server: server, port }
    }
}

/// A program of PostgreSQL, as a user that it accepts.
fn unprivileged(program: &str) -> Command {
    let inner = Packages::get().command(program);
    if !is_root() {
        return inner;
    }
    let mut command = Command::new("setpriv");
    command
        .args([format!("--reuid={NOBODY}"), format!("--regid={NOBODY}")])
        .args(["--clear-groups", "--"])
        .arg(inner.get_program());
    let env: Vec<(OsString, OsString)> =
        inner.get_envs().filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned()))).collect();
    command.env_clear().envs(env);
    command
}

/// Asks PostgreSQL with its own client, by URL or by words; gives what it printed, or why it could not.
pub(crate) fn ask(connection: &str, authority: Option<&Path>, query: &str) -> Result<String, String> {
    let mut command = Packages::get().command("psql");
    if let Some(authority) = authority {
        command.env("PGSSLROOTCERT", authority);
    }
    // Neither the user's settings nor a question for a password.
    let output = command.args(["-X", "-w", "-A", "-t", "-d", connection, "-c", query]).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}
