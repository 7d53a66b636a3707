//! Which Harbor a component belongs to, and its image.

use kube::api::ObjectMeta;
use windlass::PlanError;

use crate::api::component::ComponentSpec;
use crate::api::names::annotation::VERSION as ANNOTATION;
use crate::catalogue::{self, Release, Version};
use crate::settings::HarborSettings;

/// The release that a component belongs to: what its annotation says, or else the tag of its image. An image whose tag is no version
/// is taken for the newest release.
pub fn release(metadata: &ObjectMeta, spec: &ComponentSpec) -> Result<Release, PlanError> {
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
            "neither the annotation {ANNOTATION} nor spec.image says which Harbor this is of: set the annotation to a version, \
             as in {ANNOTATION}: \"2.15.2\", or name an image"
        ))),
    }
}

/// The image of a component: its own, or that of the release.
pub fn image(
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
            "annotation {ANNOTATION}: \"{}\" has no {component:?}, which Harbor has dropped: delete this object, or choose an \
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
    fn the_annotation_says_it_before_the_image_does() {
        assert_eq!(found(Some("2.6.2"), Some("x/harbor-core:v2.9.5")), Ok("2.6.2".into()));
        assert_eq!(found(None, Some("host:5000/x/harbor-core:v2.9.5@sha256:00")), Ok("2.9.5".into()));
        let newest = Release::newest().map(|release| release.version().to_string());
        for image in ["x/harbor-core:dev", "x/harbor-core", "host:5000/core", "x/harbor-core:v99.0.0"] {
            assert_eq!(found(None, Some(image)).ok(), newest, "{image}");
        }
    }

    #[test]
    fn where_nothing_says_it_the_remedy_is_named() {
        let error = found(None, None).unwrap_err();
        assert!(error.contains(ANNOTATION) && error.contains("spec.image"), "{error}");
        for wrong in ["latest", "2.99.0"] {
            let error = found(Some(wrong), None).unwrap_err();
            assert!(error.contains(ANNOTATION) && error.contains(wrong), "{error}");
        }
    }

    #[test]
    fn what_harbor_has_dropped_is_refused_unless_an_image_is_named() {
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
