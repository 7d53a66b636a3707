//! Reports as text, diagrams and JSON.
//!
//! Nothing here recurses, and no rendering is longer than a constant times nodes and
//! edges: a chain of 100,000 nodes is a long page, not a stack overflow and not a
//! triangle of indentation. Arrows point from what ran first to what came after it.

mod dot;
mod json;
mod mermaid;
mod text;

use std::fmt::{self, Write};

use crate::NodeReport;

/// Writes through a function from characters to text; `None` is the character itself.
struct Escaped<'a, W> {
    to: &'a mut W,
    escape: fn(char) -> Option<&'static str>,
}

impl<W: Write> Write for Escaped<'_, W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for part in text.split_inclusive(|c| (self.escape)(c).is_some()) {
            let mut chars = part.chars();
            match chars.next_back().and_then(self.escape) {
                Some(replacement) => {
                    self.to.write_str(chars.as_str())?;
                    self.to.write_str(replacement)?;
                }
                None => self.to.write_str(part)?,
            }
        }
        Ok(())
    }
}

/// Messages of others stay on their line, and leave the terminal alone.
fn one_line(c: char) -> Option<&'static str> {
    c.is_control().then_some(" ")
}

/// The outcome in a phrase, with its duration: what every rendering says of a node.
fn phrase<E: fmt::Display, W: fmt::Display>(to: &mut impl Write, node: NodeReport<'_, E, W>) -> fmt::Result {
    write!(to, "{}", node.outcome())?;
    // The outcome names the root. The direct blocker is named too, but not the whole
    // chain: that would make the page quadratic.
    if let Some(blocker) = node.blocker()
        && blocker.blocker().is_some()
    {
        write!(to, ", by way of {}", blocker.id())?;
    }
    match node.duration() {
        Some(duration) => write!(to, " ({duration:.1?})"),
        None => Ok(()),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::{Graph, Progress, Report};

    /// A node of each outcome, with names and messages that want escaping.
    pub(crate) async fn sample() -> Report<String> {
        let mut graph = Graph::new();
        let config = graph.add("config").unwrap();
        let database = graph.add("data \"base\"").unwrap();
        let cache = graph.add_after("cache", &[config]).unwrap();
        let core = graph.add_after("core", &[config, database]).unwrap();
        graph.add_after("portal", &[core, cache]).unwrap();
        graph.add("never").unwrap();
        let (cancel, cancelled) = tokio::sync::oneshot::channel::<()>();
        let visit = async |node: &&'static str| match *node {
            "config" => Ok(Progress::Ready),
            "cache" => {
                tokio::time::sleep(std::time::Duration::from_millis(12)).await;
                Ok(Progress::Waiting("0 of 1 <ready>".to_owned()))
            }
            "never" => std::future::pending().await,
            _ => Err("refused:\n#1 \\o/".to_owned()),
        };
        let run = graph.run(9, visit).until(async {
            let _ = cancelled.await;
        });
        let (report, ()) = tokio::join!(run, async {
            tokio::time::sleep(std::time::Duration::from_millis(1500)).await;
            cancel.send(()).unwrap();
        });
        report
    }

    #[test]
    fn escaping_replaces_and_keeps_the_rest() {
        let mut text = String::new();
        write!(Escaped { to: &mut text, escape: one_line }, "a\nb\t\r\nc\u{1b}é\n").unwrap();
        assert_eq!(text, "a b   c é ");
    }
}
