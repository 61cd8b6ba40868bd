//! An object store in memory that fails, or never answers, where it is told to.

use std::fmt;
use std::io::{Error as IoError, ErrorKind};
use std::pin::Pin;

use futures::StreamExt;
use futures::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, ObjectStoreExt as _, PutMultipartOptions, PutOptions, PutPayload, PutResult,
    Result,
};

/// What goes wrong with every object whose path contains the text.
#[derive(Debug)]
pub(super) enum Fault {
    /// The disk is full.
    Full(&'static str),
    /// Nothing comes back.
    Silent(&'static str),
    /// It cannot be deleted.
    Undeletable(&'static str),
    /// It is deleted, and the manifest beside it, just before it is read.
    Retired(&'static str),
    /// A put is answered as if it had gone well, but this is what stands there.
    Replaced(&'static str, &'static str),
}

#[derive(Debug)]
pub(super) struct Faulty {
    pub(super) inner: InMemory,
    pub(super) fault: Fault,
}

type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

fn broken(kind: ErrorKind) -> Error {
    Error::Generic {
        store: "faulty",
        source: Box::new(IoError::from(kind)),
    }
}

impl fmt::Display for Faulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("faulty")
    }
}

// Written out as the trait's macro would, which is not worth a dependency.
impl ObjectStore for Faulty {
    fn put_opts<'s, 'p, 'a>(
        &'s self,
        location: &'p Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Answer<'a, PutResult>
    where
        's: 'a,
        'p: 'a,
        Self: 'a,
    {
        Box::pin(async move {
            match self.fault {
                Fault::Full(path) if location.as_ref().contains(path) => {
                    Err(broken(ErrorKind::StorageFull))
                }
                Fault::Silent(path) if location.as_ref().contains(path) => {
                    std::future::pending().await
                }
                Fault::Replaced(path, by) if location.as_ref().contains(path) => {
                    self.inner.put_opts(location, by.into(), options).await
                }
                _ => self.inner.put_opts(location, payload, options).await,
            }
        })
    }

    fn put_multipart_opts<'s, 'p, 'a>(
        &'s self,
        location: &'p Path,
        options: PutMultipartOptions,
    ) -> Answer<'a, Box<dyn MultipartUpload>>
    where
        's: 'a,
        'p: 'a,
        Self: 'a,
    {
        self.inner.put_multipart_opts(location, options)
    }

    fn get_opts<'s, 'p, 'a>(
        &'s self,
        location: &'p Path,
        options: GetOptions,
    ) -> Answer<'a, GetResult>
    where
        's: 'a,
        'p: 'a,
        Self: 'a,
    {
        Box::pin(async move {
            match self.fault {
                Fault::Silent(path) if location.as_ref().contains(path) => {
                    std::future::pending().await
                }
                Fault::Retired(path) if location.as_ref().contains(path) => {
                    let (folder, _) = location.as_ref().rsplit_once('/').expect("a path");
                    let manifest = Path::from(format!("{folder}/manifest.json"));
                    self.inner.delete(&manifest).await?;
                    self.inner.delete(location).await?;
                    self.inner.get_opts(location, options).await
                }
                _ => self.inner.get_opts(location, options).await,
            }
        })
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        let Fault::Undeletable(path) = self.fault else {
            return self.inner.delete_stream(locations);
        };
        let checked = locations.map(move |location| match location {
            Ok(location) if location.as_ref().contains(path) => {
                Err(broken(ErrorKind::PermissionDenied))
            }
            location => location,
        });
        self.inner.delete_stream(checked.boxed())
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    fn list_with_delimiter<'s, 'p, 'a>(&'s self, prefix: Option<&'p Path>) -> Answer<'a, ListResult>
    where
        's: 'a,
        'p: 'a,
        Self: 'a,
    {
        self.inner.list_with_delimiter(prefix)
    }

    fn copy_opts<'s, 'f, 't, 'a>(
        &'s self,
        from: &'f Path,
        to: &'t Path,
        options: CopyOptions,
    ) -> Answer<'a, ()>
    where
        's: 'a,
        'f: 'a,
        't: 'a,
        Self: 'a,
    {
        self.inner.copy_opts(from, to, options)
    }
}
