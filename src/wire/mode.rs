//! A mode as a number, the same wherever it is sent or stored.

use crate::protocol::mode::Mode;

/// Never given to another mode once a version has used it. 0 stays free: it is what a field reads
/// as that was never written.
pub(super) const fn number(mode: Mode) -> u32 {
    match mode {
        Mode::Classic => 1,
    }
}

/// The mode with this number, if this version knows it.
pub(super) const fn of(number: u32) -> Option<Mode> {
    match number {
        1 => Some(Mode::Classic),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_keep_their_numbers() {
        assert_eq!(number(Mode::Classic), 1);
        assert_eq!(of(1), Some(Mode::Classic));
        assert_eq!(of(0), None);
    }
}
