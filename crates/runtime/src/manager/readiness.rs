//! Readiness checks of the process.
//!
//! Readiness is a list of named checks, each evaluated for every [`Report`]. A ready process has synced all
//! caches that it needs, and all its runnables run. The checks are served by an admin server.

use std::fmt;
use std::sync::Arc;

use parking_lot::RwLock;

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// The check passes.
    Ready,
    /// Something is wrong, but the process can do its work.
    Degraded(String),
    /// The process cannot do its work, for this reason.
    NotReady(String),
}

/// The checks of a process. Clones are handles of the same list.
#[derive(Clone, Default)]
pub struct Readiness {
    checks: Arc<RwLock<Vec<Check>>>,
}

#[derive(Clone)]
struct Check {
    name: String,
    ask: Arc<dyn Fn() -> Health + Send + Sync>,
}

impl fmt::Debug for Readiness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.report().fmt(f)
    }
}

impl Readiness {
    /// Adds a check; one of the same name is replaced. It must not block.
    pub fn check(&self, name: impl Into<String>, ask: impl Fn() -> Health + Send + Sync + 'static) {
        let check = Check { name: name.into(), ask: Arc::new(ask) };
        let mut checks = self.checks.write();
        match checks.iter_mut().find(|other| other.name == check.name) {
            Some(other) => *other = check,
            None => checks.push(check),
        }
    }

    /// Evaluates every check.
    pub fn report(&self) -> Report {
        // Evaluated without the lock: a check may add checks.
        let checks = self.checks.read().clone();
        Report {
            checks: checks
                .into_iter()
                .map(|check| Checked { health: (check.ask)(), name: check.name })
                .collect(),
        }
    }
}

/// The results of all checks at one time. Displayed one per line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The results, in the order in which the checks were added.
    pub checks: Vec<Checked>,
}

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// The name of the check.
    pub name: String,
    /// The result of the check.
    pub health: Health,
}

impl Report {
    /// Returns true if the process is ready: no check is `NotReady`.
    pub fn is_ready(&self) -> bool {
        !self.checks.iter().any(|check| matches!(check.health, Health::NotReady(_)))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Checked { name, health } in &self.checks {
            match health {
                Health::Ready => writeln!(f, "[+] {name}")?,
                Health::Degraded(why) => writeln!(f, "[~] {name}: {why}")?,
                Health::NotReady(why) => writeln!(f, "[-] {name}: {why}")?,
            }
        }
        f.write_str(if self.is_ready() { "ready" } else { "not ready" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_check_that_is_not_ready_is_enough_and_a_degraded_one_is_not() {
        let readiness = Readiness::default();
        readiness.check("a", || Health::Ready);
        readiness.check("b", || Health::Degraded("a bit slow".into()));
        assert!(readiness.report().is_ready());
        readiness.check("c", || Health::NotReady("no cache".into()));
        assert_eq!(readiness.report().to_string(), "[+] a\n[~] b: a bit slow\n[-] c: no cache\nnot ready");
        readiness.check("c", || Health::Ready);
        assert!(readiness.report().is_ready());
    }
}
