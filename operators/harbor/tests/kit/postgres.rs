//! A PostgreSQL, and its own client.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::packages::Packages;
use super::process::{Server, free_port, is_root, on_free_port};
use super::tls::Tls;

/// User that runs PostgreSQL if the tests run as root, because PostgreSQL refuses to run as root: `nobody`.
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
        let mut paths: Vec<PathBuf> = vec![data.clone(), secret.clone()];
        paths.extend(tls.map(|tls| tls.key.clone()));
        for path in &paths {
            fs::set_permissions(path, fs::Permissions::from_mode(if path.is_dir() { 0o700 } else { 0o600 }))
                .unwrap();
            if is_root() {
                chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
            }
        }
        // The user of the server must be able to enter the directory.
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

/// A stand-in for the entrypoint of Harbor's database image: it initialises a directory without PG_VERSION as
/// the image does (`initdb`, access rules, password, SQL files in the order of their names, all of it with a
/// server that listens nowhere), and runs the server. `INTERRUPT_AFTER` kills it at that point.
const ENTRYPOINT: &str = r#"#!/bin/bash
set -e
data="$PGDATA/pg15"
interrupt() {
    if [ "$INTERRUPT_AFTER" = "$1" ]; then
        if [ -e "$data/postmaster.pid" ]; then kill -KILL "$(head -n 1 "$data/postmaster.pid")"; fi
        kill -KILL $$
    fi
}
client() { psql -X -q -v ON_ERROR_STOP=1 -h "$SOCKETS" -U postgres -d postgres "$@"; }
if [ ! -s "$data/PG_VERSION" ]; then
    initdb --no-sync --encoding=UTF8 --locale=C --auth=trust -U postgres -D "$data" >/dev/null
    # A new cluster trusts 127.0.0.1. A pod that connects to its own address has that address: here
    # clients have no other address, and need the password.
    printf 'local all all trust\nhost all all all scram-sha-256\n' >"$data/pg_hba.conf"
    interrupt initdb
    pg_ctl -D "$data" -o "-c listen_addresses='' -k $SOCKETS" -l "$PGDATA/log" -w start >/dev/null
    client -c "ALTER USER postgres WITH SUPERUSER PASSWORD '$POSTGRES_PASSWORD'"
    interrupt password
    for file in "$INIT_FILES"/*.sql; do
        client -f "$file"
        interrupt "$(basename "$file")"
    done
    pg_ctl -D "$data" -m fast -w stop >/dev/null
fi
exec postgres -D "$data" -h "$POD_IP" -k "$SOCKETS" -c fsync=off -c lc_messages=C
"#;

/// The address of the pod.
const POD_ADDRESS: &str = "127.0.0.1";

/// The built-in database, with the scripts that the operator renders.
pub(crate) struct BuiltInDatabase {
    dir: PathBuf,
}

impl BuiltInDatabase {
    /// Writes the scripts (by name) where the image would have them.
    pub(crate) fn new(dir: &Path, scripts: &[(String, String)]) -> Self {
        for sub in ["pgdata", "init", "scripts", "sockets"] {
            fs::create_dir(dir.join(sub)).unwrap();
        }
        fs::write(dir.join("docker-entrypoint.sh"), ENTRYPOINT).unwrap();
        fs::write(dir.join("init/initial-registry.sql"), "CREATE DATABASE registry;\n").unwrap();
        fs::write(dir.join("message"), "").unwrap();
        for (name, text) in scripts {
            let is_sql = Path::new(name).extension().is_some_and(|extension| extension == "sql");
            let sub = if is_sql { "init" } else { "scripts" };
            fs::write(dir.join(sub).join(name), text).unwrap();
        }
        for path in ["pgdata", "sockets", "message"].map(|path| dir.join(path)) {
            if is_root() {
                chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
            }
        }
        fs::set_permissions(dir, fs::Permissions::from_mode(0o755)).unwrap();
        Self { dir: dir.to_owned() }
    }

    /// A command with the environment of the container.
    fn command(&self, program: &str, port: u16) -> Command {
        let postgres = Packages::get().program("postgres");
        // Beside it are the programs that the entrypoint uses. A program that is linked elsewhere is
        // followed.
        let programs = postgres.canonicalize().unwrap().parent().unwrap().to_owned();
        let path = format!("{}:/usr/bin:/bin", programs.display());
        let mut command = unprivileged_program(Path::new(program), &Packages::get().command("postgres"));
        let at = |sub: &str| self.dir.join(sub);
        command
            .env("PATH", path)
            .env("PGDATA", at("pgdata"))
            .env("SOCKETS", at("sockets"))
            .env("INIT_FILES", at("init"))
            .env("BASH_ENV", at("scripts/start.sh"))
            .env("TERMINATION_LOG", at("message"))
            .env("POSTGRES_PASSWORD", "secret")
            .env("POD_IP", POD_ADDRESS)
            .env("PGPORT", port.to_string())
            .current_dir(&self.dir);
        command
    }

    fn entrypoint(&self, port: u16) -> Command {
        let mut command = self.command("/bin/bash", port);
        command.arg(self.dir.join("docker-entrypoint.sh"));
        command
    }

    /// Starts it for the first time, and kills it at this point.
    pub(crate) fn is_interrupted(&self, after: &str) {
        let output = self.entrypoint(free_port()).env("INTERRUPT_AFTER", after).output().unwrap();
        assert!(!output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// Starts it, and waits until the server accepts connections.
    pub(crate) fn starts(&self) -> PostgresServer {
        let (server, port) = on_free_port(|port| {
            Server::start(&mut self.entrypoint(port), |line| line.contains("database system is ready"))
                .map(|(server, _)| server.with_children())
        });
        PostgresServer { _server: server, port }
    }

    /// Starts it, wants it to fail, and returns its termination message.
    pub(crate) fn fails_to_start(&self) -> String {
        let output = self.entrypoint(free_port()).output().unwrap();
        assert!(!output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        fs::read_to_string(self.dir.join("message")).unwrap()
    }

    /// Runs the readiness probe.
    pub(crate) fn ready(&self, port: u16) -> Result<String, String> {
        printed(self.command("/bin/sh", port).arg(self.dir.join("scripts/ready.sh")))
    }

    /// Asks Core's database as a client.
    pub(crate) fn ask(port: u16, query: &str) -> Result<String, String> {
        Self::ask_in("core", port, query)
    }

    /// Asks a database as a client.
    pub(crate) fn ask_in(database: &str, port: u16, query: &str) -> Result<String, String> {
        let url = format!("postgresql://postgres:secret@{POD_ADDRESS}:{port}/{database}");
        ask(&url, None, query)
    }

    pub(crate) fn exists(&self, path: &str) -> bool {
        self.dir.join("pgdata").join(path).exists()
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        fs::write(self.dir.join("pgdata").join(path), text).unwrap();
    }

    pub(crate) fn remove(&self, path: &str) {
        fs::remove_file(self.dir.join("pgdata").join(path)).unwrap();
    }
}

/// A program of PostgreSQL, as a user that it accepts.
fn unprivileged(program: &str) -> Command {
    let inner = Packages::get().command(program);
    unprivileged_program(Path::new(inner.get_program()), &inner)
}

/// Any program with the environment of another command, as a user that PostgreSQL accepts.
fn unprivileged_program(program: &Path, inner: &Command) -> Command {
    let mut command = if is_root() { Command::new("setpriv") } else { Command::new(program) };
    if is_root() {
        command
            .args([format!("--reuid={NOBODY}"), format!("--regid={NOBODY}")])
            .args(["--clear-groups", "--"])
            .arg(program);
    }
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
    printed(command.args(["-X", "-w", "-A", "-t", "-d", connection, "-c", query]))
}

/// Runs a command; gives what it printed, or why it could not.
fn printed(command: &mut Command) -> Result<String, String> {
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}
