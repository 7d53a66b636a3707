//! Tests of the relay in front of a server that sends back what it receives.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::{Admission, Relay, RelayConnection};
use crate::eventually;

async fn echo() -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut read, mut write) = socket.split();
                let _ = tokio::io::copy(&mut read, &mut write).await;
            });
        }
    });
    address
}

async fn relay() -> Relay {
    Relay::start(echo().await).await.unwrap()
}

/// A client that is connected, with its number.
async fn client(relay: &Relay) -> TcpStream {
    let before = relay.connections().len();
    let client = TcpStream::connect(relay.address()).await.unwrap();
    relay.wait_for_connections(before + 1).await.unwrap();
    client
}

async fn ask(client: &mut TcpStream, text: &str) -> String {
    client.write_all(text.as_bytes()).await.unwrap();
    answer(client, text.len()).await
}

async fn answer(client: &mut TcpStream, length: usize) -> String {
    let mut bytes = vec![0; length];
    client.read_exact(&mut bytes).await.unwrap();
    String::from_utf8(bytes).unwrap()
}

/// Nothing can be read now. Asked on a connection that is frozen: what was not delivered before is not later.
fn is_silent(client: &TcpStream) -> bool {
    matches!(client.try_read(&mut [0; 1]), Err(error) if error.kind() == std::io::ErrorKind::WouldBlock)
}

#[tokio::test]
async fn bytes_pass_in_both_directions_and_are_counted() {
    let relay = relay().await;
    let mut client = client(&relay).await;
    assert_eq!(ask(&mut client, "hello").await, "hello");
    let connection = &relay.connections()[0];
    assert_eq!(connection.number(), 1);
    eventually("five bytes each", || async {
        let counts = (connection.sent(), connection.received());
        if counts == (5, 5) { Ok(()) } else { Err(format!("{counts:?}")) }
    })
    .await
    .unwrap();
    let large = "x".repeat(1_000_000);
    let (mut read, mut write) = client.split();
    let mut back = vec![0; large.len()];
    let (sent, received) = tokio::join!(write.write_all(large.as_bytes()), read.read_exact(&mut back));
    sent.unwrap();
    received.unwrap();
    assert_eq!(back, large.as_bytes());
}

#[tokio::test]
async fn seam_h1_a_frozen_connection_freezes_only_itself() {
    let relay = relay().await;
    let (mut frozen, mut other) = (client(&relay).await, client(&relay).await);
    assert_eq!(ask(&mut frozen, "a").await, "a");
    relay.connections()[0].freeze();
    frozen.write_all(b"lost?").await.unwrap();
    for round in ["one", "two", "three"] {
        assert_eq!(ask(&mut other, round).await, round);
    }
    let open = relay.open_connections();
    assert_eq!(open.iter().map(RelayConnection::is_frozen).collect::<Vec<_>>(), [true, false]);
    assert_eq!(open[0].sent(), 1, "the server has not seen what was sent since");
    assert!(is_silent(&frozen));
}

#[tokio::test]
async fn a_thawed_connection_delivers_what_was_waiting_in_order() {
    let relay = relay().await;
    let mut client = client(&relay).await;
    assert_eq!(ask(&mut client, "a").await, "a");
    let connection = &relay.connections()[0];
    connection.freeze();
    client.write_all(b"first ").await.unwrap();
    client.write_all(b"second").await.unwrap();
    connection.thaw();
    assert_eq!(answer(&mut client, 12).await, "first second");
}

#[tokio::test]
async fn a_connection_opened_while_new_ones_are_frozen_is_served_after_a_thaw() {
    let relay = relay().await;
    relay.admit(Admission::Frozen);
    let mut client = client(&relay).await;
    client.write_all(b"hello").await.unwrap();
    assert!(relay.connections()[0].is_frozen());
    assert!(is_silent(&client));
    relay.thaw_all();
    assert_eq!(answer(&mut client, 5).await, "hello");
}

#[tokio::test]
async fn a_reset_ends_one_connection_on_both_sides() {
    let relay = relay().await;
    let (mut reset, mut other) = (client(&relay).await, client(&relay).await);
    assert_eq!(ask(&mut reset, "a").await, "a");
    relay.connections()[0].reset();
    let error = reset.read(&mut [0; 1]).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    assert_eq!(ask(&mut other, "still there").await, "still there");
    eventually("one open connection", || async {
        let open = relay.open_connections();
        if open.len() == 1 { Ok(()) } else { Err(format!("{open:?}")) }
    })
    .await
    .unwrap();
    relay.connections()[0].freeze();
    assert!(!relay.connections()[0].is_frozen(), "a reset is final");
}

#[tokio::test]
async fn new_connections_are_reset_on_request() {
    let relay = relay().await;
    relay.admit(Admission::Reset);
    let mut client = TcpStream::connect(relay.address()).await.unwrap();
    assert!(client.read(&mut [0; 1]).await.is_err());
    relay.admit(Admission::Open);
    let mut client = TcpStream::connect(relay.address()).await.unwrap();
    assert_eq!(ask(&mut client, "hello").await, "hello");
}

/// The clock is paused, and moves only when everybody waits for a timer: the two delays are its only ones.
#[tokio::test(start_paused = true)]
async fn a_delayed_connection_delivers_everything_later() {
    const DELAY: Duration = Duration::from_hours(1);
    let relay = relay().await;
    let mut client = client(&relay).await;
    relay.connections()[0].delay(DELAY);
    let sent = tokio::time::Instant::now();
    assert_eq!(ask(&mut client, "late").await, "late");
    let delays = (tokio::time::Instant::now() - sent).as_secs() / DELAY.as_secs();
    assert_eq!(delays, 2, "one in each direction");
}

#[tokio::test]
async fn the_end_of_one_side_is_passed_on_and_ends_the_connection() {
    let relay = relay().await;
    let mut client = client(&relay).await;
    client.write_all(b"last words").await.unwrap();
    client.shutdown().await.unwrap();
    let mut all = String::new();
    client.read_to_string(&mut all).await.unwrap();
    assert_eq!(all, "last words");
    eventually("no open connection", || async {
        let open = relay.open_connections();
        if open.is_empty() { Ok(()) } else { Err(format!("{open:?}")) }
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn connections_end_with_the_relay() {
    let relay = relay().await;
    let mut client = client(&relay).await;
    assert_eq!(ask(&mut client, "a").await, "a");
    drop(relay);
    assert!(matches!(client.read(&mut [0; 1]).await, Ok(0) | Err(_)));
}
