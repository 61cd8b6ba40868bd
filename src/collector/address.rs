//! The file in a job's directory that says where its collector listens, so that nodes and the
//! command line find it again after it was restarted on another port.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

/// Why an address cannot be published or found.
#[derive(Debug, thiserror::Error)]
pub enum AddressError {
    /// No collector has said where it is.
    #[error("{} is not there: no collector runs for this job", path.display())]
    Absent {
        /// The file.
        path: PathBuf,
    },
    /// The file system refuses.
    #[error("cannot {action} {}", path.display())]
    File {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// There is something else in the file.
    #[error("{} holds no address such as 127.0.0.1:7070: remove it", path.display())]
    Garbled {
        /// The file.
        path: PathBuf,
    },
}

/// The file in a job's directory.
pub fn address_path(dir: &Path) -> PathBuf {
    dir.join("run/collector.addr")
}

/// Where the collector of the job in `dir` listens, or did last.
///
/// # Errors
/// If no collector has said so, or the file cannot be read.
pub fn read_address(dir: &Path) -> Result<SocketAddr, AddressError> {
    let path = address_path(dir);
    match fs::read_to_string(&path) {
        Ok(text) => text
            .trim()
            .parse()
            .map_err(|_| AddressError::Garbled { path }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(AddressError::Absent { path }),
        Err(source) => Err(AddressError::File {
            action: "read",
            path,
            source,
        }),
    }
}

/// A collector's own address, and whether it is published.
///
/// It is, from the moment the collector leads: one that never comes to lead must not draw anybody
/// away from the one that does.
pub(super) struct Publisher {
    path: PathBuf,
    text: String,
    is_published: bool,
}

impl Publisher {
    pub(super) fn new(dir: &Path, address: SocketAddr) -> Self {
        Self {
            path: address_path(dir),
            text: format!("{}\n", reachable(address)),
            is_published: false,
        }
    }

    /// Writes the file, whole at once: readers see the old address or this one.
    pub(super) fn publish(&mut self) -> Result<(), AddressError> {
        // Two collectors may start at once; each writes a file of its own.
        let name = format!("{}.new", std::process::id());
        let unfinished = self.path.with_extension(name);
        let parent = self.path.parent().map_or(Ok(()), fs::create_dir_all);
        let written = parent
            .and_then(|()| fs::write(&unfinished, &self.text))
            .and_then(|()| fs::rename(&unfinished, &self.path));
        self.is_published = written.is_ok();
        written.map_err(|source| {
            let _ = fs::remove_file(&unfinished);
            AddressError::File {
                action: "write",
                path: self.path.clone(),
                source,
            }
        })
    }

    /// Removes the file, unless another collector has written its own since.
    pub(super) fn withdraw(&self) {
        let stands = || fs::read_to_string(&self.path);
        if self.is_published && stands().is_ok_and(|text| text == self.text) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Nobody can connect to "every interface": whoever reads the file is on this host.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn an_address_is_found_until_its_collector_withdraws_it() {
        let dir = tempfile::tempdir().unwrap();
        assert!(matches!(
            read_address(dir.path()),
            Err(AddressError::Absent { .. })
        ));
        let mut publisher = Publisher::new(dir.path(), address("0.0.0.0:4711"));
        publisher.publish().unwrap();
        assert_eq!(read_address(dir.path()).unwrap(), address("127.0.0.1:4711"));
        publisher.withdraw();
        assert!(matches!(
            read_address(dir.path()),
            Err(AddressError::Absent { .. })
        ));
    }

    #[test]
    fn a_collector_that_never_led_withdraws_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let mut before = Publisher::new(dir.path(), address("127.0.0.1:1"));
        before.publish().unwrap();
        Publisher::new(dir.path(), address("127.0.0.1:1")).withdraw();
        assert_eq!(read_address(dir.path()).unwrap(), address("127.0.0.1:1"));
    }

    #[test]
    fn a_collector_leaves_the_address_of_its_successor_alone() {
        let dir = tempfile::tempdir().unwrap();
        let mut older = Publisher::new(dir.path(), address("127.0.0.1:1"));
        let mut newer = Publisher::new(dir.path(), address("127.0.0.1:2"));
        older.publish().unwrap();
        newer.publish().unwrap();
        older.withdraw();
        assert_eq!(read_address(dir.path()).unwrap(), address("127.0.0.1:2"));
        let left = fs::read_dir(dir.path().join("run")).unwrap().count();
        assert_eq!(left, 1);
    }
}
