//! Finds test files that no test binary includes: in a directory with a `main.rs`, a file that nobody
//! declares as a module is never compiled, and its tests never run.

use std::fs;
use std::path::{Path, PathBuf};

/// Checks the test directories of all packages; a summary, or the files that are not included.
pub(crate) fn check() -> Result<String, Vec<String>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let packages = ["crates", "examples", "operators"].iter().flat_map(|group| entries(&root.join(group)));
    let suites = packages.flat_map(|package| entries(&package.join("tests")));
    let (mut files, mut complaints) = (0, Vec::new());
    for suite in suites {
        let Ok(main) = fs::read_to_string(suite.join("main.rs")) else { continue };
        let names = entries(&suite).into_iter().filter_map(module);
        for name in names.filter(|name| name != "main") {
            files += 1;
            if !declares(&main, &name) {
                let place = suite.strip_prefix(&root).unwrap_or(&suite).display().to_string();
                complaints
                    .push(format!("{place}/main.rs: add `mod {name};`, or the tests of {name} never run"));
            }
        }
    }
    if complaints.is_empty() {
        Ok(format!("{files} test files, all of them included"))
    } else {
        Err(complaints)
    }
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let found = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = found.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// The name of the module in this file or directory, if there is one.
fn module(path: PathBuf) -> Option<String> {
    let is_module =
        path.extension().is_some_and(|extension| extension == "rs") || path.join("mod.rs").exists();
    is_module.then(|| path.file_stem().map(|stem| stem.to_string_lossy().into_owned())).flatten()
}

fn declares(main: &str, name: &str) -> bool {
    let wanted = format!("mod {name};");
    main.lines().any(|line| line.trim_start_matches("pub(crate) ") == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_test_file_is_included() {
        if let Err(complaints) = check() {
            panic!("{}", complaints.join("\n"));
        }
    }

    #[test]
    fn a_module_is_declared_by_a_line_of_its_own() {
        let main = "//! mod c;\nmod a;\npub(crate) mod b;\n";
        assert!(declares(main, "a") && declares(main, "b"));
        assert!(!declares(main, "c"));
    }
}
