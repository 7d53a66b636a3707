//! Slots for private control planes: a machine bears only a few of them at a time.

use std::env;
use std::fs::{File, TryLockError};
use std::path::Path;
use std::time::Duration;

use crate::control_plane::PRIVATE_AT_A_TIME;
use crate::dirs;
use crate::error::{Error, Result};

const LIMIT: &str = "WINDLASS_TEST_PRIVATE";

/// The interval at which a caller without a slot looks for one: the kernel can wait for one lock, not for one
/// of several.
const GLANCE: Duration = Duration::from_millis(50);

/// The number of slots: `WINDLASS_TEST_PRIVATE`, or else [`PRIVATE_AT_A_TIME`].
pub(crate) fn limit() -> Result<usize> {
    parse_limit(env::var(LIMIT).ok().filter(|value| !value.is_empty()).as_deref())
}

fn parse_limit(value: Option<&str>) -> Result<usize> {
    let Some(value) = value else { return Ok(PRIVATE_AT_A_TIME) };
    value.parse().ok().filter(|number| *number > 0).ok_or_else(|| {
        Error::Start(format!("{LIMIT}={value:?} is not a number of control planes: set a number from 1"))
    })
}

/// Waits for a free slot and takes it. It is free again when the file is closed, also by the end of the
/// process.
///
/// Cancel safe: a slot that was not returned is not taken.
pub(crate) async fn take(limit: usize) -> Result<File> {
    let run = dirs::run()?;
    loop {
        if let Some(slot) = try_take(&run, limit)? {
            return Ok(slot);
        }
        tokio::time::sleep(GLANCE).await;
    }
}

/// Takes the first free slot, if there is one.
fn try_take(run: &Path, limit: usize) -> Result<Option<File>> {
    for number in 0..limit {
        let path = run.join(format!("private.{number}"));
        let file = dirs::lock_file(&path)?;
        match file.try_lock() {
            Ok(()) => return Ok(Some(file)),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(Error::file(path)(error)),
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_than_the_limit_are_taken_and_a_closed_one_is_free_again() {
        let run = tempfile::tempdir().unwrap();
        let take = || try_take(run.path(), 2).unwrap();
        let (first, second) = (take(), take());
        assert!(first.is_some() && second.is_some());
        assert!(take().is_none());
        drop(first);
        assert!(take().is_some());
    }

    #[test]
    fn the_limit_is_a_number_from_one() {
        assert_eq!(parse_limit(None).unwrap(), PRIVATE_AT_A_TIME);
        assert_eq!(parse_limit(Some("1")).unwrap(), 1);
        for wrong in ["0", "many", "-1"] {
            assert!(parse_limit(Some(wrong)).unwrap_err().to_string().contains(LIMIT), "{wrong}");
        }
    }
}
