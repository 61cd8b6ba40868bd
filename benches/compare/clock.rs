//! Clocks that the processes of one machine can compare.

use std::sync::OnceLock;

use nix::time::{ClockId, clock_gettime};

static PROGRAM_START_NS: OnceLock<u64> = OnceLock::new();

/// Time that only goes forward, the same for all processes.
pub(crate) fn now_ns() -> u64 {
    read(ClockId::CLOCK_MONOTONIC)
}

/// What this process has used of the CPU so far: all of its threads, and the system for it.
pub(crate) fn cpu_ns() -> u64 {
    read(ClockId::CLOCK_PROCESS_CPUTIME_ID)
}

/// To be called first of all in `main`.
pub(crate) fn note_program_start() {
    PROGRAM_START_NS.get_or_init(now_ns);
}

pub(crate) fn program_start_ns() -> u64 {
    *PROGRAM_START_NS.get_or_init(now_ns)
}

fn read(clock: ClockId) -> u64 {
    let time = clock_gettime(clock).expect("every Linux has these clocks");
    time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64
}
