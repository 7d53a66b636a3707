//! The lock of `windlass up`: only one of them runs at a time.

use std::fs::{File, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::time::{Duration, Instant};

use windlass_testenv::dirs;

use crate::console::Console;
use crate::failure::Failure;

/// Content of the lock file while its holder stops.
const STOPPING: &str = "stopping";
/// Time limit for a former `up` to stop. It takes about two seconds.
const PATIENCE: Duration = Duration::from_mins(1);

/// The lock, held while `up` starts or runs in the foreground. The kernel releases it with the process.
pub(crate) struct Turn(File);

impl Turn {
    /// Takes the lock, or returns nothing if another `up` runs. Waits for one that is about to stop.
    pub(crate) fn take(console: &Console) -> Result<Option<Self>, Failure> {
        let path = dirs::run()?.join("up.turn");
        let failed =
            |error: std::io::Error| Failure::Environment(format!("cannot lock {}: {error}", path.display()));
        let deadline = Instant::now() + PATIENCE;
        let mut announced = false;
        loop {
            let file = dirs::lock_file(&path)?;
            match file.try_lock() {
                Ok(()) => {
                    file.set_len(0).map_err(failed)?;
                    return Ok(Some(Self(file)));
                }
                Err(TryLockError::Error(error)) => return Err(failed(error)),
                Err(TryLockError::WouldBlock) => {}
            }
            let mut content = String::new();
            // Opened again: our own handle is for writing only.
            File::open(&path).and_then(|mut file| file.read_to_string(&mut content)).map_err(failed)?;
            if content != STOPPING {
                return Ok(None);
            }
            if Instant::now() > deadline {
                return Err(Failure::Running(format!(
                    "the former `windlass up` has not stopped within {} s: `windlass down` stops its control plane",
                    PATIENCE.as_secs()
                )));
            }
            if !announced {
                console.heading("waiting for the former `windlass up` to stop");
                announced = true;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Announces to the next `up` that this one is about to stop.
    pub(crate) fn stopping(&mut self) {
        // Without the announcement, the next `up` reports that this one still runs.
        let _ = self.0.rewind().and_then(|()| self.0.write_all(STOPPING.as_bytes()));
    }
}
