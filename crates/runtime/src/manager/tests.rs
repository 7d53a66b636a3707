use std::sync::atomic::{AtomicUsize, Ordering};

use futures::FutureExt;
use tokio::sync::watch;

use super::*;

/// A log of what happened, in order.
#[derive(Clone, Default)]
struct Diary(Arc<Mutex<Vec<String>>>);

impl Diary {
    fn note(&self, what: impl Into<String>) {
        self.0.lock().push(what.into());
    }

    fn read(&self) -> Vec<String> {
        self.0.lock().clone()
    }

    /// Returns a runnable that logs its start and stop.
    fn runnable(&self, name: &'static str) -> Runnable {
        let diary = self.clone();
        Runnable::new(name, move |context| {
            let diary = diary.clone();
            async move {
                diary.note(format!("{name} starts"));
                tokio::task::yield_now().await;
                diary.note(format!("{name} is up"));
                context.ready();
                context.stop.requested().await;
                diary.note(format!("{name} stops"));
                tokio::task::yield_now().await;
                diary.note(format!("{name} is down"));
                Ok::<_, BoxError>(())
            }
        })
    }
}

fn failing(name: &'static str) -> Runnable {
    Runnable::new(name, |context: Context| async move {
        context.ready();
        Err(std::io::Error::other("out of luck"))
    })
}

/// Returns a runnable that never comes up, and stops on request.
fn stuck(name: &'static str) -> Runnable {
    Runnable::new(name, |context: Context| async move {
        context.stop.requested().await;
        Ok::<_, BoxError>(())
    })
}

fn deaf(name: &'static str) -> Runnable {
    Runnable::new(name, |context: Context| async move {
        context.ready();
        std::future::pending::<Result<(), BoxError>>().await
    })
}

async fn until(condition: impl Fn() -> bool) {
    while !condition() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn m1_stages_start_in_order_when_the_one_before_is_up_and_stop_in_reverse() {
    let diary = Diary::default();
    let mut manager = Manager::new();
    manager.add(Stage::Controllers, diary.runnable("controller")).unwrap();
    manager.add(Stage::Admin, diary.runnable("admin")).unwrap();
    manager.add(Stage::Caches, diary.runnable("cache")).unwrap();
    let (stopper, stop) = Stop::pair();
    let readiness = manager.readiness().clone();
    assert!(!readiness.report().is_ready());
    let run = tokio::spawn(manager.run_until(stop));
    until(|| readiness.report().is_ready() && diary.read().len() == 6).await;
    stopper.request();
    run.await.unwrap().unwrap();
    let expected = [
        "admin starts",
        "admin is up",
        "cache starts",
        "cache is up",
        "controller starts",
        "controller is up",
        "controller stops",
        "controller is down",
        "cache stops",
        "cache is down",
        "admin stops",
        "admin is down",
    ];
    assert_eq!(diary.read(), expected);
    assert!(!readiness.report().is_ready());
}

#[tokio::test(start_paused = true)]
async fn d4_a_stop_is_obeyed_at_once_while_a_runnable_cannot_come_up() {
    let diary = Diary::default();
    let mut manager = Manager::new();
    manager.add(Stage::Admin, diary.runnable("admin")).unwrap();
    manager.add(Stage::Caches, stuck("cache")).unwrap();
    manager.add(Stage::Controllers, diary.runnable("controller")).unwrap();
    let (stopper, stop) = Stop::pair();
    let readiness = manager.readiness().clone();
    let mut run = Box::pin(manager.run_until(stop));
    assert!(tokio::time::timeout(Duration::from_hours(1), &mut run).await.is_err());
    assert!(readiness.report().to_string().contains("[-] cache: starting"));
    let asked = Instant::now();
    stopper.request();
    tokio::time::timeout(Duration::from_hours(1), run).await.expect("it stops").unwrap();
    assert_eq!(asked.elapsed(), Duration::ZERO);
    assert!(!diary.read().iter().any(|line| line.starts_with("controller")));
}

#[tokio::test(start_paused = true)]
async fn m2_a_failed_runnable_stops_the_process_and_all_failures_are_named() {
    let diary = Diary::default();
    let mut manager = Manager::new();
    manager.add(Stage::Admin, diary.runnable("admin")).unwrap();
    let sore_loser = Runnable::new("cache", |context: Context| async move {
        context.ready();
        context.stop.requested().await;
        Err(std::io::Error::other("lost my notes"))
    });
    manager.add(Stage::Caches, sore_loser).unwrap();
    manager.add(Stage::Everywhere, failing("webhook")).unwrap();
    let (_stopper, stop) = Stop::pair();
    let error = manager.run_until(stop).await.unwrap_err();
    assert_eq!(error.to_string(), "webhook failed: out of luck; cache failed: lost my notes");
    assert_eq!(diary.read().last().unwrap(), "admin is down");
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_a_runnable_counts_as_its_failure() {
    let mut manager = Manager::new();
    let runnable = Runnable::new("boom", |_| async {
        let nothing: Option<()> = None;
        nothing.ok_or_else(|| -> BoxError { panic!("at the disco") })
    });
    manager.add(Stage::Everywhere, runnable).unwrap();
    let (_stopper, stop) = Stop::pair();
    let error = manager.run_until(stop).await.unwrap_err();
    assert_eq!(error.to_string(), "boom failed: it panicked: at the disco");
}

#[tokio::test(start_paused = true)]
async fn m3_a_runnable_that_exceeds_the_grace_time_is_cancelled_and_named() {
    let mut manager = Manager::new().grace(Duration::from_secs(7));
    manager.add(Stage::Everywhere, deaf("deaf")).unwrap();
    manager.add(Stage::Admin, Diary::default().runnable("admin")).unwrap();
    let (stopper, stop) = Stop::pair();
    let readiness = manager.readiness().clone();
    let run = tokio::spawn(manager.run_until(stop));
    until(|| readiness.report().is_ready()).await;
    let asked = Instant::now();
    stopper.request();
    let error = run.await.unwrap().unwrap_err();
    assert_eq!(asked.elapsed(), Duration::from_secs(7));
    assert_eq!(error.overdue, ["deaf"]);
}

#[tokio::test(start_paused = true)]
async fn a_lost_election_leaves_no_grace_time_to_controllers() {
    let diary = Diary::default();
    let mut manager = Manager::new();
    manager.add(Stage::Admin, diary.runnable("admin")).unwrap();
    let election = Runnable::new("election", |context: Context| async move {
        context.ready();
        tokio::time::sleep(Duration::from_secs(5)).await;
        Err(std::io::Error::other("the lease was lost"))
    });
    manager.add(Stage::Election, election.on_failure(OnFailure::StopAtOnce)).unwrap();
    manager.add(Stage::Controllers, deaf("deaf")).unwrap();
    let (_stopper, stop) = Stop::pair();
    let began = Instant::now();
    let error = manager.run_until(stop).await.unwrap_err();
    assert_eq!(began.elapsed(), Duration::from_secs(5));
    assert_eq!((error.failures.len(), error.overdue), (1, vec!["deaf".to_owned()]));
    assert_eq!(diary.read().last().unwrap(), "admin is down");
}

#[tokio::test(start_paused = true)]
async fn a_restartable_runnable_is_restarted_with_backoff_and_readiness_reports_it() {
    let starts = watch::Sender::new(0_u32);
    let count = starts.clone();
    let runnable = Runnable::new("controller", move |context: Context| {
        count.send_modify(|starts| *starts += 1);
        let attempt = *count.borrow();
        async move {
            context.ready();
            if attempt < 3 {
                return Err(std::io::Error::other("not my day"));
            }
            context.stop.requested().await;
            Ok(())
        }
    });
    let mut manager = Manager::new();
    manager.add(Stage::Controllers, runnable.on_failure(OnFailure::Restart)).unwrap();
    let (stopper, stop) = Stop::pair();
    let readiness = manager.readiness().clone();
    let began = Instant::now();
    let run = tokio::spawn(manager.run_until(stop));
    until(|| readiness.report().to_string().contains("[-] controller: failed: not my day")).await;
    starts.subscribe().wait_for(|starts| *starts == 3).await.unwrap();
    assert!((Duration::from_secs(2)..Duration::from_secs(4)).contains(&began.elapsed()));
    until(|| readiness.report().is_ready()).await;
    stopper.request();
    run.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_standby_is_ready_and_runs_no_controller() {
    let diary = Diary::default();
    let mut manager = Manager::new();
    manager.add(Stage::Caches, diary.runnable("cache")).unwrap();
    manager.add(Stage::Election, stuck("election")).unwrap();
    manager.add(Stage::Controllers, diary.runnable("controller")).unwrap();
    let (stopper, stop) = Stop::pair();
    let readiness = manager.readiness().clone();
    let run = tokio::spawn(manager.run_until(stop));
    until(|| readiness.report().is_ready()).await;
    tokio::time::sleep(Duration::from_mins(5)).await;
    stopper.request();
    run.await.unwrap().unwrap();
    assert!(!diary.read().iter().any(|line| line.starts_with("controller")));
}

#[tokio::test(start_paused = true)]
async fn m6_a_manager_that_is_dropped_leaves_no_task_behind() {
    struct Alive(Arc<AtomicUsize>);
    impl Drop for Alive {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::SeqCst);
        }
    }
    let alive = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&alive);
    let runnable = Runnable::new("runnable", move |context: Context| {
        count.fetch_add(1, Ordering::SeqCst);
        let alive = Alive(Arc::clone(&count));
        async move {
            context.ready();
            let _alive = alive;
            std::future::pending::<Result<(), BoxError>>().await
        }
    });
    let mut manager = Manager::new();
    manager.add(Stage::Everywhere, runnable).unwrap();
    let (_stopper, stop) = Stop::pair();
    let mut run = Box::pin(manager.run_until(stop));
    assert!((&mut run).now_or_never().is_none());
    until(|| alive.load(Ordering::SeqCst) == 1).await;
    drop(run);
    until(|| alive.load(Ordering::SeqCst) == 0).await;
}

#[test]
fn two_runnables_of_one_name_are_an_error() {
    let mut manager = Manager::new();
    manager.add(Stage::Admin, stuck("twin")).unwrap();
    assert_eq!(manager.add(Stage::Controllers, stuck("twin")), Err(DuplicateName("twin".into())));
}

mod with_controllers {
    use super::*;
    use crate::cache::feed::Feed;
    use crate::cache::{Cause, MetadataOnly, Problem};
    use crate::controller::{Requeue, Watch};
    use crate::resource::ResourceType;
    use jiff::Timestamp;
    use k8s_openapi::api::core::v1::{ConfigMap, Secret};

    fn blocked() -> SyncState {
        SyncState::Blocked(Arc::new(Problem {
            resource: ResourceType::of::<Secret>(),
            cause: Cause::Missing,
            message: String::new(),
            since: Timestamp::UNIX_EPOCH,
        }))
    }

    #[tokio::test(start_paused = true)]
    async fn d9_readiness_requires_synced_caches_and_only_shows_optional_ones() {
        let (configs, secrets) =
            (Feed::<MetadataOnly<ConfigMap>>::new(), Feed::<MetadataOnly<Secret>>::new());
        let controller = Controller::for_(configs.reader())
            .watches(Watch::of(&secrets.reader()).optional(), |_| [])
            .build(|_| async { Ok(Requeue::OnChange) })
            .unwrap();
        let mut manager = Manager::new();
        manager.controller(controller).unwrap();
        let readiness = manager.readiness().clone();
        let (stopper, stop) = Stop::pair();
        let run = tokio::spawn(manager.run_until(stop));
        tokio::time::sleep(Duration::from_mins(5)).await;
        let report = readiness.report();
        assert!(!report.is_ready());
        assert!(
            report.to_string().contains("[-] caches of controller configmap: configmaps: not synced yet")
        );

        secrets.state(&blocked());
        let report = readiness.report().to_string();
        assert!(
            report.contains("configmaps: not synced yet; secrets: Secret (v1) is not served"),
            "{report}"
        );
        configs.list(&[], 1);
        configs.state(&SyncState::Synced);
        until(|| readiness.report().is_ready()).await;
        let report = readiness.report().to_string();
        assert!(report.contains("[~] caches of controller configmap: secrets: "), "{report}");
        stopper.request();
        run.await.unwrap().unwrap();
    }
}
