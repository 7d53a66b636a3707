//! Directories: built binaries in the user's cache, running instances in a directory of the user's own for
//! sockets and throw-away data.

use std::env;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// The length that a unix socket's path may have on Linux, less what we append.
const LONGEST_RUN_DIR: usize = 60;

/// The directory of built control planes: `$XDG_CACHE_HOME/windlass/testenv`.
pub fn cache() -> Result<PathBuf> {
    cache_in(env::var_os("XDG_CACHE_HOME"), env::var_os("HOME"))
}

fn cache_in(xdg: Option<OsString>, home: Option<OsString>) -> Result<PathBuf> {
    let absolute = |value: Option<OsString>| value.map(PathBuf::from).filter(|path| path.is_absolute());
    absolute(xdg)
        .or_else(|| absolute(home).map(|home| home.join(".cache")))
        .map(|base| base.join("windlass").join("testenv"))
        .ok_or(Error::NoCacheDirectory)
}

/// The directory of running instances, with their sockets and data: one per user, readable by that user only.
pub fn run() -> Result<PathBuf> {
    let dir =
        run_in(env::var_os("WINDLASS_RUN_DIR"), env::var_os("XDG_RUNTIME_DIR"), &env::temp_dir(), user());
    if dir.as_os_str().len() > LONGEST_RUN_DIR {
        return Err(Error::LongRunDirectory { path: dir, longest: LONGEST_RUN_DIR });
    }
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&dir).map_err(Error::file(&dir))?;
    Ok(dir)
}

fn run_in(chosen: Option<OsString>, runtime: Option<OsString>, temp: &Path, user: u32) -> PathBuf {
    let short = |path: &PathBuf| path.is_absolute() && path.as_os_str().len() <= LONGEST_RUN_DIR;
    if let Some(chosen) = chosen.map(PathBuf::from).filter(|path| path.is_absolute()) {
        return chosen;
    }
    // The runtime directory is memory on most systems, and data of etcd goes there:
    // it is used for what is short-lived, which an instance is.
    [runtime.map(|dir| PathBuf::from(dir).join("windlass")), Some(temp.join(format!("windlass-{user}")))]
        .into_iter()
        .flatten()
        .find(short)
        .unwrap_or_else(|| PathBuf::from(format!("/tmp/windlass-{user}")))
}

/// Opens a file that is there to be locked, made if need be. What is locked is let go
/// by the kernel with the process, so no lock is ever stale.
pub fn lock_file(path: &Path) -> Result<File> {
    OpenOptions::new().create(true).truncate(false).write(true).open(path).map_err(Error::file(path))
}

/// The user's number; the owner of our own `/proc` entry, since asking the system
/// directly takes unsafe code.
pub(crate) fn user() -> u32 {
    fs::metadata("/proc/self").map_or(0, |meta| meta.uid())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_is_where_xdg_says() {
        let at = |xdg: Option<&str>, home: Option<&str>| cache_in(xdg.map(Into::into), home.map(Into::into));
        assert_eq!(at(Some("/x"), Some("/h")).unwrap(), Path::new("/x/windlass/testenv"));
        assert_eq!(at(None, Some("/h")).unwrap(), Path::new("/h/.cache/windlass/testenv"));
        assert_eq!(at(Some("relative"), Some("/h")).unwrap(), Path::new("/h/.cache/windlass/testenv"));
        assert!(matches!(at(None, None), Err(Error::NoCacheDirectory)));
        assert!(matches!(at(Some(""), Some("")), Err(Error::NoCacheDirectory)));
    }

    #[test]
    fn a_run_directory_is_short_enough_for_a_socket() {
        let long = format!("/{}", "x".repeat(80));
        assert_eq!(run_in(None, None, Path::new("/tmp"), 7), Path::new("/tmp/windlass-7"));
        assert_eq!(
            run_in(None, Some("/run/user/7".into()), Path::new("/tmp"), 7),
            Path::new("/run/user/7/windlass")
        );
        assert_eq!(run_in(None, None, Path::new(&long), 7), Path::new("/tmp/windlass-7"));
        assert_eq!(run_in(Some("/w".into()), Some("/run".into()), Path::new("/tmp"), 7), Path::new("/w"));
    }
}
