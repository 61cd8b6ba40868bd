//! Operations on single objects, each within its time; the places where stores can be.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{GetOptions, ObjectStore, ObjectStoreExt, PutMode, PutOptions};
use tokio::task::spawn_blocking;
use url::Url;

use super::{OPERATION_TIMEOUT, StoreError, local, paths};

/// An object store, and the directory it is in, if it is in one.
#[derive(Clone, Debug)]
pub(super) struct Objects {
    inner: Arc<dyn ObjectStore>,
    root: Option<PathBuf>,
    timeout: Duration,
}

impl Objects {
    pub(super) fn over(inner: Arc<dyn ObjectStore>) -> Self {
        Self {
            inner,
            root: None,
            timeout: OPERATION_TIMEOUT,
        }
    }

    pub(super) fn root(&self) -> Option<&std::path::Path> {
        self.root.as_deref()
    }

    pub(super) fn set_timeout(&mut self, timeout: Duration) {
        self.timeout = timeout;
    }

    pub(super) async fn open(url: &str) -> Result<Self, StoreError> {
        if url == "memory:" || url == "memory:///" {
            return Ok(Self::over(Arc::new(InMemory::new())));
        }
        let root = directory(url)?;
        let failed = |cause: String| StoreError::Open {
            url: url.to_owned(),
            cause,
        };
        let opening = spawn_blocking(move || local::open(&root));
        let opened = tokio::time::timeout(OPERATION_TIMEOUT, opening).await;
        let opened = opened.map_err(|_| failed("it does not answer".to_owned()))?;
        let opened = opened.map_err(|error| failed(error.to_string()))?;
        let (inner, root) = opened.map_err(|error| failed(error.to_string()))?;
        Ok(Self {
            root: Some(root),
            ..Self::over(Arc::new(inner))
        })
    }

    pub(super) async fn put(&self, path: &Path, bytes: Bytes) -> Result<(), StoreError> {
        let options = PutOptions::from(PutMode::Create);
        let putting = self.inner.put_opts(path, bytes.into(), options);
        match self.within(path, "create", putting).await? {
            Ok(_) => Ok(()),
            Err(object_store::Error::AlreadyExists { .. }) => Err(StoreError::Exists {
                file: path.to_string(),
            }),
            Err(error) => Err(StoreError::failed("create", path, &error)),
        }
    }

    pub(super) async fn get(&self, path: &Path) -> Result<Bytes, StoreError> {
        let reading = async {
            let object = self.inner.get_opts(path, GetOptions::default()).await?;
            object.bytes().await
        };
        match self.within(path, "read", reading).await? {
            Ok(bytes) => Ok(bytes),
            Err(object_store::Error::NotFound { .. }) => Err(StoreError::Missing {
                file: path.to_string(),
            }),
            Err(error) => Err(StoreError::failed("read", path, &error)),
        }
    }

    pub(super) async fn delete(&self, path: &Path) -> Result<(), StoreError> {
        match self.within(path, "delete", self.inner.delete(path)).await? {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(StoreError::failed("delete", path, &error)),
        }
    }

    /// Everything below a folder; nothing, if it is not there.
    pub(super) async fn list(&self, folder: &Path) -> Result<Vec<Path>, StoreError> {
        if let Some(root) = self.root.clone() {
            // A listing of what is no directory is empty, and so would be that of a lost store.
            let name = folder.to_string();
            let looked = self
                .blocking(folder, "list", move || local::look(&root, &name))
                .await?;
            looked.map_err(|error| StoreError::failed("list", folder, &error))?;
        }
        let mut listing = self.inner.list(Some(folder));
        let mut paths = Vec::new();
        while let Some(next) = self.within(folder, "list", listing.next()).await? {
            let object = next.map_err(|error| StoreError::failed("list", folder, &error))?;
            paths.push(object.location);
        }
        paths.sort_unstable();
        Ok(paths)
    }

    /// Makes deletions in a folder last before others that depend on them.
    pub(super) async fn sync(&self, folder: &Path) -> Result<(), StoreError> {
        let Some(root) = self.root.clone() else {
            return Ok(());
        };
        let name = folder.to_string();
        let synced = self
            .blocking(folder, "delete", move || local::sync(&root.join(name)))
            .await?;
        synced.map_err(|error| StoreError::failed("delete", folder, &error))
    }

    /// Deletes staging files of at least this age; see [`Store`](super::Store::sweep_staging).
    pub(super) async fn sweep(&self, age_min: Duration) -> Result<Vec<String>, StoreError> {
        let Some(root) = self.root.clone() else {
            return Ok(Vec::new());
        };
        let place = paths::root();
        let swept = self
            .blocking(&place, "sweep", move || local::sweep(&root, age_min))
            .await?;
        swept.map_err(|error| StoreError::failed("sweep", &place, &error))
    }

    /// Waits for an operation, but not for ever.
    async fn within<T>(
        &self,
        path: &Path,
        action: &'static str,
        operation: impl Future<Output = T>,
    ) -> Result<T, StoreError> {
        let done = tokio::time::timeout(self.timeout, operation).await;
        done.map_err(|_| StoreError::timed_out(action, path))
    }

    /// The same for what blocks its thread.
    async fn blocking<T: Send + 'static>(
        &self,
        path: &Path,
        action: &'static str,
        operation: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, StoreError> {
        let done = self.within(path, action, spawn_blocking(operation)).await?;
        done.map_err(|error| StoreError::failed(action, path, &error))
    }
}

/// The directory that a URL or a plain path names.
fn directory(url: &str) -> Result<PathBuf, StoreError> {
    let refused = |cause: String| StoreError::Url {
        url: url.to_owned(),
        cause,
    };
    if !url.contains("://") && !url.starts_with("file:") && !url.starts_with("memory:") {
        if url.is_empty() {
            return Err(refused("it is empty".to_owned()));
        }
        return Ok(PathBuf::from(url));
    }
    let parsed = Url::parse(url).map_err(|error| refused(error.to_string()))?;
    let feature = match parsed.scheme() {
        "file" => {
            let path = parsed.to_file_path();
            return path.map_err(|()| refused("it has to be file:///… or a path".to_owned()));
        }
        "s3" | "s3a" => "aws",
        "gs" => "gcp",
        "az" | "adl" | "azure" | "abfs" | "abfss" => "azure",
        "http" | "https" => "http",
        "memory" => return Err(refused("it has to be memory: alone".to_owned())),
        scheme => return Err(refused(format!("nothing is known of {scheme}:"))),
    };
    Err(refused(format!(
        "it needs object_store's feature '{feature}', which this program is built without"
    )))
}
