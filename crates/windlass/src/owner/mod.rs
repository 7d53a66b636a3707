//! The envelope around every reconcile of an owner: class, pause, finalizer, deletion, status, events,
//! debounce.
//!
//! It is the same for every kind and for every style. [`envelope`] reads from top to bottom as one reconcile
//! goes.

mod debounce;
mod envelope;
mod handle;
mod pause;
mod state;
mod status;
mod text;
mod undecoded;
mod unreadable;
mod write_status;

pub(crate) use self::debounce::Debounce;
pub(crate) use self::envelope::Envelope;
pub(crate) use self::handle::{OwnerHandle, Owners};
pub use self::state::PlanState;
pub use self::status::{Status, condition};
pub(crate) use self::text::OwnerText;
pub(crate) use self::unreadable::Unreadable;
