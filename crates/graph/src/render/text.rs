//! The text tree.

use std::fmt::{self, Display, Write};

use super::{Escaped, one_line, phrase};
use crate::{Report, shape::Csr};

/// Rows below this depth stand at it, and say how deep they are: indentation that
/// follows a long chain would grow with its square.
const DEEPEST: usize = 24;

/// The number of further dependencies that are named beside a node.
const NAMED: usize = 3;

impl<E: Display, W: Display> Report<E, W> {
    /// The report as a tree, one row per node.
    ///
    /// A node stands below the first of what it came after, and names the others.
    ///
    /// ```text
    /// 1 of 4 ready, 1 waiting, 1 failed, 1 skipped (1.2s)
    /// ├─ config: ready (8.1ms)
    /// │  ├─ cache: waiting: 0 of 1 replicas ready (6.4ms)
    /// │  └─ core: skipped because of database, also after database
    /// └─ database: failed: connection refused (1.2s)
    /// ```
    pub fn text(&self) -> impl Display {
        fmt::from_fn(|f| write_tree(self, f))
    }
}

fn write_tree<E: Display, W: Display>(report: &Report<E, W>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let summary = report.summary();
    if summary.planned > 0 && summary.planned == summary.total() {
        writeln!(f, "{summary}")?;
    } else {
        writeln!(f, "{summary} ({:.1?})", report.elapsed())?;
    }
    let (roots, children) = spanning_tree(report);

    // Depth first, by hand: for each open row whether it is its parent's last child.
    let mut open: Vec<(u32, usize, bool)> = Vec::new();
    let push = |open: &mut Vec<_>, row: &[u32], depth| {
        let last = row.last().copied();
        open.extend(row.iter().rev().map(|&index| (index, depth, Some(index) == last)));
    };
    push(&mut open, &roots, 0);
    let mut bars: Vec<bool> = Vec::new();
    while let Some((index, depth, last)) = open.pop() {
        bars.truncate(depth);
        for &bar in &bars {
            f.write_str(if bar { "│  " } else { "   " })?;
        }
        f.write_str(if last { "└─ " } else { "├─ " })?;
        if depth > DEEPEST {
            write!(f, "[{depth} deep] ")?;
        }
        write_row(report, index, f)?;
        if bars.len() < DEEPEST {
            bars.push(!last);
        }
        push(&mut open, children.row(index), depth + 1);
    }
    Ok(())
}

/// The nodes that came after nothing, and for each node those that stand below it.
fn spanning_tree<E, W>(report: &Report<E, W>) -> (Vec<u32>, Csr) {
    let mut parents = Csr::default();
    let mut roots = Vec::new();
    for index in report.order.shape.indices() {
        let parent = report.order.before(index).first().copied();
        if parent.is_none() {
            roots.push(index);
        }
        // No more edges than the graph has, so there is room.
        let _ = parents.push(parent);
    }
    (roots, parents.transposed())
}

fn write_row<E: Display, W: Display>(
    report: &Report<E, W>,
    index: u32,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let node = crate::NodeReport { report, index };
    let mut line = Escaped { to: f, escape: one_line };
    write!(line, "{}: ", node.id())?;
    phrase(&mut line, node)?;
    let others = node.after().skip(1);
    let unnamed = others.len().saturating_sub(NAMED);
    for (place, other) in others.take(NAMED).enumerate() {
        write!(line, "{}{}", if place == 0 { ", also after " } else { ", " }, other.id())?;
    }
    if unnamed > 0 {
        write!(line, " and {unnamed} more")?;
    }
    f.write_str("\n")
}

#[cfg(test)]
mod tests {
    use crate::{Graph, Progress, Report, render::tests::sample};

    async fn all_ready(graph: &Graph<String>) -> Report<String> {
        graph.run(4, async |_| Ok(Progress::Ready)).await
    }

    #[tokio::test(start_paused = true)]
    async fn the_tree_shows_each_node_once_with_what_became_of_it() {
        assert_eq!(
            sample().await.text().to_string(),
            "\
1 of 6 ready, 1 waiting, 1 failed, 2 skipped, 1 cancelled (1.5s)
├─ config: ready (0.0ns)
│  ├─ cache: waiting: 0 of 1 <ready> (12.0ms)
│  └─ core: skipped because of data \"base\", also after data \"base\"
│     └─ portal: skipped because of data \"base\", by way of core, also after cache
├─ data \"base\": failed: refused: #1 \\o/ (0.0ns)
└─ never: cancelled (1.5s)
"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn an_empty_graph_is_one_line() {
        assert_eq!(all_ready(&Graph::new()).await.text().to_string(), "0 of 0 ready (0.0ns)\n");
    }

    #[tokio::test(start_paused = true)]
    async fn a_deep_chain_stops_indenting_and_counts_instead() {
        let mut graph = Graph::new();
        let mut last = graph.add("0".to_owned()).unwrap();
        for i in 1..40 {
            last = graph.add_after(i.to_string(), &[last]).unwrap();
        }
        let text = all_ready(&graph).await.text().to_string();
        let rows: Vec<&str> = text.lines().skip(1).collect();
        assert_eq!(rows[2], "      └─ 2: ready (0.0ns)");
        assert_eq!(rows[24].trim_start(), "└─ 24: ready (0.0ns)");
        assert_eq!(rows[39].trim_start(), "└─ [39 deep] 39: ready (0.0ns)");
        assert_eq!(rows[39].find('└'), rows[24].find('└'));
    }

    #[tokio::test(start_paused = true)]
    async fn only_a_few_of_many_dependencies_are_named() {
        let mut graph = Graph::new();
        let keys: Vec<_> = (0..9).map(|i| graph.add(i.to_string()).unwrap()).collect();
        graph.add_after("all".to_owned(), &keys).unwrap();
        let text = all_ready(&graph).await.text().to_string();
        assert!(text.contains("all: ready (0.0ns), also after 1, 2, 3 and 5 more\n"), "{text}");
    }

    #[tokio::test(start_paused = true)]
    async fn the_tree_of_a_reverse_run_is_upside_down() {
        let mut graph = Graph::new();
        let a = graph.add("a").unwrap();
        graph.add_after("b", &[a]).unwrap();
        let report: Report<String> = graph.run_reverse(1, async |_| Ok(Progress::Ready)).await;
        assert_eq!(
            report.text().to_string(),
            "2 of 2 ready (0.0ns)\n└─ b: ready (0.0ns)\n   └─ a: ready (0.0ns)\n"
        );
    }
}
