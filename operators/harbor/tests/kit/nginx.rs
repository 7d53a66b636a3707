//! nginx, on what we render.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use harbor_operator::config::{portal, proxy};
use windlass_testenv::HeldPort;

use super::packages::Packages;
use super::process::Server;
use super::tls::Tls;

/// A configuration that has been fitted to this machine.
#[derive(Debug)]
pub(crate) struct Nginx {
    dir: PathBuf,
    file: PathBuf,
    pub(crate) text: String,
    /// Port on which nginx listens instead of 8080.
    pub(crate) plain: HeldPort,
    /// Port on which nginx listens instead of 8443.
    pub(crate) secure: HeldPort,
}

impl Nginx {
    /// Writes a rendered configuration. Where files are, and where it listens, is replaced in the text: nginx
    /// offers no other way.
    pub(crate) fn write(rendered: &str, dir: &Path, tls: &Tls) -> Self {
        let mime = Packages::get().file("etc/nginx/mime.types").expect("nginx comes with types");
        let (plain, secure) = (HeldPort::any().unwrap(), HeldPort::any().unwrap());
        let mut text = rendered.replace("/tmp/", &format!("{}/", dir.display()));
        text = text.replace("/etc/nginx/mime.types", &mime.display().to_string());
        for ssl in [portal::SSL_DIR, proxy::SSL_DIR] {
            text = text.replace(ssl, &tls.dir.display().to_string());
        }
        for (there, here) in [(8080, &plain), (8443, &secure)] {
            text = text.replace(&format!("listen {there}"), &format!("listen {}", here.address()));
            text = text.replace(&format!("listen [::]:{there}"), &format!("listen [::1]:{}", here.port()));
        }
        let file = dir.join("nginx.conf");
        fs::write(&file, &text).unwrap();
        Self { dir: dir.to_owned(), file, text, plain, secure }
    }

    fn command(&self) -> Command {
        let mut command = Packages::get().command("nginx");
        command.args(["-e", "stderr", "-p"]).arg(&self.dir).arg("-c").arg(&self.file);
        command
    }

    /// Checks the configuration with `nginx -t`.
    pub(crate) fn test(&self) {
        let output = self.command().arg("-t").output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && stderr.contains("test is successful"), "{stderr}\n{}", self.text);
    }

    /// Runs it, as one process.
    pub(crate) fn start(&self) -> Server {
        let globals = "daemon off; master_process off; error_log stderr notice;";
        // Said once it listens.
        Server::start(self.command().args(["-g", globals]), |line| line.contains("event method"))
            .unwrap_or_else(|log| panic!("nginx does not start: {log}\n{}", self.text))
            .0
    }
}

/// A server that sets a session cookie marked Secure, as Core with internal TLS does, and answers 200 to who
/// has it and 403 to everybody else; gives its port. It ends with the test program.
pub(crate) fn session() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut lines = BufReader::new(&stream).lines().map_while(Result::ok);
            let head: Vec<String> = lines.by_ref().take_while(|line| !line.is_empty()).collect();
            let has_session = head.iter().any(|line| line.eq_ignore_ascii_case("Cookie: sid=1"));
            let status = if has_session { "200 OK" } else { "403 Forbidden" };
            let _ = write!(
                stream,
                "HTTP/1.1 {status}\r\nSet-Cookie: sid=1; Path=/; HttpOnly; Secure\r\nConnection: close\r\n\
                 Content-Length: 0\r\n\r\n"
            );
        }
    });
    port
}

/// A server that answers every request with a name, and with the request's head; gives its port. It ends with
/// the test program.
pub(crate) fn echo(name: &'static str) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let head: Vec<String> = BufReader::new(&stream)
                .lines()
                .map_while(Result::ok)
                .take_while(|line| !line.is_empty())
                .collect();
            let body = format!("{name}\n{}", head.join("\n"));
            let _ = write!(
                stream,
                "HTTP/1.1 200 OK\r\nSet-Cookie: sid=1; Path=/\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            );
        }
    });
    port
}
