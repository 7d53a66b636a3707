//! A model of several candidates, one Lease and a bad network: never two leaders, and soon one again.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use tokio::time::Instant;

use super::protocol::{Failed, LeaseAction, Protocol, Write};
use super::record::{Found, Record};
use super::times::Times;

const TICK: Duration = Duration::from_millis(100);
/// Long enough for requests in flight to end, a lease to expire and a candidate to take it.
const CALM: u32 = 150;

fn times() -> Times {
    Times {
        lease_duration: Duration::from_secs(3),
        renew_deadline: Duration::from_secs(2),
        retry_period: Duration::from_millis(500),
    }
}

/// The API server: one Lease, guarded by its version.
#[derive(Default)]
struct Server {
    lease: Option<Record>,
    version: u32,
}

type Answer = Result<Option<Found>, Failed>;

impl Server {
    fn lease(&self) -> Option<Found> {
        let version = self.version.to_string();
        self.lease.clone().map(|record| Found { record, version })
    }

    fn serve(&mut self, request: Option<&Write>) -> Answer {
        let Some(write) = request else { return Ok(self.lease()) };
        if self.lease().map(|found| found.version) != write.replaces {
            return Err(Failed::Conflict);
        }
        self.version += 1;
        self.lease = Some(write.record.clone());
        Ok(self.lease())
    }
}

/// The network's effect on one request: ticks until the server receives it, then until the response arrives;
/// `None` is never.
#[derive(Clone, Copy, Debug)]
struct Weather {
    there: Option<u32>,
    back: Option<u32>,
}

const FAIR: Weather = Weather { there: Some(1), back: Some(0) };

/// The event that hits a candidate in one tick.
#[derive(Clone, Copy, Debug)]
enum Fortune {
    Nothing,
    /// The candidate is killed, and started again.
    Dies,
    /// The candidate is suspended for some ticks, with its work.
    Sleeps(u32),
    /// The candidate is asked to stop: it ends its work, releases the lease, and is started again.
    Stops,
    /// The watch of the candidate delivers the present Lease.
    Hears,
}

/// A request in flight. It arrives even if its sender has given up or died.
#[derive(Clone)]
struct Request {
    write: Option<Write>,
    sent: Instant,
    arrives: Option<u32>,
    takes_back: Option<u32>,
    gives_up: Instant,
}

struct Candidate {
    protocol: Protocol,
    skew: SignedDuration,
    lives: u32,
    number: usize,
    asleep_until: u32,
    stopping: bool,
    waits_for: Option<Request>,
    /// The response and the tick of its arrival.
    answer: Option<(u32, Answer)>,
}

impl Candidate {
    fn new(number: usize, lives: u32, skew: i64, now: Instant) -> Self {
        Self {
            protocol: Protocol::new(format!("{number}_{lives}"), times(), now),
            skew: SignedDuration::from_secs(skew),
            lives,
            number,
            asleep_until: 0,
            stopping: false,
            waits_for: None,
            answer: None,
        }
    }

    fn begin_anew(&mut self, now: Instant) {
        *self = Self::new(self.number, self.lives + 1, self.skew.as_secs(), now);
    }

    /// Returns true if its work runs: it is dropped at the deadline, and has ended before a release.
    fn works(&self, tick: u32, now: Instant) -> bool {
        let in_time = self.protocol.deadline().is_some_and(|deadline| now < deadline);
        in_time && !self.stopping && tick >= self.asleep_until
    }

    /// Runs one iteration of the campaign's loop.
    fn turn(&mut self, tick: u32, now: Instant, wall: Timestamp, weather: Weather) -> Option<Request> {
        if let Some(request) = &self.waits_for {
            let sent = request.sent;
            match self.answer.take() {
                Some((back, answer)) if back <= tick => {
                    let wrote = request.write.is_some();
                    self.waits_for = None;
                    match answer {
                        Ok(Some(found)) if wrote => self.protocol.wrote(found, sent, now),
                        Ok(found) => self.protocol.saw(found, now, times().retry_period),
                        Err(failed) => self.protocol.failed(&failed, sent, now, times().retry_period),
                    }
                }
                later => {
                    self.answer = later;
                    if now < request.gives_up && self.protocol.deadline().is_none_or(|at| now < at) {
                        return None;
                    }
                    self.waits_for = None;
                    self.answer = None;
                    self.protocol.failed(&Failed::Unknown, sent, now, times().retry_period);
                }
            }
        }
        let wall = wall.saturating_add(self.skew).unwrap();
        let step = if self.stopping {
            self.protocol.release(now, wall)
        } else {
            Some(self.protocol.decide(now, wall))
        };
        let write = match step {
            Some(LeaseAction::Wait(_)) => return None,
            Some(LeaseAction::Lost(_)) | None => {
                self.begin_anew(now);
                return None;
            }
            Some(LeaseAction::Read) => None,
            Some(LeaseAction::Write(write)) => {
                self.protocol.sending();
                Some(write)
            }
        };
        let request = Request {
            write,
            sent: now,
            arrives: weather.there.map(|ticks| tick + ticks),
            takes_back: weather.back,
            gives_up: now + times().request_deadline(),
        };
        self.waits_for = Some(request.clone());
        Some(request)
    }
}

fn play(weathers: &[Weather], fortunes: &[Fortune], skews: &[i64]) -> Result<(), TestCaseError> {
    let began = Instant::now();
    let noon: Timestamp = "2026-11-15T12:00:00Z".parse().unwrap();
    let mut weathers = weathers.iter().copied();
    let mut fortunes = fortunes.iter().copied();
    let mut server = Server::default();
    let mut candidates: Vec<_> =
        skews.iter().enumerate().map(|(number, skew)| Candidate::new(number, 0, *skew, began)).collect();
    // The candidate, its incarnation, and the request.
    let mut network: Vec<(usize, u32, Request)> = Vec::new();
    let (mut tick, mut calm) = (0, 0);
    while calm < CALM {
        tick += 1;
        calm += u32::from(fortunes.len() == 0);
        let now = began + TICK * tick;
        let wall = noon.saturating_add(SignedDuration::from_millis(100 * i64::from(tick))).unwrap();

        network.retain(|(number, life, request)| {
            if request.arrives != Some(tick) {
                return request.arrives.is_some();
            }
            let answer = server.serve(request.write.as_ref());
            let author = &mut candidates[*number];
            let awaited = author.waits_for.as_ref().is_some_and(|waiting| waiting.sent == request.sent);
            if author.lives == *life && awaited {
                author.answer = request.takes_back.map(|ticks| (tick + ticks, answer));
            }
            false
        });
        for candidate in &mut candidates {
            match fortunes.next().unwrap_or(Fortune::Nothing) {
                Fortune::Nothing => {}
                Fortune::Dies => candidate.begin_anew(now),
                Fortune::Sleeps(ticks) => candidate.asleep_until = tick + ticks,
                Fortune::Stops => candidate.stopping |= candidate.protocol.leads(),
                Fortune::Hears => {
                    if candidate.waits_for.is_none() && !candidate.protocol.leads() {
                        candidate.protocol.watched(true);
                        candidate.protocol.saw(server.lease(), now, times().retry_period);
                    }
                }
            }
            if tick >= candidate.asleep_until {
                let weather = if calm == 0 { weathers.next().unwrap_or(FAIR) } else { FAIR };
                let sent = candidate.turn(tick, now, wall, weather);
                network.extend(sent.map(|request| (candidate.number, candidate.lives, request)));
            }
        }
        let working: Vec<_> = candidates.iter().filter(|candidate| candidate.works(tick, now)).collect();
        let names: Vec<_> = working.iter().map(|one| (one.number, one.lives)).collect();
        prop_assert!(names.len() <= 1, "at tick {tick} these lead: {names:?}");
        if calm == CALM {
            prop_assert_eq!(names.len(), 1, "nobody leads long after the last fault");
        }
    }
    Ok(())
}

fn weather() -> impl Strategy<Value = Weather> {
    let leg = prop_oneof![8 => (0..3_u32).prop_map(Some), 2 => (3..50_u32).prop_map(Some), 1 => Just(None)];
    // A request that is sent in a tick is served in a later one.
    let there = leg.clone().prop_map(|ticks| ticks.map(|ticks| ticks + 1));
    (there, leg).prop_map(|(there, back)| Weather { there, back })
}

fn fortune() -> impl Strategy<Value = Fortune> {
    prop_oneof![
        100 => Just(Fortune::Nothing),
        1 => Just(Fortune::Dies),
        1 => (5..60_u32).prop_map(Fortune::Sleeps),
        1 => Just(Fortune::Stops),
        4 => Just(Fortune::Hears),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn there_are_never_two_leaders_and_soon_one_again(
        weathers in prop::collection::vec(weather(), 400),
        fortunes in prop::collection::vec(fortune(), 1500),
        skews in prop::collection::vec(-100_000..100_000_i64, 3),
    ) {
        play(&weathers, &fortunes, &skews)?;
    }
}
