//! Tests of campaigns on a Lease in memory, with a paused clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;
use parking_lot::Mutex;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::campaign::Campaign;
use super::lock::{LeaseError, Lock};
use super::protocol::{Failed, Write};
use super::record::{Found, Record};
use super::*;
use crate::manager::Stopper;

/// A Lease in memory.
#[derive(Clone)]
struct InMemoryLock {
    lease: watch::Sender<Option<Found>>,
    mood: Arc<Mutex<Mood>>,
    /// The requests: their time, and `read`, `write` or `watch`.
    asked: Arc<Mutex<Vec<(Instant, &'static str)>>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mood {
    Well,
    /// The server never answers.
    Hangs,
    /// Fails at once.
    Fails,
    /// Executes requests, but the responses are lost.
    Mute,
    /// Executes requests, and takes a second to answer.
    Slow,
    /// Answers, but has no watch.
    Unwatchable,
    /// Answers, but its watches deliver nothing.
    Silent,
}

impl InMemoryLock {
    fn new() -> Self {
        Self {
            lease: watch::Sender::new(None),
            mood: Arc::new(Mutex::new(Mood::Well)),
            asked: Arc::default(),
        }
    }

    fn is(&self, mood: Mood) {
        *self.mood.lock() = mood;
    }

    fn record(&self) -> Record {
        self.lease.borrow().clone().unwrap().record
    }

    fn count(&self, what: &str) -> usize {
        self.asked.lock().iter().filter(|(_, asked)| *asked == what).count()
    }

    fn steal(&self, holder: &str) {
        self.lease.send_modify(|lease| {
            let lease = lease.as_mut().unwrap();
            lease.record.holder = holder.into();
            lease.version.push('!');
        });
    }

    async fn answer(&self, asked: &'static str) -> Result<(), LeaseError> {
        self.asked.lock().push((Instant::now(), asked));
        let mood = *self.mood.lock();
        match mood {
            Mood::Well | Mood::Mute | Mood::Slow | Mood::Unwatchable | Mood::Silent => Ok(()),
            Mood::Hangs => std::future::pending().await,
            Mood::Fails => Err(LeaseError { failed: Failed::Unknown, message: "out of order".into() }),
        }
    }

    async fn speak(&self) {
        let mood = *self.mood.lock();
        match mood {
            Mood::Mute => std::future::pending().await,
            Mood::Slow => tokio::time::sleep(Duration::from_secs(1)).await,
            _ => {}
        }
    }
}

impl Lock for InMemoryLock {
    async fn read(&self) -> Result<Option<Found>, LeaseError> {
        self.answer("read").await?;
        self.speak().await;
        Ok(self.lease.borrow().clone())
    }

    async fn write(&self, write: &Write) -> Result<Found, LeaseError> {
        self.answer("write").await?;
        let done = self.lease.send_if_modified(|lease| {
            let version = lease.as_ref().map(|found| found.version.clone());
            if version != write.replaces {
                return false;
            }
            let version = format!("{}+", version.unwrap_or_default());
            *lease = Some(Found { record: write.record.clone(), version });
            true
        });
        self.speak().await;
        match self.lease.borrow().clone() {
            Some(found) if done => Ok(found),
            _ => Err(LeaseError { failed: Failed::Conflict, message: "somebody was faster".into() }),
        }
    }

    fn changes(&self, _: Option<&str>) -> BoxStream<'static, Result<Option<Found>, LeaseError>> {
        self.asked.lock().push((Instant::now(), "watch"));
        let mood = *self.mood.lock();
        match mood {
            Mood::Unwatchable => {
                let refusal = LeaseError { failed: Failed::Unknown, message: "not for you".into() };
                return futures::stream::iter([Err(refusal)]).boxed();
            }
            Mood::Silent => {
                let first = Ok(self.lease.borrow().clone());
                return futures::stream::iter([first]).chain(futures::stream::pending()).boxed();
            }
            _ => {}
        }
        let lease = self.lease.subscribe();
        futures::stream::unfold(lease, |mut lease| async {
            lease.changed().await.ok()?;
            let found = lease.borrow_and_update().clone();
            Some((Ok(found), lease))
        })
        .boxed()
    }
}

/// A candidate in a task of its own.
struct Runner {
    figures: Arc<Figures>,
    working: Arc<AtomicBool>,
    stopper: Stopper,
    finish: Option<oneshot::Sender<()>>,
    task: JoinHandle<Result<Option<()>, LeaseLost>>,
}

struct Working(Arc<AtomicBool>);

impl Drop for Working {
    fn drop(&mut self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

impl Runner {
    /// Starts a candidate whose work ends on request.
    fn start(lock: &InMemoryLock, me: &str) -> Self {
        Self::start_with(lock, me, Fence::closed())
    }

    fn start_with(lock: &InMemoryLock, me: &str, fence: Fence) -> Self {
        let (stopper, stop) = Stop::pair();
        let (finish, finished) = oneshot::channel();
        let (figures, working) = (Arc::new(Figures::with_fence(fence)), Arc::new(AtomicBool::new(false)));
        let (lock, me) = (lock.clone(), me.to_owned());
        let (shown, flag) = (Arc::clone(&figures), Arc::clone(&working));
        let task = tokio::spawn(async move {
            let stand = Stand::begin(&shown);
            let campaign = Campaign::new(&lock, "shop/lease".into(), me, Times::default(), stand);
            let work = || async {
                flag.store(true, Ordering::SeqCst);
                let _working = Working(flag);
                let _ = finished.await;
            };
            campaign.run(&stop, work).await
        });
        Self { figures, working, stopper, finish: Some(finish), task }
    }

    fn works(&self) -> bool {
        let works = self.working.load(Ordering::SeqCst);
        assert_eq!(works, self.figures.leads());
        works
    }

    async fn leads(&self) {
        let mut standing = self.figures.standing.subscribe();
        standing.wait_for(|standing| *standing == Standing::Leading).await.unwrap();
        tokio::task::yield_now().await;
    }
}

const LEASE: Duration = Duration::from_secs(15);
const DEADLINE: Duration = Duration::from_secs(10);
const RETRY: Duration = Duration::from_secs(2);

#[tokio::test(start_paused = true)]
async fn a_leader_renews_every_retry_period_and_sends_no_other_requests() {
    let lock = InMemoryLock::new();
    let runner = Runner::start(&lock, "a");
    runner.leads().await;
    tokio::time::sleep(Duration::from_secs(61)).await;
    assert!(runner.works());
    assert_eq!((lock.count("read"), lock.count("write"), lock.count("watch")), (1, 31, 0));
}

#[tokio::test(start_paused = true)]
async fn a_standby_that_watches_sends_no_requests_and_leads_at_once_after_a_release() {
    let lock = InMemoryLock::new();
    let mut first = Runner::start(&lock, "a");
    first.leads().await;
    let second = Runner::start(&lock, "b");
    tokio::time::sleep(Duration::from_secs(61)).await;
    let leader = Some("a".to_owned());
    assert_eq!(*second.figures.standing.borrow(), Standing::Standby { leader });
    assert!(!second.works());
    assert!(lock.count("read") <= 3, "{:?}", lock.asked.lock());

    let asked = Instant::now();
    first.finish.take().unwrap().send(()).unwrap();
    second.leads().await;
    assert_eq!(asked.elapsed(), Duration::ZERO);
    assert_eq!(first.task.await.unwrap(), Ok(Some(())));
    let record = lock.record();
    assert_eq!((&*record.holder, record.transitions), ("b", 1));
}

#[tokio::test(start_paused = true)]
async fn a_standby_that_may_not_watch_reads_the_lease_periodically() {
    let lock = InMemoryLock::new();
    let mut first = Runner::start(&lock, "a");
    first.leads().await;
    lock.is(Mood::Unwatchable);
    let second = Runner::start(&lock, "b");
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert!((13..=31).contains(&(lock.count("read") - 1)), "{}", lock.count("read"));
    let asked = Instant::now();
    first.finish.take().unwrap().send(()).unwrap();
    second.leads().await;
    assert!(asked.elapsed() <= RETRY.mul_f64(2.2));
}

#[tokio::test(start_paused = true)]
async fn the_lease_is_released_only_after_the_work_has_ended() {
    let lock = InMemoryLock::new();
    let mut runner = Runner::start(&lock, "a");
    runner.leads().await;
    runner.stopper.request();
    tokio::time::sleep(Duration::from_secs(100)).await;
    assert!(runner.works(), "to stop is the work's affair");
    assert_eq!(lock.record().holder, "a");
    runner.finish.take().unwrap().send(()).unwrap();
    assert_eq!(runner.task.await.unwrap(), Ok(Some(())));
    let record = lock.record();
    assert_eq!((&*record.holder, record.duration), ("", Some(Duration::from_secs(1))));
}

#[tokio::test(start_paused = true)]
async fn a_vanished_leader_is_succeeded_when_its_lease_did_not_change_for_the_lease_duration() {
    let lock = InMemoryLock::new();
    let first = Runner::start(&lock, "a");
    first.leads().await;
    let second = Runner::start(&lock, "b");
    tokio::time::sleep(Duration::from_mins(1)).await;
    first.task.abort();
    assert!(first.task.await.unwrap_err().is_cancelled());
    assert!(!first.working.load(Ordering::SeqCst));
    assert_eq!(*first.figures.standing.borrow(), Standing::Ended);
    let vanished = Instant::now();
    second.leads().await;
    let took = vanished.elapsed();
    assert!(took <= LEASE && took + RETRY >= LEASE, "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn without_responses_the_work_ends_at_the_renew_deadline_and_before_another_leads() {
    for mood in [Mood::Hangs, Mood::Fails, Mood::Mute] {
        let lock = InMemoryLock::new();
        let first = Runner::start(&lock, "a");
        first.leads().await;
        let led = Instant::now();
        lock.is(mood);
        let lost = first.task.await.unwrap().unwrap_err();
        assert!(!first.working.load(Ordering::SeqCst));
        assert_eq!(led.elapsed(), DEADLINE, "{mood:?}");
        assert!(matches!(lost, LeaseLost::Deadline { .. }), "{lost}");
        assert!(lost.to_string().contains("shop/lease could not be renewed for 10s"), "{lost}");
        // Although every request hung, it tried more than once.
        assert!(lock.count("write") + lock.count("read") >= 4, "{mood:?}: {:?}", lock.asked.lock());

        lock.is(Mood::Well);
        let second = Runner::start(&lock, "b");
        second.leads().await;
        assert!(led.elapsed() >= LEASE);
    }
}

#[tokio::test(start_paused = true)]
async fn one_hung_request_does_not_lose_the_lease() {
    let lock = InMemoryLock::new();
    let runner = Runner::start(&lock, "a");
    runner.leads().await;
    lock.is(Mood::Hangs);
    tokio::time::sleep(RETRY + Duration::from_secs(1)).await;
    lock.is(Mood::Well);
    tokio::time::sleep(Duration::from_secs(100)).await;
    assert!(runner.works());
    assert_eq!(runner.figures.slow_paths.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_stolen_lease_ends_the_work_at_the_next_renewal() {
    let lock = InMemoryLock::new();
    let runner = Runner::start(&lock, "a");
    runner.leads().await;
    lock.steal("thief");
    let stolen = Instant::now();
    let lost = runner.task.await.unwrap().unwrap_err();
    assert!(stolen.elapsed() <= RETRY);
    assert_eq!(lost, LeaseLost::Taken { lease: "shop/lease".into(), holder: "thief".into() });
    assert_eq!(lock.record().holder, "thief", "what is not ours is not released");
}

#[tokio::test(start_paused = true)]
async fn a_standby_that_is_asked_to_stop_does_not_become_leader_and_ends_at_once() {
    let lock = InMemoryLock::new();
    let first = Runner::start(&lock, "a");
    first.leads().await;
    let second = Runner::start(&lock, "b");
    tokio::time::sleep(Duration::from_secs(10)).await;
    let asked = Instant::now();
    second.stopper.request();
    assert_eq!(second.task.await.unwrap(), Ok(None));
    assert_eq!(asked.elapsed(), Duration::ZERO);
    assert_eq!(lock.record().holder, "a");
}

#[tokio::test(start_paused = true)]
async fn a_lease_acquired_during_a_stop_is_released() {
    let lock = InMemoryLock::new();
    lock.is(Mood::Slow);
    let runner = Runner::start(&lock, "a");
    lock.lease.subscribe().wait_for(Option::is_some).await.unwrap();
    assert_eq!(lock.record().holder, "a");
    runner.stopper.request();
    assert_eq!(runner.task.await.unwrap(), Ok(None));
    assert_eq!(lock.record().holder, "");
}

#[tokio::test(start_paused = true)]
async fn a_stop_without_an_api_server_ends_soon_and_sends_few_requests() {
    let lock = InMemoryLock::new();
    let mut runner = Runner::start(&lock, "a");
    runner.leads().await;
    lock.is(Mood::Fails);
    let asked = Instant::now();
    runner.finish.take().unwrap().send(()).unwrap();
    assert_eq!(runner.task.await.unwrap(), Ok(Some(())));
    assert_eq!(asked.elapsed(), Times::default().request_deadline());
    assert!(lock.asked.lock().iter().filter(|(when, _)| *when >= asked).count() < 10);
}

#[tokio::test(start_paused = true)]
async fn a_silent_watch_costs_at_most_the_lease_duration() {
    let lock = InMemoryLock::new();
    let mut first = Runner::start(&lock, "a");
    first.leads().await;
    lock.is(Mood::Silent);
    let second = Runner::start(&lock, "b");
    tokio::time::sleep(Duration::from_secs(5)).await;
    let released = Instant::now();
    first.finish.take().unwrap().send(()).unwrap();
    second.leads().await;
    assert!(released.elapsed() <= LEASE);
}

#[tokio::test(start_paused = true)]
async fn seam_m3_a_suspended_leader_may_not_write_before_its_next_renewal() {
    let boot = Arc::new(Mutex::new(Duration::from_secs(100)));
    let clock = Arc::clone(&boot);
    let lock = InMemoryLock::new();
    let mut runner = Runner::start_with(&lock, "a", Fence::with_clock(move || *clock.lock()));
    let fence = runner.figures.fence.clone();
    assert_eq!(fence.check(), Err(Fenced), "not before it leads");
    runner.leads().await;
    assert_eq!(fence.check(), Ok(()));

    // The machine was suspended: timers did not advance, so the process still considers itself the leader.
    *boot.lock() += DEADLINE;
    assert!(runner.works());
    assert_eq!(fence.check(), Err(Fenced));
    tokio::time::sleep(RETRY + Duration::from_millis(1)).await;
    assert_eq!(fence.check(), Ok(()), "the lease was renewed");

    runner.finish.take().unwrap().send(()).unwrap();
    runner.task.await.unwrap().unwrap();
    assert_eq!(fence.check(), Err(Fenced), "not after the release");
}

#[tokio::test(start_paused = true)]
async fn seam_m3_a_stolen_lease_closes_the_fence() {
    let lock = InMemoryLock::new();
    let runner = Runner::start(&lock, "a");
    runner.leads().await;
    lock.steal("thief");
    assert!(runner.task.await.unwrap().is_err());
    assert_eq!(runner.figures.fence.check(), Err(Fenced));
}
