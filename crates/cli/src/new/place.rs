//! Where a project goes. Written beside its place first and then moved there in one step: whole, or not at all.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::project::File;
use crate::failure::Failure;

/// A directory that is not there yet, or is empty.
#[derive(Debug)]
pub(crate) struct Place {
    directory: PathBuf,
}

/// Makes files look as they should, after they are written.
pub(crate) type Finish = fn(&Path, &[File]);

impl Place {
    /// The place, if nothing is in the way.
    pub(crate) fn at(directory: &Path) -> Result<Self, Failure> {
        let taken = |what: &str| {
            Failure::Running(format!(
                "{} {what}, and nothing is overwritten: choose another place with --path, or remove it first",
                directory.display()
            ))
        };
        match fs::symlink_metadata(directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(unusable(directory, &error)),
            Ok(found) if !found.is_dir() => return Err(taken("exists and is not a directory")),
            Ok(_) => {
                let mut entries = fs::read_dir(directory).map_err(|error| unusable(directory, &error))?;
                if entries.next().is_some() {
                    return Err(taken("exists and is not empty"));
                }
            }
        }
        Ok(Self { directory: std::path::absolute(directory).map_err(|error| unusable(directory, &error))? })
    }

    /// Writes the files, lets them be finished, and moves them to their place.
    pub(crate) fn fill(&self, files: &[File], finish: Finish) -> Result<(), Failure> {
        let failed = |error: io::Error| unusable(&self.directory, &error);
        let (Some(parent), Some(name)) = (self.directory.parent(), self.directory.file_name()) else {
            return Err(failed(io::Error::other("it has no name")));
        };
        fs::create_dir_all(parent).map_err(failed)?;
        let draft =
            Draft(parent.join(format!(".{}.{}.windlass-new", name.to_string_lossy(), std::process::id())));
        fs::create_dir(&draft.0).map_err(failed)?;
        for file in files {
            write(&draft.0, file).map_err(failed)?;
        }
        finish(&draft.0, files);
        // Onto an empty directory it succeeds, onto one that was filled meanwhile it does not.
        fs::rename(&draft.0, &self.directory).map_err(failed)
    }
}

/// Refuses a directory that does not hold the project of this name.
pub(crate) fn holds_project(directory: &Path, name: &str) -> Result<(), Failure> {
    let path = directory.join("Cargo.toml");
    let text = fs::read_to_string(&path).map_err(|error| {
        Failure::Running(format!(
            "there is no project to refresh: {}: {error}; without --refresh, one is made",
            path.display()
        ))
    })?;
    if text.lines().any(|line| line.trim() == format!("name = {name:?}")) {
        return Ok(());
    }
    Err(Failure::Running(format!(
        "{} is not that of {name:?}: to refresh a project, name it and all the rest as when it was made",
        path.display()
    )))
}

/// Replaces the files that differ, each in one step. Returns which.
pub(crate) fn rewrite(
    directory: &Path,
    files: &[File],
    finish: Finish,
) -> Result<Vec<&'static str>, Failure> {
    let failed = |error: io::Error| unusable(directory, &error);
    let draft = Draft(directory.join(format!(".{}.windlass-new", std::process::id())));
    fs::create_dir(&draft.0).map_err(failed)?;
    // Looked for from where the files are: how they are to be formatted.
    let _ = fs::copy(directory.join("rustfmt.toml"), draft.0.join("rustfmt.toml"));
    for file in files {
        write(&draft.0, file).map_err(failed)?;
    }
    finish(&draft.0, files);
    let mut written = Vec::new();
    for file in files {
        let (from, to) = (draft.0.join(file.path), directory.join(file.path));
        if fs::read(&from).map_err(failed)? != fs::read(&to).unwrap_or_default() {
            if let Some(parent) = to.parent() {
                fs::create_dir_all(parent).map_err(failed)?;
            }
            fs::rename(&from, &to).map_err(failed)?;
            written.push(file.path);
        }
    }
    Ok(written)
}

/// A directory that goes away, unless it has been moved.
struct Draft(PathBuf);

impl Drop for Draft {
    fn drop(&mut self) {
        // Nothing can be done about what cannot be removed, and what matters was reported.
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn write(root: &Path, file: &File) -> io::Result<()> {
    let path = root.join(file.path);
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(if file.executable { 0o777 } else { 0o666 }); // less what the umask says
    }
    options.open(&path)?.write_all(file.text.as_bytes())
}

fn unusable(directory: &Path, error: &io::Error) -> Failure {
    Failure::Running(format!("{} cannot be written: {error}", directory.display()))
}
