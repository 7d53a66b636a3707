//! `queue`: the queue alone, in the three cases that controller-runtime measures its own by.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use serde_json::json;
use windlass_runtime::queue::{Add, Next, Queue};

use crate::wire::say;

/// Each case runs for about as long, as Go's do.
const TIME: Duration = Duration::from_secs(1);
/// Keys per round.
const ROUND: u32 = 1000;

pub(crate) async fn run() -> Result<()> {
    add_get_done().await?;
    add_only()?;
    add_contended().await
}

fn report(case: &str, rounds: u32, began: Instant) -> Result<()> {
    let nanos = u64::try_from(began.elapsed().as_nanos())?;
    say(
        &json!({"event": "queue", "case": case, "ns_per_op": nanos / u64::from(rounds.max(1)), "ops": rounds}),
    )
}

/// A round of adds, then each is taken and finished.
async fn add_get_done() -> Result<()> {
    let queue = Queue::new(windlass_runtime::queue::Backoff::default());
    let (began, mut rounds) = (Instant::now(), 0);
    while began.elapsed() < TIME {
        for key in 0..ROUND {
            queue.add(key, Add::now());
        }
        for _ in 0..ROUND {
            queue.get().await.context("the queue is open")?.finish(Next::Forget);
        }
        rounds += 1;
    }
    report("AddGetDone", rounds, began)
}

/// Rounds of adds of what is there already.
fn add_only() -> Result<()> {
    let queue = Queue::new(windlass_runtime::queue::Backoff::default());
    let (began, mut rounds) = (Instant::now(), 0);
    while began.elapsed() < TIME {
        for key in 0..ROUND {
            queue.add(key, Add::now());
        }
        rounds += 1;
    }
    report("AddOnly", rounds, began)
}

/// Rounds of adds while a thousand workers take what is there.
async fn add_contended() -> Result<()> {
    let queue = Queue::new(windlass_runtime::queue::Backoff::default());
    for key in 0..1_000_000 {
        queue.add(key, Add::now());
    }
    let mut workers = tokio::task::JoinSet::new();
    for _ in 0..1000 {
        let queue = queue.clone();
        workers.spawn(async move {
            while let Some(item) = queue.get().await {
                tokio::time::sleep(Duration::from_millis(1)).await;
                item.finish(Next::Forget);
            }
        });
    }
    let adder = tokio::task::spawn_blocking(move || {
        let (began, mut rounds) = (Instant::now(), 0);
        while began.elapsed() < TIME {
            for key in 0..ROUND {
                queue.add(key, Add::now());
            }
            rounds += 1;
        }
        queue.shut_down();
        (began, rounds)
    });
    let (began, rounds) = adder.await?;
    report("AddLockContended", rounds, began)
}
