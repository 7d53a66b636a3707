//! Checks the mechanical rules for comments: no line of prose is wider than the code, and no summary line
//! begins without a subject.
//!
//! "Whose." or "How deep." as the first line of an item's documentation names no subject. Folders that are
//! not free of such lines yet are listed with the number that is left, which may only fall.

use std::path::{Path, PathBuf};

/// Columns that a line of prose in a comment may have: `max_width` of rustfmt.
const WIDTH: usize = 110;

/// Words that a summary line does not begin with.
const HEADLESS: &[&str] =
    &["What", "Who", "Whose", "Whom", "Which", "Whether", "Where", "How", "Its", "Of", "By"];

/// A folder of sources, with the number of faults that are left in it. The numbers may only fall.
struct Folder {
    path: &'static str,
    /// Comments that are wider than the code.
    wide: usize,
    /// Summary lines that begin with a relative word.
    headless: usize,
}

const fn folder(path: &'static str, wide: usize, headless: usize) -> Folder {
    Folder { path, wide, headless }
}

const SOURCES: &[Folder] = &[
    folder("crates/cli", 0, 0),
    folder("crates/graph", 0, 0),
    folder("crates/operator", 0, 0),
    folder("crates/pki", 0, 0),
    folder("crates/runtime", 0, 4),
    folder("crates/testenv", 0, 0),
    folder("crates/windlass", 0, 0),
    folder("examples", 0, 0),
    folder("operators/harbor", 0, 0),
    folder("bench", 0, 0),
    folder("xtask", 0, 0),
];

/// Checks all sources. Returns a summary, or every fault.
pub(crate) fn check() -> Result<String, Vec<String>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let (mut files, mut left, mut complaints) = (0, 0, Vec::new());
    for folder in SOURCES {
        let mut found = Vec::new();
        let path = folder.path;
        collect(&root.join(path), &mut found).map_err(|error| vec![format!("{path}: {error}")])?;
        found.sort();
        let (mut wide, mut headless) = (Vec::new(), Vec::new());
        for file in &found {
            let name = file.strip_prefix(&root).unwrap_or(file).display().to_string();
            match std::fs::read_to_string(file) {
                Ok(text) => judge(&name, &text, &mut wide, &mut headless),
                Err(error) => complaints.push(format!("{name}: {error}")),
            }
        }
        files += found.len();
        left += wide.len() + headless.len();
        let wrap = format!("comments are wider than {WIDTH} columns: wrap them");
        let begin = "summary lines begin with a relative word: begin with what the item is or does";
        for (faults, allowed, remedy) in [(wide, folder.wide, &*wrap), (headless, folder.headless, begin)] {
            if faults.len() > allowed {
                complaints.push(format!("{path}: {} (at most {allowed}) {remedy}", faults.len()));
                complaints.extend(faults);
            }
        }
    }
    if complaints.is_empty() {
        Ok(format!("{files} sources: {left} comments break the rules of wording, no more than are listed"))
    } else {
        Err(complaints)
    }
}

fn collect(path: &Path, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    if path.is_dir() {
        for entry in std::fs::read_dir(path)? {
            let entry = entry?;
            if entry.file_name() != "target" {
                collect(&entry.path(), found)?;
            }
        }
    } else if path.extension().is_some_and(|extension| extension == "rs") {
        found.push(path.to_owned());
    }
    Ok(())
}

/// Judges one source: lines that are too wide, and summary lines that begin with a relative word.
fn judge(name: &str, text: &str, wide: &mut Vec<String>, headless: &mut Vec<String>) {
    let (mut in_doc, mut in_code) = (false, false);
    for (at, line) in text.lines().enumerate() {
        let comment = line.trim_start();
        let Some(content) = comment.strip_prefix("//") else {
            (in_doc, in_code) = (false, false);
            continue;
        };
        let doc = content.strip_prefix('/').or_else(|| content.strip_prefix('!'));
        let words = doc.unwrap_or(content).trim_start();
        in_code ^= words.starts_with("```");
        // A table or an address cannot be wrapped, and examples are code.
        let fixed = in_code || words.starts_with('|') || !words.contains(' ');
        if line.chars().count() > WIDTH && !fixed {
            wide.push(format!("{name}:{}: a comment of {} columns", at + 1, line.chars().count()));
        }
        let first = words.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
        if doc.is_some() && !in_doc && HEADLESS.contains(&first) && !words.ends_with('?') {
            headless.push(format!("{name}:{}: {words}", at + 1));
        }
        in_doc = doc.is_some();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(text: &str) -> (Vec<String>, Vec<String>) {
        let (mut wide, mut headless) = (Vec::new(), Vec::new());
        judge("a.rs", text, &mut wide, &mut headless);
        (wide, headless)
    }

    #[test]
    fn the_sources_of_this_repository_pass() {
        if let Err(complaints) = check() {
            panic!("{}", complaints.join("\n"));
        }
    }

    #[test]
    fn a_wide_line_of_prose_is_reported_and_a_wide_table_or_example_is_not() {
        let long = "word ".repeat(30);
        assert_eq!(faults(&format!("// {long}\n")).0, ["a.rs:1: a comment of 153 columns"]);
        assert!(faults(&format!("//! | {long} |\n/// ```\n/// {long}\n/// ```\n")).0.is_empty());
        assert!(faults(&format!("// https://example.com/{}\n", "x".repeat(120))).0.is_empty());
        assert!(faults(&format!("let a = \"{long}\";\n")).0.is_empty());
    }

    #[test]
    fn a_summary_line_that_begins_with_a_relative_word_is_reported() {
        assert_eq!(faults("/// Whose.\nstruct A;\n").1, ["a.rs:1: Whose."]);
        assert_eq!(faults("//! How deep.\n").1.len(), 1);
        // Only the summary counts, comments inside of code do not, and a question has a subject.
        assert!(faults("/// A line.\n/// How it goes on.\n").1.is_empty());
        assert!(faults("// What follows is fast.\n/// Whatever.\n/// x\n").1.is_empty());
        assert!(faults("/// Which file is meant?\n").1.is_empty());
    }
}
