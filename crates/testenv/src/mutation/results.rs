//! The table of results: a file in the target directory, one line per case, by which a long run goes on
//! where it was.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::judge::Finding;
use super::selection::{Selection, commit};
use crate::error::{Error, Result};

/// A case and its finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Judged {
    pub(super) id: String,
    pub(super) finding: Finding,
    pub(super) message: String,
}

impl Judged {
    fn line(&self) -> String {
        let message = self.message.replace(['\n', '\t'], " ");
        format!("{}\t{}\t{}", self.id, self.finding.word(), message.trim())
    }

    fn parse(line: &str) -> Option<Self> {
        let mut parts = line.splitn(3, '\t');
        let (id, word) = (parts.next()?, parts.next()?);
        let finding = Finding::ALL.into_iter().find(|finding| finding.word() == word)?;
        Some(Self { id: id.to_owned(), finding, message: parts.next()?.to_owned() })
    }
}

/// The file, and the results of a former run of the same commit and files.
pub(super) struct Results {
    file: Mutex<File>,
    pub(super) path: PathBuf,
    pub(super) before: Vec<Judged>,
}

impl Results {
    /// Opens the file of a mutation. A run of all cases goes on where one of the same commit and files
    /// stopped; any other run begins again.
    pub(super) fn open(name: &str, selection: &Selection, digest: &str) -> Result<Self> {
        let directory = directory();
        fs::create_dir_all(&directory).map_err(Error::file(&directory))?;
        let file = match selection {
            Selection::All => format!("{name}.tsv"),
            Selection::Slice { slice, of } => format!("{name}.slice-{slice}-of-{of}.tsv"),
            Selection::Named(_) => format!("{name}.named.tsv"),
        };
        let heading = format!("# {name} {} {digest}", commit().unwrap_or_default());
        Self::open_at(directory.join(file), &heading, *selection == Selection::All)
    }

    fn open_at(path: PathBuf, heading: &str, goes_on: bool) -> Result<Self> {
        let text = fs::read_to_string(&path).unwrap_or_default();
        let before = if goes_on { former(&text, heading) } else { Vec::new() };
        let lines: Vec<String> = before.iter().map(Judged::line).collect();
        let begin: Vec<String> = std::iter::once(heading.to_owned()).chain(lines).collect();
        fs::write(&path, begin.join("\n") + "\n").map_err(Error::file(&path))?;
        let file = OpenOptions::new().append(true).open(&path).map_err(Error::file(&path))?;
        Ok(Self { file: Mutex::new(file), path, before })
    }

    /// Adds a line at once, so that it is there however the run ends.
    pub(super) fn add(&self, judged: &Judged) -> Result<()> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        writeln!(file, "{}", judged.line()).map_err(Error::file(&self.path))
    }
}

/// The results in a text that begins with this heading.
fn former(text: &str, heading: &str) -> Vec<Judged> {
    match text.split_once('\n') {
        Some((first, rest)) if first == heading => rest.lines().filter_map(Judged::parse).collect(),
        _ => Vec::new(),
    }
}

/// `mutation` in the target directory: test programs lie in `<target>/<profile>/deps`.
fn directory() -> PathBuf {
    let program = std::env::current_exe().ok();
    let deps = program.as_deref().and_then(Path::parent).filter(|deps| deps.ends_with("deps"));
    let target = deps.and_then(|deps| deps.ancestors().nth(2));
    target.unwrap_or(Path::new("target")).join("mutation")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(id: &str) -> Judged {
        Judged { id: id.to_owned(), finding: Finding::Effect, message: "two\nlines".to_owned() }
    }

    #[test]
    fn a_run_of_all_cases_goes_on_where_it_was() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("toy.tsv");
        let open = |heading, goes_on| Results::open_at(path.clone(), heading, goes_on).unwrap();
        open("# toy 1", true).add(&judged("spec.a=change")).unwrap();
        let next = open("# toy 1", true);
        let kept = Judged { message: "two lines".to_owned(), ..judged("spec.a=change") };
        assert_eq!(next.before, [kept]);
        next.add(&judged("spec.b=change")).unwrap();
        assert_eq!(open("# toy 1", true).before.len(), 2);
        assert_eq!(open("# toy 1", false).before, [], "a slice begins anew");
        open("# toy 1", true).add(&judged("spec.a=change")).unwrap();
        assert_eq!(open("# toy 2", true).before, [], "another commit begins anew");
    }

    #[test]
    fn the_last_line_of_a_run_that_was_killed_is_not_read() {
        let text = "# toy\nspec.a=change\teffect\t\nspec.b=cha";
        assert_eq!(former(text, "# toy").len(), 1);
    }
}
