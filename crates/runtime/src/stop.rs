//! The stop request. Public as part of [`manager`](crate::manager).

use tokio::sync::watch;

/// The receiver of a stop request. Clones receive the same one.
#[derive(Clone, Debug)]
pub struct Stop(watch::Receiver<bool>);

/// Requests a stop. Dropping it requests the stop too.
#[derive(Debug)]
pub struct Stopper(watch::Sender<bool>);

impl Stop {
    /// Creates a stopper and its receiver.
    pub fn pair() -> (Stopper, Self) {
        let (sender, receiver) = watch::channel(false);
        (Stopper(sender), Self(receiver))
    }

    /// Waits until a stop is requested. Cancel safe.
    pub async fn requested(&self) {
        // An error means that the stopper was dropped.
        let _ = self.0.clone().wait_for(|requested| *requested).await;
    }

    /// Returns true if a stop was requested.
    pub fn is_requested(&self) -> bool {
        *self.0.borrow() || self.0.has_changed().is_err()
    }
}

impl Stopper {
    /// Requests the stop. Further calls have no effect.
    pub fn request(&self) {
        self.0.send_replace(true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    #[test]
    fn a_stop_request_reaches_all_clones_including_later_ones() {
        let (stopper, stop) = Stop::pair();
        assert!(stop.requested().now_or_never().is_none() && !stop.is_requested());
        stopper.request();
        assert!(stop.requested().now_or_never().is_some() && stop.clone().is_requested());
        assert!(stop.requested().now_or_never().is_some());
    }

    #[test]
    fn a_dropped_stopper_requests_the_stop() {
        let (stopper, stop) = Stop::pair();
        drop(stopper);
        assert!(stop.requested().now_or_never().is_some() && stop.is_requested());
    }
}
