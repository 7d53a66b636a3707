//! The checked file of exceptions: fields without effect, known defects and cases that nobody has judged yet,
//! each with its reason.
//!
//! | line | meaning |
//! | --- | --- |
//! | `no-effect spec.a.b <reason>` | the field changes no object; if it does, the line is wrong |
//! | `no-effect spec.a.b=removed <reason>` | the same for one case of a field |
//! | `defect spec.a.b=invalid:-1 <reason>` | the case fails; if it passes, the line is wrong |
//! | `unjudged spec.a.* <reason>` | nobody has looked at these cases yet: a failure is in the table, and fails no test |
//!
//! `*` stands for any text. A line that fits no property or case is a mistake, so that the file cannot
//! outlive what it is about.

use super::path::matches;

/// The lines of the file.
#[derive(Clone, Debug, Default)]
pub(super) struct Exceptions(Vec<Line>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Line {
    kind: LineKind,
    pattern: String,
    reason: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineKind {
    NoEffect,
    Defect,
    Unjudged,
}

impl Exceptions {
    /// Reads the lines; an error names the line.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        lines.map(Line::parse).collect::<Result<_, _>>().map(Self)
    }

    /// The reason why a field or a case, by its path or its id, has no effect.
    pub(super) fn without_effect(&self, path: &str) -> Option<&str> {
        self.reason(LineKind::NoEffect, path)
    }

    /// The reason why a case fails.
    pub(super) fn defect(&self, id: &str) -> Option<&str> {
        self.reason(LineKind::Defect, id)
    }

    /// The reason why a case has not been judged.
    pub(super) fn unjudged(&self, id: &str) -> Option<&str> {
        self.reason(LineKind::Unjudged, id)
    }

    fn reason(&self, kind: LineKind, text: &str) -> Option<&str> {
        let fits = |line: &&Line| line.kind == kind && matches(&line.pattern, text);
        self.0.iter().find(fits).map(|line| line.reason.as_str())
    }

    /// The lines that fit no property or no case.
    pub(super) fn unused(&self, paths: &[String], ids: &[String]) -> Vec<String> {
        let fits = |line: &Line| {
            let any = |texts: &[String]| texts.iter().any(|text| matches(&line.pattern, text));
            any(ids) || (line.kind == LineKind::NoEffect && any(paths))
        };
        let unused = self.0.iter().filter(|line| !fits(line));
        unused.map(|line| format!("nothing fits {:?} of the file of exceptions", line.pattern)).collect()
    }
}

impl Line {
    fn parse(line: &str) -> Result<Self, String> {
        let mut words = line.splitn(3, char::is_whitespace);
        let kind = match words.next() {
            Some("no-effect") => Some(LineKind::NoEffect),
            Some("defect") => Some(LineKind::Defect),
            Some("unjudged") => Some(LineKind::Unjudged),
            _ => None,
        };
        let (pattern, reason) = (words.next(), words.next().map(str::trim));
        match (kind, pattern, reason.filter(|reason| !reason.is_empty())) {
            (Some(kind), Some(pattern), Some(reason)) => {
                Ok(Self { kind, pattern: pattern.to_owned(), reason: reason.to_owned() })
            }
            _ => Err(format!(
                "{line:?} is no exception: write no-effect, defect or unjudged, then <path or id> <reason>"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str =
        "# known\nno-effect spec.a.*  the schema was released with it\ndefect spec.b=removed refused later\n";

    #[test]
    fn a_line_gives_its_reason() {
        let file = Exceptions::parse(FILE).unwrap();
        assert_eq!(file.without_effect("spec.a.x"), Some("the schema was released with it"));
        assert_eq!(file.without_effect("spec.b"), None);
        assert_eq!(file.defect("spec.b=removed"), Some("refused later"));
        assert_eq!(file.defect("spec.a.x"), None);
    }

    #[test]
    fn a_line_without_reason_or_without_use_is_a_mistake() {
        for text in ["no-effect spec.a", "defect", "other spec.a why"] {
            assert!(Exceptions::parse(text).unwrap_err().contains("<reason>"), "{text}");
        }
        let file = Exceptions::parse(FILE).unwrap();
        let (paths, ids) = (["spec.a.x".to_owned()], ["spec.c=removed".to_owned()]);
        assert_eq!(file.unused(&paths, &ids), ["nothing fits \"spec.b=removed\" of the file of exceptions"]);
    }
}
