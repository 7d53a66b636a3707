//! A director of a toy: a tank with a level, which two actors raise and lower.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::CustomResource;
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::time::Instant;
use windlass_runtime::controller::Error;

use crate::styles::Controls;
use crate::styles::director::{
    Actor, Decision, Depth, Director, Field, Finding, Observed, Pass, Snapshot, Timing,
};
use crate::{Kinds, Known, Needs, Plan, PlanError};

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "example.com", version = "v1", kind = "Tank", namespaced, status = "crate::Status")]
pub(super) struct TankSpec {
    pub(super) level: i32,
}

/// The software: a level that effects change, and faults on demand.
#[derive(Default)]
pub(super) struct Water {
    pub(super) level: Mutex<i32>,
    pub(super) observations: AtomicUsize,
    pub(super) began: Mutex<Vec<(Instant, Depth)>>,
    /// The time that an observation takes.
    pub(super) slow: Mutex<Duration>,
}

pub(super) struct TankDirector {
    pub(super) water: Arc<Water>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Seen {
    pub(super) level: Known<i32>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) enum Pump {
    Add(i32),
    Drop(i32),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Intent {
    pub(super) mark: Field<Fill, i32>,
    pub(super) valve: Field<Drain, bool>,
}

pub(super) struct Fill(());
pub(super) struct Drain(());
pub(super) struct Paint(());

static FILL: Fill = Fill(());
static DRAIN: Drain = Drain(());
static PAINT: Paint = Paint(());

impl Actor<TankDirector> for Fill {
    fn name(&self) -> &'static str {
        "fill"
    }

    fn decide(&self, pass: &Pass<'_, TankDirector>, intent: &mut Intent) -> Decision<Pump> {
        let wanted = pass.snapshot.owner.spec.level;
        match pass.snapshot.observation().map(|seen| seen.level.clone()) {
            Known::Known(Known::Known(level)) if level < wanted => {
                intent.mark.set(self, wanted);
                Decision::working("the tank is filled")
                    .finding(Finding::acted("tank", "filled"))
                    .effect(Pump::Add(wanted - level))
            }
            Known::Known(Known::Known(_)) => Decision::idle().finding(Finding::done("tank")),
            Known::Known(Known::Unknown(why)) | Known::Unknown(why) => {
                Decision::waiting("the level is unknown").finding(Finding::held("tank", "known level", why))
            }
        }
    }
}

impl Actor<TankDirector> for Drain {
    fn name(&self) -> &'static str {
        "drain"
    }

    fn decide(&self, pass: &Pass<'_, TankDirector>, intent: &mut Intent) -> Decision<Pump> {
        if pass.snapshot.owner.spec.level < 0 {
            return Decision::refused("a tank has no level below 0", "set spec.level to 0 or more");
        }
        intent.valve.set(self, true);
        Decision::idle()
    }
}

/// An actor that never waits for others.
impl Actor<TankDirector> for Paint {
    fn name(&self) -> &'static str {
        "paint"
    }

    fn decide(&self, _: &Pass<'_, TankDirector>, _: &mut Intent) -> Decision<Pump> {
        Decision::idle().effect(Pump::Drop(1))
    }

    fn always(&self) -> bool {
        true
    }
}

impl Controls for TankDirector {
    type Owner = Tank;
    const NAME: &'static str = "tank.test";

    fn kinds(&self, kinds: &mut Kinds) {
        kinds.owns::<ConfigMap>();
    }
}

impl Director for TankDirector {
    type Facts = ();
    type Target = String;
    type Observation = Seen;
    type Effect = Pump;
    type Intent = Intent;

    fn facts(&self, _: &Tank, _: &mut Needs<'_>) -> Result<(), PlanError> {
        Ok(())
    }

    fn target(&self, _: &Tank, (): &()) -> Known<String> {
        Known::Known("tank".to_owned())
    }

    async fn observe(&self, _: &String, depth: Depth, _: Option<&Observed<Seen>>) -> Seen {
        self.water.began.lock().push((Instant::now(), depth));
        let level = *self.water.level.lock();
        let slow = *self.water.slow.lock();
        tokio::time::sleep(slow).await;
        self.water.observations.fetch_add(1, Ordering::SeqCst);
        Seen { level: Known::Known(level) }
    }

    fn begin(&self, _: &Snapshot<'_, Self>) -> Intent {
        Intent { mark: Field::new(0), valve: Field::new(false) }
    }

    fn actors(&self) -> &[&dyn Actor<Self>] {
        static ALL: [&dyn Actor<TankDirector>; 3] = [&FILL, &DRAIN, &PAINT];
        &ALL
    }

    fn draw(
        &self,
        _: &Snapshot<'_, Self>,
        intent: &Intent,
        _: &mut Needs<'_>,
        plan: &mut Plan,
    ) -> Result<(), PlanError> {
        let mark = intent.mark.get().to_string();
        plan.add(serde_json::from_value::<ConfigMap>(
            json!({"metadata": {"name": "mark"}, "data": {"level": mark}}),
        )?);
        Ok(())
    }

    async fn perform(&self, _: &String, effect: &Pump) -> Result<(), Error> {
        let mut level = self.water.level.lock();
        match effect {
            Pump::Add(litres) => *level += litres,
            Pump::Drop(litres) => *level -= litres,
        }
        Ok(())
    }

    fn timing(&self, _: &Tank) -> Timing {
        Timing { at_rest: Some(Duration::from_mins(1)), ..Timing::default() }
    }
}

pub(super) fn tank(level: i32) -> Tank {
    let mut tank = Tank::new("tank", TankSpec { level });
    tank.metadata.namespace = Some("shop".into());
    tank
}
