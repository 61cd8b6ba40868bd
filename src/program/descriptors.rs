//! How many files and sockets a program may have open at once, and whether that is enough for what
//! it is to do. Whoever runs out of them accepts nobody and hangs; so it is asked at the start.

use std::io;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// What a program needs besides its channels or nodes: standard streams, the listener, the
/// runtime, logs, and files of the store, of which a few are open at once.
const OWN: u64 = 64;

/// Why a program cannot have all it needs open at once.
#[derive(Debug, thiserror::Error)]
pub enum DescriptorsError {
    /// The system allows fewer.
    #[error(
        "for {what}, {needed} files and sockets must be open at once, and the system allows \
         {allowed}: raise the limit (ulimit -Hn {needed}, LimitNOFILE={needed}), or take a \
         smaller job"
    )]
    TooFew {
        /// What they are for.
        what: String,
        /// How many there must be.
        needed: u64,
        /// How many there may be.
        allowed: u64,
    },
    /// The system does not say.
    #[error("cannot find out how many files and sockets may be open at once")]
    Unknown(#[source] io::Error),
}

/// Makes sure that so many sockets can be open at once, besides what every program needs. Where
/// they are over the soft limit, that is raised to the hard one, which everybody may do.
///
/// # Errors
/// If they are over the hard one, naming `what` they are for.
pub fn allow_sockets(
    sockets: usize,
    what: impl FnOnce() -> String,
) -> Result<(), DescriptorsError> {
    let needed = (sockets as u64).saturating_add(OWN);
    let limit = Resource::RLIMIT_NOFILE;
    let unknown = |error| DescriptorsError::Unknown(io::Error::from(error));
    let (soft, hard) = getrlimit(limit).map_err(unknown)?;
    if soft >= needed {
        return Ok(());
    }
    let allowed = match setrlimit(limit, hard, hard) {
        Ok(()) => hard,
        Err(_) => soft,
    };
    if allowed >= needed {
        return Ok(());
    }
    Err(DescriptorsError::TooFew {
        what: what(),
        needed,
        allowed,
    })
}
