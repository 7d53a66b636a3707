//! The declared orders of rooms, one entry per package that has one or is not checked yet.

/// The entries. A package without an entry is checked for cycles, and its modules have no declared order.
pub(super) const TABLE: &[Entry] = &[Entry {
    package: "windlass",
    not_yet: None,
    order: Some(Order {
        rooms: &["styles", "owner", "apply", "nodes", "plan", "needs", "live", "names"],
        anybody: &["error", "metrics"],
    }),
}];

/// The rules of one package.
pub(super) struct Entry {
    pub(super) package: &'static str,
    /// The work that has to be done before the package is checked. What is wrong until then is counted and
    /// printed, and fails nothing.
    pub(super) not_yet: Option<&'static str>,
    pub(super) order: Option<Order>,
}

/// An order of the modules below a crate's root.
pub(super) struct Order {
    /// Each uses only what is to its right.
    pub(super) rooms: &'static [&'static str],
    /// Modules that any room may use, and that use none.
    pub(super) anybody: &'static [&'static str],
}

impl Order {
    /// Returns the rule that an arrow breaks.
    pub(super) fn broken_by(&self, user: &str, target: &str) -> Option<String> {
        let room = |name: &str| self.rooms.iter().position(|room| *room == name);
        match (room(user), room(target)) {
            (Some(user), Some(target)) if target > user => None,
            (None, Some(_)) if self.anybody.contains(&user) => {
                Some(format!("every room may use `{user}`, so `{user}` uses no room"))
            }
            (_, Some(_)) => {
                Some(format!("the order is {}: each uses only what is to its right", self.line()))
            }
            (_, None) => None,
        }
    }

    /// Compares the order with the modules that there are; returns what has no place and what has no module.
    pub(super) fn gaps(&self, modules: &[&str]) -> Vec<String> {
        let declared = || self.rooms.iter().chain(self.anybody);
        let homeless =
            modules.iter().filter(|module| !declared().any(|name| name == *module)).map(|module| {
                format!(
                    "module `{module}` has no place in the declared order {}: add it to TABLE",
                    self.line()
                )
            });
        let empty = declared()
            .filter(|name| !modules.contains(name))
            .map(|name| format!("TABLE declares `{name}`, and there is no such module: remove it there"));
        homeless.chain(empty).collect()
    }

    fn line(&self) -> String {
        self.rooms.join(" → ")
    }
}
