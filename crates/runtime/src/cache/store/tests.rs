//! Tests of each promise of the store, and of each case that once broke a cache.

use std::collections::BTreeMap;

use super::*;
use crate::cache::MetadataOnly;
use k8s_openapi::api::core::v1::ConfigMap;
use proptest::prelude::*;

type Object = MetadataOnly<ConfigMap>;

/// Returns an object with this name, uid and version.
fn object(name: &str, uid: u8, version: u64) -> Object {
    owned(name, uid, version, None)
}

fn owned(name: &str, uid: u8, version: u64, owner: Option<u8>) -> Object {
    let owners = owner.map_or(String::new(), |owner| {
        let owner = uid_of(owner);
        format!(r#","ownerReferences":[{{"apiVersion":"v1","kind":"O","name":"o","uid":"{owner}"}}]"#)
    });
    let text = format!(
        r#"{{"metadata":{{"namespace":"n","name":"{name}","uid":"{}","resourceVersion":"{version}","labels":{{"v":"v{version}"}}{owners}}}}}"#,
        uid_of(uid)
    );
    serde_json::from_str(&text).unwrap()
}

fn uid_of(number: u8) -> Uid {
    Uid::from_bytes([number; 16])
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced("n", name)
}

fn rv(number: u64) -> ResourceVersion {
    ResourceVersion::number(number)
}

/// A store and its clock.
struct Fixture {
    store: Store<Object>,
    now: Instant,
}

/// Summarizes changes as versions of the old and the new object.
fn brief(changes: &[Change<Object>]) -> Vec<(Option<u64>, Option<u64>, Origin)> {
    let version = |object: &Option<Arc<Object>>| {
        object.as_ref().map(|object| object.resource_version.to_string().parse().unwrap())
    };
    changes.iter().map(|change| (version(&change.old), version(&change.new), change.origin)).collect()
}

impl Fixture {
    fn empty() -> Self {
        Self { store: Store::default(), now: Instant::now() }
    }

    /// Returns a store that has listed these objects at `version`.
    fn listed(version: u64, objects: Vec<Object>) -> Self {
        let mut fixture = Self::empty();
        fixture.list(version, objects).unwrap();
        fixture
    }

    fn list(&mut self, version: u64, objects: Vec<Object>) -> Result<Vec<Change<Object>>, WentBackwards> {
        self.store.begin_list();
        let mut changes: Vec<_> = objects.into_iter().flat_map(|object| self.store.listed(object)).collect();
        changes.extend(self.store.end_list(&rv(version))?);
        Ok(changes)
    }

    fn wrote(&mut self, object: Object) -> Vec<Change<Object>> {
        self.store.wrote(object, true)
    }

    fn wrote_outside(&mut self, object: Object) -> Vec<Change<Object>> {
        self.store.wrote_outside(object.meta())
    }

    fn wrote_gone(&mut self, name: &str, uid: u8) -> Vec<Change<Object>> {
        self.store.wrote_gone(uid_of(uid), &key(name), self.now)
    }

    fn deleted(&mut self, name: &str, uid: u8, version: u64) -> Vec<Change<Object>> {
        self.store.deleted(&uid_of(uid), &key(name), &rv(version))
    }

    fn version_of(&self, name: &str) -> Option<u64> {
        self.store.get(&key(name)).map(|object| object.resource_version.to_string().parse().unwrap())
    }
}

#[test]
fn a_write_is_readable_at_once_and_its_watch_event_changes_nothing() {
    let mut fixture = Fixture::listed(10, vec![]);
    assert_eq!(brief(&fixture.wrote(object("a", 1, 11))), [(None, Some(11), Origin::Write)]);
    assert_eq!(fixture.version_of("a"), Some(11));
    assert_eq!(brief(&fixture.store.applied(object("a", 1, 11))), []);
    assert_eq!(fixture.version_of("a"), Some(11));
}

#[test]
fn a_write_is_reported_with_the_object_that_was_stored_before() {
    let mut fixture = Fixture::listed(10, vec![object("a", 1, 9)]);
    assert_eq!(brief(&fixture.wrote(object("a", 1, 11))), [(Some(9), Some(11), Origin::Write)]);
}

#[test]
fn an_event_older_than_a_write_does_not_undo_it() {
    let mut fixture = Fixture::listed(10, vec![object("a", 1, 9)]);
    fixture.wrote(object("a", 1, 14));
    assert_eq!(brief(&fixture.store.applied(object("a", 1, 12))), []);
    assert_eq!(fixture.version_of("a"), Some(14));
    assert_eq!(brief(&fixture.store.applied(object("a", 1, 15))), [(Some(14), Some(15), Origin::Watch)]);
}

#[test]
fn a_write_response_older_than_a_watch_event_does_not_undo_it() {
    let mut fixture = Fixture::listed(10, vec![object("a", 1, 9)]);
    fixture.store.applied(object("a", 1, 14));
    assert_eq!(brief(&fixture.wrote(object("a", 1, 12))), []);
    assert_eq!(fixture.version_of("a"), Some(14));
}

#[test]
fn a_late_write_response_does_not_restore_a_deleted_object() {
    let mut fixture = Fixture::listed(10, vec![]);
    fixture.store.applied(object("a", 1, 11));
    fixture.deleted("a", 1, 12);
    assert_eq!(brief(&fixture.wrote(object("a", 1, 11))), []);
    assert_eq!(fixture.version_of("a"), None);
}

#[test]
fn the_newer_of_two_write_responses_wins_in_any_order() {
    let mut fixture = Fixture::listed(10, vec![]);
    fixture.wrote(object("a", 1, 13));
    assert_eq!(brief(&fixture.wrote(object("a", 1, 12))), []);
    assert_eq!(fixture.version_of("a"), Some(13));
}

#[test]
fn a_deleted_object_is_gone_at_once_and_older_events_do_not_restore_it() {
    let mut fixture = Fixture::listed(10, vec![object("a", 1, 9)]);
    assert_eq!(brief(&fixture.wrote_gone("a", 1)), [(Some(9), None, Origin::Write)]);
    assert_eq!(brief(&fixture.store.applied(object("a", 1, 11))), []);
    assert_eq!(fixture.version_of("a"), None);
    assert_eq!(brief(&fixture.deleted("a", 1, 12)), []);
    assert_eq!(fixture.store.tombstones(), 0, "the watch has passed it");
}

#[test]
fn an_object_deleted_before_its_first_watch_event_does_not_appear() {
    let mut fixture = Fixture::listed(10, vec![]);
    fixture.wrote_gone("a", 1);
    assert_eq!(brief(&fixture.store.applied(object("a", 1, 11))), []);
    assert_eq!(fixture.version_of("a"), None);
}

#[test]
fn a_new_object_under_a_deleted_name_is_another_object() {
    let mut fixture = Fixture::listed(10, vec![object("a", 1, 9)]);
    fixture.wrote_gone("a", 1);
    assert_eq!(brief(&fixture.wrote(object("a", 2, 13))), [(None, Some(13), Origin::Write)]);
    assert_eq!(brief(&fixture.deleted("a", 1, 12)), [], "the old one's end is not the new one's");
    assert_eq!(fixture.version_of("a"), Some(13));
}

#[test]
fn a_deletion_of_an_earlier_incarnation_leaves_the_present_one() {
    let mut fixture = Fixture::listed(10, vec![object("a", 2, 9)]);
    assert_eq!(brief(&fixture.wrote_gone("a", 1)), []);
    assert_eq!(fixture.version_of("a"), Some(9));
}

#[test]
fn a_recreated_object_is_reported_as_two_changes() {
    let mut fixture = Fixture::listed(10, vec![object("a", 1, 9)]);
    let changes = fixture.store.applied(object("a", 2, 12));
    assert_eq!(brief(&changes), [(Some(9), None, Origin::Watch), (None, Some(12), Origin::Watch)]);
}

#[test]
fn a_relist_older_than_a_write_does_not_undo_it() {
    let mut fixture = Fixture::listed(10, vec![object("a", 1, 9)]);
    fixture.wrote(object("a", 1, 14));
    fixture.wrote(object("b", 2, 15));
    let changes = fixture.list(12, vec![object("a", 1, 9)]).unwrap();
    assert_eq!(brief(&changes), []);
    assert_eq!((fixture.version_of("a"), fixture.version_of("b")), (Some(14), Some(15)));
}

#[test]
fn a_relist_that_began_before_a_delete_does_not_restore_the_object() {
    let mut fixture = Fixture::listed(10, vec![object("a", 1, 9)]);
    fixture.store.begin_list();
    fixture.wrote_gone("a", 1);
    assert_eq!(brief(&fixture.store.listed(object("a", 1, 9))), []);
    fixture.store.end_list(&rv(10)).unwrap();
    assert_eq!(fixture.version_of("a"), None);
    assert_eq!(fixture.store.tombstones(), 1, "its deletion has not been seen yet");
    fixture.store.begin_list();
    fixture.store.end_list(&rv(13)).unwrap();
    assert_eq!(fixture.store.tombstones(), 0, "a list that began later is proof enough");
}

#[test]
fn a_deletion_during_a_disconnect_is_reported_by_the_relist() {
    let mut fixture = Fixture::listed(10, vec![object("a", 1, 8), object("b", 2, 9)]);
    let changes = fixture.list(20, vec![object("b", 2, 15), object("c", 3, 16)]).unwrap();
    assert_eq!(
        brief(&changes),
        [
            (Some(9), Some(15), Origin::Relist),
            (None, Some(16), Origin::Relist),
            (Some(8), None, Origin::Relist),
        ]
    );
}

#[test]
fn a_write_that_was_undone_before_the_list_is_removed_by_it() {
    let mut fixture = Fixture::listed(10, vec![]);
    fixture.store.begin_list();
    fixture.wrote(object("a", 1, 12));
    let changes = fixture.store.end_list(&rv(15)).unwrap();
    assert_eq!(brief(&changes), [(Some(12), None, Origin::Relist)]);
}

#[test]
fn the_first_list_has_another_origin_than_later_ones() {
    let mut fixture = Fixture::empty();
    let changes = fixture.list(10, vec![object("a", 1, 9)]).unwrap();
    assert_eq!(brief(&changes), [(None, Some(9), Origin::InitialList)]);
    let changes = fixture.list(12, vec![object("a", 1, 11)]).unwrap();
    assert_eq!(brief(&changes), [(Some(9), Some(11), Origin::Relist)]);
}

#[test]
fn a_write_before_the_first_list_survives_it() {
    let mut fixture = Fixture::empty();
    fixture.wrote(object("a", 1, 12));
    fixture.list(11, vec![]).unwrap();
    assert_eq!(fixture.version_of("a"), Some(12));
}

#[test]
fn a_write_response_outside_the_selector_is_not_inserted() {
    let mut fixture = Fixture::listed(10, vec![]);
    assert_eq!(brief(&fixture.wrote_outside(object("a", 1, 11))), []);
    assert_eq!(fixture.version_of("a"), None);
}

#[test]
fn a_write_response_that_left_the_selector_removes_the_object_and_older_events_do_not_restore_it() {
    let mut fixture = Fixture::listed(10, vec![object("a", 1, 9)]);
    assert_eq!(brief(&fixture.wrote_outside(object("a", 1, 13))), [(Some(9), None, Origin::Write)]);
    assert_eq!(brief(&fixture.store.applied(object("a", 1, 12))), []);
    assert_eq!(brief(&fixture.deleted("a", 1, 13)), [], "the echo");
    assert_eq!(fixture.store.tombstones(), 0);
}

#[test]
fn an_object_that_left_the_selector_may_come_back() {
    let mut fixture = Fixture::listed(10, vec![object("a", 1, 9)]);
    fixture.wrote_outside(object("a", 1, 13));
    assert_eq!(brief(&fixture.store.applied(object("a", 1, 14))), [(None, Some(14), Origin::Watch)]);
}

#[test]
fn an_older_removal_does_not_undo_a_write_that_restored_the_object() {
    let mut fixture = Fixture::listed(10, vec![object("a", 1, 9)]);
    fixture.wrote(object("a", 1, 14));
    assert_eq!(brief(&fixture.deleted("a", 1, 12)), []);
    assert_eq!(fixture.version_of("a"), Some(14));
}

#[test]
fn a_write_response_that_only_the_server_can_select_updates_but_does_not_insert() {
    let mut fixture = Fixture::listed(10, vec![object("a", 1, 9)]);
    let changes = fixture.store.wrote(object("a", 1, 11), false);
    assert_eq!(brief(&changes), [(Some(9), Some(11), Origin::Write)]);
    assert_eq!(brief(&fixture.store.wrote(object("b", 2, 12), false)), []);
    assert_eq!(
        brief(&fixture.deleted("a", 1, 11)),
        [(Some(11), None, Origin::Watch)],
        "the watch knows better"
    );
}

#[test]
fn a_server_restored_from_a_backup_is_trusted_after_a_second_list() {
    let mut fixture = Fixture::listed(100, vec![object("a", 1, 90), object("b", 2, 95)]);
    assert_eq!(fixture.list(50, vec![object("a", 1, 40)]).unwrap_err(), WentBackwards);
    let changes = fixture.list(51, vec![object("a", 1, 40)]).unwrap();
    assert_eq!(brief(&changes), [(Some(90), Some(40), Origin::Relist), (Some(95), None, Origin::Relist)]);
    assert_eq!(brief(&fixture.store.applied(object("a", 1, 52))), [(Some(40), Some(52), Origin::Watch)]);
}

#[test]
fn a_deletion_that_nothing_confirms_is_forgotten_after_a_while() {
    let mut fixture = Fixture::listed(10, vec![]);
    fixture.wrote_gone("a", 1);
    fixture.store.expire(fixture.now + tombstones::LIFE / 2);
    assert_eq!(fixture.store.tombstones(), 1);
    fixture.store.expire(fixture.now + tombstones::LIFE);
    assert_eq!(fixture.store.tombstones(), 0);
}

#[test]
fn an_object_that_cannot_be_decoded_in_a_list_keeps_its_last_form() {
    let mut fixture = Fixture::listed(10, vec![object("a", 1, 9)]);
    fixture.store.begin_list();
    fixture.store.mark_seen(&key("a"));
    assert_eq!(brief(&fixture.store.end_list(&rv(20)).unwrap()), []);
    assert_eq!(fixture.version_of("a"), Some(9));
}

#[test]
fn indexes_are_updated_with_the_objects() {
    let mut fixture = Fixture::listed(10, vec![owned("a", 1, 8, Some(7)), owned("b", 2, 9, Some(7))]);
    fixture.store.declare_index(
        "version",
        Arc::new(|object: &Object, found: &mut dyn FnMut(&str)| {
            found(object.labels.get("v").map_or("", |label| label));
        }),
    );
    let names = |objects: Vec<Arc<Object>>| objects.iter().map(|o| o.name().to_owned()).collect::<Vec<_>>();
    assert_eq!(names(fixture.store.by_owner(&uid_of(7))), ["a", "b"]);
    assert_eq!(names(fixture.store.by_index("version", "v9").unwrap()), ["b"]);
    assert!(fixture.store.by_index("unknown", "x").is_none());

    fixture.store.applied(owned("a", 1, 11, Some(8)));
    assert_eq!(names(fixture.store.by_owner(&uid_of(7))), ["b"]);
    assert_eq!(names(fixture.store.by_owner(&uid_of(8))), ["a"]);
    assert_eq!(names(fixture.store.by_index("version", "v8").unwrap()), Vec::<String>::new());

    fixture.deleted("b", 2, 12);
    assert!(fixture.store.by_owner(&uid_of(7)).is_empty());
}

#[test]
fn the_size_in_bytes_grows_and_shrinks_with_the_objects() {
    let mut fixture = Fixture::listed(10, vec![]);
    assert_eq!(fixture.store.bytes(), 0);
    fixture.store.applied(object("a", 1, 11));
    assert!(fixture.store.bytes() > 0);
    fixture.deleted("a", 1, 12);
    assert_eq!((fixture.store.bytes(), fixture.store.len()), (0, 0));
}

#[test]
fn a_namespace_is_listed_without_its_neighbours() {
    let mut store: Store<Object> = Store::default();
    store.begin_list();
    for (at, (namespace, name)) in [("a", "x"), ("ab", "x"), ("a", "y"), ("b", "x")].into_iter().enumerate() {
        let text = format!(
            r#"{{"metadata":{{"namespace":"{namespace}","name":"{name}","resourceVersion":"{at}1","uid":"{}"}}}}"#,
            uid_of(u8::try_from(at).unwrap() + 1)
        );
        store.listed(serde_json::from_str(&text).unwrap());
    }
    let keys: Vec<String> = store.in_namespace("a").map(|object| object.key.to_string()).collect();
    assert_eq!(keys, ["a/x", "a/y"]);
}

// ---- The whole of it against a model server
// ------------------------------------------------------------------------

/// One act of the model server or its clients.
#[derive(Debug, Clone)]
enum Act {
    /// Someone creates or updates an object; `ours`: this process does, and the response reaches the store at
    /// once or late.
    Put { name: u8, ours: Option<bool> },
    /// Someone deletes an object.
    Delete { name: u8, ours: bool },
    /// The watch delivers its next event.
    Deliver,
    /// The watch breaks and a list starts now; it is delivered after `later` more acts.
    Relist { later: u8 },
    /// A late response arrives.
    Answer,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        4 => (0_u8..4, prop::option::of(any::<bool>())).prop_map(|(name, ours)| Act::Put { name, ours }),
        2 => (0_u8..4, any::<bool>()).prop_map(|(name, ours)| Act::Delete { name, ours }),
        4 => Just(Act::Deliver),
        1 => (0_u8..4).prop_map(|later| Act::Relist { later }),
        1 => Just(Act::Answer),
    ];
    prop::collection::vec(act, 1..80)
}

#[test]
fn an_older_incarnation_does_not_come_back_after_its_successor_was_deleted() {
    let now = Instant::now();
    let mut store = Store::default();
    store.begin_list();
    store.end_list(&rv(0)).unwrap();
    // The watch lags: it has delivered neither the first incarnation nor its deletion.
    store.wrote(object("a", 2, 6), true);
    store.wrote_gone(uid_of(2), &key("a"), now);
    assert!(store.applied(object("a", 1, 2)).is_empty());
    assert!(store.get(&key("a")).is_none());
    // Events after our write are new.
    assert_eq!(store.applied(object("a", 3, 8)).len(), 1);
}

/// Objects by name: uid and version.
type Live = BTreeMap<u8, (u8, u64)>;

/// A server with a history, a watch that may lag, and a store fed by both.
#[derive(Default)]
struct Model {
    store: Store<Object>,
    version: u64,
    uids: u8,
    /// Live objects: name, uid, version.
    live: Live,
    /// Events not delivered: name, uid, version, deleted.
    events: std::collections::VecDeque<(u8, u8, u64, bool)>,
    late: Vec<(u8, u8, u64)>,
    /// A running list: its version, its content, acts until it is delivered.
    listing: Option<(u64, Live, u8)>,
    /// Our writes, by name: uid and version.
    written: BTreeMap<u8, (u8, u64)>,
    /// Uids that we deleted.
    buried: std::collections::HashSet<Uid>,
    /// The objects according to the changes that subscribers have seen.
    reported: BTreeMap<String, (Uid, ResourceVersion)>,
}

impl Model {
    fn hear(&mut self, changes: Vec<Change<Object>>) {
        for change in changes {
            let old = change.old.as_ref().map(|old| (old.uid, old.resource_version.clone()));
            let name = change.object().unwrap().name().to_owned();
            assert_eq!(self.reported.get(&name).cloned(), old, "a change tells the true old object");
            match change.new {
                Some(new) => self.reported.insert(name, (new.uid, new.resource_version.clone())),
                None => self.reported.remove(&name),
            };
        }
    }

    fn act(&mut self, act: &Act, now: Instant) {
        match *act {
            Act::Put { name, ours } => {
                self.version += 1;
                let version = self.version;
                let uid = self.live.get(&name).map_or_else(
                    || {
                        self.uids += 1;
                        self.uids
                    },
                    |(uid, _)| *uid,
                );
                self.live.insert(name, (uid, version));
                self.events.push_back((name, uid, version, false));
                match ours {
                    Some(true) => {
                        let answer = object(&name.to_string(), uid, version);
                        let changes = self.store.wrote(answer, true);
                        self.hear(changes);
                        let read = self.store.get(&key(&name.to_string())).expect("we read what we wrote");
                        assert!(read.resource_version.covers(&rv(version)), "we read what we wrote");
                        self.written.insert(name, (uid, version));
                    }
                    Some(false) => self.late.push((name, uid, version)),
                    None => {}
                }
            }
            Act::Delete { name, ours } => {
                if let Some((uid, _)) = self.live.remove(&name) {
                    self.version += 1;
                    self.events.push_back((name, uid, self.version, true));
                    if ours {
                        let changes = self.store.wrote_gone(uid_of(uid), &key(&name.to_string()), now);
                        self.hear(changes);
                        self.buried.insert(uid_of(uid));
                    }
                }
            }
            Act::Deliver => self.deliver(),
            Act::Relist { later } => {
                if self.listing.is_none() {
                    self.store.begin_list();
                    self.listing = Some((self.version, self.live.clone(), later));
                }
            }
            Act::Answer => {
                if let Some((name, uid, version)) = self.late.pop() {
                    let changes = self.store.wrote(object(&name.to_string(), uid, version), true);
                    self.hear(changes);
                }
            }
        }
        match &mut self.listing {
            Some((_, _, 0)) => self.finish_list(),
            Some((_, _, later)) => *later -= 1,
            None => {}
        }
    }

    /// Checks the invariants.
    fn check(&self) {
        for object in self.store.iter() {
            assert!(!self.buried.contains(&object.uid), "what we deleted stays gone");
        }
        for (name, (uid, version)) in &self.written {
            match self.store.get(&key(&name.to_string())) {
                Some(held) if held.uid == uid_of(*uid) => {
                    assert!(held.resource_version.covers(&rv(*version)), "no going back behind our write");
                }
                // Something newer replaced it, or nothing did: either way it must really be gone.
                _ => assert_ne!(self.live.get(name).map(|(live, _)| live), Some(uid), "our write was lost"),
            }
        }
    }

    fn deliver(&mut self) {
        // There is no watch while a list is running.
        if self.listing.is_some() {
            return;
        }
        let Some((name, uid, version, deleted)) = self.events.pop_front() else {
            return;
        };
        let changes = if deleted {
            self.store.deleted(&uid_of(uid), &key(&name.to_string()), &rv(version))
        } else {
            self.store.applied(object(&name.to_string(), uid, version))
        };
        self.hear(changes);
    }

    fn finish_list(&mut self) {
        let Some((version, content, _)) = self.listing.take() else {
            return;
        };
        for (name, (uid, at)) in content {
            let changes = self.store.listed(object(&name.to_string(), uid, at));
            self.hear(changes);
        }
        let changes = self.store.end_list(&rv(version)).expect("history only goes forwards");
        self.hear(changes);
        self.events.retain(|(_, _, at, _)| *at > version);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// In whatever order things happen: subscribers see consistent changes, our writes are readable at once,
    /// and when everything has been delivered the store equals the server.
    #[test]
    fn a_store_ends_up_equal_to_the_server(acts in acts()) {
        let now = Instant::now();
        let mut model = Model::default();
        model.store.begin_list();
        model.store.end_list(&rv(0)).unwrap();
        for act in &acts {
            model.act(act, now);
            model.check();
        }
        model.finish_list();
        while !model.events.is_empty() {
            model.deliver();
            model.check();
        }
        while let Some((name, uid, version)) = model.late.pop() {
            let changes = model.store.wrote(object(&name.to_string(), uid, version), true);
            model.hear(changes);
        }
        let held: Vec<(String, Uid, ResourceVersion)> = model
            .store
            .iter()
            .map(|object| (object.name().to_owned(), object.uid, object.resource_version.clone()))
            .collect();
        let live: Vec<(String, Uid, ResourceVersion)> = model
            .live
            .iter()
            .map(|(name, (uid, version))| (name.to_string(), uid_of(*uid), rv(*version)))
            .collect();
        prop_assert_eq!(&held, &live);
        let reported: Vec<_> = model.reported.iter().map(|(name, (uid, at))| (name.clone(), *uid, at.clone())).collect();
        prop_assert_eq!(reported, live);
    }
}
