//! Conversions from fields of a spec to typed values: durations, numbers and addresses.

use std::time::Duration;

use windlass::PlanError;

use crate::api::duration::GoDuration;

/// Parses a duration. The error names the field.
pub(crate) fn duration(field: &str, time: &GoDuration) -> Result<Duration, PlanError> {
    time.get().map_err(|error| PlanError::new(format!("{field}: {error}")))
}

/// Parses a duration; if it is unset, returns the default in seconds.
pub(crate) fn seconds_of(
    field: &str,
    time: Option<&GoDuration>,
    otherwise: u64,
) -> Result<Duration, PlanError> {
    time.map_or(Ok(Duration::from_secs(otherwise)), |time| duration(field, time))
}

/// Converts a count; negative numbers become zero.
pub(crate) fn count(number: impl TryInto<u32>) -> u32 {
    number.try_into().unwrap_or(0)
}

/// Converts a port number. The error names the field.
pub(crate) fn port(
    field: &str,
    number: impl TryInto<u16> + Copy + std::fmt::Display,
) -> Result<u16, PlanError> {
    let wrong = || PlanError::new(format!("{field}: {number} is not a port: choose one of 1 to 65535"));
    number.try_into().ok().filter(|port| *port > 0).ok_or_else(wrong)
}

/// Splits a URL into its scheme, its host, and its port if it has one.
pub(crate) fn host(url: &str) -> Option<(&str, &str, Option<u16>)> {
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let address = authority.rsplit('@').next()?;
    let (host, port) = match address.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port.parse().ok()?)),
        _ => (address, None),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    (!host.is_empty()).then_some((scheme, host, port))
}

/// Returns the distinct hosts of URLs, in the order of the URLs.
pub(crate) fn hosts<'a>(urls: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut hosts: Vec<String> = Vec::new();
    for (_, host, _) in urls.into_iter().filter_map(host) {
        if !hosts.iter().any(|known| known == host) {
            hosts.push(host.to_owned());
        }
    }
    hosts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_taken_apart() {
        assert_eq!(host("https://core:8443/x"), Some(("https", "core", Some(8443))));
        assert_eq!(host("http://core"), Some(("http", "core", None)));
        assert_eq!(host("http://user:pw@core?x"), Some(("http", "core", None)));
        assert_eq!(host("http://[::1]:80/"), Some(("http", "::1", Some(80))));
        assert_eq!(host("http://[::1]"), Some(("http", "::1", None)));
        for wrong in ["core", "http://", "http://core:port"] {
            assert_eq!(host(wrong), None, "{wrong}");
        }
        assert_eq!(hosts(["http://a", "http://b:1", "https://a/x"]), ["a", "b"]);
    }

    #[test]
    fn an_invalid_port_is_named_in_the_error() {
        assert_eq!(port("spec.port", 8001).unwrap(), 8001);
        for wrong in [0, -1, 65_536] {
            assert!(port("spec.port", wrong).unwrap_err().to_string().starts_with("spec.port: "), "{wrong}");
        }
    }
}
