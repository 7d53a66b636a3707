//! Optional metadata that a reader can request.

use std::borrow::Cow;
use std::sync::Arc;

use super::Uid;
use crate::intern::Str;

/// The metadata that a reader requests beyond what every [`Meta`](super::Meta) has.
///
/// ```
/// use windlass_runtime::meta::Keep;
///
/// let keep = Keep::default().annotation("windlass.dev/digest").manager("harbor-core");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Keep {
    pub(super) annotations: Vec<Arc<str>>,
    pub(super) manager: Option<Arc<str>>,
}

impl Keep {
    /// Keeps the annotation with this key.
    #[must_use]
    pub fn annotation(mut self, key: &str) -> Self {
        if let Err(at) = self.annotations.binary_search_by(|known| (**known).cmp(key)) {
            self.annotations.insert(at, key.into());
        }
        self
    }

    /// Keeps the entries in `managedFields` that this manager wrote by server-side apply on the object itself
    /// (operation `Apply`, no subresource).
    #[must_use]
    pub fn manager(mut self, name: &str) -> Self {
        self.manager = Some(name.into());
        self
    }
}

/// The fields of an object that one field manager owns, as the server recorded them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManagedEntry {
    /// The `apiVersion` in which [`fields`](Self::fields) is expressed.
    pub api_version: Str,
    /// `fieldsV1` without the uids of owners. Interned: objects of one template own the same fields.
    template: Str,
    /// The uids that were removed from the template, in order.
    owners: Box<[Uid]>,
}

/// The text before the uid of an owner.
const OWNER: &str = r#"k:{\"uid\":\""#;
const UID_LENGTH: usize = 36;

impl ManagedEntry {
    pub(super) fn new(api_version: &str, fields: &str) -> Self {
        let (template, owners) = without_owners(fields).unwrap_or_else(|| (fields.to_owned(), Vec::new()));
        Self { api_version: Str::new(api_version), template: Str::new(&template), owners: owners.into() }
    }

    /// `fieldsV1`: compact JSON, byte for byte.
    pub fn fields(&self) -> Cow<'_, str> {
        if self.owners.is_empty() {
            return Cow::Borrowed(&self.template);
        }
        let mut owners = self.owners.iter();
        let mut fields = String::with_capacity(self.template.len() + self.owners.len() * UID_LENGTH);
        for (at, part) in self.template.split(OWNER).enumerate() {
            if at > 0 {
                fields.push_str(OWNER);
                fields.extend(owners.next().map(ToString::to_string));
            }
            fields.push_str(part);
        }
        Cow::Owned(fields)
    }
}

/// Returns the fields without the uids of owners, and these uids; `None` if that could not be reversed.
fn without_owners(fields: &str) -> Option<(String, Vec<Uid>)> {
    let (mut template, mut owners) = (String::with_capacity(fields.len()), Vec::new());
    let mut parts = fields.split(OWNER);
    template.push_str(parts.next()?);
    for part in parts {
        let (text, rest) = part.split_at_checked(UID_LENGTH)?;
        let owner: Uid = text.parse().ok()?;
        if owner.to_string() != text {
            return None;
        }
        owners.push(owner);
        template.push_str(OWNER);
        template.push_str(rest);
    }
    Some((template, owners))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIELDS: &str = r#"{"f:metadata":{"f:labels":{"f:a":{}},"f:ownerReferences":{"k:{\"uid\":\"0b8d1c1e-9b1f-4f0e-8a63-7a5d1f0c2e9d\"}":{}}},"f:data":{"f:k":{}}}"#;

    #[test]
    fn managed_fields_are_restored_as_they_were_written() {
        let second = r#"{},"k:{\"uid\":\"11111111-2222-3333-4444-555555555555\"}":{}}},"#;
        let two = FIELDS.replacen("{}}},\"f:data", &format!("{second}\"f:data"), 1);
        assert!(two.contains("11111111"));
        let upper = FIELDS.replace("0b8d", "0B8D");
        let odd = ["{}", r#"{"k:{\"uid\":\""#, r#"{"k:{\"uid\":\"\"}":{}}"#, r#"{"k:{\"uid\":\"ü"}"#];
        for fields in [FIELDS, &two, &upper].into_iter().chain(odd) {
            assert_eq!(ManagedEntry::new("v1", fields).fields(), fields);
        }
    }

    #[test]
    fn objects_of_one_template_share_it_whatever_their_owners() {
        let one = ManagedEntry::new("v1", FIELDS);
        let other = ManagedEntry::new("v1", &FIELDS.replace("0b8d1c1e", "11111111"));
        assert_ne!(one, other);
        assert_eq!(one.template.as_ptr(), other.template.as_ptr());
    }
}
