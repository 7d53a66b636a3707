//! The diagram for Markdown and web pages.

use std::fmt::{self, Display, Write};

use super::{Escaped, phrase};
use crate::Report;

/// One style for each [label](crate::Outcome::label).
const STYLES: &str = "  classDef ready fill:#d3f2d9,stroke:#2b7a3b,color:#111
  classDef waiting fill:#fdf0c4,stroke:#9a7500,color:#111
  classDef failed fill:#f9d0cd,stroke:#b3261e,color:#111
  classDef skipped fill:#e6e6e6,stroke:#777,color:#111
  classDef cancelled fill:#fff,stroke:#777,color:#111
  classDef planned fill:#fff,stroke:#777,color:#111
";

impl<E: Display, W: Display> Report<E, W> {
    /// The report as a Mermaid flowchart, which many Markdown pages draw by themselves.
    pub fn mermaid(&self) -> impl Display {
        fmt::from_fn(|f| write_flowchart(self, f))
    }
}

fn write_flowchart<E: Display, W: Display>(report: &Report<E, W>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str("flowchart LR\n")?;
    for node in report.nodes() {
        // Names may hold anything; Mermaid's identifiers may not.
        write!(f, "  n{}[\"", node.index)?;
        write!(quoted(f), "{}", node.id())?;
        f.write_str("<br/>")?;
        phrase(&mut quoted(f), node)?;
        writeln!(f, "\"]:::{}", node.outcome().label())?;
    }
    for node in report.nodes() {
        for before in node.after() {
            writeln!(f, "  n{} --> n{}", before.index, node.index)?;
        }
    }
    f.write_str(STYLES)
}

fn quoted<'a, 'f>(to: &'a mut fmt::Formatter<'f>) -> Escaped<'a, fmt::Formatter<'f>> {
    Escaped {
        to,
        // Mermaid's own entities: a number sign where HTML has an ampersand.
        escape: |c| match c {
            '"' => Some("#quot;"),
            '#' => Some("#35;"),
            '&' => Some("#amp;"),
            '<' => Some("#lt;"),
            '>' => Some("#gt;"),
            '`' => Some("#96;"),
            '\n' => Some("<br/>"),
            c if c.is_control() => Some(" "),
            _ => None,
        },
    }
}

#[cfg(test)]
mod tests {
    use crate::render::tests::sample;

    #[tokio::test(start_paused = true)]
    async fn nodes_are_numbered_and_texts_cannot_break_out() {
        let text = sample().await.mermaid().to_string();
        let (chart, styles) = text.split_once("  classDef").unwrap();
        assert_eq!(
            chart,
            r#"flowchart LR
  n0["config<br/>ready (0.0ns)"]:::ready
  n1["data #quot;base#quot;<br/>failed: refused:<br/>#35;1 \o/ (0.0ns)"]:::failed
  n2["cache<br/>waiting: 0 of 1 #lt;ready#gt; (12.0ms)"]:::waiting
  n3["core<br/>skipped because of data #quot;base#quot;"]:::skipped
  n4["portal<br/>skipped because of data #quot;base#quot;, by way of core"]:::skipped
  n5["never<br/>cancelled (1.5s)"]:::cancelled
  n0 --> n2
  n0 --> n3
  n1 --> n3
  n3 --> n4
  n2 --> n4
"#
        );
        for label in ["ready", "waiting", "failed", "skipped", "cancelled", "planned"] {
            assert!(text.contains(&format!("classDef {label} ")), "no style for {label}: {styles}");
        }
    }
}
