//! The look at the schema as a step of a plan.

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

/// How long a database that could not be read is left alone: a look that fails may take seconds, and a Core that comes up is looked
/// after many times.
const LEFT_ALONE: Duration = Duration::from_secs(30);

/// What was found last, by owner, until its status has it.
///
/// A status is made after a run from what the run saw, and a step cannot say more than that it is done; what it found is kept here in
/// between. Lost with the process, it is read again.
#[derive(Default)]
pub struct Readings(Mutex<HashMap<ObjectKey, (Reading, Instant)>>);

impl Readings {
    /// What was found last for this owner.
    pub fn of(&self, owner: &ObjectKey) -> Option<Reading> {
        self.all().get(owner).map(|(reading, _)| reading.clone())
    }

    /// Its status has it.
    pub fn forget(&self, owner: &ObjectKey) {
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
        // Nothing that is done under the lock leaves it half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Readings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Readings({})", self.all().len())
    }
}

/// Looks where the schema stands, and fails where it is dirty.
#[derive(Clone, Debug)]
pub struct SchemaCheck {
    /// Whether there is a reason to look. Where there is none it has its place in the plan all the same, so that a plan has as many
    /// nodes before a look as after it.
    pub due: bool,
    /// Whose database it is.
    pub owner: ObjectKey,
    /// The database.
    pub target: Target,
    /// Where it is noted.
    pub readings: Arc<Readings>,
}

impl Step for SchemaCheck {
    async fn check(&self) -> Result<StepState, Error> {
        if !self.due || self.readings.leaves_alone(&self.owner) {
            return Ok(StepState::Done);
        }
        let reading = self.target.read().await;
        let trouble = reading.trouble(&self.target.name());
        self.readings.note(&self.owner, reading);
        match trouble {
            // Somebody will mend it, and nobody will tell us: it is looked at again, ever less often.
            Some(trouble) => Err(Error::transient(trouble)),
            None => Ok(StepState::Done),
        }
    }

    async fn act(&self) -> Result<(), Error> {
        Ok(()) // it is never asked for: there is only something to see
    }
}
