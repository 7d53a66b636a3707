//! A kind of node that exists only in this test: it takes one file, and one line in `nodes/mod.rs`.

use futures::future::{BoxFuture, FutureExt as _};
use parking_lot::Mutex;
use std::sync::Arc;
use windlass_graph::Progress;

use crate::plan::node::{Node, Place, Visit, Visited, Wait};
use crate::plan::{Plan, Planned};

impl Plan {
    /// Rings a bell once, when everything that it comes after is ready.
    fn ring(&mut self, name: &str, bell: &Bell) -> Planned {
        self.node(name.to_owned(), Ring(bell.clone()))
    }
}

/// The number of times that the bell was rung.
type Bell = Arc<Mutex<usize>>;

struct Ring(Bell);

impl Node for Ring {
    fn describe(&self) -> String {
        "ring a bell".to_owned()
    }

    fn kind(&self) -> &'static str {
        "bell"
    }

    fn visit<'a>(&'a self, _: &'a Place, _: &'a dyn Visit) -> BoxFuture<'a, Visited> {
        async {
            let mut rung = self.0.lock();
            *rung += 1;
            Ok(if *rung > 1 { Progress::Ready } else { Wait::new("it rings").into() })
        }
        .boxed()
    }

    fn remove<'a>(&'a self, _: &'a Place, _: &'a dyn Visit) -> BoxFuture<'a, Visited> {
        async {
            *self.0.lock() = 0;
            Ok(Progress::Ready)
        }
        .boxed()
    }
}

#[tokio::test]
async fn a_new_kind_of_node_is_previewed_visited_and_removed_like_any_other() {
    use crate::apply::testing::{owner, run_of};

    let bell = Bell::default();
    let mut plan = Plan::new(Some("shop"));
    let first = plan.ring("first", &bell);
    plan.ring("second", &bell).after([first]);
    let drawn = plan.finish().unwrap();
    let outline: windlass_graph::Report<crate::NodeError> =
        drawn.graph.outline(|place| place.node.describe());
    let outline = outline.text().to_string();
    assert_eq!(outline, "2 planned\n└─ first: planned: ring a bell\n   └─ second: planned: ring a bell\n");

    let owner = owner();
    let report = run_of(&owner, &drawn).await;
    assert!(!report.is_ready(), "the second waits for the first");
    assert_eq!(*bell.lock(), 1);
    assert!(run_of(&owner, &drawn).await.is_ready());
    assert_eq!(*bell.lock(), 3);
    let place = drawn.places().next().unwrap();
    crate::apply::testing::remove(&owner, &drawn, place).await.unwrap();
    assert_eq!(*bell.lock(), 0);
}
