//! The bodies of `/healthz` and `/readyz`, made from checks, without HTTP.

use std::fmt::Write as _;

use http::StatusCode;

use crate::manager::{Checked, Health, Report};

/// The response to a probe.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) fine: bool,
    /// The HTTP status code.
    pub(super) code: StatusCode,
    pub(super) text: String,
}

impl Page {
    /// Reports all checks except the excluded ones: `ok`, or one line per check if requested or if one
    /// failed.
    pub(super) fn all(name: &str, report: &Report, query: &[(String, String)]) -> Self {
        let excluded: Vec<&str> =
            query.iter().filter(|(key, _)| key == "exclude").map(|(_, value)| value.as_str()).collect();
        let verbose = query.iter().any(|(key, value)| key == "verbose" && !matches!(&**value, "0" | "false"));
        let mut text = String::new();
        let mut fine = true;
        if report.checks.is_empty() {
            line(&mut text, &Checked { name: "ping".into(), health: Health::Ready });
        }
        for check in &report.checks {
            if excluded.contains(&check.name.as_str()) {
                let _ = writeln!(text, "[+] {} excluded", check.name);
            } else {
                fine &= !matches!(check.health, Health::NotReady(_));
                line(&mut text, check);
            }
        }
        for unknown in excluded.iter().filter(|name| !report.checks.iter().any(|check| check.name == **name))
        {
            let _ = writeln!(text, "warning: there is no check {unknown:?} to exclude");
        }
        let _ = writeln!(text, "{name} check {}", if fine { "passed" } else { "failed" });
        let text = if fine && !verbose { "ok".to_owned() } else { text };
        Self { fine, code: StatusCode::INTERNAL_SERVER_ERROR, text }
    }

    /// Reports one check.
    pub(super) fn one(report: &Report, name: &str) -> Self {
        let check = match report.checks.iter().find(|check| check.name == name) {
            Some(check) => check.health.clone(),
            None if report.checks.is_empty() && name == "ping" => Health::Ready,
            None => {
                let text = format!("there is no check {name:?}");
                return Self { fine: false, code: StatusCode::NOT_FOUND, text };
            }
        };
        let (fine, text) = match check {
            Health::Ready => (true, "ok".to_owned()),
            Health::Degraded(why) => (true, format!("degraded: {why}")),
            Health::NotReady(why) => (false, why),
        };
        Self { fine, code: StatusCode::INTERNAL_SERVER_ERROR, text }
    }
}

fn line(text: &mut String, Checked { name, health }: &Checked) {
    let _ = match health {
        Health::Ready => writeln!(text, "[+] {name} ok"),
        Health::Degraded(why) => writeln!(text, "[~] {name} degraded: {why}"),
        Health::NotReady(why) => writeln!(text, "[-] {name} failed: {why}"),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(checks: &[(&str, Health)]) -> Report {
        let checks =
            checks.iter().map(|(name, health)| Checked { name: (*name).into(), health: health.clone() });
        Report { checks: checks.collect() }
    }

    fn query(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_failed_check_is_always_explained_and_can_be_excluded() {
        let report = report(&[
            ("a", Health::Ready),
            ("b c", Health::NotReady("no cache".into())),
            ("d", Health::Degraded("slow".into())),
        ]);
        let page = Page::all("readyz", &report, &[]);
        assert!(!page.fine);
        assert_eq!(
            page.text,
            "[+] a ok\n[-] b c failed: no cache\n[~] d degraded: slow\nreadyz check failed\n"
        );
        let page = Page::all("readyz", &report, &query(&[("exclude", "b c")]));
        assert_eq!((page.fine, &*page.text), (true, "ok"));
        let page =
            Page::all("readyz", &report, &query(&[("exclude", "b c"), ("exclude", "x"), ("verbose", "")]));
        assert_eq!(
            page.text,
            "[+] a ok\n[+] b c excluded\n[~] d degraded: slow\nwarning: there is no check \"x\" to exclude\n\
             readyz check passed\n"
        );
    }

    #[test]
    fn health_without_checks_reports_a_ping() {
        let none = report(&[]);
        assert_eq!(Page::all("healthz", &none, &[]).text, "ok");
        assert_eq!(
            Page::all("healthz", &none, &query(&[("verbose", "1")])).text,
            "[+] ping ok\nhealthz check passed\n"
        );
        assert!(Page::one(&none, "ping").fine);
    }

    #[test]
    fn a_single_check_can_be_requested_by_name() {
        let report = report(&[("a", Health::Ready), ("b", Health::NotReady("no cache".into()))]);
        assert!(Page::one(&report, "a").fine);
        let page = Page::one(&report, "b");
        assert_eq!((page.fine, page.code.as_u16(), &*page.text), (false, 500, "no cache"));
        let page = Page::one(&report, "c");
        assert_eq!((page.fine, page.code.as_u16()), (false, 404));
    }
}
