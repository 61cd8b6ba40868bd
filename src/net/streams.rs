//! The streams as the node's loop sees them: what it tells them, and what they tell it.
//!
//! **Why the bounded queue cannot deadlock.** What arrives on any stream goes through one queue of
//! [`EVENTS_MAX`] places, and a stream waits for a place. The only taker is the loop, which owns
//! [`Streams`]; none of its methods but `recv` waits for anything, so whatever a word leads to,
//! the loop comes back to take the next. Nothing that takes words out of an outlet needs a
//! place in the queue. So a full queue is only a loop that is busy; TCP then holds the senders
//! back, and credit bounds what they have under way.

use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard, WaitForCancellationFutureOwned};

use super::memory::keep_freed_buffers;
use super::outlet::Outlet;
use super::pauses::Pauses;
use super::tasks::{Dialled, Happening, Input, Shared, StreamId, Timing, What};
use super::{inbound, outbound};
use crate::protocol::frame::{Feedback, Frame, Greeting, Hello};
use crate::protocol::ids::{ChannelId, Generation};
use crate::wire::channel as words;
use crate::wire::pb;

/// How many events may wait for the loop, of all streams together. Each is at most one frame:
/// at 64 KiB, 16 MiB; enough that a step of the loop lets no stream run dry.
pub const EVENTS_MAX: usize = 256;

/// How long [`Streams::shutdown`] waits for tasks whose sockets are closed already. They only
/// have to be run once more; a second is a loop that is very busy.
pub const SHUTDOWN_MAX: Duration = Duration::from_secs(2);

/// What a stream tells the loop; each is an input of [`crate::protocol::events::Input`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A sender has opened a stream and said hello: answer it with [`Streams::greet`].
    Dialled(ChannelId, Hello),
    /// The receiver has answered the hello of this generation: `Welcome`, or `Refused`, after
    /// which the stream is gone. Of "not yet" nothing is told: the stream tries again.
    Greeted(ChannelId, Generation, Greeting),
    /// A frame came, on a stream that was opened for this generation.
    Arrived(ChannelId, Generation, Frame),
    /// A receiver's word came, on a stream that was opened for this generation.
    Heard(ChannelId, Generation, Feedback),
    /// The stream that carried the channel is gone. Not told of one that was hung up or replaced.
    Broken(ChannelId),
    /// There is room again for a channel for which [`Streams::can_write`] has said no.
    Writable(ChannelId),
}

/// The streams of one node. The owner is the node's loop: it moves what these tell into the core
/// and what the core answers into these.
pub struct Streams {
    shared: Arc<Shared>,
    happenings: mpsc::Receiver<Happening>,
    outbound: BTreeMap<ChannelId, Output>,
    pauses: Pauses,
    inbound: BTreeMap<ChannelId, Inputs>,
    /// Events that no stream tells; at most one for each answer to a stream that was gone.
    owed: VecDeque<Event>,
    stopped: Pin<Box<WaitForCancellationFutureOwned>>,
    _stop: DropGuard,
}

/// A newly dialled stream replaces the current one when it is welcomed, not before: whether it is
/// welcome is not known here.
#[derive(Default)]
struct Inputs {
    current: Option<Input>,
    dialled: Option<Dialled>,
}

/// The loop's end of a stream for an output; dropping it closes the connection.
struct Output {
    stream: StreamId,
    /// Once it is welcome.
    outlet: Option<Outlet<pb::ToReceiver>>,
    _end: DropGuard,
}

impl Streams {
    /// Takes the streams of so many inputs on this listener, until `shutdown` or until dropped. To
    /// be called inside the node's runtime.
    pub fn new(listener: TcpListener, inputs: usize, shutdown: &CancellationToken) -> Self {
        Self::with_timing(listener, inputs, shutdown, Timing::default())
    }

    /// The same with other limits of time.
    pub fn with_timing(
        listener: TcpListener,
        inputs: usize,
        shutdown: &CancellationToken,
        timing: Timing,
    ) -> Self {
        keep_freed_buffers();
        let (sender, happenings) = mpsc::channel(EVENTS_MAX);
        let stop = shutdown.child_token();
        let shared = Arc::new(Shared::new(timing, sender, stop.clone()));
        let serving = inbound::serve(listener, inputs, Arc::clone(&shared));
        shared.tasks.spawn(serving);
        Self {
            shared,
            happenings,
            outbound: BTreeMap::new(),
            pauses: Pauses::default(),
            inbound: BTreeMap::new(),
            owed: VecDeque::new(),
            stopped: Box::pin(stop.clone().cancelled_owned()),
            _stop: stop.drop_guard(),
        }
    }

    /// The next event; `None` after the shutdown. Loses nothing when it is dropped unfinished.
    pub async fn recv(&mut self) -> Option<Event> {
        std::future::poll_fn(|context| self.poll_recv(context)).await
    }

    /// The next event, if there is one already.
    pub fn try_recv(&mut self) -> Option<Event> {
        if let Some(event) = self.owed.pop_front() {
            return Some(event);
        }
        while let Some(channel) = self.shared.wakeups.next() {
            if self.can_write(channel) {
                return Some(Event::Writable(channel));
            }
        }
        while let Ok(happening) = self.happenings.try_recv() {
            if let Some(event) = self.admit(happening) {
                return Some(event);
            }
        }
        None
    }

    fn poll_recv(&mut self, context: &mut Context<'_>) -> Poll<Option<Event>> {
        if self.stopped.as_mut().poll(context).is_ready() {
            return Poll::Ready(None);
        }
        if let Some(event) = self.owed.pop_front() {
            return Poll::Ready(Some(event));
        }
        // Room first: there is at most one wakeup a channel, so events are not kept waiting.
        while let Poll::Ready(channel) = self.shared.wakeups.poll_next(context) {
            if self.can_write(channel) {
                return Poll::Ready(Some(Event::Writable(channel)));
            }
        }
        loop {
            let Some(happening) = ready!(self.happenings.poll_recv(context)) else {
                return Poll::Ready(None);
            };
            if let Some(event) = self.admit(happening) {
                return Poll::Ready(Some(event));
            }
        }
    }

    /// Opens a stream for an output on a connection of its own, instead of the one there may be.
    /// Tries again, with a growing pause, until it is answered with `Welcome` or `Refused`, or
    /// hung up. If the last one broke as soon as it was open, it waits before the first try.
    pub fn dial(&mut self, channel: ChannelId, address: impl Into<String>, hello: Hello) {
        let stream = self.shared.next_stream();
        let end = self.shared.stop.child_token();
        let (generation, timing) = (hello.generation, &self.shared.timing);
        let wait = self
            .pauses
            .before(channel, generation, Instant::now(), timing);
        let dial = outbound::Dial {
            shared: Arc::clone(&self.shared),
            channel,
            stream,
            address: address.into(),
            hello,
            wait,
            end: end.clone(),
        };
        self.shared.tasks.spawn(dial.carry());
        let output = Output {
            stream,
            outlet: None,
            _end: end.drop_guard(),
        };
        self.outbound.insert(channel, output);
    }

    /// Answers the hello on an input. A welcome stream replaces the one there may be; any other
    /// answer ends the stream once it is told.
    pub fn greet(&mut self, channel: ChannelId, greeting: Greeting) {
        let is_welcome = matches!(greeting, Greeting::Welcome { .. });
        let inputs = self.inbound.entry(channel).or_default();
        if let Some(Dialled { input, answered }) = inputs.dialled.take() {
            input.outlet.put(words::greeting_word(greeting));
            // If its task is gone, it has said so, and that comes next.
            let _ = answered.send(is_welcome);
            if is_welcome {
                inputs.current = Some(input);
            } else {
                // It closes the connection itself, when the answer has been taken.
                input.end.disarm();
            }
        } else if is_welcome {
            inputs.current = None;
            self.owed.push_back(Event::Broken(channel));
        }
        self.forget_unused(channel);
    }

    /// Drops the stream of this channel, and what is not on the wire yet; of it nothing more is
    /// told.
    pub fn hang_up(&mut self, channel: ChannelId) {
        if self.outbound.remove(&channel).is_some() {
            return;
        }
        if let Some(inputs) = self.inbound.get_mut(&channel) {
            // A stream that waits for its answer is another one than the one that is hung up.
            if inputs.current.take().is_none() {
                inputs.dialled = None;
            }
        }
        self.forget_unused(channel);
    }

    /// Drops the streams of all channels.
    pub fn hang_up_all(&mut self) {
        self.outbound.clear();
        self.inbound.clear();
    }

    /// Whether there is room for a frame on an output, or for feedback on an input. If there is a
    /// stream and no room, [`Event::Writable`] says when there is.
    pub fn can_write(&self, channel: ChannelId) -> bool {
        if let Some(output) = self.outbound.get(&channel) {
            let outlet = output.outlet.as_ref();
            return outlet.is_some_and(|outlet| outlet.has_room(channel));
        }
        self.current(channel)
            .is_some_and(|input| input.outlet.has_room(channel))
    }

    /// Puts a frame on the wire of an output, for which there must be room. Without a stream it
    /// goes nowhere: the sender keeps what is not acknowledged.
    pub fn write(&mut self, channel: ChannelId, frame: Frame) {
        let output = self.outbound.get(&channel);
        if let Some(outlet) = output.and_then(|output| output.outlet.as_ref()) {
            tracing::trace!(%channel, "a frame to the wire");
            outlet.put(words::frame_word(frame));
        }
    }

    /// Tells the sender of an input how far it may go. Feedback is absolute: it replaces what was
    /// not sent yet.
    pub fn feedback(&mut self, channel: ChannelId, feedback: Feedback) {
        if let Some(input) = self.current(channel) {
            let is_feedback =
                |word: &pb::ToSender| matches!(word.word, Some(pb::to_sender::Word::Feedback(_)));
            let word = words::feedback_word(feedback);
            input.outlet.put_instead(word, is_feedback);
        }
    }

    /// Ends all streams at once, without waiting for any peer, and returns when their tasks and
    /// sockets are gone; in any case within [`SHUTDOWN_MAX`].
    pub async fn shutdown(mut self) {
        self.shared.stop.cancel();
        self.hang_up_all();
        self.happenings.close();
        while self.happenings.try_recv().is_ok() {}
        self.shared.tasks.close();
        let gone = tokio::time::timeout(SHUTDOWN_MAX, self.shared.tasks.wait());
        if gone.await.is_err() {
            let tasks = self.shared.tasks.len();
            tracing::warn!(tasks, "streams are left behind at shutdown");
        }
    }

    /// Takes in what a stream tells; nothing if that stream no longer carries its channel.
    fn admit(&mut self, happening: Happening) -> Option<Event> {
        let Happening {
            channel,
            stream,
            what,
        } = happening;
        match what {
            What::Dialled(hello, dialled) => {
                self.inbound.entry(channel).or_default().dialled = Some(*dialled);
                Some(Event::Dialled(channel, hello))
            }
            What::Greeted(generation, greeting, outlet) => {
                let output = self.outbound.get_mut(&channel)?;
                if output.stream != stream {
                    return None;
                }
                output.outlet = outlet;
                if output.outlet.is_none() {
                    self.outbound.remove(&channel);
                }
                Some(Event::Greeted(channel, generation, greeting))
            }
            What::Arrived(generation, frame) => {
                let is_current = self.current(channel)?.stream == stream;
                is_current.then_some(Event::Arrived(channel, generation, frame))
            }
            What::Heard(generation, feedback) => {
                let is_current = self.outbound.get(&channel)?.stream == stream;
                is_current.then_some(Event::Heard(channel, generation, feedback))
            }
            What::Broken => self.broken(channel, stream),
        }
    }

    fn broken(&mut self, channel: ChannelId, stream: StreamId) -> Option<Event> {
        let outbound = self.outbound.get(&channel);
        if outbound.is_some_and(|output| output.stream == stream) {
            self.outbound.remove(&channel);
            return Some(Event::Broken(channel));
        }
        let inputs = self.inbound.get_mut(&channel)?;
        let was_current = inputs.current.take_if(|input| input.stream == stream);
        inputs
            .dialled
            .take_if(|dialled| dialled.input.stream == stream);
        let event = was_current.map(|_| Event::Broken(channel));
        self.forget_unused(channel);
        event
    }

    fn current(&self, channel: ChannelId) -> Option<&Input> {
        self.inbound.get(&channel)?.current.as_ref()
    }

    fn forget_unused(&mut self, channel: ChannelId) {
        let inputs = self.inbound.get(&channel);
        if inputs.is_some_and(|inputs| inputs.current.is_none() && inputs.dialled.is_none()) {
            self.inbound.remove(&channel);
        }
    }
}
