//! A program that ends with the one that started it, however that one ends.

use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use nix::unistd::{Pid, getppid};

/// Why a program cannot be tied to its parent.
#[derive(Debug, thiserror::Error)]
pub enum ParentError {
    /// The kernel refuses.
    #[error("cannot ask to be killed with parent process {parent}")]
    Refused {
        /// The parent's process id.
        parent: u32,
        /// Why.
        #[source]
        source: nix::Error,
    },
    /// It has died already, or was never the parent.
    #[error("process {parent} is not the parent of this one, or has ended already")]
    Gone {
        /// The process id that was given.
        parent: u32,
    },
}

/// Has the kernel kill this program when its parent dies.
///
/// To be called on the main thread, for the kernel forgets it with the thread that asked. It also
/// watches the *thread* that started this program: the parent must start its children from one
/// that lives as long as they shall.
///
/// # Errors
/// If the kernel refuses, or the parent is not the one named: it may have died before this call.
pub fn die_with(parent: u32) -> Result<(), ParentError> {
    let refused = |source| ParentError::Refused { parent, source };
    set_pdeathsig(Signal::SIGKILL).map_err(refused)?;
    // Only now: a parent that dies after this look kills us, and one that died before shows here.
    let expected = i32::try_from(parent).map(Pid::from_raw);
    if expected != Ok(getppid()) {
        // We are not to be killed with whoever has inherited us.
        set_pdeathsig(None).map_err(refused)?;
        return Err(ParentError::Gone { parent });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parent_that_is_not_ours_is_refused() {
        let error = die_with(std::process::id()).unwrap_err();
        assert!(matches!(error, ParentError::Gone { .. }), "{error}");
    }
}
