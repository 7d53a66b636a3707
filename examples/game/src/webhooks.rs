//! What the API server asks before a Game is stored.

use windlass_runtime::webhook::{Defaulter, Denial, Findings, Request, Validator};

use crate::api::{Game, default_host};

/// The image of a Game that names none.
pub const IMAGE: &str = "alexwhen/docker-2048";

/// Fills in the image and the host.
#[derive(Clone, Copy, Debug)]
pub struct Defaults;

impl Defaulter for Defaults {
    type Object = Game;

    async fn default(&self, game: &mut Game, request: &Request<Game>) -> Result<(), Denial> {
        if game.spec.image.is_empty() {
            game.spec.image = IMAGE.into();
        }
        // A name that the server will make up is not known yet: such a Game finds its host when it is made.
        if game.spec.host.is_empty() && !request.name.is_empty() {
            game.spec.host = default_host(&request.name, &request.namespace);
        }
        Ok(())
    }
}

/// Refuses a host for everybody's names.
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
