//! What a store in a directory needs beyond `object_store`: to be created durably, looked at
//! before an empty listing is believed, and swept of staging files.
//!
//! Everything here blocks its thread.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use object_store::local::LocalFileSystem;

use super::paths;

/// Opens a directory, creating it if need be.
pub(super) fn open(root: &Path) -> io::Result<(LocalFileSystem, PathBuf)> {
    let root = std::path::absolute(root)?;
    create(&root)?;
    // Reading finds out now whether it is a directory and may be read.
    drop(fs::read_dir(&root)?);
    let objects = LocalFileSystem::new_with_prefix(&root).map_err(io::Error::other)?;
    Ok((objects.with_fsync(true).with_automatic_cleanup(true), root))
}

/// Creates a directory so that it is still there after a power failure.
fn create(root: &Path) -> io::Result<()> {
    let new: Vec<_> = root
        .ancestors()
        .take_while(|folder| !folder.exists())
        .collect();
    fs::create_dir_all(root)?;
    for folder in new {
        sync(folder)?;
        if let Some(parent) = folder.parent() {
            sync(parent)?;
        }
    }
    Ok(())
}

/// Makes what was created and deleted in a folder last; nothing, if the folder is gone.
pub(super) fn sync(folder: &Path) -> io::Result<()> {
    match File::open(folder) {
        Ok(folder) => folder.sync_all(),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Looks whether a folder may be listed: the root must be there, and the folder a directory if it
/// is there at all.
pub(super) fn look(root: &Path, folder: &str) -> io::Result<()> {
    if !fs::metadata(root)?.is_dir() {
        return Err(ErrorKind::NotADirectory.into());
    }
    match fs::read_dir(root.join(folder)) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Deletes staging files that nobody has touched for so long, and says which.
pub(super) fn sweep(root: &Path, age_min: Duration) -> io::Result<Vec<String>> {
    let mut folders = Vec::new();
    for folder in paths::FOLDERS {
        let folder = root.join(folder);
        for inner in entries(&folder)? {
            if inner.is_dir() {
                folders.push(inner);
            }
        }
        folders.push(folder);
    }
    let mut swept = Vec::new();
    for folder in folders {
        for file in entries(&folder)? {
            let name = file
                .file_name()
                .and_then(|name| name.to_str())
                .unwrap_or_default();
            if paths::is_staging(name) && is_left(&file, age_min) && fs::remove_file(&file).is_ok()
            {
                let name = file.strip_prefix(root).unwrap_or(&file);
                swept.push(name.display().to_string());
            }
        }
    }
    swept.sort_unstable();
    Ok(swept)
}

/// The entries of a folder; none, if it is not there.
fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    match fs::read_dir(folder) {
        Ok(entries) => entries.map(|entry| Ok(entry?.path())).collect(),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Whether nobody has written to a file for so long. A file from the future counts as fresh.
fn is_left(file: &Path, age_min: Duration) -> bool {
    let written = fs::metadata(file).and_then(|metadata| metadata.modified());
    let age = written
        .ok()
        .and_then(|written| SystemTime::now().duration_since(written).ok());
    age_min.is_zero() || age.is_some_and(|age| age >= age_min)
}
