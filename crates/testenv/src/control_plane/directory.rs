//! The directory of an instance: created for it, readable by this user alone, and recognised by a marker.
//!
//! The supervisor empties the directory when it starts, and deletes it when it stops. It must therefore never
//! be a directory that somebody else filled, or one that a link leads to.

use std::fs::{self, DirBuilder, Metadata, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::Path;

use crate::dirs;
use crate::error::{Error, Result};

/// Name of the marker. The supervisor knows it too: it keeps the marker when it empties the directory, and
/// deletes it last.
const MARKER: &str = "windlass-testenv.instance";

/// The supervisor's log, which is opened before the supervisor starts.
pub(super) const LOG: &str = "supervisor.log";

/// Attempts to claim a directory that another process creates or deletes at the same time.
const ATTEMPTS: u32 = 5;

/// Creates the directory of an instance, or checks that an existing one is ours.
///
/// Several processes may start one instance at the same time, and a supervisor that ends may delete the
/// directory meanwhile. A refusal is therefore final only if it is repeated; somebody else's directory stays
/// as it is.
pub(super) fn claim(dir: &Path) -> Result<()> {
    let mut attempts = 1;
    loop {
        match claim_once(dir) {
            Err(error) if attempts < ATTEMPTS && may_pass(&error) => attempts += 1,
            result => return result,
        }
    }
}

/// Returns true if the error can be the work of another process that creates or deletes the directory.
fn may_pass(error: &Error) -> bool {
    match error {
        Error::ForeignDirectory { .. } => true,
        Error::File { source, .. } => source.kind() == ErrorKind::NotFound,
        _ => false,
    }
}

fn claim_once(dir: &Path) -> Result<()> {
    match DirBuilder::new().mode(0o700).create(dir) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(Error::file(dir)(error)),
        _ => {}
    }
    let found = fs::symlink_metadata(dir).map_err(Error::file(dir))?;
    let marker = dir.join(MARKER);
    let reason = match reason_against(&found, dirs::user()) {
        Some(reason) => Some(reason),
        // The marker is the first file of a directory. It is looked for after the others: in the other order
        // it could be created between the two looks, and the directory would seem to have files without it.
        None if has_no_foreign_file(dir)?
            || marker.symlink_metadata().is_ok_and(|marker| marker.is_file()) =>
        {
            None
        }
        None => Some(format!("it has files, but not {MARKER}, so it is not one of Windlass")),
    };
    if let Some(reason) = reason {
        return Err(Error::ForeignDirectory { path: dir.to_owned(), reason });
    }
    OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&marker)
        .map(drop)
        .map_err(Error::file(marker))
}

/// Returns the reason why this cannot be a directory that we have created.
fn reason_against(found: &Metadata, user: u32) -> Option<String> {
    if found.is_symlink() {
        Some("it is a symbolic link".to_owned())
    } else if !found.is_dir() {
        Some("it is not a directory".to_owned())
    } else if found.uid() != user {
        Some(format!("it belongs to the user with the number {}", found.uid()))
    } else if found.mode() & 0o077 != 0 {
        Some(format!("other users have access to it (mode {:o} instead of 700)", found.mode() & 0o777))
    } else {
        None
    }
}

/// Returns true if the directory is empty, or contains only the log that a start left behind while the
/// supervisor before it deleted the directory.
fn has_no_foreign_file(dir: &Path) -> Result<bool> {
    for entry in fs::read_dir(dir).map_err(Error::file(dir))? {
        let entry = entry.map_err(Error::file(dir))?;
        if entry.file_name() != LOG {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn refusal(dir: &Path) -> String {
        claim(dir).unwrap_err().to_string()
    }

    #[test]
    fn a_directory_is_created_for_its_user_alone_and_found_again() {
        let base = tempfile::tempdir().unwrap();
        let dir = base.path().join("up");
        claim(&dir).unwrap();
        assert_eq!(fs::metadata(&dir).unwrap().mode() & 0o777, 0o700);
        fs::write(dir.join("kubeconfig"), "ours").unwrap();
        claim(&dir).unwrap();
        assert_eq!(fs::read_to_string(dir.join("kubeconfig")).unwrap(), "ours");
    }

    #[test]
    fn a_directory_that_many_claim_at_the_same_time_is_refused_to_none() {
        let base = tempfile::tempdir().unwrap();
        for round in 0..300 {
            let dir = base.path().join(round.to_string());
            let start = std::sync::Barrier::new(8);
            let refused: Vec<String> = std::thread::scope(|scope| {
                let claims: Vec<_> = (0..8)
                    .map(|_| {
                        scope.spawn(|| {
                            start.wait();
                            claim_once(&dir)
                        })
                    })
                    .collect();
                claims
                    .into_iter()
                    .filter_map(|claim| claim.join().unwrap().err())
                    .map(|e| e.to_string())
                    .collect()
            });
            assert!(refused.is_empty(), "round {round}: {refused:?}");
        }
    }

    #[test]
    fn a_log_that_outlived_its_directory_does_not_make_it_foreign() {
        let base = tempfile::tempdir().unwrap();
        let dir = base.path().join("up");
        claim(&dir).unwrap();
        fs::remove_file(dir.join(MARKER)).unwrap();
        fs::write(dir.join(LOG), "an end").unwrap();
        claim(&dir).unwrap();
        assert!(dir.join(MARKER).is_file());
    }

    #[test]
    fn seam_m11_a_directory_that_is_not_ours_is_refused() {
        let base = tempfile::tempdir().unwrap();
        let (dir, other) = (base.path().join("up"), base.path().join("other"));
        fs::create_dir(&other).unwrap();
        fs::set_permissions(&other, fs::Permissions::from_mode(0o700)).unwrap();
        symlink(&other, &dir).unwrap();
        assert!(refusal(&dir).contains("it is a symbolic link"), "{}", refusal(&dir));
        fs::write(other.join("photo"), "precious").unwrap();
        assert!(refusal(&other).contains("it has files"), "{}", refusal(&other));
        fs::set_permissions(&other, fs::Permissions::from_mode(0o755)).unwrap();
        assert!(refusal(&other).contains("mode 755"), "{}", refusal(&other));
        assert!(refusal(&other.join("photo")).contains("it is not a directory"));
        assert_eq!(fs::read_dir(&other).unwrap().count(), 1, "nothing was written there");
    }
}
