//! Counting the quantities of a part again, from its state and its messages.
//!
//! The node that wrote the part has counted them too; a recount needs the application's code, and
//! shows that the counts in the file are those of the file.

use super::PartFile;
use crate::protocol::application::{Application, Quantities, Setup};
use crate::protocol::cut::add;

/// What the part's state holds and what its recorded messages carry, by the application's count.
pub fn recount<A: Application>(setup: &Setup, file: &PartFile) -> (Quantities, Quantities) {
    let in_state = A::in_state(setup, &file.state);
    let mut in_channels = Quantities::new();
    for batch in file.part.recorded() {
        for (_, message) in batch.messages() {
            add(&mut in_channels, &A::in_message(setup, message));
        }
    }
    (in_state, in_channels)
}
