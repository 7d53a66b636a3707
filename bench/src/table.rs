//! Reports as Markdown. Pure.

use std::fmt::Write as _;

use crate::figure::{Figure, Unit};
use crate::report::Report;
use crate::stats::Summary;
use crate::subject::Subject;

/// The setting with the build options of the Windlass program.
pub(crate) const BUILD: &str = "build of windlass";
/// The target is met.
pub(crate) const RELEASE: &str = "release";

/// One workload: its tables, one for each group of cells, and what has to be said beside them.
pub(crate) fn workload(report: &Report, figures: &[Figure]) -> String {
    let mut text = format!("## {}: {}\n\n", report.workload.to_uppercase(), report.title);
    for group in report.groups() {
        let _ = writeln!(text, "### {group}\n");
        text.push_str(&group_table(report, group, figures));
        text.push('\n');
    }
    for note in &report.notes {
        let _ = writeln!(text, "- {note}");
    }
    let runs = report.runs.iter().map(|run| run.run).max().unwrap_or(0);
    let guards: usize = report.runs.iter().map(|run| run.guards.len()).sum();
    let _ = writeln!(
        text,
        "\n{} on {}; {runs} per cell: median (least – greatest); {guards} guards held. `{}`, {:.0} minutes.",
        report.date, report.machine, report.command, report.minutes
    );
    let versions: Vec<String> =
        report.versions.iter().map(|(what, version)| format!("{what} {version}")).collect();
    let _ = writeln!(text, "{}.", versions.join(", "));
    if report.settings.get(BUILD).is_some_and(|build| build != RELEASE) {
        text.push_str("**A debug build: it shows that things work, and nothing else.**\n");
    }
    text
}

fn group_table(report: &Report, group: &str, figures: &[Figure]) -> String {
    let mut text = "| | windlass | go | go-tuned | windlass / go | windlass / go-tuned | target |\n\
                    | --- | ---: | ---: | ---: | ---: | ---: | --- |\n"
        .to_owned();
    for figure in figures {
        let [ours, go, tuned] = [Subject::Windlass, Subject::Go, Subject::GoTuned]
            .map(|subject| report.summary(group, subject, figure.key));
        if ours.or(go).or(tuned).is_none() {
            continue;
        }
        let median = |subject| match subject {
            Subject::Windlass => ours.map(|ours| ours.median),
            Subject::Go => go.map(|go| go.median),
            Subject::GoTuned => tuned.map(|tuned| tuned.median),
        };
        let targets: Vec<String> = figure
            .targets_in(group)
            .iter()
            .map(|target| target.judge(figure.unit, median(Subject::Windlass), median))
            .map(|judged| match judged.met {
                Some(true) => format!("{}: met", judged.words),
                Some(false) => format!("{}: **missed**", judged.words),
                None => format!("{}: not compared", judged.words),
            })
            .collect();
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} |",
            figure.label,
            cell(ours, figure.unit),
            cell(go, figure.unit),
            cell(tuned, figure.unit),
            quotient(ours, go),
            quotient(ours, tuned),
            targets.join("; "),
        );
    }
    text
}

fn cell(summary: Option<Summary>, unit: Unit) -> String {
    match summary {
        None => "–".to_owned(),
        Some(Summary { median, min, max, .. }) if unit.write(min) == unit.write(max) => unit.write(median),
        Some(Summary { median, min, max, .. }) => {
            format!("{} ({} – {})", unit.write(median), unit.write(min), unit.write(max))
        }
    }
}

fn quotient(ours: Option<Summary>, other: Option<Summary>) -> String {
    match (ours, other) {
        (Some(ours), Some(other)) if other.median != 0.0 => format!("{:.3}", ours.median / other.median),
        _ => "–".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::Target;

    #[test]
    fn a_table_has_medians_ratios_and_targets() {
        let figures = [
            Figure::new("rss", "RSS", Unit::Bytes).aim(&[
                Target::OfAtMost(Subject::GoTuned, 1.0 / 3.0),
                Target::OfAtMost(Subject::Go, 1.0 / 15.0),
            ]),
            Figure::new("never", "not measured", Unit::Count),
        ];
        let text = workload(&crate::report::tests::report(), &figures);
        assert!(text.contains("### 10 Widgets"), "{text}");
        let row = "| RSS | 2.0 MB (1.0 MB – 3.0 MB) | 20.0 MB (10.0 MB – 30.0 MB) | 9.0 MB (8.0 MB – 10.0 MB) | 0.100 | 0.222 | \
                   ≤ 1/3 of go-tuned: met; ≤ 1/15 of go: **missed** |";
        assert!(text.contains(row), "{text}");
        assert!(!text.contains("not measured"), "{text}");
        assert!(text.contains("- a note"), "{text}");
    }

    #[test]
    fn a_target_is_only_looked_at_where_it_is_meant() {
        let figure = Figure::new("rss", "RSS", Unit::Bytes).aim(&[Target::AtMost(1.0)]);
        let report = crate::report::tests::report();
        assert!(workload(&report, &[figure]).contains("**missed**"));
        assert!(workload(&report, &[figure.only("10 ")]).contains("**missed**"));
        assert!(!workload(&report, &[figure.only("50000 ")]).contains("**missed**"));
    }
}
