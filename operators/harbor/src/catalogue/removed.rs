//! The components that Harbor no longer has, and where they left their data.

use super::admission::Refusal;
use super::feature::Feature;
use super::release::Release;

/// The optional components that a spec asks for, of those that Harbor dropped, with the places of their data.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted<'a> {
    /// Where ChartMuseum keeps its charts, in words ("claim charts, path /"), if it is asked for.
    pub chartmuseum: Option<&'a str>,
    /// What Notary's data is, if it is asked for.
    pub notary: Option<NotaryData<'a>>,
}

/// What signatures are worthless without.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotaryData<'a> {
    /// The database of the server.
    pub server_database: &'a str,
    /// The database of the signer.
    pub signer_database: &'a str,
    /// The Secret with the key that the signer's keys are encrypted with.
    pub key_secret: &'a str,
}

/// Refuses components that a release does not have any more. To be asked at creation and when the version changes.
pub fn refuse_removed(release: &Release, wanted: &Wanted<'_>) -> Vec<Refusal> {
    let version = release.version();
    let mut refusals = Vec::new();
    if let Some(charts) = wanted.chartmuseum.filter(|_| !release.has(Feature::ChartMuseum)) {
        refusals.push(Refusal::new(
            "spec.chartmuseum",
            version,
            format!("Harbor has no ChartMuseum from 2.8 on, and {version} was asked for"),
            format!(
                "remove spec.chartmuseum; the charts stay where they are ({charts}) and are not touched; to go on using them, push them as OCI \
                 artifacts (helm push) while Harbor is at 2.7"
            ),
        ));
    }
    if let Some(data) = wanted.notary.as_ref().filter(|_| !release.has(Feature::Notary)) {
        refusals.push(Refusal::new(
            "spec.notary",
            version,
            format!("Harbor has no Notary from 2.9 on, and {version} was asked for"),
            format!(
                "remove spec.notary; the signatures stay in the databases {} and {}, their key in Secret {}, and are not touched; sign with \
                 Cosign or Notation from then on",
                data.server_database, data.signer_database, data.key_secret
            ),
        ));
    }
    refusals
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTARY: NotaryData<'_> = NotaryData {
        server_database: "notaryserver",
        signer_database: "notarysigner",
        key_secret: "sample-harbor-notarysigner-encryption-key",
    };

    fn refused(version: &str, wanted: &Wanted<'_>) -> Vec<Refusal> {
        refuse_removed(&Release::of(&version.parse().unwrap()).unwrap(), wanted)
    }

    #[test]
    fn chartmuseum_is_refused_from_2_8_and_the_message_says_where_the_charts_stay() {
        let wanted = Wanted { chartmuseum: Some("claim charts, path /"), ..Wanted::default() };
        assert_eq!(refused("2.7.4", &wanted), []);
        let refusals = refused("2.8.0", &wanted);
        assert_eq!(refusals.len(), 1);
        assert_eq!(refusals[0].field, "spec.chartmuseum");
        assert!(refusals[0].remedy.contains("claim charts, path /"), "{}", refusals[0]);
    }

    #[test]
    fn notary_is_refused_from_2_9_and_the_message_names_databases_and_key() {
        let wanted = Wanted { notary: Some(NOTARY), ..Wanted::default() };
        assert_eq!(refused("2.8.6", &wanted), []);
        let refusals = refused("2.9.0", &wanted);
        assert_eq!(refusals.len(), 1);
        for name in ["notaryserver", "notarysigner", "sample-harbor-notarysigner-encryption-key"] {
            assert!(refusals[0].remedy.contains(name), "{}", refusals[0]);
        }
    }

    #[test]
    fn what_is_not_asked_for_is_not_refused() {
        assert_eq!(refused("2.15.2", &Wanted::default()), []);
        let both = Wanted { chartmuseum: Some("bucket b, path /chart_storage"), notary: Some(NOTARY) };
        assert_eq!(refused("2.15.2", &both).len(), 2);
    }
}
