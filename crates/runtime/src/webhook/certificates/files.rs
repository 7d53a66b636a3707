//! Certificates from files that another program maintains (cert-manager, a mounted Secret).

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;

use super::serving::{BadPair, Serving};
use crate::manager::{Context, Runnable};
use crate::metrics::Metrics;

/// An error of the certificate files.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    /// A file cannot be read.
    #[error("cannot read {path}: {error}")]
    Read {
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system.
        #[source]
        error: io::Error,
    },
    /// The files are readable, but do not contain a valid pair.
    #[error("{certificate} and {key} cannot be served: {error}")]
    Pair {
        /// The certificate's file.
        certificate: PathBuf,
        /// The key's file.
        key: PathBuf,
        /// The reason why the pair cannot be served.
        #[source]
        error: BadPair,
    },
}

/// A certificate and its key in two files, read again when their content changes in any way (written,
/// renamed, a symbolic link swapped). A pair that does not match, for example during such a change, is not
/// served; the old one stays in use.
#[derive(Clone, Debug)]
pub struct CertificateFiles {
    certificate: PathBuf,
    key: PathBuf,
    interval: Duration,
    serving: Serving,
    /// The last content that was tried, so that persistent errors are logged once.
    tried: Arc<Mutex<Option<Vec<u8>>>>,
    reads: Counter,
    errors: Counter,
}

impl CertificateFiles {
    /// Reads two PEM files, and checks them for changes every 10 seconds.
    pub fn new(certificate: impl Into<PathBuf>, key: impl Into<PathBuf>, metrics: &Metrics) -> Self {
        let (reads, errors) = (Counter::default(), Counter::default());
        metrics.with_registry(|registry| {
            let help = "Successful reads of the certificate files";
            registry.register("certwatcher_read_certificate", help, reads.clone());
            let help = "Reads of the certificate files that failed";
            registry.register("certwatcher_read_certificate_errors", help, errors.clone());
        });
        Self {
            certificate: certificate.into(),
            key: key.into(),
            interval: Duration::from_secs(10),
            serving: Serving::new(),
            tried: Arc::default(),
            reads,
            errors,
        }
    }

    /// Sets the interval of the checks.
    #[must_use]
    pub fn every(self, interval: Duration) -> Self {
        Self { interval, ..self }
    }

    /// The certificate to serve; it is updated when the files change.
    pub fn serving(&self) -> &Serving {
        &self.serving
    }

    /// Returns the runnable `webhook certificates`, for [`Stage::Webhooks`](crate::manager::Stage::Webhooks).
    /// If the first read fails, the process ends with the error.
    pub fn runnable(&self) -> Runnable {
        let files = self.clone();
        Runnable::new("webhook certificates", move |context: Context| {
            let files = files.clone();
            async move {
                files.look().await?;
                context.ready();
                loop {
                    tokio::select! {
                        () = context.stop.requested() => return Ok::<_, FilesError>(()),
                        () = tokio::time::sleep(files.interval) => {}
                    }
                    match files.look().await {
                        Ok(true) => {
                            tracing::info!(path = %files.certificate.display(), "serving certificate reloaded from its files");
                        }
                        Ok(false) => {}
                        Err(error) => {
                            tracing::warn!(%error, "certificate files cannot be used; still serving the old certificate");
                        }
                    }
                }
            }
        })
    }

    /// Reads the files; returns true if there is a new certificate. Content that was tried before is not
    /// tried again.
    async fn look(&self) -> Result<bool, FilesError> {
        let read = async |path: &PathBuf| {
            tokio::fs::read(path).await.map_err(|error| FilesError::Read { path: path.clone(), error })
        };
        self.reads.inc();
        let result = async {
            let (certificate, key) = (read(&self.certificate).await?, read(&self.key).await?);
            let both = [&certificate[..], &[0], &key[..]].concat();
            if self.tried.lock().as_ref() == Some(&both) {
                return Ok(false);
            }
            *self.tried.lock() = Some(both);
            self.serving.replace(&certificate, &key).map_err(|error| FilesError::Pair {
                certificate: self.certificate.clone(),
                key: self.key.clone(),
                error,
            })
        };
        let result = result.await;
        if result.is_err() {
            self.errors.inc();
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    fn write(directory: &Path) {
        let pair = rcgen::generate_simple_self_signed(vec!["a.example".to_owned()]).unwrap();
        fs::create_dir_all(directory).unwrap();
        fs::write(directory.join("tls.crt"), pair.cert.pem()).unwrap();
        fs::write(directory.join("tls.key"), pair.signing_key.serialize_pem()).unwrap();
    }

    fn files(directory: &Path) -> CertificateFiles {
        CertificateFiles::new(directory.join("tls.crt"), directory.join("tls.key"), &Metrics::new())
    }

    #[tokio::test]
    async fn files_are_read_again_when_written_renamed_or_swapped_by_a_symbolic_link() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        // This is how the kubelet mounts a Secret: the files are links into a directory that is itself a
        // link, swapped atomically.
        write(&root.join("v1"));
        symlink("v1", root.join("..data")).unwrap();
        for name in ["tls.crt", "tls.key"] {
            symlink(format!("..data/{name}"), root.join(name)).unwrap();
        }
        let files = files(root);
        assert!(files.look().await.unwrap());
        assert!(!files.look().await.unwrap());
        write(&root.join("v2"));
        symlink("v2", root.join("..new")).unwrap();
        fs::rename(root.join("..new"), root.join("..data")).unwrap();
        assert!(files.look().await.unwrap());
        write(&root.join("v2"));
        assert!(files.look().await.unwrap());
        write(&root.join("v3"));
        for name in ["tls.crt", "tls.key"] {
            fs::rename(root.join("v3").join(name), root.join(name)).unwrap();
        }
        assert!(files.look().await.unwrap());
        assert_eq!((files.reads.get(), files.errors.get()), (5, 0));
    }

    #[tokio::test]
    async fn a_certificate_without_its_key_is_not_served_until_the_key_is_replaced_too() {
        let root = tempfile::tempdir().unwrap();
        write(root.path());
        let files = files(root.path());
        files.look().await.unwrap();
        let old_key = fs::read(root.path().join("tls.key")).unwrap();
        write(root.path());
        let new_key = fs::read(root.path().join("tls.key")).unwrap();
        fs::write(root.path().join("tls.key"), old_key).unwrap();
        let error = files.look().await.unwrap_err();
        assert!(
            error.to_string().ends_with("cannot be served: the key does not belong to the certificate"),
            "{error}"
        );
        assert!(!files.look().await.unwrap(), "the same wrong pair is an error once");
        fs::write(root.path().join("tls.key"), new_key).unwrap();
        assert!(files.look().await.unwrap());
        assert_eq!(*files.serving().changes().borrow(), 2);
        fs::remove_file(root.path().join("tls.crt")).unwrap();
        let error = files.look().await.unwrap_err();
        assert!(
            error.to_string().starts_with("cannot read ") && error.to_string().contains("tls.crt"),
            "{error}"
        );
        assert_eq!(files.errors.get(), 2);
    }
}
