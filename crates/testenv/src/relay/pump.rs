//! Copying of bytes in both directions, under the present fault of the connection.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::watch;

use super::connection::{Counters, Fault};

/// The bytes that are read at once.
const CHUNK: usize = 16 * 1024;

/// Copies until both sides have closed, one of them breaks, or the connection is reset.
pub(super) async fn run(
    mut client: TcpStream,
    mut server: TcpStream,
    mut faults: watch::Receiver<Fault>,
    counters: &Counters,
) -> io::Result<()> {
    let (up, down) = (faults.clone(), faults.clone());
    let reset = {
        let (from_client, to_client) = client.split();
        let (from_server, to_server) = server.split();
        tokio::select! {
            // First: what is ready to be delivered at this moment is not delivered any more.
            biased;
            () = until_reset(&mut faults) => true,
            copied = async {
                tokio::try_join!(
                    copy(from_client, to_server, up, &counters.sent),
                    copy(from_server, to_client, down, &counters.received),
                )
            } => {
                copied?;
                false
            }
        }
    };
    if reset {
        client.set_zero_linger()?;
        server.set_zero_linger()?;
    }
    Ok(())
}

/// Copies one direction to its end, and passes the end on.
async fn copy(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut faults: watch::Receiver<Fault>,
    counter: &AtomicU64,
) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK];
    loop {
        // A frozen connection is not even read: the sender's window closes in the end, as with a dead peer.
        until_flowing(&mut faults).await;
        let length = from.read(&mut buffer).await?;
        // It may have been frozen while there was nothing to read: then this waits, too.
        let delay = until_flowing(&mut faults).await;
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
            until_flowing(&mut faults).await;
        }
        if length == 0 {
            return to.shutdown().await;
        }
        to.write_all(&buffer[..length]).await?;
        counter.fetch_add(length as u64, Ordering::AcqRel);
    }
}

/// Waits while the connection is frozen; returns the present delay.
async fn until_flowing(faults: &mut watch::Receiver<Fault>) -> Duration {
    // The sender lives as long as anybody can ask for a fault. Without it, the last one stays.
    match faults.wait_for(|fault| *fault != Fault::Frozen).await.map(|fault| *fault) {
        Ok(Fault::Delayed(time)) => time,
        Ok(_) => Duration::ZERO,
        Err(_) => std::future::pending().await,
    }
}

async fn until_reset(faults: &mut watch::Receiver<Fault>) {
    if faults.wait_for(|fault| *fault == Fault::Reset).await.is_err() {
        std::future::pending::<()>().await;
    }
}
