//! A small HTTP client for the tests.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

/// HTTP client for one server, with the credentials of one user.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    pub(crate) port: u16,
    pub(crate) tls: Option<Arc<rustls::ClientConfig>>,
    pub(crate) credentials: Option<(String, String)>,
    /// The cookie that is sent.
    pub(crate) cookie: Option<String>,
}

/// Response of a server: status, headers and body.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// A header, by its name in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(header, _)| header == name).map(|(_, value)| value.as_str())
    }
}

impl Client {
    /// A client without TLS and credentials.
    pub(crate) fn new(port: u16) -> Self {
        Self { port, tls: None, credentials: None, cookie: None }
    }

    /// The same, as somebody.
    pub(crate) fn by(&self, user: &str, password: &str) -> Self {
        Self { credentials: Some((user.to_owned(), password.to_owned())), ..self.clone() }
    }

    /// Asks, and waits for the whole answer.
    pub(crate) fn ask(&self, method: &str, path: &str, body: &[u8]) -> Answer {
        let mut request =
            format!("{method} {path} HTTP/1.1\r\nHost: localhost:{}\r\nConnection: close\r\n", self.port);
        if let Some((user, password)) = &self.credentials {
            let encoded = BASE64_STANDARD.encode(format!("{user}:{password}"));
            let _ = write!(request, "Authorization: Basic {encoded}\r\n");
        }
        if let Some(cookie) = &self.cookie {
            let _ = write!(request, "Cookie: {cookie}\r\n");
        }
        let _ = write!(request, "Content-Length: {}\r\n\r\n", body.len());
        let mut bytes = request.into_bytes();
        bytes.extend_from_slice(body);
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
        let answer = match &self.tls {
            None => exchange(&mut stream, &bytes),
            Some(config) => {
                let name = "localhost".try_into().unwrap();
                let mut connection = rustls::ClientConnection::new(Arc::clone(config), name).unwrap();
                exchange(&mut rustls::Stream::new(&mut connection, &mut stream), &bytes)
            }
        };
        parse(&answer)
    }
}

fn exchange(stream: &mut (impl Read + Write), request: &[u8]) -> Vec<u8> {
    stream.write_all(request).unwrap();
    stream.flush().unwrap();
    let mut answer = Vec::new();
    match stream.read_to_end(&mut answer) {
        Ok(_) => {}
        // Go closes connections without saying so in TLS.
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof && !answer.is_empty() => {}
        Err(error) => panic!("no answer: {error}"),
    }
    answer
}

fn parse(answer: &[u8]) -> Answer {
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
    let head = std::str::from_utf8(&answer[..end]).unwrap();
    let mut lines = head.lines();
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let headers = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_lowercase(), value.trim().to_owned()))
        .collect();
    Answer { status, headers, body: answer[end + 4..].to_vec() }
}
