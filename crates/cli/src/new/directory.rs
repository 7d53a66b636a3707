//! Writes a project into its directory. The files are written beside it first and then moved in one step, so
//! that a project is complete or absent.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::project::File;
use crate::failure::Failure;

/// A directory that does not exist yet, or is empty.
#[derive(Debug)]
pub(crate) struct ProjectDirectory {
    path: PathBuf,
}

/// Formats files after they are written.
pub(crate) type Finish = fn(&Path, &[File]);

impl ProjectDirectory {
    /// Returns the directory, or an error if there is anything in it.
    pub(crate) fn at(directory: &Path) -> Result<Self, Failure> {
        let taken = |what: &str| {
            Failure::Running(format!(
                "{} {what}, and existing files are not overwritten: choose another directory with --path, or remove it",
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
        Ok(Self { path: std::path::absolute(directory).map_err(|error| unusable(directory, &error))? })
    }

    /// Writes the files, formats them, and moves them to the directory.
    pub(crate) fn fill(&self, files: &[File], finish: Finish) -> Result<(), Failure> {
        let failed = |error: io::Error| unusable(&self.path, &error);
        let (Some(parent), Some(name)) = (self.path.parent(), self.path.file_name()) else {
            return Err(failed(io::Error::other("the path does not end with the name of a directory")));
        };
        fs::create_dir_all(parent).map_err(failed)?;
        let draft =
            Draft(parent.join(format!(".{}.{}.windlass-new", name.to_string_lossy(), std::process::id())));
        fs::create_dir(&draft.0).map_err(failed)?;
        for file in files {
            write(&draft.0, file).map_err(failed)?;
        }
        finish(&draft.0, files);
        // This replaces an empty directory, and fails if files were put into it meanwhile.
        fs::rename(&draft.0, &self.path).map_err(failed)
    }
}

/// Returns an error if the directory does not contain the project of this name.
pub(crate) fn contains_project(directory: &Path, name: &str) -> Result<(), Failure> {
    let path = directory.join("Cargo.toml");
    let text = fs::read_to_string(&path).map_err(|error| {
        Failure::Running(format!(
            "there is no project to refresh: {}: {error}; without --refresh, a new one is created",
            path.display()
        ))
    })?;
    if text.lines().any(|line| line.trim() == format!("name = {name:?}")) {
        return Ok(());
    }
    Err(Failure::Running(format!(
        "{} is not that of {name:?}: to refresh a project, use the arguments that it was created with (its README \
         has the command)",
        path.display()
    )))
}

/// Replaces the files that differ, each in one step, and returns their paths.
pub(crate) fn rewrite(
    directory: &Path,
    files: &[File],
    finish: Finish,
) -> Result<Vec<&'static str>, Failure> {
    let failed = |error: io::Error| unusable(directory, &error);
    let draft = Draft(directory.join(format!(".{}.windlass-new", std::process::id())));
    fs::create_dir(&draft.0).map_err(failed)?;
    // rustfmt looks for its configuration from where the files are.
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

/// A directory that is deleted when this is dropped, unless it has been moved.
struct Draft(PathBuf);

impl Drop for Draft {
    fn drop(&mut self) {
        // An error here has no remedy, and the one that matters was reported.
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
    Failure::Running(format!("cannot write to {}: {error}", directory.display()))
}
