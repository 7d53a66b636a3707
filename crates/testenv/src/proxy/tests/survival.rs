//! Servers that restart, clients by the dozen, tunnels, and the end of the proxy.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::try_join_all;
use http::header::{CONNECTION, HOST, UPGRADE};
use http_body_util::Empty;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{ApiServer, Got, Rig, patch, patches};
use crate::proxy::{Action, Delivery, Fault, Match, tls};

#[tokio::test]
async fn the_proxy_survives_a_restart_of_the_api_server() {
    let mut rig = Rig::start().await;
    rig.configmaps().get("y").await.unwrap();
    let mut watch = rig.watch("pods").await;
    let port = rig.server.port();

    rig.server.stop();
    watch.expect_end(Got::Broken(String::new())).await;
    // The old socket may accept a last connection while the server's tasks are being dropped.
    while TcpStream::connect(("127.0.0.1", port)).await.is_ok() {
        tokio::task::yield_now().await;
    }
    assert!(matches!(rig.client_get().await, Err(kube::Error::Service(_))));
    assert_eq!(rig.proxy.seen().pop().unwrap().client, Delivery::Closed);

    rig.server = ApiServer::start(&rig.certificates, port).await;
    rig.client_get().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_requests_at_once_are_each_answered_and_connections_are_used_again() {
    let rig = Rig::start().await;
    for _ in 0..5 {
        let requests = (0..40).map(|index| {
            let configmaps = rig.configmaps();
            async move {
                configmaps
                    .get(&format!("c{index}"))
                    .await
                    .map(|found| (index, found.metadata.name))
            }
        });
        for (index, name) in try_join_all(requests).await.unwrap() {
            assert_eq!(name, Some(format!("c{index}")));
        }
    }
    let sequences: Vec<u64> = rig.proxy.seen().iter().map(|seen| seen.sequence).collect();
    assert_eq!(sequences, (1..=200).collect::<Vec<_>>());
    assert!(rig.server.connections() < 200, "{} connections for 200 requests", rig.server.connections());
}

#[tokio::test]
async fn one_client_in_sequence_needs_one_connection_to_the_server() {
    let rig = Rig::start().await;
    for _ in 0..10 {
        patch(rig.configmaps()).await.unwrap();
    }
    assert_eq!(rig.server.connections(), 1);
}

#[tokio::test]
async fn an_upgraded_connection_is_a_tunnel() {
    let rig = Rig::start().await;
    let socket = TcpStream::connect(rig.proxy.addr()).await.unwrap();
    let name = "127.0.0.1".try_into().unwrap();
    let connector = tls::connector(rig.certificates.ca_pem.as_bytes()).unwrap();
    let stream = connector.connect(name, socket).await.unwrap();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    let connection = tokio::spawn(connection.with_upgrades());
    let request = http::Request::get("/api/v1/namespaces/x/pods/p/exec?command=cat")
        .header(HOST, "127.0.0.1")
        .header(CONNECTION, "Upgrade")
        .header(UPGRADE, "echo")
        .body(Empty::<Bytes>::new())
        .unwrap();
    let response = sender.send_request(request).await.unwrap();
    assert_eq!(response.status(), 101);
    assert_eq!(response.headers()[UPGRADE], "echo");

    let mut tunnel = TokioIo::new(hyper::upgrade::on(response).await.unwrap());
    tunnel.write_all(b"through the tunnel").await.unwrap();
    let mut echoed = [0; 18];
    tunnel.read_exact(&mut echoed).await.unwrap();
    assert_eq!(&echoed, b"through the tunnel");
    tunnel.shutdown().await.unwrap();
    assert_eq!(tunnel.read(&mut echoed).await.unwrap(), 0, "the end passes, too");
    connection.await.unwrap().unwrap();
    assert_eq!(rig.proxy.seen()[0].to_string(), "#1 get pods/exec x/p: server 101, client 101");
}

#[tokio::test]
async fn dropping_the_proxy_closes_everything() {
    let rig = Rig::start().await;
    let mut watch = rig.watch("pods").await;
    let held = rig.proxy.add(Fault::on(patches()).then(Action::Hold));
    let request = tokio::spawn(patch(rig.configmaps()));
    held.wait_for_hits(1).await.unwrap();
    let frozen = rig.proxy.freeze_watches(&Match::any());
    let address = rig.proxy.addr();

    drop(rig.proxy);
    watch.expect_end(Got::Broken(String::new())).await;
    rig.server.watches_closed("pods").await;
    assert!(request.await.unwrap().is_err());
    while TcpStream::connect(address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    // Handles may outlive it.
    held.release();
    frozen.release();
    assert_eq!(rig.server.writes(), [""; 0]);
}

#[tokio::test]
async fn nothing_of_a_dropped_proxy_stays_in_memory() {
    let rig = Rig::start().await;
    patch(rig.configmaps()).await.unwrap();
    let _watch = rig.watch("pods").await;
    let control = rig.proxy.control();
    drop((rig.proxy, rig.client));
    while Arc::strong_count(&control) > 1 {
        tokio::task::yield_now().await;
    }
}

impl Rig {
    async fn client_get(&self) -> kube::Result<()> {
        self.configmaps().get("y").await.map(drop)
    }
}
