//! The file of users that the registry lets in.
//!
//! The registry reads bcrypt and nothing else, which no crate of ours had: hence `bcrypt`.

use bcrypt::Version;

use super::confidential::Confidential;

/// The cost of a hash if nothing else is asked for: a fraction of a tenth of a second for each of the registry's requests.
pub const DEFAULT_COST: u32 = 10;

/// The longest password: bcrypt would not see the rest.
const LONGEST_PASSWORD: usize = 72;

/// Why there is no line for a user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HtpasswdError {
    /// The name cannot stand in the file.
    #[error(
        "the user name {0:?} cannot stand in an htpasswd file: it must not be empty, nor hold a colon or a line break, nor begin with #"
    )]
    User(String),
    /// The password is too long, or empty, or cannot be hashed.
    #[error(
        "the password of {user:?} cannot be hashed: it has {length} bytes; choose one of 1 to 72 bytes, none of them zero"
    )]
    Password {
        /// Whose.
        user: String,
        /// How long it is.
        length: usize,
    },
    /// The cost is out of range.
    #[error("a cost of {0} is out of range; choose 4 to 31")]
    Cost(u32),
}

/// One line of an htpasswd file, ending with a line break: a user and the hash of the password.
///
/// Same input, same line: the salt is the caller's, who has to take it at random, and to keep the line rather than make it again. Blocks for the time
/// that the cost asks for.
pub fn line(
    user: &str,
    password: &Confidential,
    cost: u32,
    salt: [u8; 16],
) -> Result<Confidential, HtpasswdError> {
    let unfit = |character: char| character == ':' || character.is_control();
    if user.is_empty() || user.starts_with('#') || user.trim() != user || user.contains(unfit) {
        return Err(HtpasswdError::User(user.to_owned()));
    }
    let password = password.expose();
    if password.is_empty() || password.len() > LONGEST_PASSWORD || password.contains('\0') {
        return Err(HtpasswdError::Password { user: user.to_owned(), length: password.len() });
    }
    let hash = bcrypt::hash_with_salt(password, cost, salt).map_err(|_| HtpasswdError::Cost(cost))?;
    Ok(Confidential::new(format!("{user}:{}\n", hash.format_for_version(Version::TwoY))))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SALT: [u8; 16] = [7; 16];

    #[test]
    fn a_line_has_the_form_that_the_registry_reads_and_its_hash_fits() {
        let line = line("harbor_registry_user", &"pässword".into(), 4, SALT).unwrap();
        let (user, hash) = line.expose().trim_end().split_once(':').unwrap();
        assert_eq!(user, "harbor_registry_user");
        assert!(hash.starts_with("$2y$04$") && line.expose().ends_with('\n'));
        assert!(bcrypt::verify("pässword", hash).unwrap() && !bcrypt::verify("password", hash).unwrap());
    }

    #[test]
    fn the_same_salt_gives_the_same_line() {
        let twice = || line("u", &"p".into(), 4, SALT).unwrap();
        assert_eq!(twice(), twice());
    }

    #[test]
    fn what_cannot_stand_in_the_file_is_refused_without_saying_the_password() {
        for user in ["", "a:b", "a\nb", "#a", " a"] {
            assert_eq!(line(user, &"p".into(), 4, SALT), Err(HtpasswdError::User(user.to_owned())));
        }
        let long = "hunter2".repeat(20);
        for password in ["", long.as_str(), "a\0b"] {
            let error = line("u", &password.into(), 4, SALT).unwrap_err();
            assert!(!error.to_string().contains("hunter2"), "{error}");
        }
        assert_eq!(line("u", &"p".into(), 99, SALT), Err(HtpasswdError::Cost(99)));
    }
}
