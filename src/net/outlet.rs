//! The few words between the node's loop and tonic.
//!
//! The loop puts words into an [`Outlet`]; tonic takes them out of its [`Tap`]. There is no task
//! between them. When the loop finds no room, it is told, once, when there is some again.

use std::collections::{BTreeSet, VecDeque};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use futures::Stream;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::protocol::ids::ChannelId;

/// How many words an outlet holds: one that tonic takes while the loop fills the other. More
/// would only move what waits out of the outbox, where markers may overtake it and snapshots
/// see it.
pub(super) const WORDS_MAX: usize = 2;

/// The loop's end. Dropping it ends the stream behind the words that are in it.
pub(super) struct Outlet<W> {
    state: Arc<Mutex<State<W>>>,
}

/// tonic's end.
pub(super) struct Tap<W> {
    state: Arc<Mutex<State<W>>>,
    wakeups: Arc<Wakeups>,
    _counted: TaskTrackerToken,
}

struct State<W> {
    words: VecDeque<W>,
    /// Who takes the words waits for one.
    taker: Option<Waker>,
    /// The loop has found no room for this channel.
    wanted: Option<ChannelId>,
    ended: bool,
}

/// An outlet and its tap.
pub(super) fn outlet<W>(wakeups: &Arc<Wakeups>, counted: TaskTrackerToken) -> (Outlet<W>, Tap<W>) {
    let state = Arc::new(Mutex::new(State {
        words: VecDeque::with_capacity(WORDS_MAX),
        taker: None,
        wanted: None,
        ended: false,
    }));
    let tap = Tap {
        state: Arc::clone(&state),
        wakeups: Arc::clone(wakeups),
        _counted: counted,
    };
    (Outlet { state }, tap)
}

impl<W> Outlet<W> {
    /// Whether there is room; if not, `channel` is woken when there is.
    pub(super) fn has_room(&self, channel: ChannelId) -> bool {
        let mut state = lock(&self.state);
        if state.ended {
            return false;
        }
        let room = state.words.len() < WORDS_MAX;
        state.wanted = (!room).then_some(channel);
        room
    }

    /// Puts a word in; who has not asked for room goes over the bound, and loses nothing.
    pub(super) fn put(&self, word: W) {
        self.put_instead(word, |_| false);
    }

    /// Puts a word in, instead of the last one if that is of no more use.
    pub(super) fn put_instead(&self, word: W, is_useless: impl FnOnce(&W) -> bool) {
        let mut state = lock(&self.state);
        if state.ended {
            return;
        }
        match state.words.back_mut() {
            Some(last) if is_useless(last) => *last = word,
            _ => state.words.push_back(word),
        }
        let taker = state.taker.take();
        drop(state);
        if let Some(taker) = taker {
            taker.wake();
        }
    }
}

impl<W> Drop for Outlet<W> {
    fn drop(&mut self) {
        let mut state = lock(&self.state);
        state.ended = true;
        let taker = state.taker.take();
        drop(state);
        if let Some(taker) = taker {
            taker.wake();
        }
    }
}

impl<W> Stream for Tap<W> {
    type Item = W;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<W>> {
        let mut state = lock(&self.state);
        if let Some(word) = state.words.pop_front() {
            let wanted = state.wanted.take();
            drop(state);
            if let Some(channel) = wanted {
                self.wakeups.add(channel);
            }
            return Poll::Ready(Some(word));
        }
        if state.ended {
            return Poll::Ready(None);
        }
        set_waker(&mut state.taker, context);
        Poll::Pending
    }
}

/// The stream is gone and takes nothing more; that it is gone is told elsewhere.
impl<W> Drop for Tap<W> {
    fn drop(&mut self) {
        let mut state = lock(&self.state);
        state.ended = true;
        state.words.clear();
    }
}

/// The channels that have room again: at most one entry for each, however slow the loop is.
#[derive(Default)]
pub(super) struct Wakeups {
    state: Mutex<Woken>,
}

#[derive(Default)]
struct Woken {
    channels: BTreeSet<ChannelId>,
    waiting: Option<Waker>,
}

impl Wakeups {
    fn add(&self, channel: ChannelId) {
        let mut state = lock(&self.state);
        state.channels.insert(channel);
        let waiting = state.waiting.take();
        drop(state);
        if let Some(waiting) = waiting {
            waiting.wake();
        }
    }

    /// The next channel that has room again.
    pub(super) fn next(&self) -> Option<ChannelId> {
        lock(&self.state).channels.pop_first()
    }

    /// The same, waiting for one.
    pub(super) fn poll_next(&self, context: &Context<'_>) -> Poll<ChannelId> {
        let mut state = lock(&self.state);
        if let Some(channel) = state.channels.pop_first() {
            return Poll::Ready(channel);
        }
        set_waker(&mut state.waiting, context);
        Poll::Pending
    }
}

fn set_waker(waker: &mut Option<Waker>, context: &Context<'_>) {
    match waker {
        Some(waker) => waker.clone_from(context.waker()),
        None => *waker = Some(context.waker().clone()),
    }
}

/// Nothing that can panic is done under these locks, so a poisoned one is whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use futures::{FutureExt, StreamExt};
    use tokio_util::task::TaskTracker;

    use super::*;
    use crate::protocol::ids::ProcessId;

    fn channel() -> ChannelId {
        ChannelId::new(ProcessId::new(0), ProcessId::new(1))
    }

    fn both() -> (Arc<Wakeups>, Outlet<u32>, Tap<u32>) {
        let wakeups = Arc::default();
        let (outlet, tap) = outlet(&wakeups, TaskTracker::new().token());
        (wakeups, outlet, tap)
    }

    #[test]
    fn who_finds_no_room_is_woken_once_when_there_is_some() {
        let (wakeups, outlet, mut tap) = both();
        for word in 0..2 {
            assert!(outlet.has_room(channel()));
            outlet.put(word);
        }
        assert!(!outlet.has_room(channel()));
        assert_eq!(wakeups.next(), None);
        assert_eq!(tap.next().now_or_never(), Some(Some(0)));
        assert_eq!(wakeups.next(), Some(channel()));
        assert_eq!(tap.next().now_or_never(), Some(Some(1)));
        assert_eq!(wakeups.next(), None);
        assert_eq!(tap.next().now_or_never(), None);
    }

    #[test]
    fn what_is_of_no_more_use_is_replaced() {
        let (_wakeups, outlet, tap) = both();
        for word in [1, 10, 20, 30] {
            outlet.put_instead(word, |last| *last >= 10);
        }
        drop(outlet);
        assert_eq!(tap.collect::<Vec<_>>().now_or_never(), Some(vec![1, 30]));
    }

    #[test]
    fn an_outlet_whose_tap_is_gone_has_no_room_and_keeps_nothing() {
        let (_wakeups, outlet, tap) = both();
        outlet.put(1);
        drop(tap);
        assert!(!outlet.has_room(channel()));
        outlet.put(2);
        assert!(lock(&outlet.state).words.is_empty());
    }
}
