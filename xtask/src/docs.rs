//! Whether the code in the book is code: every piece of Rust in `docs/` names the file that it is from, and stands there word for
//! word. That file is compiled and tested, so the book cannot show what does not work.

use std::path::Path;

const FROM: &str = "<!-- from: ";

/// Checks all pages; a summary, or all that is wrong.
pub(crate) fn check() -> Result<String, Vec<String>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let pages = std::fs::read_dir(root.join("docs")).map_err(|error| vec![format!("docs: {error}")])?;
    let mut pages: Vec<_> = pages.filter_map(|page| Some(page.ok()?.path())).collect();
    pages.retain(|page| page.extension().is_some_and(|extension| extension == "md"));
    pages.sort();
    let (mut blocks, mut complaints) = (0, Vec::new());
    for page in &pages {
        let name = page.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match std::fs::read_to_string(page) {
            Ok(text) => {
                let read =
                    |file: &str| std::fs::read_to_string(root.join(file)).map_err(|error| error.to_string());
                blocks += judge(&name, &text, read, &mut complaints);
            }
            Err(error) => complaints.push(format!("docs/{name}: {error}")),
        }
    }
    if complaints.is_empty() {
        Ok(format!(
            "{blocks} pieces of Rust on {} pages, all as in the files that they are from",
            pages.len()
        ))
    } else {
        Err(complaints)
    }
}

/// Judges one page, and returns how many pieces of Rust it has.
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
        let place = format!("docs/{page}:{}", start + 1);
        let end = lines[start + 1..]
            .iter()
            .position(|line| *line == "```")
            .map_or(lines.len(), |end| start + 1 + end);
        let from =
            start.checked_sub(1).and_then(|above| lines[above].strip_prefix(FROM)?.strip_suffix(" -->"));
        let Some(from) = from else {
            complaints.push(format!("{place}: say above it which file it is from: {FROM}<path> -->"));
            continue;
        };
        match read(from) {
            Ok(source) if holds(&source, &lines[start + 1..end]) => {}
            Ok(_) => complaints.push(format!("{place}: this is not (or no longer) in {from}")),
            Err(error) => complaints.push(format!("{place}: {from}: {error}")),
        }
    }
    blocks
}

/// Whether these lines stand in a source, one after the other.
fn holds(source: &str, wanted: &[&str]) -> bool {
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
    fn the_code_in_the_book_is_in_files_that_are_compiled() {
        if let Err(complaints) = check() {
            panic!("{}", complaints.join("\n"));
        }
    }

    #[test]
    fn what_stands_in_its_file_is_fine() {
        assert!(complaints("<!-- from: a.rs -->\n```rust\nfn a() {\n    b();\n```\n").is_empty());
        assert!(complaints("```console\n$ ls\n```\n").is_empty());
    }

    #[test]
    fn what_does_not_is_named() {
        assert_eq!(
            complaints("<!-- from: a.rs -->\n```rust\nfn c() {\n```\n"),
            ["docs/page.md:2: this is not (or no longer) in a.rs"]
        );
        assert!(
            complaints("<!-- from: b.rs -->\n```rust\nfn a() {\n```\n")[0].contains("b.rs: no such file")
        );
        assert!(complaints("```rust\nfn a() {\n```\n")[0].contains("say above it"));
    }
}
