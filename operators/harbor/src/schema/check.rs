//! The schema check as a step of a plan.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use windlass::{Step, StepState};
use windlass_runtime::controller::Error;
use windlass_runtime::key::ObjectKey;

use super::connect::Target;
use super::reading::Reading;

/// Time before an unreadable database is read again: an attempt may take seconds, and a starting Core is
/// reconciled many times.
const LEFT_ALONE: Duration = Duration::from_secs(30);

/// The last reading of each owner, until it is in the owner's status.
///
/// A step can only succeed or fail, and the status is written after the run; the reading is kept here in
/// between. If the process ends, the database is read again.
#[derive(Default)]
pub struct Readings(Mutex<HashMap<ObjectKey, (Reading, Instant)>>);

impl Readings {
    /// Returns the last reading of an owner.
    pub(crate) fn of(&self, owner: &ObjectKey) -> Option<Reading> {
        self.all().get(owner).map(|(reading, _)| reading.clone())
    }

    /// Forgets the reading of an owner, because its status has it.
    pub(crate) fn forget(&self, owner: &ObjectKey) {
        self.all().remove(owner);
    }

    fn note(&self, owner: &ObjectKey, reading: Reading) {
        self.all().insert(owner.clone(), (reading, Instant::now()));
    }

    fn leaves_alone(&self, owner: &ObjectKey) -> bool {
        let all = self.all();
        matches!(all.get(owner), Some((Reading::Unread(_), at)) if at.elapsed() < LEFT_ALONE)
    }

    fn all(&self) -> MutexGuard<'_, HashMap<ObjectKey, (Reading, Instant)>> {
        // The map is consistent even if a thread panicked while it held the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Readings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Readings({})", self.all().len())
    }
}

/// A step that reads the schema version and fails if the schema is dirty.
#[derive(Clone, Debug)]
pub(crate) struct SchemaCheck {
    /// True if the database has to be read. If not, the step is still part of the plan, so that the number of
    /// nodes does not change.
    pub due: bool,
    /// The number of the newest migration that the version of Core can read, if it is known.
    pub newest: Option<u32>,
    /// The owner whose database is read.
    pub owner: ObjectKey,
    /// The database to read.
    pub target: Target,
    /// Store of the last reading of the schema.
    pub readings: Arc<Readings>,
}

impl Step for SchemaCheck {
    async fn check(&self) -> Result<StepState, Error> {
        if !self.due || self.readings.leaves_alone(&self.owner) {
            return Ok(StepState::Done);
        }
        let reading = self.target.read().await;
        let name = self.target.name();
        let trouble = reading.trouble(&name).or_else(|| reading.too_new(&name, self.newest?));
        self.readings.note(&self.owner, reading);
        match trouble {
            // A user has to repair the database, and no event tells when: the check is retried with backoff.
            Some(trouble) => Err(Error::transient(trouble)),
            None => Ok(StepState::Done),
        }
    }

    async fn act(&self) -> Result<(), Error> {
        Ok(()) // it is never asked for: there is only something to see
    }
}
