//! Components that Harbor has removed, and the location of their data.

use super::admission::Refusal;
use super::feature::Feature;
use super::release::Release;

/// The removed components that a spec requests, with the location of their data.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Wanted<'a> {
    /// The location of ChartMuseum's charts as text ("claim charts, path /"), if ChartMuseum is requested.
    pub chartmuseum: Option<&'a str>,
    /// The location of Notary's data, if Notary is requested.
    pub notary: Option<NotaryData<'a>>,
}

/// The data that Notary's signatures depend on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NotaryData<'a> {
    /// The database of NotaryServer.
    pub server_database: &'a str,
    /// The database of NotarySigner.
    pub signer_database: &'a str,
    /// The Secret with the key that encrypts the keys of NotarySigner.
    pub key_secret: &'a str,
}

/// Refuses components that a release no longer has. Called at creation and when the version changes.
pub(crate) fn refuse_removed(release: &Release, wanted: &Wanted<'_>) -> Vec<Refusal> {
    let version = release.version();
    let mut refusals = Vec::new();
    if let Some(charts) = wanted.chartmuseum.filter(|_| !release.has(Feature::ChartMuseum)) {
        refusals.push(Refusal::new(
            "spec.chartmuseum",
            version,
            format!("Harbor has no ChartMuseum from 2.8 on, and the requested version is {version}"),
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
            format!("Harbor has no Notary from 2.9 on, and the requested version is {version}"),
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
    fn removed_components_that_are_not_requested_are_not_refused() {
        assert_eq!(refused("2.15.2", &Wanted::default()), []);
        let both = Wanted { chartmuseum: Some("bucket b, path /chart_storage"), notary: Some(NOTARY) };
        assert_eq!(refused("2.15.2", &both).len(), 2);
    }
}
