//! Where a node's receivers take their inputs' streams: as each generation's `Prepare` says.

use std::collections::BTreeMap;

use crate::protocol::ids::{Generation, ProcessId};
use crate::wire::control;

/// Generations whose addresses are kept: a late word may be of one before, but not of many.
const GENERATIONS_MAX: usize = 16;

/// Of each generation; those before the last that was asked for are gone.
#[derive(Debug, Default)]
pub(super) struct Addresses(BTreeMap<Generation, control::Addresses>);

impl Addresses {
    /// A `Prepare` says where they are in this generation.
    pub(super) fn note(&mut self, generation: Generation, addresses: control::Addresses) {
        self.0.insert(generation, addresses);
        if self.0.len() > GENERATIONS_MAX {
            self.0.pop_first();
        }
    }

    /// Where a process is in this generation.
    pub(super) fn of(&mut self, generation: Generation, process: ProcessId) -> Option<String> {
        self.0 = self.0.split_off(&generation);
        self.0.get(&generation)?.get(&process).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_word_of_a_generation_before_changes_no_address_of_this_one() {
        let (process, g) = (ProcessId::new(1), Generation::new);
        let at = |address: &str| control::Addresses::from([(process, address.to_owned())]);
        let mut addresses = Addresses::default();
        addresses.note(g(2), at("new"));
        addresses.note(g(1), at("old"));
        assert_eq!(addresses.of(g(2), process).as_deref(), Some("new"));
        assert_eq!(addresses.of(g(1), process), None, "it is over");
        for number in 3..100 {
            addresses.note(g(number), at("newer"));
        }
        assert_eq!(addresses.0.len(), GENERATIONS_MAX);
        assert_eq!(addresses.of(g(99), process).as_deref(), Some("newer"));
    }
}
