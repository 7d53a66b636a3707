//! The release of Harbor that a component belongs to, and the component's image.

use kube::api::ObjectMeta;
use windlass::PlanError;

use crate::api::component::ComponentSpec;
use crate::api::names::annotation::VERSION as ANNOTATION;
use crate::catalogue::{self, Release, Version};
use crate::settings::HarborSettings;

/// Returns the release of a component: from its annotation, or else from the tag of its image. If the tag is
/// not a version, the newest release is used.
pub(crate) fn release(metadata: &ObjectMeta, spec: &ComponentSpec) -> Result<Release, PlanError> {
    let annotated = metadata.annotations.as_ref().and_then(|all| all.get(ANNOTATION));
    match (annotated, &spec.image) {
        (Some(text), _) => {
            let wrong =
                |error: &dyn std::fmt::Display| PlanError::new(format!("annotation {ANNOTATION}: {error}"));
            let version: Version = text.parse().map_err(|error| wrong(&error))?;
            Release::of(&version).map_err(|error| wrong(&error))
        }
        (None, Some(image)) => tag_of(image)
            .and_then(|tag| Release::of(&tag).ok())
            .or_else(Release::newest)
            .ok_or_else(|| PlanError::new("this operator knows no release of Harbor")),
        (None, None) => Err(PlanError::new(format!(
            "neither the annotation {ANNOTATION} nor spec.image names the version of Harbor: set the annotation to a version, \
             as in {ANNOTATION}: \"2.15.2\", or name an image"
        ))),
    }
}

/// Returns the image of a component: the image of its spec, or the image of the release.
pub(crate) fn image(
    release: &Release,
    component: catalogue::Component,
    spec: &ComponentSpec,
    settings: &HarborSettings,
) -> Result<String, PlanError> {
    if let Some(image) = &spec.image {
        return Ok(image.clone());
    }
    let (repository, suffix) = (settings.image_repository.as_deref(), settings.image_tag_suffix.as_deref());
    release.image_reference(component, repository, suffix).ok_or_else(|| {
        PlanError::new(format!(
            "annotation {ANNOTATION}: \"{}\" has no {component:?}, which Harbor has removed: delete this object, or choose an \
             older version; its data stays where it is",
            release.version()
        ))
    })
}

fn tag_of(image: &str) -> Option<Version> {
    let name = image.rsplit('/').next()?;
    let tagged = name.split('@').next()?;
    tagged.split_once(':')?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(annotation: Option<&str>, image: Option<&str>) -> Result<String, String> {
        let metadata = ObjectMeta {
            annotations: annotation.map(|text| [(ANNOTATION.to_owned(), text.to_owned())].into()),
            ..ObjectMeta::default()
        };
        let spec = ComponentSpec { image: image.map(str::to_owned), ..ComponentSpec::default() };
        release(&metadata, &spec)
            .map(|release| release.version().to_string())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn the_version_annotation_takes_precedence_over_the_image() {
        assert_eq!(found(Some("2.6.2"), Some("x/harbor-core:v2.9.5")), Ok("2.6.2".into()));
        assert_eq!(found(None, Some("host:5000/x/harbor-core:v2.9.5@sha256:00")), Ok("2.9.5".into()));
        let newest = Release::newest().map(|release| release.version().to_string());
        for image in ["x/harbor-core:dev", "x/harbor-core", "host:5000/core", "x/harbor-core:v99.0.0"] {
            assert_eq!(found(None, Some(image)).ok(), newest, "{image}");
        }
    }

    #[test]
    fn a_missing_version_is_an_error_with_the_remedy() {
        let error = found(None, None).unwrap_err();
        assert!(error.contains(ANNOTATION) && error.contains("spec.image"), "{error}");
        for wrong in ["latest", "2.99.0"] {
            let error = found(Some(wrong), None).unwrap_err();
            assert!(error.contains(ANNOTATION) && error.contains(wrong), "{error}");
        }
    }

    #[test]
    fn a_removed_component_is_refused_unless_it_has_an_image() {
        let release = Release::of(&Version::new(2, 8, 6)).unwrap();
        let part = catalogue::Component::ChartMuseum;
        let mut spec = ComponentSpec::default();
        let error = image(&release, part, &spec, &HarborSettings::default()).unwrap_err().to_string();
        assert!(
            error.contains("2.8.6") && error.contains("ChartMuseum") && error.contains("stays"),
            "{error}"
        );
        spec.image = Some("x".into());
        assert_eq!(image(&release, part, &spec, &HarborSettings::default()).unwrap(), "x");
    }
}
