//! From a part to a process that goes on: what stays of the job's beginning, and states of an
//! older form.

use cutline::protocol::application::{Application, Capture, Outputs, Refusal, Setup};
use cutline::protocol::cut::Restored;
use cutline::protocol::events::{Effect, Input, Order};
use cutline::protocol::ids::ChannelId;
use cutline::protocol::link::Limits;

use crate::diary::Diary;
use crate::solo::{G1, Solo, T1, expects, read_back, s, topology};

const OUT: &str = "p1→p2";

#[test]
fn what_a_process_held_when_the_job_began_goes_from_part_to_part() {
    let graph = topology(2, &[OUT]);
    let mut solo = Solo::new(&graph, 1, Limits::default());
    solo.told(T1, Order::Prepare(G1, s(7)));
    let mut loaded = read_back(&graph, 1, 7);
    loaded.part.initial = [("money".to_owned(), 1_000)].into();
    solo.step(Input::Loaded(G1, Ok(loaded)));
    solo.told(T1, Order::Run(G1));
    solo.welcomed(OUT, expects(1, 1));
    solo.trigger(8);
    let (_, effects) = solo.write_all(OUT);
    let stored = effects.iter().find_map(|effect| match effect {
        Effect::Store(part) => Some(&part.initial),
        _ => None,
    });
    assert_eq!(stored.expect("the part is whole")["money"], 1_000);
}

/// An application whose states were two bytes once, and are four now.
#[derive(Debug, PartialEq)]
struct Wider(u32);

impl Application for Wider {
    fn state_version(_setup: &Setup) -> u32 {
        2
    }

    fn start(_setup: &Setup) -> Result<Self, Refusal> {
        Ok(Self(0))
    }

    fn restore(_setup: &Setup, state: &[u8]) -> Result<Self, Refusal> {
        let bytes = state.try_into();
        let bytes = bytes.map_err(|_| Refusal("four bytes make a state".to_owned()))?;
        Ok(Self(u32::from_le_bytes(bytes)))
    }

    fn migrate(_setup: &Setup, version: u32, state: &[u8]) -> Result<Self, Refusal> {
        match (version, state) {
            (1, &[low, high]) => Ok(Self(u16::from_le_bytes([low, high]).into())),
            _ => Err(Refusal(format!("version {version} is unknown"))),
        }
    }

    fn handle(&mut self, _from: ChannelId, _message: &[u8], _outputs: &mut Outputs<'_>) {}

    fn capture(&self) -> Capture {
        let number = self.0;
        Box::new(move || number.to_le_bytes().to_vec())
    }
}

#[test]
fn a_state_of_another_version_is_migrated_or_refused_by_name() {
    let graph = topology(2, &[OUT]);
    let solo = Solo::new(&graph, 1, Limits::default());
    let setup = solo.process.setup();
    let of_version = |state_version: u32, state: &'static [u8]| Restored {
        part: read_back(&graph, 1, 7).part,
        state: state.into(),
        state_version,
    };
    let wider = |version, state| of_version(version, state).application::<Wider>(setup);
    assert_eq!(wider(2, &[7, 1, 0, 0]), Ok(Wider(263)));
    assert_eq!(wider(1, &[7, 1]), Ok(Wider(263)));
    assert_eq!(wider(3, &[7]).unwrap_err().0, "version 3 is unknown");
    let unread = of_version(2, b"{}").load::<Diary>(setup).unwrap_err();
    let words = "the state is of version 2 of 'diary', this program reads version 1";
    assert_eq!(unread.0, words);
}
