//! Admission webhooks: defaults and validation, before a Game is stored.

use windlass_runtime::webhook::{Defaulter, Denial, Findings, Request, Validator};

use crate::api::{Game, default_host};

/// Default image of a Game.
pub const IMAGE: &str = "alexwhen/docker-2048";

/// Sets the image and the host if the user left them out.
#[derive(Clone, Copy, Debug)]
pub struct Defaults;

impl Defaulter for Defaults {
    type Object = Game;

    async fn default(&self, game: &mut Game, request: &Request<Game>) -> Result<(), Denial> {
        if game.spec.image.is_empty() {
            game.spec.image = IMAGE.into();
        }
        // With `generateName` the name is not known yet: `Game::host` derives the host later.
        if game.spec.host.is_empty() && !request.name.is_empty() {
            game.spec.host = default_host(&request.name, &request.namespace);
        }
        Ok(())
    }
}

/// Rejects a host with a wildcard.
#[derive(Clone, Copy, Debug)]
pub struct Rules;

impl Validator for Rules {
    type Object = Game;

    async fn validate(&self, request: &Request<Game>, _: &mut Findings) -> Result<(), Denial> {
        match request.operation.wanted() {
            Some(game) if game.spec.host.contains('*') => Err(Denial::new("host should not contain *")),
            _ => Ok(()),
        }
    }
}
