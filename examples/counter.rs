//! An application of one's own: a process holds points and deals them out, one after the other.

use cutline::protocol::application::{
    Application, Capture, Outputs, Pace, Quantities, Refusal, Setup,
};
use cutline::protocol::ids::ChannelId;

const MESSAGE: &[u8] = b"one point";

/// A process and the points it holds.
pub struct Counter {
    points: u64,
}

impl Application for Counter {
    fn start(_setup: &Setup) -> Result<Self, Refusal> {
        Ok(Self { points: 100 })
    }

    fn restore(_setup: &Setup, state: &[u8]) -> Result<Self, Refusal> {
        let points = read(state).ok_or_else(|| Refusal("eight bytes make a state".to_owned()))?;
        Ok(Self { points })
    }

    fn handle(&mut self, _from: ChannelId, message: &[u8], _outputs: &mut Outputs<'_>) {
        self.points += u64::from(message == MESSAGE);
    }

    fn tick(&mut self, outputs: &mut Outputs<'_>) -> Pace {
        let channels: Vec<ChannelId> = outputs.channels().collect();
        for channel in channels {
            if self.points > 0 && outputs.send(channel, MESSAGE).is_ok() {
                self.points -= 1;
            }
        }
        Pace::After(10)
    }

    fn capture(&self) -> Capture {
        let points = self.points;
        Box::new(move || points.to_le_bytes().to_vec())
    }

    fn in_state(_setup: &Setup, state: &[u8]) -> Quantities {
        let points = read(state).and_then(|points| i64::try_from(points).ok());
        Quantities::from([("points".to_owned(), points.unwrap_or(0))])
    }

    fn in_message(_setup: &Setup, message: &[u8]) -> Quantities {
        Quantities::from([("points".to_owned(), i64::from(message == MESSAGE))])
    }
}

fn read(state: &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(state.try_into().ok()?))
}

fn main() -> std::process::ExitCode {
    cutline::node::main::<Counter>()
}

#[cfg(test)]
mod tests {
    use cutline::protocol::application::trial::{self, Trial};

    use super::*;

    #[test]
    fn a_point_goes_over_each_output_and_counts_where_it_arrives() {
        let channels = ["p1→p2", "p2→p1", "p1→p3", "p3→p1"];
        let setup = trial::setup("counter", &channels, 0, Default::default());
        let mut trial = Trial::new(&setup);
        let mut counter = Counter::start(&setup).unwrap();
        assert_eq!(counter.tick(&mut trial.outputs()), Pace::After(10));
        let sent = trial.sent();
        let message = MESSAGE.to_vec();
        let wanted = ["p1→p2", "p1→p3"].map(|to| (to.parse().unwrap(), message.clone()));
        assert_eq!(sent, wanted);
        counter.handle("p3→p1".parse().unwrap(), &message, &mut trial.outputs());
        let state = counter.capture()();
        assert_eq!(Counter::in_state(&setup, &state)["points"], 99);
    }
}
