//! `windlass testenv`: the built control plane, and the running ones.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::json;
use windlass_testenv::assets::{self, Assets};
use windlass_testenv::control_plane::{self, Status, UP};

use crate::args::Testenv;
use crate::console::{self, Console};
use crate::failure::Failure;

pub(crate) fn run(command: &Testenv) -> Result<(), Failure> {
    match command {
        Testenv::Build { force, output } => {
            let console = Console::new(*output);
            let assets = Assets::build(*force, &console.reporter())?;
            let text = format!("the control plane is built in {}", assets.bin.display());
            console.result("built", json!({"path": assets.bin}), &text);
            Ok(())
        }
        Testenv::Status { output } => {
            let cached = assets::cached()?;
            let running = control_plane::instances()?;
            let object = json!({
                "build": {
                    "path": cached.path,
                    "kubernetes": cached.kubernetes,
                    "present": cached.age.is_some(),
                    "others": cached.others,
                },
                "running": running,
            });
            Console::new(*output).result("status", object, &describe(&cached, &running));
            Ok(())
        }
        Testenv::Kubeconfig => {
            let running = control_plane::instances()?;
            match choose(&running) {
                Some(status) => {
                    console::print(&status.facts.kubeconfig.display().to_string());
                    Ok(())
                }
                None => Err(Failure::Running(
                    "no control plane is running; start one with `windlass up --detach`".to_owned(),
                )),
            }
        }
    }
}

/// Returns the control plane of `up`, or else one of a test run.
fn choose(running: &[Status]) -> Option<&Status> {
    let ready = || running.iter().filter(|status| status.ready);
    ready().find(|status| status.facts.name == UP).or_else(|| ready().next())
}

fn describe(cached: &assets::Cached, running: &[Status]) -> String {
    let mut text = match cached.age {
        Some(age) => format!(
            "built:    Kubernetes {} in {} ({} ago)",
            cached.kubernetes,
            cached.path.display(),
            human(age)
        ),
        None => {
            format!("built:    nothing yet; `windlass testenv build` builds Kubernetes {}", cached.kubernetes)
        }
    };
    for other in &cached.others {
        let _ = write!(text, "\nolder:    {} (of another version; can be deleted)", other.display());
    }
    if running.is_empty() {
        text.push_str("\nrunning:  nothing");
    }
    for status in running {
        let facts = &status.facts;
        let state = if status.ready { "ready" } else { "starting" };
        let users = match (status.users, status.keep) {
            (_, true) => "kept until `windlass down`".to_owned(),
            (1, _) => "1 user".to_owned(),
            (count, _) => format!("{count} users"),
        };
        let _ = write!(
            text,
            "\nrunning:  {}, {state}, started {} ago, at {} ({users})\n          kubeconfig {}\n          logs {}",
            facts.name,
            human(Duration::from_secs(status.seconds)),
            facts.server,
            facts.kubeconfig.display(),
            facts.dir.join("log").display(),
        );
    }
    text
}

/// Returns a duration in the largest unit that fits.
fn human(duration: Duration) -> String {
    match duration.as_secs() {
        seconds @ 0..=119 => format!("{seconds} s"),
        seconds @ 120..=7199 => format!("{} min", seconds / 60),
        seconds @ 7200..=172_799 => format!("{} h", seconds / 3600),
        seconds => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(name: &str, ready: bool) -> Status {
        serde_json::from_value(json!({
            "facts": {"name": name, "dir": "", "server": "", "kubeconfig": name, "pki": "", "auditLog": "", "bin": "", "version": "", "pid": 1},
            "ready": ready,
        }))
        .unwrap()
    }

    #[test]
    fn the_control_plane_of_up_is_preferred() {
        let running = [status("shared-1", true), status("up", true)];
        assert_eq!(choose(&running).unwrap().facts.name, "up");
        let running = [status("shared-1", true), status("up", false)];
        assert_eq!(choose(&running).unwrap().facts.name, "shared-1");
        assert!(choose(&[]).is_none());
    }

    #[test]
    fn durations_read_well() {
        let text = |seconds| human(Duration::from_secs(seconds));
        assert_eq!([text(5), text(180), text(7200), text(200_000)], ["5 s", "3 min", "2 h", "2 days"]);
    }
}
