//! A mode as a number, the same wherever it is sent or stored.

use crate::protocol::mode::Mode;

/// Never given to another mode once a version has used it. 0 stays free: it is what a field reads
/// as that was never written.
pub(super) const fn number(mode: Mode) -> u32 {
    match mode {
        Mode::Classic => 1,
        Mode::Aligned => 2,
        Mode::Unaligned => 3,
        Mode::AtLeastOnce => 4,
    }
}

/// The mode with this number, if this version knows it.
pub(super) const fn of(number: u32) -> Option<Mode> {
    match number {
        1 => Some(Mode::Classic),
        2 => Some(Mode::Aligned),
        3 => Some(Mode::Unaligned),
        4 => Some(Mode::AtLeastOnce),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::mode::MODES;

    #[test]
    fn modes_keep_their_numbers() {
        assert_eq!(MODES.map(number), [1, 2, 3, 4]);
        for mode in MODES {
            assert_eq!(of(number(mode)), Some(mode));
        }
        assert_eq!((of(0), of(5)), (None, None));
    }
}
