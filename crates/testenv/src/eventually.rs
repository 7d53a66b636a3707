//! Waiting for a condition, and saying what was seen when it does not come.

use std::future::Future;
use std::time::Duration;

use crate::error::{Error, Result};

/// The timeout of [`eventually`]. It is long, because a busy machine is no failure: the time is only ever
/// spent when something is wrong.
const PATIENCE: Duration = Duration::from_mins(1);

/// The interval between two evaluations.
const GLANCE: Duration = Duration::from_millis(25);

/// Waits until `check` gives `Ok`, and returns what it gave. `Err` says what is
/// seen instead; the last one is part of the message when time runs out.
///
/// Dropping the future stops the waiting.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), windlass_testenv::Error> {
/// use windlass_testenv::eventually;
///
/// let mut replicas = 0;
/// let ready = eventually("three replicas", || {
///     replicas += 1;
///     async move { if replicas == 3 { Ok(replicas) } else { Err(format!("{replicas} replicas")) } }
/// })
/// .await?;
/// assert_eq!(ready, 3);
/// # Ok(())
/// # }
/// ```
pub async fn eventually<T, F, C>(what: impl Into<String>, check: C) -> Result<T>
where
    C: FnMut() -> F,
    F: Future<Output = Result<T, String>>,
{
    within(PATIENCE, what, check).await
}

/// Like [`eventually`], with a patience of one's own.
pub async fn within<T, F, C>(patience: Duration, what: impl Into<String>, mut check: C) -> Result<T>
where
    C: FnMut() -> F,
    F: Future<Output = Result<T, String>>,
{
    let mut last = "nothing yet".to_owned();
    let looking = async {
        loop {
            match check().await {
                Ok(value) => return value,
                Err(seen) => last = seen,
            }
            tokio::time::sleep(GLANCE).await;
        }
    };
    match tokio::time::timeout(patience, looking).await {
        Ok(value) => Ok(value),
        Err(_) => Err(Error::TimedOut { what: what.into(), seconds: patience.as_secs(), last }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_last_state_seen_is_in_the_message() {
        let mut looks = 0;
        let error = eventually("the tide", || {
            looks += 1;
            async move { Err::<(), _>(format!("ebb {}", looks.min(7))) }
        })
        .await
        .unwrap_err();
        assert_eq!(error.to_string(), "timed out after 60 s waiting for the tide; last seen: ebb 7");
    }

    #[tokio::test(start_paused = true)]
    async fn a_check_that_never_returns_is_given_up() {
        let error =
            within(Duration::from_secs(1), "an answer", std::future::pending::<Result<(), String>>).await;
        assert!(matches!(error, Err(Error::TimedOut { .. })));
    }
}
