//! A server in the place of S3, which stores nothing and checks signatures.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use ring::{digest, hmac};

/// The server. It ends with the test program.
#[derive(Debug)]
pub(crate) struct S3Server {
    pub(crate) port: u16,
    requests: Receiver<Request>,
}

/// A request, without its body.
#[derive(Debug)]
pub(crate) struct Request {
    method: String,
    pub(crate) target: String,
    headers: BTreeMap<String, String>,
}

impl S3Server {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (sender, requests) = mpsc::channel();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { return };
                let lines = BufReader::new(&stream).lines().map_while(Result::ok);
                let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
                if let Some(request) = Request::parse(&head) {
                    let _ = sender.send(request);
                }
                let body = "<?xml version=\"1.0\"?><ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>";
                let length = body.len();
                let head = "HTTP/1.1 200 OK\r\nContent-Type: application/xml\r\nConnection: close";
                let _ = write!(stream, "{head}\r\nContent-Length: {length}\r\n\r\n{body}");
            }
        });
        Self { port, requests }
    }

    /// The next request.
    pub(crate) fn request(&self) -> Request {
        self.requests.recv_timeout(Duration::from_mins(1)).expect("a request to S3")
    }
}

impl Request {
    fn parse(head: &[String]) -> Option<Self> {
        let (first, headers) = head.split_first()?;
        let mut words = first.split(' ');
        let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
        let headers = headers
            .iter()
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_lowercase(), value.trim().to_owned()))
            .collect();
        Some(Self { method, target, headers })
    }

    fn part(&self, name: &str) -> &str {
        let authorization = &self.headers["authorization"];
        let words = authorization.split([' ', ',']);
        words.filter_map(|word| word.split_once('=')).find(|(key, _)| *key == name).unwrap().1
    }

    /// The name of the key that it is signed with.
    pub(crate) fn access_key(&self) -> &str {
        self.part("Credential").split('/').next().unwrap()
    }

    /// Returns true if the request is signed with this key (Amazon's signature version 4).
    pub(crate) fn is_signed_with(&self, secret: &str) -> bool {
        let scope: Vec<&str> = self.part("Credential").split('/').skip(1).collect();
        let (path, query) = self.target.split_once('?').unwrap_or((&self.target, ""));
        let mut query: Vec<String> = query
            .split('&')
            .map(|pair| if pair.contains('=') { pair.to_owned() } else { format!("{pair}=") })
            .collect();
        query.sort();
        let signed = self.part("SignedHeaders");
        let headers = signed.split(';').fold(String::new(), |mut text, name| {
            let _ = writeln!(text, "{name}:{}", self.headers[name]);
            text
        });
        let payload = &self.headers["x-amz-content-sha256"];
        let canonical =
            format!("{}\n{path}\n{}\n{headers}\n{signed}\n{payload}", self.method, query.join("&"));
        let hash = digest::digest(&digest::SHA256, canonical.as_bytes());
        let date = &self.headers["x-amz-date"];
        let text = format!("AWS4-HMAC-SHA256\n{date}\n{}\n{}", scope.join("/"), hex(hash.as_ref()));
        let key = scope.iter().fold(format!("AWS4{secret}").into_bytes(), |key, word| sign(&key, word));
        hex(&sign(&key, &text)) == self.part("Signature")
    }
}

fn sign(key: &[u8], text: &str) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes()).as_ref().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}
