//! The request to stop. Public as part of [`manager`](crate::manager).

use tokio::sync::watch;

/// Hears of a request to stop. Clones hear of the same one.
#[derive(Clone, Debug)]
pub struct Stop(watch::Receiver<bool>);

/// Requests a stop. Dropping it does too: nobody is left who could.
#[derive(Debug)]
pub struct Stopper(watch::Sender<bool>);

impl Stop {
    /// A pair of who requests a stop and who hears of it.
    pub fn pair() -> (Stopper, Self) {
        let (sender, receiver) = watch::channel(false);
        (Stopper(sender), Self(receiver))
    }

    /// Waits until a stop is requested. Cancel safe.
    pub async fn requested(&self) {
        // An error means that the stopper is gone.
        let _ = self.0.clone().wait_for(|requested| *requested).await;
    }

    /// Whether a stop was requested.
    pub fn is_requested(&self) -> bool {
        *self.0.borrow() || self.0.has_changed().is_err()
    }
}

impl Stopper {
    /// Requests the stop. Once is enough.
    pub fn request(&self) {
        self.0.send_replace(true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    #[test]
    fn a_stop_is_heard_by_all_also_by_those_who_listen_later() {
        let (stopper, stop) = Stop::pair();
        assert!(stop.requested().now_or_never().is_none() && !stop.is_requested());
        stopper.request();
        assert!(stop.requested().now_or_never().is_some() && stop.clone().is_requested());
        assert!(stop.requested().now_or_never().is_some());
    }

    #[test]
    fn a_stopper_that_is_gone_has_requested_it() {
        let (stopper, stop) = Stop::pair();
        drop(stopper);
        assert!(stop.requested().now_or_never().is_some() && stop.is_requested());
    }
}
