//! Tests of the transport against an HTTP/2 server, through a relay that can freeze connections.

use std::net::SocketAddr;
use std::sync::atomic::AtomicUsize;

use axum::Router;
use axum::routing::get;
use futures::FutureExt as _;
use http::Method;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use rustls_pki_types::pem::PemObject as _;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use windlass_pki::{Algorithm, AuthorityRecipe, LeafRecipe, PrivateKey};

use super::*;
use crate::client::{Apply, Client, ClientError, ClientOptions, Failure, RetryPolicy};
use crate::fence::Fence;
use crate::key::ObjectKey;
use crate::serve::{Listener, Options};
use crate::stop::{Stop, Stopper};
use crate::webhook::Serving;

/// Forwards bytes between clients and a server, and can freeze connections: their bytes are kept back while
/// the sockets stay open.
struct Relay {
    address: SocketAddr,
    accepted: Arc<AtomicUsize>,
    /// The number of connections, in order of acceptance, that are frozen.
    frozen: watch::Sender<usize>,
}

impl Relay {
    async fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (accepted, frozen) = (Arc::new(AtomicUsize::new(0)), watch::Sender::new(0));
        let (count, freezes) = (Arc::clone(&accepted), frozen.clone());
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let index = count.fetch_add(1, Ordering::SeqCst);
                let (client_reads, client_writes) = client.into_split();
                let (server_reads, server_writes) = TcpStream::connect(server).await.unwrap().into_split();
                tokio::spawn(forward(client_reads, server_writes, index, freezes.subscribe()));
                tokio::spawn(forward(server_reads, client_writes, index, freezes.subscribe()));
            }
        });
        Self { address, accepted, frozen }
    }

    fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }

    /// Freezes all present connections.
    fn freeze(&self) {
        self.frozen.send_replace(self.accepted());
    }
}

async fn forward(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    index: usize,
    mut frozen: watch::Receiver<usize>,
) {
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(length) = from.read(&mut buffer).await {
        if frozen.wait_for(|count| *count <= index).await.is_err() || length == 0 {
            return;
        }
        if to.write_all(&buffer[..length]).await.is_err() {
            return;
        }
    }
}

/// An API server with one ConfigMap, behind a relay. `/slow` answers when the gate is opened.
struct Fixture {
    relay: Relay,
    config: kube::Config,
    gate: Arc<Semaphore>,
    /// Complete write requests that the server received.
    writes: Arc<AtomicUsize>,
    _stopper: Stopper,
}

impl Fixture {
    async fn start() -> Self {
        let pair = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
        let key = rustls_pki_types::PrivateKeyDer::try_from(pair.signing_key.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut tls = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![pair.cert.der().clone()], key)
            .unwrap();
        tls.alpn_protocols = vec![b"h2".to_vec()];
        let gate = Arc::new(Semaphore::new(0));
        let opened = Arc::clone(&gate);
        let writes = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&writes);
        let object = |method: Method, _: Bytes| async move {
            counted.fetch_add(usize::from(!method.is_safe()), Ordering::SeqCst);
            json!({"metadata": {"name": "a", "namespace": "n", "resourceVersion": "1"}}).to_string()
        };
        let slow = || async move { opened.acquire().await.map(|_| "at last").unwrap() };
        let router = Router::new().route("/slow", get(slow)).fallback(object);
        let listener = Listener::bind(([127, 0, 0, 1], 0)).unwrap();
        let relay = Relay::to(listener.address()).await;
        let (stopper, stop) = Stop::pair();
        let options = Options { tls: Some(Arc::new(tls)), ..Options::default() };
        tokio::spawn(async move { listener.serve(router, options, &stop).await });
        let mut config = kube::Config::new(format!("https://{}", relay.address).parse().unwrap());
        config.root_cert = Some(vec![pair.cert.der().to_vec()]);
        Self { relay, config, gate, writes, _stopper: stopper }
    }

    /// Returns a client whose calls fail if they take more than five seconds.
    fn client(&self) -> Client {
        let options = ClientOptions { deadline: Duration::from_secs(5), ..ClientOptions::default() };
        Client::new(self.config.clone(), options).unwrap()
    }

    fn request(&self, path: &str) -> Request<Body> {
        Request::get(format!("https://{}{path}", self.relay.address)).body(Body::empty()).unwrap()
    }
}

async fn read(client: &Client) -> ConfigMap {
    client.objects().get(&ObjectKey::namespaced("n", "a")).await.unwrap()
}

async fn until(condition: impl Fn() -> bool) {
    while !condition() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn seam_h1_a_call_on_a_frozen_connection_succeeds_on_a_new_one_within_five_seconds() {
    let fixture = Fixture::start().await;
    let client = fixture.client();
    read(&client).await;
    fixture.relay.freeze();
    read(&client).await;
    assert_eq!(fixture.relay.accepted(), 2);
}

#[tokio::test]
async fn seam_h1_new_requests_avoid_a_suspect_connection() {
    let fixture = Fixture::start().await;
    let mut transport = Transport::new(&fixture.config, None).unwrap();
    transport.call(fixture.request("/a")).await.unwrap();
    fixture.relay.freeze();
    let frozen = tokio::spawn(transport.call(fixture.request("/a")));
    let first = Arc::clone(&transport.connections.lock()[0]);
    until(|| first.pulse.is_suspect()).await;
    transport.call(fixture.request("/a")).await.unwrap();
    assert_eq!(fixture.relay.accepted(), 2);
    let error = frozen.await.unwrap().err().unwrap();
    assert!(error.to_string().contains("no answer to a ping"), "{error}");
}

#[tokio::test]
async fn seam_h1_a_connection_that_answers_again_is_no_longer_suspect() {
    let fixture = Fixture::start().await;
    let mut transport = Transport::new(&fixture.config, None).unwrap();
    transport.call(fixture.request("/a")).await.unwrap();
    fixture.relay.freeze();
    let mut frozen = tokio::spawn(transport.call(fixture.request("/a")));
    let first = Arc::clone(&transport.connections.lock()[0]);
    until(|| first.pulse.is_suspect()).await;
    fixture.relay.frozen.send_replace(0);
    until(|| !first.pulse.is_suspect()).await;
    assert!((&mut frozen).await.unwrap().is_ok());
    transport.call(fixture.request("/a")).await.unwrap();
    assert_eq!(fixture.relay.accepted(), 1);
}

#[tokio::test]
async fn seam_h1_a_slow_response_is_awaited_while_pings_are_answered() {
    let fixture = Fixture::start().await;
    let mut transport = Transport::new(&fixture.config, None).unwrap();
    let sent = Instant::now();
    let mut slow = tokio::spawn(transport.call(fixture.request("/slow")));
    until(|| !transport.connections.lock().is_empty()).await;
    let connection = Arc::clone(&transport.connections.lock()[0]);
    until(|| connection.pulse.last_sign(sent).is_some_and(|last| last > sent + STEP * 20)).await;
    assert!((&mut slow).now_or_never().is_none());
    fixture.gate.add_permits(1);
    assert!(slow.await.unwrap().is_ok());
    assert_eq!(fixture.relay.accepted(), 1);
}

#[tokio::test]
async fn seam_h1_a_client_with_own_connections_does_not_use_a_frozen_one() {
    let fixture = Fixture::start().await;
    let calls = fixture.client();
    let lease = calls.with_own_connections();
    read(&calls).await;
    fixture.relay.freeze();
    read(&lease).await;
    assert_eq!(fixture.relay.accepted(), 2);
    assert_eq!(calls.stats().requests(), lease.stats().requests(), "both count together");
}

async fn apply(client: &Client) -> Result<ConfigMap, ClientError> {
    let (key, apply) = (ObjectKey::namespaced("n", "a"), Apply::by("test"));
    client.objects().apply(&key, &json!({"metadata": {"name": "a"}}), &apply).await
}

/// Returns an open fence and its clock.
fn fence() -> (Fence, watch::Sender<Duration>) {
    let clock = watch::Sender::new(Duration::from_secs(100));
    let read = clock.subscribe();
    let fence = Fence::with_clock(move || *read.borrow());
    fence.open_until(Duration::from_secs(110));
    (fence, clock)
}

#[tokio::test]
async fn seam_m3_a_write_is_not_sent_after_the_lease_deadline() {
    let fixture = Fixture::start().await;
    let (fence, clock) = fence();
    let client = fixture.client().fenced(&fence);
    apply(&client).await.unwrap();
    clock.send_replace(Duration::from_secs(110));
    let error = apply(&client).await.unwrap_err();
    assert_eq!((error.failure(), error.is_transient()), (&Failure::Fenced, true));
    assert_eq!(fixture.writes.load(Ordering::SeqCst), 1);
    read(&client).await;
}

#[tokio::test]
async fn seam_m3_a_write_that_waits_for_its_connection_is_not_sent_after_the_lease_deadline() {
    let fixture = Fixture::start().await;
    let (fence, clock) = fence();
    let client = fixture.client().fenced(&fence);
    fixture.relay.frozen.send_replace(usize::MAX);
    let written = tokio::spawn(async move { apply(&client).await });
    until(|| fixture.relay.accepted() == 1).await;
    clock.send_replace(Duration::from_secs(110));
    fixture.relay.frozen.send_replace(0);
    let error = written.await.unwrap().unwrap_err();
    assert_eq!(*error.failure(), Failure::Fenced, "{error}");
    assert_eq!(fixture.writes.load(Ordering::SeqCst), 0);
}

/// A server whose certificate is issued by another CA each time.
fn serve_with(listener: &Listener, authority: &windlass_pki::Pair) -> (Stopper, impl Future) {
    let day = Duration::from_hours(24);
    let key = PrivateKey::generate(Algorithm::EcdsaP256).unwrap();
    let recipe = LeafRecipe::new().names(["127.0.0.1"]).server();
    let leaf = recipe.issue(authority, key, day, Timestamp::now()).unwrap();
    let serving = Serving::new();
    serving.replace(leaf.certificate().as_bytes(), leaf.key().as_bytes()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(serving));
    tls.alpn_protocols = vec![b"h2".to_vec()];
    let options = Options { tls: Some(Arc::new(tls)), ..Options::default() };
    let object = json!({"metadata": {"name": "a", "namespace": "n", "resourceVersion": "1"}}).to_string();
    let router = Router::new().fallback(move || std::future::ready(object.clone()));
    let (stopper, stop) = Stop::pair();
    let listener = listener.clone();
    let served = tokio::spawn(async move { listener.serve(router, options, &stop).await });
    (stopper, served)
}

#[tokio::test]
async fn seam_low_a_rotated_ca_is_trusted_without_a_restart() {
    let authority = |name: &str| {
        let recipe = AuthorityRecipe::new(name, Duration::from_hours(48));
        recipe.make(Timestamp::now()).unwrap()
    };
    let (old, new) = (authority("old"), authority("new"));
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("ca.crt");
    std::fs::write(&file, old.certificate()).unwrap();
    let listener = Listener::bind(([127, 0, 0, 1], 0)).unwrap();
    let (stopper, served) = serve_with(&listener, &old);
    let mut config = kube::Config::new(format!("https://{}", listener.address()).parse().unwrap());
    let der = rustls_pki_types::CertificateDer::from_pem_slice(old.certificate().as_bytes()).unwrap();
    config.root_cert = Some(vec![der.to_vec()]);
    let retry = RetryPolicy { attempts: 1, ..RetryPolicy::default() };
    let options = ClientOptions { ca_file: Some(file.clone()), retry, ..ClientOptions::default() };
    let client = Client::new(config, options).unwrap();
    read(&client).await;

    // The server starts again with a certificate of the new CA, and the connection is closed.
    stopper.request();
    served.await;
    let (_stopper, _served) = serve_with(&listener, &new);
    let key = ObjectKey::namespaced("n", "a");
    let refused = client.objects::<ConfigMap>().get(&key).await.unwrap_err();
    assert_eq!(*refused.failure(), Failure::Unavailable, "{refused}");

    // A file without a certificate changes nothing.
    std::fs::write(&file, "").unwrap();
    client.objects::<ConfigMap>().get(&key).await.unwrap_err();
    std::fs::write(&file, new.certificate()).unwrap();
    read(&client).await;
}
