//! The htpasswd file of the registry's users.
//!
//! The registry reads bcrypt hashes only, so this file uses the crate `bcrypt`.

use bcrypt::Version;

use super::confidential::Confidential;

/// Longest password in bytes: bcrypt ignores the rest.
const LONGEST_PASSWORD: usize = 72;

/// Error: no htpasswd line could be made for a user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HtpasswdError {
    /// The user name cannot be used in the file.
    #[error(
        "the user name {0:?} cannot be used in an htpasswd file: it must not be empty, nor contain a colon or a line break, nor begin with #"
    )]
    User(String),
    /// The password is empty, too long, or cannot be hashed.
    #[error(
        "the password of {user:?} cannot be hashed: it has {length} bytes; choose one of 1 to 72 bytes, none of them zero"
    )]
    Password {
        /// The user of the password.
        user: String,
        /// The length of the password in bytes.
        length: usize,
    },
    /// The cost is out of range.
    #[error("a cost of {0} is out of range; choose 4 to 31")]
    Cost(u32),
}

/// Returns one line of an htpasswd file with its line break: a user and the hash of the password.
///
/// The same input gives the same line: the caller chooses a random salt and stores the line instead of
/// generating it again. Blocks for the time that the cost requires.
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
    fn invalid_users_are_refused_without_showing_the_password() {
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
