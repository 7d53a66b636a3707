//! Tests of leader election on a real API server: kills, stolen leases, network failures, and a candidate
//! written with client-go.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)] // a test fails by panicking

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;
use tokio::task::JoinHandle;
use windlass_runtime::client::{Client, ClientOptions};
use windlass_runtime::leader::{Election, ElectionOptions, LeaseLost, Standing, Times};
use windlass_runtime::manager::{BoxError, Manager, Runnable, Stage, Stop, Stopper};
use windlass_testenv::proxy::{Action, Fault, Match, RequestVerb};
use windlass_testenv::{Rules, TestEnv, TestNamespace, TestUser, eventually, or_not_run, rule};

const LEASE: &str = "the-lease";
const TICK: Duration = Duration::from_millis(5);

/// Short times, for tests that wait for an expiry; long enough for a busy machine.
fn short() -> Times {
    Times {
        lease_duration: Duration::from_secs(4),
        renew_deadline: Duration::from_secs(3),
        retry_period: Duration::from_millis(500),
    }
}

/// The times of work by candidate, in nanoseconds since 1970.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<BTreeMap<String, (u128, u128)>>>);

impl Log {
    fn note(&self, who: &str, when: u128) {
        let mut log = self.0.lock().unwrap();
        let (_, last) = log.entry(who.to_owned()).or_insert((when, when));
        *last = when;
    }

    /// Works until a stop is requested, and logs it.
    async fn work(self, who: String, stop: Stop) {
        let work = async {
            let mut ticks = tokio::time::interval(TICK);
            loop {
                ticks.tick().await;
                self.note(&who, SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos());
            }
        };
        tokio::select! {
            () = stop.requested() => {}
            () = work => {}
        }
    }

    /// Reads the log of another process until it ends.
    fn follow(&self, output: impl std::io::Read + Send + 'static) {
        let log = self.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if let Some((who, when)) = line.split_once(' ')
                    && let Ok(when) = when.parse()
                {
                    log.note(who, when);
                }
            }
        });
    }

    fn terms(&self) -> Vec<(u128, u128, String)> {
        let log = self.0.lock().unwrap();
        let mut terms: Vec<_> = log.iter().map(|(who, (from, to))| (*from, *to, who.clone())).collect();
        terms.sort();
        terms
    }

    fn count(&self, prefix: &str) -> usize {
        self.0.lock().unwrap().keys().filter(|who| who.starts_with(prefix)).count()
    }

    async fn has(&self, who: &str, terms: usize) -> Result<()> {
        eventually(format!("term {terms} of {who}"), || async {
            if self.count(who) >= terms { Ok(()) } else { Err(format!("{:?}", self.terms())) }
        })
        .await?;
        Ok(())
    }

    fn assert_one_at_a_time(&self) {
        let terms = self.terms();
        for pair in terms.windows(2) {
            let (first, second) = (&pair[0], &pair[1]);
            assert!(first.1 < second.0, "{} and {} led at the same time: {terms:?}", first.2, second.2);
        }
    }
}

/// A candidate in this process.
struct Candidate {
    standing: tokio::sync::watch::Receiver<Standing>,
    stopper: Stopper,
    task: JoinHandle<Result<Option<()>, LeaseLost>>,
}

impl Candidate {
    fn start(log: &Log, who: &str, election: Election) -> Self {
        let (stopper, stop) = Stop::pair();
        let (log, who) = (log.clone(), who.to_owned());
        let standing = election.standing();
        let task = tokio::spawn(async move {
            let heard = stop.clone();
            election.lead(&stop, || log.work(who, heard)).await
        });
        Self { standing, stopper, task }
    }

    async fn leads(&mut self) -> Result<()> {
        self.stands("lead", |standing| *standing == Standing::Leading).await
    }

    async fn stands_by(&mut self) -> Result<()> {
        self.stands("see a leader", |standing| matches!(standing, Standing::Standby { leader: Some(_) }))
            .await
    }

    async fn stands(&mut self, what: &str, so: impl FnMut(&Standing) -> bool) -> Result<()> {
        let patience = Duration::from_mins(1);
        let stands = tokio::time::timeout(patience, self.standing.wait_for(so)).await;
        stands.with_context(|| format!("waiting for a candidate to {what}"))??;
        Ok(())
    }
}

/// The rules that an election needs.
fn rules() -> Rules {
    let verbs = ["get", "create", "patch", "watch"];
    Rules::default().in_namespace(rule("coordination.k8s.io", &["leases"], &verbs))
}

async fn user(namespace: &TestNamespace) -> Result<TestUser> {
    Ok(namespace.client_for("candidate", &rules()).await?)
}

fn election(config: kube::Config, namespace: &TestNamespace, times: Times) -> Result<Election> {
    let client = Client::new(config, ClientOptions::default())?;
    let options = ElectionOptions::new(LEASE).namespace(namespace.name()).times(times).label("app", "shop");
    Ok(Election::new(&client, options)?)
}

async fn lease(namespace: &TestNamespace) -> Result<LeaseSpec> {
    namespace.api::<Lease>().get(LEASE).await?.spec.context("its spec")
}

const CHILD: &str = "WINDLASS_TEST_CANDIDATE";

/// A test, and also the program that the next test starts and kills: with a namespace in the environment it
/// is a candidate that works until it is killed.
#[tokio::test]
async fn a_single_candidate_leads_and_its_lease_names_it() -> Result<()> {
    if let Ok(namespace) = std::env::var(CHILD) {
        return lead_until_killed(&namespace).await;
    }
    let env = or_not_run!(TestEnv::shared().await);
    let namespace = env.namespace("leader-alone").await?;
    let log = Log::default();
    let election = election(user(&namespace).await?.config(), &namespace, Times::default())?;
    let mut candidate = Candidate::start(&log, "a", election);
    candidate.leads().await?;
    let found = namespace.api::<Lease>().get(LEASE).await?;
    assert_eq!(found.metadata.labels, Some([("app".to_owned(), "shop".to_owned())].into()));
    let first = found.spec.context("its spec")?;
    assert_eq!((first.lease_duration_seconds, first.lease_transitions), (Some(15), Some(0)));
    let holder = first.holder_identity.clone().context("a holder")?;
    assert!(holder.rsplit_once('_').is_some_and(|(_, uuid)| uuid.len() == 36), "{holder}");
    eventually("a renewal", || async {
        let now = lease(&namespace).await.map_err(|error| error.to_string())?;
        if now.renew_time > first.renew_time { Ok(()) } else { Err(format!("{now:?}")) }
    })
    .await?;

    candidate.stopper.request();
    assert_eq!(candidate.task.await?, Ok(Some(())));
    let released = lease(&namespace).await?;
    assert_eq!(released.holder_identity.as_deref(), Some(""));
    assert_eq!((released.lease_duration_seconds, released.lease_transitions), (Some(1), Some(0)));
    Ok(())
}

async fn lead_until_killed(namespace: &str) -> Result<()> {
    let client = Client::new(kube::Config::infer().await?, ClientOptions::default())?;
    let options = ElectionOptions::new(LEASE).namespace(namespace).times(short());
    let election = Election::new(&client, options)?;
    let (_stopper, stop) = Stop::pair();
    election
        .lead(&stop, || async {
            let mut ticks = tokio::time::interval(TICK);
            loop {
                ticks.tick().await;
                let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos();
                // Not with `println!`, which the test harness may capture.
                let _ = writeln!(std::io::stdout(), "child {now}");
            }
        })
        .await?;
    Ok(())
}

/// Kills the process when dropped.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn a_leader_that_is_killed_is_succeeded() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let namespace = env.namespace("leader-killed").await?;
    let log = Log::default();
    let mut child = Killed(
        Command::new(std::env::current_exe()?)
            .args([
                "--exact",
                "leader_election::a_single_candidate_leads_and_its_lease_names_it",
                "--nocapture",
            ])
            .env(CHILD, namespace.name())
            .env("KUBECONFIG", env.kubeconfig()?)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?,
    );
    log.follow(child.0.stdout.take().context("its output")?);
    log.has("child", 1).await?;
    let election = election(user(&namespace).await?.config(), &namespace, short())?;
    let mut successor = Candidate::start(&log, "successor", election);
    successor.stands_by().await?;
    child.0.kill()?;
    child.0.wait()?;
    successor.leads().await?;
    log.has("successor", 1).await?;
    log.assert_one_at_a_time();
    assert_eq!(lease(&namespace).await?.lease_transitions, Some(1));
    Ok(())
}

#[tokio::test]
async fn a_standby_leads_at_once_after_a_release() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let namespace = env.namespace("leader-released").await?;
    let (log, user) = (Log::default(), user(&namespace).await?);
    // So long that periodic reads, or an expiry, would come too late for this test.
    let times = Times {
        lease_duration: Duration::from_hours(1),
        renew_deadline: Duration::from_mins(50),
        retry_period: Duration::from_mins(15),
    };
    let mut first = Candidate::start(&log, "first", election(user.config(), &namespace, times)?);
    first.leads().await?;
    let mut second = Candidate::start(&log, "second", election(user.config(), &namespace, times)?);
    second.stands_by().await?;
    log.has("first", 1).await?;
    first.stopper.request();
    second.leads().await?;
    log.has("second", 1).await?;
    assert_eq!(first.task.await?, Ok(Some(())));
    log.assert_one_at_a_time();
    Ok(())
}

#[tokio::test]
async fn a_stolen_lease_ends_the_work() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let namespace = env.namespace("leader-stolen").await?;
    let log = Log::default();
    let election = election(user(&namespace).await?.config(), &namespace, Times::default())?;
    let mut candidate = Candidate::start(&log, "a", election);
    candidate.leads().await?;
    let theft = Patch::Merge(json!({"spec": {"holderIdentity": "thief"}}));
    namespace.api::<Lease>().patch(LEASE, &PatchParams::default(), &theft).await?;
    let lost = candidate.task.await?.unwrap_err();
    let name = format!("{}/{LEASE}", namespace.name());
    assert_eq!(lost, LeaseLost::Taken { lease: name, holder: "thief".into() });
    assert_eq!(lease(&namespace).await?.holder_identity.as_deref(), Some("thief"));
    Ok(())
}

#[tokio::test]
async fn a_deleted_lease_is_recreated_by_its_holder() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let namespace = env.namespace("leader-deleted").await?;
    let (log, user) = (Log::default(), user(&namespace).await?);
    let mut first = Candidate::start(&log, "first", election(user.config(), &namespace, Times::default())?);
    first.leads().await?;
    let holder = lease(&namespace).await?.holder_identity;
    let mut second = Candidate::start(&log, "second", election(user.config(), &namespace, Times::default())?);
    second.stands_by().await?;
    namespace.api::<Lease>().delete(LEASE, &DeleteParams::default()).await?;
    let found = eventually("the lease to be there again", || async {
        lease(&namespace).await.map_err(|error| error.to_string())
    })
    .await?;
    assert_eq!(found.holder_identity, holder);
    assert_eq!(*first.standing.borrow_and_update(), Standing::Leading);
    first.stopper.request();
    second.leads().await?;
    log.has("second", 1).await?;
    log.assert_one_at_a_time();
    Ok(())
}

/// Checks that a leader without responses stops before another leads, and that its late requests change
/// nothing.
async fn cut_off(action: Action) -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let namespace = env.namespace("leader-cut-off").await?;
    let (log, user) = (Log::default(), user(&namespace).await?);
    let proxy = env.fault_proxy().await?;
    let config = user.config_through(&proxy.url())?;
    let mut first = Candidate::start(&log, "first", election(config, &namespace, short())?);
    first.leads().await?;
    let mut second = Candidate::start(&log, "second", election(user.config(), &namespace, short())?);
    second.stands_by().await?;
    log.has("first", 1).await?;

    let fault = proxy.add(Fault::on(Match::any()).then(action));
    let lost = first.task.await?.unwrap_err();
    assert!(matches!(lost, LeaseLost::Deadline { .. }), "{lost}");
    assert!(fault.hits() >= 2, "it tried more than once: {:?}", proxy.seen());
    second.leads().await?;
    log.has("second", 1).await?;
    log.assert_one_at_a_time();

    fault.remove();
    let before = lease(&namespace).await?;
    eventually("a renewal by the second", || async {
        let now = lease(&namespace).await.map_err(|error| error.to_string())?;
        let renewed = now.renew_time > before.renew_time;
        if renewed { Ok(now) } else { Err(format!("{now:?}")) }
    })
    .await?;
    assert_eq!(lease(&namespace).await?.holder_identity, before.holder_identity);
    assert_eq!(*second.standing.borrow(), Standing::Leading);
    Ok(())
}

#[tokio::test]
async fn a_leader_whose_connections_break_stops_before_another_leads() -> Result<()> {
    cut_off(Action::DropBefore).await
}

#[tokio::test]
async fn a_leader_without_responses_stops_before_another_leads_and_its_late_writes_change_nothing()
-> Result<()> {
    cut_off(Action::Hold).await
}

#[tokio::test]
async fn one_lost_response_keeps_the_lease_and_is_counted_in_the_metrics() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let namespace = env.namespace("leader-slow-path").await?;
    let (log, user) = (Log::default(), user(&namespace).await?);
    let proxy = env.fault_proxy().await?;
    let election = election(user.config_through(&proxy.url())?, &namespace, Times::default())?;
    let manager = Manager::new();
    let metrics = manager.metrics().clone();
    election.show_in(&metrics);
    let shown = |name: &str| {
        let (line, text) = (format!("{name}{{name=\"{LEASE}\"}} "), metrics.encode());
        let value = text.lines().find_map(|sample| sample.strip_prefix(&line)?.parse::<u64>().ok());
        value.unwrap_or_else(|| panic!("{name} is not in\n{text}"))
    };
    assert_eq!(shown("leader_election_master_status"), 0);
    assert_eq!(shown("leader_election_slowpath_total"), 0);
    let mut candidate = Candidate::start(&log, "a", election);
    candidate.leads().await?;
    assert_eq!(shown("leader_election_master_status"), 1);
    // The renewal is done, and the leader does not know: its next one would meet a conflict with itself.
    let renewals = Match::verb(RequestVerb::Patch).resource("leases");
    let fault = proxy.add(Fault::on(renewals.clone()).first().then(Action::DropAfter));
    fault.wait_for_hits(1).await?;
    let mark = proxy.last_sequence();
    let again = proxy.wait_for_request_after(mark, &renewals).await?;
    assert!(again.request.verb.is_write());
    assert!(shown("leader_election_slowpath_total") >= 1);
    candidate.stopper.request();
    assert_eq!(candidate.task.await?, Ok(Some(())));
    assert_eq!(shown("leader_election_master_status"), 0);
    Ok(())
}

/// Returns a manager whose controller stage logs that it runs.
fn manager(log: &Log, who: &str, election: Election) -> Result<Manager> {
    let mut manager = Manager::new();
    manager.election(election)?;
    let (log, who) = (log.clone(), who.to_owned());
    let runnable = Runnable::new("work", move |context| {
        let (log, who) = (log.clone(), who.clone());
        async move {
            context.ready();
            log.work(who, context.stop).await;
            Ok::<_, BoxError>(())
        }
    });
    manager.add(Stage::Controllers, runnable)?;
    Ok(manager)
}

#[tokio::test]
async fn managers_hand_over_in_order_and_a_lost_lease_ends_a_manager_at_once() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let namespace = env.namespace("leader-managers").await?;
    let (log, user) = (Log::default(), user(&namespace).await?);
    let start = |who: &str| -> Result<_> {
        let manager = manager(&log, who, election(user.config(), &namespace, Times::default())?)?;
        let (readiness, (stopper, stop)) = (manager.readiness().clone(), Stop::pair());
        Ok((readiness, stopper, tokio::spawn(manager.run_until(stop))))
    };
    let (_, first, first_run) = start("first")?;
    log.has("first", 1).await?;
    let (standby, _second, second_run) = start("second")?;
    eventually("the standby to be ready", || async {
        let report = standby.report();
        if report.is_ready() { Ok(()) } else { Err(report.to_string()) }
    })
    .await?;
    first.request();
    first_run.await??;
    log.has("second", 1).await?;
    log.assert_one_at_a_time();

    let theft = Patch::Merge(json!({"spec": {"holderIdentity": "thief"}}));
    namespace.api::<Lease>().patch(LEASE, &PatchParams::default(), &theft).await?;
    let error = second_run.await?.unwrap_err();
    assert!(error.to_string().contains("leader election failed: the lease"), "{error}");
    assert!(error.to_string().contains("taken by \"thief\""), "{error}");
    Ok(())
}

/// Builds the candidate that is written with client-go; `NotRun` if there is no Go.
fn build_contender() -> Result<PathBuf, windlass_testenv::Error> {
    let missing = |has: String| windlass_testenv::Error::NotRun { needs: "Go".to_owned(), has };
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("contender");
    let output = Command::new("go")
        .args(["build", "-trimpath", "-buildvcs=false", "-o"])
        .args([&program, Path::new(".")])
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/contender"))
        // Settings of the user for other projects must not change this build.
        .env("GOFLAGS", "-mod=readonly")
        .env("GOWORK", "off")
        .env("GOTOOLCHAIN", "local")
        .env("CGO_ENABLED", "0")
        .output()
        .map_err(|error| missing(format!("go cannot be run: {error}")))?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(program)
}

fn start_contender(
    program: &Path,
    env: &TestEnv,
    namespace: &TestNamespace,
    who: &str,
    log: &Log,
) -> Result<Killed> {
    let mut child = Killed(
        Command::new(program)
            .arg("--kubeconfig")
            .arg(env.kubeconfig()?)
            .args(["--namespace", namespace.name(), "--name", LEASE, "--identity", who])
            .args(["--leads=700ms", "--rests=700ms"])
            .arg(format!("--lease-duration={:?}", short().lease_duration))
            .arg(format!("--renew-deadline={:?}", short().renew_deadline))
            .arg(format!("--retry-period={:?}", short().retry_period))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?,
    );
    log.follow(child.0.stdout.take().context("its output")?);
    let mut errors = child.0.stderr.take().context("its errors")?;
    std::thread::spawn(move || {
        let mut text = String::new();
        let _ = errors.read_to_string(&mut text);
        print!("{text}");
    });
    Ok(child)
}

#[tokio::test]
async fn our_candidate_and_client_gos_contend_for_one_lease_and_never_both_lead() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let namespace = env.namespace("leader-contend").await?;
    let (log, user) = (Log::default(), user(&namespace).await?);
    let program = or_not_run!(tokio::task::spawn_blocking(build_contender).await?);
    let election = || election(user.config(), &namespace, short());

    // Both lead in turns, and hand over by releasing the lease.
    let theirs = start_contender(&program, &env, &namespace, "go", &log)?;
    for term in 1..=4 {
        log.has("go", term).await?;
        let mut ours = Candidate::start(&log, &format!("ours-{term}"), election()?);
        ours.leads().await?;
        log.has("ours", term).await?;
        if term % 2 == 0 {
            ours.stopper.request();
            assert_eq!(ours.task.await?, Ok(Some(())));
        } else {
            // Ours is dropped without a release: client-go waits until our lease has expired.
            ours.task.abort();
        }
    }
    // Theirs is killed while it leads: we wait until its lease has expired.
    let killed = log.count("go");
    log.has("go", killed + 1).await?;
    let mut ours = Candidate::start(&log, "ours-last", election()?);
    drop(theirs);
    ours.leads().await?;
    log.has("ours-last", 1).await?;
    log.assert_one_at_a_time();
    let terms = log.terms();
    assert!(terms.len() >= 10, "{terms:?}");
    let transitions = lease(&namespace).await?.lease_transitions;
    assert!(transitions >= i32::try_from(terms.len() - 1).ok(), "{transitions:?} for {terms:?}");
    Ok(())
}
