//! Syntax of values as Kubernetes defines it: quantities, names, labels, ports, hosts and images.
//!
//! All functions are pure. The error of a function says what is wrong with the value and what to write
//! instead.

/// The fault of a value, with the remedy.
pub(crate) type Fault = &'static str;

/// Units of a quantity, in billionths.
const UNITS: [(&str, i128); 16] = [
    ("n", 1),
    ("u", 1_000),
    ("m", 1_000_000),
    ("", NANO),
    ("k", 1_000 * NANO),
    ("M", 1_000_000 * NANO),
    ("G", 1_000_000_000 * NANO),
    ("T", 1_000_000_000_000 * NANO),
    ("P", 1_000_000_000_000_000 * NANO),
    ("E", 1_000_000_000_000_000_000 * NANO),
    ("Ki", NANO << 10),
    ("Mi", NANO << 20),
    ("Gi", NANO << 30),
    ("Ti", NANO << 40),
    ("Pi", NANO << 50),
    ("Ei", NANO << 60),
];
const NANO: i128 = 1_000_000_000;
/// Digits of a quantity that are read: more would not fit, and no size has as many.
const DIGITS: usize = 20;

/// Parses a Kubernetes quantity. Returns its value in billionths, so that values can be compared.
pub(crate) fn quantity(text: &str) -> Result<i128, Fault> {
    const FAULT: Fault =
        "it is not a Kubernetes quantity: write a number with an optional unit, such as 10Gi, 500M or 0.5";
    let (sign, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let end = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
    let (number, unit) = unsigned.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return Err(FAULT);
    }
    let unit = match UNITS.iter().find(|(name, _)| *name == unit) {
        Some((_, unit)) => *unit,
        None => unit.strip_prefix(['e', 'E']).and_then(power).ok_or(FAULT)?,
    };
    let fraction = &fraction[..fraction.len().min(DIGITS)];
    let digits = format!("{whole}{fraction}").parse::<i128>().unwrap_or(i128::MAX);
    let scale = 10_i128.pow(u32::try_from(fraction.len()).unwrap_or_default());
    Ok(sign * (digits.saturating_mul(unit) / scale))
}

/// Returns a power of ten in billionths, or `None` if the exponent is not one of a quantity.
fn power(exponent: &str) -> Option<i128> {
    let exponent: i32 = exponent.parse().ok()?;
    match u32::try_from(exponent.saturating_add(9)) {
        Ok(zeros) => 10_i128.checked_pow(zeros),
        Err(_) => Some(0),
    }
}

/// Checks the size of a volume: a quantity above zero.
pub(crate) fn size(text: &str) -> Result<i128, Fault> {
    match quantity(text)? {
        ..=0 => Err("a volume needs a size above zero: write it as 10Gi"),
        size => Ok(size),
    }
}

/// Checks the name of an object, such as a Secret or a StorageClass (a DNS subdomain).
pub(crate) fn name(text: &str) -> Result<(), Fault> {
    let fits = text.len() <= 253 && text.split('.').all(is_label);
    fits.then_some(()).ok_or(
        "it is not the name of a Kubernetes object: write lower-case letters, digits, '-' and '.', at most 253 \
         characters, with a letter or digit at both ends",
    )
}

/// Checks a name that may have no dots, such as that of a volume (a DNS label).
pub(crate) fn label_name(text: &str) -> Result<(), Fault> {
    (text.len() <= 63 && is_label(text)).then_some(()).ok_or(
        "it is not a DNS label: write lower-case letters, digits and '-', at most 63 characters, with a letter or \
         digit at both ends",
    )
}

fn is_label(text: &str) -> bool {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !text.is_empty() && text.chars().all(inner) && !text.starts_with('-') && !text.ends_with('-')
}

/// Checks the key of a label or an annotation.
pub(crate) fn key(text: &str) -> Result<(), Fault> {
    let (prefix, rest) = text.split_once('/').map_or((None, text), |(prefix, rest)| (Some(prefix), rest));
    let is_prefix = prefix.is_none_or(|prefix| name(&prefix.to_ascii_lowercase()).is_ok());
    (is_prefix && !rest.is_empty() && is_label_value(rest)).then_some(()).ok_or(
        "it is not the key of a label or annotation: write letters, digits, '-', '_' and '.', at most 63 \
         characters, optionally after a domain and '/'",
    )
}

/// Checks the value of a label.
pub(crate) fn label_value(text: &str) -> Result<(), Fault> {
    is_label_value(text).then_some(()).ok_or(
        "it is not the value of a label: write letters, digits, '-', '_' and '.', at most 63 characters, with a \
         letter or digit at both ends",
    )
}

fn is_label_value(text: &str) -> bool {
    let inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let ends = |c: Option<char>| c.is_none_or(|c| c.is_ascii_alphanumeric());
    text.len() <= 63 && text.chars().all(inner) && ends(text.chars().next()) && ends(text.chars().next_back())
}

/// Checks a port number.
pub(crate) fn port(number: i64) -> Result<(), Fault> {
    (1..=65535).contains(&number).then_some(()).ok_or("it is not a port: write a number from 1 to 65535")
}

/// Checks a host name or address, or several of them with ports, separated by commas.
pub(crate) fn host(text: &str) -> Result<(), Fault> {
    let one = |host: &str| {
        let host = host.trim();
        let inner =
            |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':' | '[' | ']' | '%');
        !host.is_empty() && host.chars().all(inner)
    };
    text.split(',')
        .all(one)
        .then_some(())
        .ok_or("it is not a host: write a host name or an IP address without scheme, path and spaces")
}

/// Checks the host of an Ingress rule: a DNS name, optionally with `*` as its first label.
pub(crate) fn ingress_host(text: &str) -> Result<(), Fault> {
    const FAULT: Fault = "it is not the host of an Ingress: write a DNS name in lower case, such as \
                          harbor.example.com, without scheme, port and path";
    let is_address = text.parse::<std::net::IpAddr>().is_ok();
    if is_address || name(text.strip_prefix("*.").unwrap_or(text)).is_err() { Err(FAULT) } else { Ok(()) }
}

/// Checks an http or https URL.
pub(crate) fn url(text: &str) -> Result<(), Fault> {
    const FAULT: Fault = "it is not an http or https URL: write it as http://host:port/path, without spaces";
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://")).ok_or(FAULT)?;
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let place = authority.rsplit_once('@').map_or(authority, |(_, place)| place);
    let port = place.rsplit_once(':').filter(|(_, port)| !port.contains(']')).map(|(_, port)| port);
    let is_port = port.is_none_or(|port| port.parse::<u16>().is_ok());
    let is_host = place.chars().any(char::is_alphanumeric);
    let is_plain = !text.chars().any(|c| c.is_whitespace() || c.is_control());
    if is_host && is_port && is_plain { Ok(()) } else { Err(FAULT) }
}

/// Checks an image reference, or the repository in front of image names.
pub(crate) fn image(text: &str) -> Result<(), Fault> {
    let rest = text.split_once('@').map_or(text, |(name, _)| name);
    let path = rest.split_once('/').map_or(rest, |(_, path)| path);
    let (path, tag) = path.split_once(':').unwrap_or((path, "latest"));
    let is_path =
        |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_' | '.' | '/');
    let is_plain = text.chars().all(|c| c.is_ascii_graphic()) && !text.contains("://");
    (is_plain && !path.is_empty() && path.chars().all(is_path) && !tag.is_empty()).then_some(()).ok_or(
        "it is not an image reference: write it as registry.example.com/path/name:tag, without scheme and spaces, \
         the path in lower case",
    )
}

/// Checks a range of IP addresses in CIDR notation.
pub(crate) fn cidr(text: &str) -> Result<(), Fault> {
    let fits = |(address, bits): (&str, &str)| {
        let longest = match address.parse().ok()? {
            std::net::IpAddr::V4(_) => 32,
            std::net::IpAddr::V6(_) => 128,
        };
        (bits.parse::<u8>().ok()? <= longest).then_some(())
    };
    text.trim()
        .split_once('/')
        .and_then(fits)
        .ok_or("it is not a range of addresses in CIDR notation: write it as 10.0.0.0/8")
}

/// Checks the name of an environment variable.
pub(crate) fn env_name(text: &str) -> Result<(), Fault> {
    let fits = !text.is_empty() && text.chars().all(|c| c.is_ascii_graphic() && c != '=');
    fits.then_some(()).ok_or("it is not the name of an environment variable: write it without spaces and '='")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_n13_quantities_are_parsed_as_kubernetes_does() {
        let equal = [
            ("1", "1000m"),
            ("1Ki", "1024"),
            ("1k", "1000"),
            ("0.5", "500m"),
            ("1.5Gi", "1536Mi"),
            ("1e3", "1k"),
            ("1E3", "1000"),
            ("1E", "1000P"),
            ("12e-1", "1.2"),
            (".5", "0.50"),
            ("1.", "+1"),
            ("100u", "0.1m"),
            ("1Ei", "1024Pi"),
        ];
        for (one, other) in equal {
            assert_eq!(quantity(one), quantity(other), "{one} {other}");
            assert!(quantity(one).is_ok(), "{one}");
        }
        assert!(quantity("10Gi") > quantity("10G") && quantity("-1") < quantity("0"));
        for bad in
            ["", "ten gigs", "10 Gi", "10GB", "10gi", "1.2.3", "Gi", "1e", "1ex", "--1", "1K", "١", "0x10"]
        {
            assert!(quantity(bad).is_err(), "{bad}");
        }
        for bad in ["0", "-1Gi", "0Gi", "ten gigs"] {
            assert!(size(bad).is_err(), "{bad}");
        }
        assert!(size("1").is_ok() && size("99999999999999999999999999999999Ei").is_ok());
    }

    #[test]
    fn users_n13_names_hosts_and_images_are_checked() {
        type Check = fn(&str) -> Result<(), Fault>;
        let long = "a".repeat(254);
        let (label, longer) = ("a".repeat(63), "a".repeat(64));
        let cases: [(&str, Check, &[&str], &[&str]); 10] = [
            ("name", name, &["a", "a-b.c", "0"], &["", "A", "a_b", "-a", "a-", "a..b", "a b", "ä", &long]),
            ("label name", label_name, &["a-b", &label], &["a.b", &longer, "A"]),
            ("key", key, &["a", "a.b/C_d", "UP"], &["", "/a", "a/", "a/b/c", "a b", &longer]),
            ("label value", label_value, &["", "A.b_c-d", &label], &["a b", "-a", "a/b", &longer]),
            (
                "host",
                host,
                &["redis", "10.0.0.1", "[::1]", "::1", "a:1,b:2", "a_b.svc"],
                &["", "a b", "http://a", "a/b", "a,"],
            ),
            (
                "ingress host",
                ingress_host,
                &["harbor.example.com", "*.example.com", "localhost"],
                &["https://a", "A.com", "a:80", "10.0.0.1", "a/b", "*"],
            ),
            (
                "url",
                url,
                &["http://a", "https://u:p@a:1/b?c", "http://[::1]:80"],
                &["a", "ftp://a", "http://", "http://a b", "http://a:x", "http://a:99999", "xhttp://a"],
            ),
            (
                "image",
                image,
                &["a", "goharbor/core:v2.15.2", "R.example:5000/a/b@sha256:0a", "quay.io/goharbor"],
                &["", "a b", "https://a/b", "Redis", "a/B:1", "a/b:"],
            ),
            ("cidr", cidr, &["10.0.0.0/8", "::/0"], &["10.0.0.0", "10.0.0.0/33", "a/8", "::/129"]),
            ("env name", env_name, &["A", "a.b-c"], &["", "A=B", "A B"]),
        ];
        for (what, check, good, bad) in cases {
            for text in good {
                assert_eq!(check(text), Ok(()), "{what} {text:?}");
            }
            for text in bad {
                assert!(check(text).is_err(), "{what} {text:?}");
            }
        }
        for (number, good) in [(0, false), (1, true), (65535, true), (65536, false), (-1, false)] {
            assert_eq!(port(number).is_ok(), good, "{number}");
        }
    }
}
