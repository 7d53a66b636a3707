//! The diagram for Graphviz.

use std::fmt::{self, Display, Write};

use super::{Escaped, phrase};
use crate::{Outcome, Report};

impl<E: Display, W: Display> Report<E, W> {
    /// The report as a Graphviz digraph: `dot -Tsvg`.
    pub fn dot(&self) -> impl Display {
        fmt::from_fn(|f| write_digraph(self, f))
    }
}

fn write_digraph<E: Display, W: Display>(report: &Report<E, W>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str("digraph {\n  rankdir=LR;\n  node [shape=box, style=\"rounded,filled\"];\n")?;
    for node in report.nodes() {
        f.write_str("  \"")?;
        write!(quoted(f), "{}", node.id())?;
        f.write_str("\" [label=\"")?;
        write!(quoted(f), "{}", node.id())?;
        f.write_str("\\n")?;
        phrase(&mut quoted(f), node)?;
        writeln!(f, "\", fillcolor=\"{}\"];", color(node.outcome()))?;
    }
    for node in report.nodes() {
        for before in node.after() {
            f.write_str("  \"")?;
            write!(quoted(f), "{}", before.id())?;
            f.write_str("\" -> \"")?;
            write!(quoted(f), "{}", node.id())?;
            f.write_str("\";\n")?;
        }
    }
    f.write_str("}\n")
}

fn quoted<'a, 'f>(to: &'a mut fmt::Formatter<'f>) -> Escaped<'a, fmt::Formatter<'f>> {
    Escaped {
        to,
        escape: |c| match c {
            '"' => Some("\\\""),
            '\\' => Some("\\\\"),
            '\n' => Some("\\n"),
            c if c.is_control() => Some(" "),
            _ => None,
        },
    }
}

fn color<E, W>(outcome: &Outcome<E, W>) -> &'static str {
    match outcome {
        Outcome::Ready => "#d3f2d9",
        Outcome::Waiting(_) => "#fdf0c4",
        Outcome::Failed(_) => "#f9d0cd",
        Outcome::Skipped { .. } => "#e6e6e6",
        Outcome::Cancelled | Outcome::Planned(_) => "#ffffff",
    }
}

#[cfg(test)]
mod tests {
    use crate::render::tests::sample;

    #[tokio::test(start_paused = true)]
    async fn nodes_and_edges_come_in_insertion_order_and_quoted() {
        assert_eq!(
            sample().await.dot().to_string(),
            r##"digraph {
  rankdir=LR;
  node [shape=box, style="rounded,filled"];
  "config" [label="config\nready (0.0ns)", fillcolor="#d3f2d9"];
  "data \"base\"" [label="data \"base\"\nfailed: refused:\n#1 \\o/ (0.0ns)", fillcolor="#f9d0cd"];
  "cache" [label="cache\nwaiting: 0 of 1 <ready> (12.0ms)", fillcolor="#fdf0c4"];
  "core" [label="core\nskipped because of data \"base\"", fillcolor="#e6e6e6"];
  "portal" [label="portal\nskipped because of data \"base\", by way of core", fillcolor="#e6e6e6"];
  "never" [label="never\ncancelled (1.5s)", fillcolor="#ffffff"];
  "config" -> "cache";
  "config" -> "core";
  "data \"base\"" -> "core";
  "core" -> "portal";
  "cache" -> "portal";
}
"##
        );
    }
}
