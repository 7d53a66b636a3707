//! Tests of what a kube client sees through the proxy, in front of an imitated API server.

pub(crate) mod certificates;
mod requests;
mod server;
mod survival;
mod watches;

use std::time::Duration;

use http::header::{HeaderValue, USER_AGENT};
use http_body_util::BodyExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Patch, PatchParams};
use kube::config::AuthInfo;
use kube::{Api, Client, Config};
use serde_json::json;

use self::certificates::Certificates;
use self::server::ApiServer;
use super::{FaultProxy, Match, ProxyOptions, RequestVerb};

/// A server, a proxy before it and a client before that.
struct Rig {
    server: ApiServer,
    proxy: FaultProxy,
    client: Client,
    certificates: Certificates,
}

impl Rig {
    async fn start() -> Self {
        let certificates = Certificates::generate();
        let server = ApiServer::start(&certificates, 0).await;
        let proxy = FaultProxy::start(ProxyOptions {
            upstream: server.url(),
            upstream_ca_pem: certificates.ca_pem.clone(),
            certificate_pem: certificates.certificate_pem.clone(),
            key_pem: certificates.key_pem.clone(),
            ..ProxyOptions::default()
        })
        .await
        .unwrap();
        let client = client(&proxy.url(), &certificates);
        Self { server, proxy, client, certificates }
    }

    fn configmaps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), "x")
    }

    /// Opens a watch; returns when its head has arrived.
    async fn watch(&self, resource: &str) -> Lines {
        let path = format!("/api/v1/namespaces/x/{resource}?watch=true");
        let request = http::Request::get(path).body(kube::client::Body::empty()).unwrap();
        let response = self.client.send(request).await.unwrap();
        assert_eq!(response.status(), 200);
        Lines { body: response.into_body(), received: Vec::new() }
    }
}

/// The client of an operator without retries, so that a test sees every failure.
fn client(url: &str, certificates: &Certificates) -> Client {
    let mut config = Config::new(url.parse().unwrap());
    config.root_cert = Some(vec![certificates.ca_der.clone()]);
    config.default_retry = false;
    config.connect_timeout = None;
    config.write_timeout = None;
    config.headers = vec![(USER_AGENT, HeaderValue::from_static("operator/replica-a"))];
    // Through serde: the token's type belongs to a crate that is no dependency of ours.
    config.auth_info = serde_json::from_value::<AuthInfo>(json!({"token": "t0ken"})).unwrap();
    Client::try_from(config).unwrap()
}

/// Patches the `ConfigMap` x/y.
async fn patch(configmaps: Api<ConfigMap>) -> kube::Result<ConfigMap> {
    configmaps.patch("y", &PatchParams::default(), &Patch::Merge(json!({"data": {"k": "v"}}))).await
}

fn patches() -> Match {
    Match::verb(RequestVerb::Patch).resource("configmaps").namespace("x").name("y")
}

/// A wait that fails instead of hanging.
async fn in_time<T>(what: &str, wait: impl Future<Output = T>) -> T {
    let done = tokio::time::timeout(Duration::from_secs(30), wait).await;
    done.unwrap_or_else(|_| panic!("waited in vain for {what}"))
}

/// The lines of a streamed answer.
struct Lines {
    body: kube::client::Body,
    received: Vec<u8>,
}

/// The part of a stream that a client receives.
#[derive(Debug, PartialEq)]
enum Got {
    Line(String),
    /// The orderly end.
    End,
    /// The connection broke; with it came this much of a line.
    Broken(String),
}

impl Lines {
    /// Cancel safe: what was received stays.
    async fn next(&mut self) -> Got {
        loop {
            if let Some(end) = self.received.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.received.drain(..=end).collect();
                return Got::Line(String::from_utf8_lossy(&line[..end]).into_owned());
            }
            match self.body.frame().await {
                Some(Ok(frame)) => self.received.extend_from_slice(&frame.into_data().unwrap()),
                Some(Err(_)) => return Got::Broken(String::from_utf8_lossy(&self.received).into_owned()),
                None => return Got::End,
            }
        }
    }

    async fn expect(&mut self, lines: &[&str]) {
        for line in lines {
            assert_eq!(in_time(line, self.next()).await, Got::Line((*line).to_owned()));
        }
    }

    async fn expect_end(&mut self, end: Got) {
        assert_eq!(in_time("the end of a watch", self.next()).await, end);
    }
}
