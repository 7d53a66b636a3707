//! Admission webhooks: the API server calls them before a {{kind}} is stored.

use windlass_operator::{BoxError, Setup};
{{if both webhooks}}
use windlass_runtime::webhook::{Defaulter, Denial, Findings, Request, Validator};
{{end}}
{{if only mutate}}
use windlass_runtime::webhook::{Defaulter, Denial, Request};
{{end}}
{{if only validate}}
use windlass_runtime::webhook::{Denial, Findings, Request, Validator};
{{end}}

use crate::api::{{kind}};

/// Adds the webhooks to the operator.
pub fn set_up(setup: &mut Setup<'_>) -> Result<(), BoxError> {
{{if mutate}}
    setup.defaulter(Defaults)?;
{{end}}
{{if validate}}
    setup.validator(Rules)?;
{{end}}
    Ok(())
}
{{if mutate}}

/// Adds the tag `latest` to an image without a tag. (A constant default belongs in `api.rs`: it needs no
/// webhook.)
#[derive(Clone, Copy, Debug)]
pub struct Defaults;

impl Defaulter for Defaults {
    type Object = {{kind}};

    async fn default(&self, owner: &mut {{kind}}, _: &Request<{{kind}}>) -> Result<(), Denial> {
        let image = &mut owner.spec.image;
        // A registry may have a port: the tag is after the last slash.
        let tagged = image.rsplit('/').next().is_some_and(|name| name.contains(':'));
        if !image.is_empty() && !tagged && !image.contains('@') {
            image.push_str(":latest");
        }
        Ok(())
    }
}
{{end}}
{{if validate}}

/// Rejects an image with spaces in it.
#[derive(Clone, Copy, Debug)]
pub struct Rules;

impl Validator for Rules {
    type Object = {{kind}};

    async fn validate(&self, request: &Request<{{kind}}>, found: &mut Findings) -> Result<(), Denial> {
        let Some(wanted) = request.operation.wanted() else { return Ok(()) };
        if wanted.spec.image.contains(char::is_whitespace) {
            found.invalid("spec.image", &wanted.spec.image, "name an image, such as nginx:1.29");
        }
        Ok(())
    }
}
{{end}}
