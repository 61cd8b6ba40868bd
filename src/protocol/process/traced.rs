//! Where a process that is traced says what happens in it. See [`trace`](crate::protocol::trace).

use std::sync::Arc;

use super::{Phase, Process};
use crate::protocol::application::Application;
use crate::protocol::clock::Clock;
use crate::protocol::events::Effect;
use crate::protocol::ids::SnapshotId;
use crate::protocol::mode::Mode;
use crate::protocol::trace::{What, checksum};

impl<A: Application> Process<A> {
    /// Something is about to be given to the application, or done with it.
    pub(super) fn begin_event(&mut self) {
        if let Some(tracer) = &mut self.tracer {
            tracer.begin(None, &mut self.outboxes);
        }
    }

    /// It has been done.
    pub(super) fn end_event(&mut self, what: impl FnOnce() -> What, effects: &mut Vec<Effect>) {
        if let Some(tracer) = &self.tracer {
            effects.push(Effect::Trace(tracer.end(what(), &mut self.outboxes)));
        }
    }

    /// Takes the local state, and answers when that was. A state that is traced is encoded at
    /// once, as the event says its checksum: what is traced is not in a hurry.
    pub(super) fn capture(
        &mut self,
        snapshot: SnapshotId,
        mode: Mode,
        effects: &mut Vec<Effect>,
    ) -> Option<Arc<Clock>> {
        let application = self
            .application
            .as_ref()
            .expect("a running process has one");
        let capture = application.capture();
        if self.tracer.is_none() {
            effects.push(Effect::Capture(snapshot, capture));
            return None;
        }
        let encoded = capture();
        let record = What::Record {
            snapshot,
            mode,
            state: checksum(&encoded),
        };
        self.begin_event();
        self.end_event(|| record, effects);
        effects.push(Effect::Capture(snapshot, Box::new(move || encoded)));
        self.tracer.as_ref().map(|tracer| tracer.clock())
    }

    /// Says the last state of this generation, if it was run and is traced. A driver calls it
    /// when its node is told to end; where a directive says so, the process does it itself.
    pub fn end_trace(&mut self, effects: &mut Vec<Effect>) {
        if let (Some(tracer), Phase::Running(_), Some(application)) =
            (&mut self.tracer, self.phase, &self.application)
            && tracer.ends_now()
        {
            let state = checksum(&application.capture()());
            self.begin_event();
            self.end_event(|| What::End { state }, effects);
        }
    }
}
