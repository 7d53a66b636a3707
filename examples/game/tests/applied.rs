//! The objects of a Game as a first run sends them, with a fixed digest key and uid. A changed digest is a
//! write of that object in every installation, a changed pod template restarts its pods.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use game::api::Game;
use game::blueprint::GameBlueprint;
use serde_json::{Value, json};
use windlass::{DigestKey, applied};

#[test]
fn the_objects_of_a_game_are_sent_as_ever() {
    let mut game: Value = serde_saphyr::from_str(include_str!("../game-sample.yaml")).unwrap();
    game["metadata"]["namespace"] = json!("fun");
    game["metadata"]["uid"] = json!("0b8d1c1e-9b1f-4f0e-8a63-7a5d1f0c2e9d");
    game["metadata"]["generation"] = json!(1);
    let game: Game = serde_json::from_value(game).unwrap();
    let record = applied(&GameBlueprint, &game, &[], &DigestKey::from_bytes(&[7; 32])).unwrap();
    assert!(record.waiting.is_empty(), "{:?}", record.waiting);
    let recorded: Vec<Value> = serde_json::from_str(include_str!("applied.json")).unwrap();
    let sent: Vec<Value> = record.nodes.iter().map(|node| serde_json::to_value(node).unwrap()).collect();
    assert_eq!(sent.len(), recorded.len());
    for (sent, recorded) in sent.iter().zip(&recorded) {
        assert_eq!(sent, recorded);
    }
}
