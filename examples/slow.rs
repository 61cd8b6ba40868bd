//! A slow consumer: one process makes parcels as fast as there is room, the other takes three
//! milliseconds for each. Messages pile up between them, and a marker that waits its turn waits
//! behind all of them: try it with `mode = "classic"`, then with `mode = "unaligned"`. Reading
//! its state takes longer than a node may be silent, and nobody minds.

use std::thread::sleep;
use std::time::Duration;

use cutline::protocol::application::{
    Application, Capture, Outputs, Pace, Quantities, Refusal, Setup,
};
use cutline::protocol::ids::ChannelId;

/// How long a parcel takes.
const WORK: Duration = Duration::from_millis(3);

/// How long it takes to read a state: as if it were large.
const READING: Duration = Duration::from_millis(2500);

/// How many parcels there are to be made.
const STOCK: u64 = 1_000_000;

/// A process and the parcels it holds.
pub struct Parcels(u64);

impl Application for Parcels {
    fn start(setup: &Setup) -> Result<Self, Refusal> {
        let makes = setup.topology.inputs(setup.process).is_empty();
        Ok(Self(if makes { STOCK } else { 0 }))
    }

    fn restore(_setup: &Setup, state: &[u8]) -> Result<Self, Refusal> {
        sleep(READING); // A state may take its time: the node goes on meanwhile.
        let parcels = read(state).ok_or_else(|| Refusal("eight bytes make a state".to_owned()))?;
        Ok(Self(parcels))
    }

    fn handle(&mut self, _from: ChannelId, _parcel: &[u8], _outputs: &mut Outputs<'_>) {
        sleep(WORK); // Stands for work: a handler never waits for anything.
        self.0 += 1;
    }

    fn tick(&mut self, outputs: &mut Outputs<'_>) -> Pace {
        let Some(channel) = outputs.channels().next() else {
            return Pace::Idle;
        };
        if self.0 > 0 && outputs.send(channel, b"a parcel").is_ok() {
            self.0 -= 1;
        }
        Pace::Now
    }

    fn capture(&self) -> Capture {
        let parcels = self.0;
        Box::new(move || parcels.to_le_bytes().to_vec())
    }

    fn in_state(_setup: &Setup, state: &[u8]) -> Quantities {
        let parcels = read(state).and_then(|parcels| i64::try_from(parcels).ok());
        Quantities::from([("parcels".to_owned(), parcels.unwrap_or(0))])
    }

    fn in_message(_setup: &Setup, _parcel: &[u8]) -> Quantities {
        Quantities::from([("parcels".to_owned(), 1)])
    }
}

fn read(state: &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(state.try_into().ok()?))
}

fn main() -> std::process::ExitCode {
    cutline::node::main::<Parcels>()
}
