//! Checks the links of a page: a file must exist, and an anchor must be a heading of its page. Addresses on
//! the web are not followed.

use std::collections::HashMap;
use std::path::Path;

/// Checks the links of one page, and returns how many of them lead into the repository.
pub(crate) fn check(name: &str, page: &Path, text: &str, complaints: &mut Vec<String>) -> usize {
    let directory = page.parent().unwrap_or(page);
    let mut count = 0;
    for (line, target) in targets(text) {
        if target.contains("://") || target.starts_with("mailto:") {
            continue;
        }
        count += 1;
        let (path, anchor) =
            target.split_once('#').map_or((target, None), |(path, anchor)| (path, Some(anchor)));
        let file = if path.is_empty() { page.to_owned() } else { directory.join(path) };
        if !file.exists() {
            complaints.push(format!("{name}:{line}: link to {target}: there is no such file"));
            continue;
        }
        let is_page = file.extension().is_some_and(|extension| extension == "md");
        if let (Some(anchor), true) = (anchor, is_page) {
            let headings = std::fs::read_to_string(&file).map(|text| anchors(&text)).unwrap_or_default();
            if !headings.iter().any(|heading| heading == anchor) {
                complaints.push(format!("{name}:{line}: link to {target}: the page has no such heading"));
            }
        }
    }
    count
}

/// Returns the lines outside of code blocks, each with its number and without its inline code.
fn prose(text: &str) -> impl Iterator<Item = (usize, String)> + '_ {
    let mut in_code = false;
    text.lines().enumerate().filter_map(move |(at, line)| {
        let fence = line.trim_start().starts_with("```");
        in_code ^= fence;
        // Every second piece between backquotes is code; the quotes stay, as the text of a link may be code.
        let pieces = line.split('`').enumerate().map(|(at, piece)| if at % 2 == 0 { piece } else { "" });
        (!in_code && !fence).then(|| (at + 1, pieces.collect::<Vec<_>>().join("`")))
    })
}

/// Returns the targets of all links, each with the number of its line.
fn targets(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let lines: Vec<&str> = text.lines().collect();
    for (line, without_code) in prose(text) {
        let original = lines[line - 1];
        // A target has no code in it: what is found without code is found in the line itself.
        for piece in without_code.split("](").skip(1) {
            let Some((target, _)) = piece.split_once(')') else { continue };
            let target = target.split_whitespace().next().unwrap_or_default();
            if let Some(at) = original.find(&format!("]({target}")) {
                found.push((line, &original[at + 2..at + 2 + target.len()]));
            }
        }
    }
    found
}

/// Returns the anchors of a page's headings, as GitHub derives them.
fn anchors(text: &str) -> Vec<String> {
    let mut seen: HashMap<String, usize> = HashMap::new();
    let mut in_code = false;
    let mut found = Vec::new();
    for line in text.lines() {
        in_code ^= line.trim_start().starts_with("```");
        let title = line.trim_start_matches('#');
        if in_code || title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        let anchor = slug(title.trim());
        let times = seen.entry(anchor.clone()).or_default();
        found.push(if *times == 0 { anchor } else { format!("{anchor}-{times}") });
        *times += 1;
    }
    found
}

/// Returns a heading in lower case, with dashes for spaces and without punctuation.
fn slug(title: &str) -> String {
    let kept = title.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found_in_prose_and_not_in_code() {
        let text = "See [a](b.md) and [`c`](d.md#e), not `[x](y)`.\n```\n[f](g)\n```\n[h](i \"title\")\n";
        assert_eq!(targets(text), [(1, "b.md"), (1, "d.md#e"), (5, "i")]);
    }

    #[test]
    fn anchors_are_those_of_github() {
        let text =
            "# What it does, and why\n## `up` and `down`\n```\n# no heading\n```\n## Twice\n## Twice\n";
        assert_eq!(anchors(text), ["what-it-does-and-why", "up-and-down", "twice", "twice-1"]);
    }

    #[test]
    fn a_link_that_leads_nowhere_is_reported() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md");
        let mut found = Vec::new();
        let text =
            "# One\n[a](CONTRIBUTING.md) [b](no/such.md) [c](#one) [d](#two) [e](https://example.com/x)\n";
        // The anchors of a link without a path are those of the page itself, as it is on disk.
        let count = check("page.md", &here, text, &mut found);
        assert_eq!(count, 4);
        assert!(found[0].contains("page.md:2: link to no/such.md: there is no such file"), "{found:?}");
        assert!(found[1..].iter().all(|fault| fault.contains("no such heading")), "{found:?}");
        assert_eq!(found.len(), 3);
    }
}
