//! The exclusive right to a directory: that of a job, or that of a store.
//!
//! The lock is on the directory itself, so that it needs no file of its own, cannot be left
//! behind, and ends with its holder whatever ends the holder.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// How often a directory is opened anew that somebody has replaced between its opening and its
/// locking: once is rare, and this often is not by chance.
const OPENINGS_MAX: usize = 3;

/// The exclusive right to a directory; it lasts until this is dropped.
#[derive(Debug)]
pub struct Lock {
    directory: File,
}

impl Lock {
    /// Takes it.
    pub(super) fn take(path: &Path) -> Result<Self, TryLockError> {
        for _ in 0..OPENINGS_MAX {
            let directory = File::open(path).map_err(TryLockError::Error)?;
            directory.try_lock()?;
            let lock = Self { directory };
            // Whoever had it may have removed the directory before letting go.
            if lock.is_on(path).map_err(TryLockError::Error)? {
                return Ok(lock);
            }
        }
        Err(TryLockError::WouldBlock)
    }

    /// Whether it is this directory that is locked.
    pub(super) fn is_on(&self, path: &Path) -> io::Result<bool> {
        let (own, other) = (self.directory.metadata()?, fs::metadata(path)?);
        Ok((own.dev(), own.ino()) == (other.dev(), other.ino()))
    }
}

/// Who has a directory locked, as far as the system tells.
pub(super) fn holder(path: &Path) -> String {
    let unknown = || "another cutline".to_owned();
    let Ok(of_it) = fs::metadata(path) else {
        return unknown();
    };
    let locks = fs::read_to_string("/proc/locks").unwrap_or_default();
    let Some(pid) = locks.lines().find_map(|line| pid_of(line, of_it.ino())) else {
        return unknown();
    };
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words: Vec<_> = line.split(|byte| *byte == 0).collect();
    let words = String::from_utf8_lossy(&words.join(&b' ')).into_owned();
    match words.trim() {
        "" => format!("pid {pid}"),
        command => format!("pid {pid} ({command})"),
    }
}

/// Who holds the lock of this line, such as `1: FLOCK  ADVISORY  WRITE 4711 08:01:1234 0 EOF`, if
/// it is on this inode. The device is not looked at: some file systems tell two numbers for it.
fn pid_of(line: &str, inode: u64) -> Option<u32> {
    let mut words = line.split_whitespace().skip(1);
    if words.next()? != "FLOCK" {
        return None;
    }
    let mut words = words.skip(2);
    let pid = words.next()?.parse().ok()?;
    let on = words.next()?.rsplit(':').next()?.parse::<u64>().ok()?;
    (on == inode).then_some(pid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_holds_a_lock_is_told_with_the_command() {
        let top = tempfile::tempdir().unwrap();
        let lock = Lock::take(top.path()).unwrap();
        assert!(lock.is_on(top.path()).unwrap() && !lock.is_on(Path::new("/")).unwrap());
        let second = Lock::take(top.path());
        assert!(
            matches!(second, Err(TryLockError::WouldBlock)),
            "{second:?}"
        );
        let told = holder(top.path());
        let this = format!("pid {} (", std::process::id());
        assert!(told.starts_with(&this), "{told}");
        drop(lock);
        assert!(Lock::take(top.path()).is_ok());
    }

    #[test]
    fn a_directory_that_was_replaced_is_not_the_one_that_is_locked() {
        let top = tempfile::tempdir().unwrap();
        let path = top.path().join("x.cutline");
        fs::create_dir(&path).unwrap();
        let lock = Lock::take(&path).unwrap();
        // Moved away, not removed: its inode cannot be given to the new one.
        fs::rename(&path, top.path().join("old")).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(!lock.is_on(&path).unwrap());
        assert!(Lock::take(&path).is_ok());
    }
}
