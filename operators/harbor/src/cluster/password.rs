//! Passwords that are generated once and retained as long as the data that they protect.

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use windlass::{Plan, Planned};

use super::Site;

/// Length of a password. It consists of letters and digits only, so that no format needs to quote it.
const LENGTH: usize = 32;

/// Adds a Secret to the plan with one password under all of these keys.
pub(super) fn plan(site: &Site<'_>, name: &str, keys: &'static [&'static str], plan: &mut Plan) -> Planned {
    let metadata = site.metadata(name);
    let planned = plan.create_once(name, move |random| {
        let password = random.alphanumeric(LENGTH)?;
        let data = keys.iter().map(|key| ((*key).to_owned(), ByteString(password.clone().into_bytes())));
        Ok(Secret {
            metadata: metadata.clone(),
            data: Some(data.collect()),
            type_: Some("Opaque".to_owned()),
            ..Secret::default()
        })
    });
    site.keep(planned)
}
