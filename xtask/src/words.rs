//! Checks the mechanical rules for comments: no line of prose is wider than the code, and every summary line
//! has a subject.
//!
//! "Whose.", "How deep." or "The server." as the first line of an item's documentation does not say what the
//! item is. The rules cannot tell whether a comment is right; they find the ones that cannot be understood
//! alone.

use std::path::{Path, PathBuf};

/// Columns that a line of prose in a comment may have: `max_width` of rustfmt.
const WIDTH: usize = 110;

/// Words that a summary line does not begin with.
const HEADLESS: &[&str] =
    &["What", "Who", "Whose", "Whom", "Which", "Whether", "Where", "How", "Its", "Of", "By", "And"];

/// Fewer words than this name no subject, or say nothing about it.
const FEWEST_WORDS: usize = 3;

/// The folders with sources.
const SOURCES: &[&str] = &["crates", "examples", "operators", "bench", "xtask"];

/// Checks all sources. Returns a summary, or every fault.
pub(crate) fn check() -> Result<String, Vec<String>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let (mut files, mut faults) = (Vec::new(), Vec::new());
    for folder in SOURCES {
        collect(&root.join(folder), &mut files).map_err(|error| vec![format!("{folder}: {error}")])?;
    }
    files.sort();
    for file in &files {
        let name = file.strip_prefix(&root).unwrap_or(file).display().to_string();
        match std::fs::read_to_string(file) {
            Ok(text) => judge(&name, &text, &mut faults),
            Err(error) => faults.push(format!("{name}: {error}")),
        }
    }
    if faults.is_empty() {
        Ok(format!("{} sources: all comments keep the rules of wording", files.len()))
    } else {
        Err(faults)
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

/// Judges one source: lines that are too wide, and summary lines without a subject.
fn judge(name: &str, text: &str, faults: &mut Vec<String>) {
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
        let columns = line.chars().count();
        if columns > WIDTH && !fixed {
            faults.push(format!("{name}:{}: {columns} columns: wrap the comment at {WIDTH}", at + 1));
        }
        if doc.is_some() && !in_doc && !in_code {
            faults.extend(fault(words).map(|fault| format!("{name}:{}: {words:?} {fault}", at + 1)));
        }
        in_doc = doc.is_some();
    }
}

/// Returns the rule that a summary line breaks, in words that follow the line.
fn fault(summary: &str) -> Option<String> {
    let is_word = |word: &&str| word.contains(char::is_alphanumeric);
    let count = summary.split_whitespace().filter(is_word).count();
    let first = summary.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    if HEADLESS.contains(&first) && !summary.ends_with('?') {
        Some(format!("begins with {first:?}: begin with what the item is or does"))
    } else if (1..FEWEST_WORDS).contains(&count) {
        Some(format!("has fewer than {FEWEST_WORDS} words: say what the item is or does"))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(text: &str) -> Vec<String> {
        let mut faults = Vec::new();
        judge("a.rs", text, &mut faults);
        faults
    }

    #[test]
    fn the_sources_of_this_repository_pass() {
        if let Err(faults) = check() {
            panic!("{}", faults.join("\n"));
        }
    }

    #[test]
    fn a_wide_line_of_prose_is_reported_and_a_wide_table_or_example_is_not() {
        let long = "word ".repeat(30);
        assert_eq!(faults(&format!("// {long}\n")), ["a.rs:1: 153 columns: wrap the comment at 110"]);
        assert!(faults(&format!("//! | {long} |\n/// ```\n/// {long}\n/// ```\n")).is_empty());
        assert!(faults(&format!("// https://example.com/{}\n", "x".repeat(120))).is_empty());
        assert!(faults(&format!("let a = \"{long}\";\n")).is_empty());
    }

    #[test]
    fn a_summary_line_that_begins_with_a_relative_word_is_reported() {
        let expected = r#"a.rs:1: "Whose." begins with "Whose": begin with what the item is or does"#;
        assert_eq!(faults("/// Whose.\nstruct A;\n"), [expected]);
        assert_eq!(faults("//! How deep the tree may be.\n").len(), 1);
        assert_eq!(faults("/// And the most that each may cost.\n").len(), 1);
        // Only the summary counts, comments inside of code do not, and a question has a subject.
        assert!(faults("/// A line of text.\n/// How it goes on.\n").is_empty());
        assert!(faults("// What follows is fast.\n/// Whatever it is worth.\n/// x\n").is_empty());
        assert!(faults("/// Which file is meant?\n").is_empty());
    }

    #[test]
    fn a_summary_line_of_two_words_is_reported() {
        let expected = r#"a.rs:1: "The server." has fewer than 3 words: say what the item is or does"#;
        assert_eq!(faults("/// The server.\n"), [expected]);
        assert_eq!(faults("/// `host:port` — …\n").len(), 1, "signs are no words");
        assert!(faults("/// The Redis server.\n/// Sentinels too.\n").is_empty());
        // An empty line or an example at the beginning is no summary.
        assert!(faults("//!\n").is_empty());
        assert!(faults("/// ```\n/// x\n/// ```\n").is_empty());
    }
}
