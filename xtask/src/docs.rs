//! Checks the pages of the book: `docs/` with its folders, README, CONTRIBUTING and the other README files.
//!
//! Every piece of Rust names the file that it is from and is in there word for word. That file is compiled
//! and tested, so a page cannot show code that does not work. `<!-- from: <path> -->` above a block names the
//! file of an excerpt, `<!-- all of: <path> -->` a file that is shown from the first line to the last. Links
//! to files of the repository and to headings must lead somewhere.

use std::path::{Path, PathBuf};

use crate::links;

const FROM: &str = "<!-- from: ";
const ALL_OF: &str = "<!-- all of: ";

/// Folders and files whose pages are checked.
const PAGES: &[&str] =
    &["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs", "examples", "operators", "bench"];

/// Checks all pages. Returns a summary, or every fault.
pub(crate) fn check() -> Result<String, Vec<String>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut pages = Vec::new();
    for start in PAGES {
        collect(&root.join(start), &mut pages).map_err(|error| vec![format!("{start}: {error}")])?;
    }
    pages.sort();
    let (mut blocks, mut links, mut complaints) = (0, 0, Vec::new());
    for page in &pages {
        let name = page.strip_prefix(&root).unwrap_or(page).display().to_string();
        match std::fs::read_to_string(page) {
            Ok(text) => {
                let read =
                    |file: &str| std::fs::read_to_string(root.join(file)).map_err(|error| error.to_string());
                blocks += judge(&name, &text, read, &mut complaints);
                links += links::check(&name, page, &text, &mut complaints);
            }
            Err(error) => complaints.push(format!("{name}: {error}")),
        }
    }
    if complaints.is_empty() {
        Ok(format!(
            "{} pages: {blocks} pieces of Rust are as in the files that they are from, and {links} links lead \
             somewhere",
            pages.len()
        ))
    } else {
        Err(complaints)
    }
}

/// Collects a page, or all pages below a folder.
fn collect(path: &Path, pages: &mut Vec<PathBuf>) -> std::io::Result<()> {
    if path.is_dir() {
        for entry in std::fs::read_dir(path)? {
            let entry = entry?;
            if entry.file_name() != "target" {
                collect(&entry.path(), pages)?;
            }
        }
    } else if path.extension().is_some_and(|extension| extension == "md") {
        pages.push(path.to_owned());
    }
    Ok(())
}

/// Judges the code of one page, and returns how many pieces of Rust it has.
fn judge(
    page: &str,
    text: &str,
    read: impl Fn(&str) -> Result<String, String>,
    complaints: &mut Vec<String>,
) -> usize {
    let lines: Vec<&str> = text.lines().collect();
    let mut blocks = 0;
    for (start, _) in lines.iter().enumerate().filter(|(_, line)| **line == "```rust") {
        blocks += 1;
        let place = format!("{page}:{}", start + 1);
        let end = lines[start + 1..]
            .iter()
            .position(|line| *line == "```")
            .map_or(lines.len(), |end| start + 1 + end);
        let shown = &lines[start + 1..end];
        let above = start.checked_sub(1).map_or("", |above| lines[above]);
        let named = |marker| above.strip_prefix(marker)?.strip_suffix(" -->");
        let (file, whole) = match (named(FROM), named(ALL_OF)) {
            (Some(file), _) => (file, false),
            (None, Some(file)) => (file, true),
            (None, None) => {
                complaints.push(format!("{place}: say above it which file it is from: {FROM}<path> -->"));
                continue;
            }
        };
        match read(file) {
            Ok(source) if whole && source.lines().eq(shown.iter().copied()) => {}
            Ok(_) if whole => complaints.push(format!("{place}: this is not (or no longer) all of {file}")),
            Ok(source) if contains(&source, shown) => {}
            Ok(_) => complaints.push(format!("{place}: this is not (or no longer) in {file}")),
            Err(error) => complaints.push(format!("{place}: {file}: {error}")),
        }
    }
    blocks
}

/// Returns true if the source contains these lines, one after the other.
fn contains(source: &str, wanted: &[&str]) -> bool {
    let lines: Vec<&str> = source.lines().collect();
    !wanted.is_empty() && lines.windows(wanted.len()).any(|window| window == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(text: &str) -> Vec<String> {
        let mut found = Vec::new();
        let read = |file: &str| {
            if file == "a.rs" {
                Ok("fn a() {\n    b();\n}\n".to_owned())
            } else {
                Err("no such file".to_owned())
            }
        };
        judge("page.md", text, read, &mut found);
        found
    }

    #[test]
    fn the_pages_of_this_repository_pass() {
        if let Err(complaints) = check() {
            panic!("{}", complaints.join("\n"));
        }
    }

    #[test]
    fn an_excerpt_that_is_in_its_file_passes() {
        assert!(complaints("<!-- from: a.rs -->\n```rust\nfn a() {\n    b();\n```\n").is_empty());
        assert!(complaints("```console\n$ ls\n```\n").is_empty());
    }

    #[test]
    fn an_excerpt_that_is_not_in_its_file_is_reported() {
        assert_eq!(
            complaints("<!-- from: a.rs -->\n```rust\nfn c() {\n```\n"),
            ["page.md:2: this is not (or no longer) in a.rs"]
        );
        assert!(
            complaints("<!-- from: b.rs -->\n```rust\nfn a() {\n```\n")[0].contains("b.rs: no such file")
        );
        assert!(complaints("```rust\nfn a() {\n```\n")[0].contains("say above it"));
    }

    #[test]
    fn a_whole_file_is_compared_from_the_first_line_to_the_last() {
        assert!(complaints("<!-- all of: a.rs -->\n```rust\nfn a() {\n    b();\n}\n```\n").is_empty());
        assert_eq!(
            complaints("<!-- all of: a.rs -->\n```rust\nfn a() {\n    b();\n```\n"),
            ["page.md:2: this is not (or no longer) all of a.rs"]
        );
    }
}
