//! Names in a project, each checked once when the command line is parsed.
//!
//! A name that passes is accepted by Cargo, rustc and the API server. Each message says what is accepted; the
//! command line adds the value.

use std::ops::Deref;
use std::str::FromStr;

/// Declares a name: a string that was checked.
macro_rules! checked {
    ($(#[$about:meta])* $name:ident, $check:expr) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub(crate) struct $name(String);

        impl FromStr for $name {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                let check: fn(&str) -> Result<(), String> = $check;
                check(text).map(|()| Self(text.to_owned()))
            }
        }

        impl Deref for $name {
            type Target = str;

            fn deref(&self) -> &str {
                &self.0
            }
        }
    };
}

checked!(
    /// The name of an operator and of its crate.
    CrateName,
    crate_name
);
checked!(
    /// An API group.
    Group,
    group
);
checked!(
    /// The version of a kind.
    Version,
    version
);
checked!(
    /// The name of a kind.
    Kind,
    kind
);
checked!(
    /// The plural of a kind's name, as it is in URLs.
    Plural,
    plural
);
checked!(
    /// The URL of a Git repository.
    GitUrl,
    git_url
);
checked!(
    /// A release of Windlass, as Cargo reads it.
    WindlassVersion,
    windlass_version
);

/// Longest name of an operator: `<name>-webhooks` is the name of a Service, which has at most 63 characters.
const LONGEST_NAME: usize = 63 - "-webhooks".len();

/// The keywords of Rust 2024, those that are reserved included.
const KEYWORDS: &str = "abstract as async await become box break const continue crate do dyn else enum extern false final \
    fn for gen if impl in let loop macro match mod move mut override priv pub ref return self static \
    struct super trait true try type typeof unsafe unsized use virtual where while yield";

/// Names that Cargo or rustc reserve, and the dependencies of the project.
const TAKEN_CRATES: &str = "alloc anyhow build core deps examples incremental k8s-openapi kube proc-macro schemars serde \
    serde-json serde-saphyr std test tokio tracing windlass windlass-graph windlass-operator \
    windlass-pki windlass-runtime windlass-testenv";

/// Names that the project's code uses for something else.
const TAKEN_KINDS: &str = "Access Api Apply Blueprint BoxError Client Clone Controller CustomResource Debug Default Defaulter \
    Defaults Denial Deployment Deserialize PlanError Err Error EventType Findings Full JsonSchema \
    Kinds None ObjectKey Ok Operator Option Owner PartialEq Plan Reader Reconcile Recorder \
    Regarding Request Requeue Resolved Result Rules Self Serialize Service Setup Shape Some String Validator \
    Value Vec";

fn crate_name(text: &str) -> Result<(), String> {
    if !is_label(text)
        || !text.starts_with(|first: char| first.is_ascii_lowercase())
        || text.len() > LONGEST_NAME
    {
        return Err(format!(
            "use lower-case letters, digits and dashes, a letter first, no dash last, at most {LONGEST_NAME} characters"
        ));
    }
    if is_one_of(KEYWORDS, text) {
        return Err(format!("it is a keyword of Rust: use another name, for example {text}-operator"));
    }
    if is_one_of(TAKEN_CRATES, text) {
        return Err(format!(
            "the project depends on a crate of that name: use another name, for example {text}-operator"
        ));
    }
    Ok(())
}

fn group(text: &str) -> Result<(), String> {
    // The name of the CRD is `<plural>.<group>`, and has to fit too.
    if !text.contains('.') || !text.split('.').all(is_label) || text.len() > 180 {
        return Err("use a domain with at least one dot, in lower case: shop.example.com".to_owned());
    }
    let reserved = ["k8s.io", "kubernetes.io"];
    if reserved.iter().any(|root| text == *root || text.ends_with(&format!(".{root}"))) {
        return Err(
            "groups below k8s.io and kubernetes.io belong to the Kubernetes project: use a domain of yours"
                .to_owned(),
        );
    }
    Ok(())
}

fn version(text: &str) -> Result<(), String> {
    let number = |text: &str| {
        !text.is_empty()
            && text.len() <= 9
            && !text.starts_with('0')
            && text.bytes().all(|b| b.is_ascii_digit())
    };
    let is_version = text.strip_prefix('v').is_some_and(|rest| {
        let stage = ["alpha", "beta"].iter().find_map(|stage| rest.split_once(stage));
        stage.map_or_else(|| number(rest), |(major, minor)| number(major) && number(minor))
    });
    if is_version { Ok(()) } else { Err("use a version like v1, v1alpha1, v1beta1 or v2".to_owned()) }
}

fn kind(text: &str) -> Result<(), String> {
    let camel = text.starts_with(|first: char| first.is_ascii_uppercase())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && text.len() <= 63
        // rustc takes words in upper case for constants.
        && (text.len() == 1 || text.bytes().any(|byte| byte.is_ascii_lowercase()));
    if !camel {
        return Err("use CamelCase, letters and digits only, at most 63: Shop, WebShop".to_owned());
    }
    if is_one_of(TAKEN_KINDS, text) {
        return Err(format!(
            "the project's code uses that name for something else: use another, for example My{text}"
        ));
    }
    Ok(())
}

fn plural(text: &str) -> Result<(), String> {
    let fits = is_label(text) && text.starts_with(|first: char| first.is_ascii_lowercase());
    if fits {
        Ok(())
    } else {
        Err("use lower-case letters, digits and dashes, a letter first: shops".to_owned())
    }
}

fn windlass_version(text: &str) -> Result<(), String> {
    let parts: Vec<&str> = text.split('.').collect();
    let number =
        |part: &&str| !part.is_empty() && part.len() <= 9 && part.bytes().all(|byte| byte.is_ascii_digit());
    let fits = (1..=3).contains(&parts.len()) && parts.iter().all(number);
    if fits { Ok(()) } else { Err("use a version such as 0.1 or 0.1.0".to_owned()) }
}

fn git_url(text: &str) -> Result<(), String> {
    let fits = text.contains("://") && !text.contains(|c: char| c.is_whitespace() || c == '"' || c == '\\');
    if fits { Ok(()) } else { Err("use a URL such as https://github.com/windlass-dev/windlass".to_owned()) }
}

fn is_one_of(words: &str, text: &str) -> bool {
    words.split_whitespace().any(|word| word == text)
}

/// Returns true if the text is a DNS label.
fn is_label(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=63).contains(&text.len())
        && text.bytes().all(inner)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

impl Plural {
    /// Returns the plural of a kind's name, by the rules of English.
    pub(crate) fn of(kind: &Kind) -> Self {
        let word = kind.to_ascii_lowercase();
        let hisses = ["s", "x", "z", "ch", "sh"].iter().any(|end| word.ends_with(end));
        let vowel = |letter: char| "aeiou".contains(letter);
        let plural = match word.strip_suffix('y') {
            Some(stem) if !stem.is_empty() && !stem.ends_with(vowel) => format!("{stem}ies"),
            _ if hisses => format!("{word}es"),
            _ => format!("{word}s"),
        };
        Self(plural)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all<T: FromStr<Err = String>>(good: &[&str], bad: &[(&str, &str)]) {
        for text in good {
            assert_eq!(T::from_str(text).err(), None, "{text}");
        }
        for (text, says) in bad {
            let error = T::from_str(text).err().unwrap_or_else(|| panic!("{text:?} is accepted"));
            assert!(error.contains(says), "{text:?}: {error}");
        }
    }

    #[test]
    fn names_are_those_that_cargo_and_dns_both_take() {
        let long = "a".repeat(55);
        all::<CrateName>(
            &["shop", "a", "shop-2", "web-shop-operator", &long[1..]],
            &[
                ("", "lower-case"),
                ("Shop", "lower-case"),
                ("web_shop", "dashes"),
                ("2shop", "a letter first"),
                ("-shop", "a letter first"),
                ("shop-", "no dash last"),
                ("shöp", "lower-case"),
                ("../shop", "lower-case"),
                (&long, "at most 54"),
                ("match", "keyword"),
                ("gen", "keyword"),
                ("test", "test-operator"),
                ("kube", "kube-operator"),
            ],
        );
    }

    #[test]
    fn groups_are_domains() {
        let long = format!("{}.com", "a.".repeat(100));
        all::<Group>(
            &["example.com", "shop.example.com", "x-1.io", "notk8s.io"],
            &[
                ("", "at least one dot"),
                ("example", "at least one dot"),
                ("Example.com", "lower case"),
                ("example..com", "domain"),
                (".example.com", "domain"),
                ("example.com.", "domain"),
                ("exa_mple.com", "domain"),
                ("-a.com", "domain"),
                (&long, "domain"),
                ("apps.k8s.io", "a domain of yours"),
                ("k8s.io", "a domain of yours"),
                ("x.kubernetes.io", "a domain of yours"),
            ],
        );
    }

    #[test]
    fn versions_are_those_of_kubernetes() {
        let bad = [
            "",
            "1",
            "v",
            "v0",
            "v01",
            "V1",
            "v1.0",
            "v1gamma1",
            "v1alpha",
            "v1alpha0",
            "valpha1",
            "v1beta1beta2",
        ];
        all::<Version>(&["v1", "v10", "v1alpha1", "v2beta3"], &bad.map(|text| (text, "v1alpha1")));
    }

    #[test]
    fn kinds_are_in_camel_case_and_mean_nothing_else() {
        all::<Kind>(
            &["Shop", "WebShop", "Db2", "X"],
            &[
                ("", "CamelCase"),
                ("shop", "CamelCase"),
                ("Web-Shop", "CamelCase"),
                ("Web_Shop", "CamelCase"),
                ("SHOP", "CamelCase"),
                ("Shöp", "CamelCase"),
                ("Deployment", "MyDeployment"),
                ("Option", "MyOption"),
            ],
        );
    }

    #[test]
    fn plurals_are_english_ones() {
        let of = |kind: &str| Plural::of(&kind.parse().unwrap()).to_string();
        let kinds = ["Shop", "WebShop", "Proxy", "Gateway", "Class", "Box", "Batch", "Y"];
        assert_eq!(
            kinds.map(of),
            ["shops", "webshops", "proxies", "gateways", "classes", "boxes", "batches", "ys"]
        );
        all::<Plural>(
            &["shops", "web-shops"],
            &[("Shops", "lower-case"), ("", "lower-case"), ("2", "a letter first")],
        );
    }

    #[test]
    fn repositories_are_urls() {
        all::<GitUrl>(
            &["https://example.com/windlass", "ssh://git@example.com/windlass", "file:///srv/windlass"],
            &[("windlass", "https://"), ("https://a b", "https://"), ("https://a\"", "https://")],
        );
    }

    #[test]
    fn releases_are_numbers() {
        all::<WindlassVersion>(
            &["0", "0.1", "0.1.0"],
            &[("", "0.1"), ("0.1.0.0", "0.1"), ("0.1\"", "0.1"), ("0..1", "0.1")],
        );
    }
}
