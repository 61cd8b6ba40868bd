//! Cutline's streams alone, without the core: what the driver costs, and so the most that a
//! channel can carry. Messages are packed as an outbox packs them and read in place.

use std::net::{SocketAddr, TcpListener};

use bytes::{BufMut, BytesMut};
use cutline::net::{Event, Streams};
use cutline::protocol::frame::{
    BATCH_BYTES, Batch, Credit, Feedback, Frame, Greeting, Hello, LENGTH_BYTES,
};
use cutline::protocol::ids::{
    ChannelId, Generation, Incarnation, JobId, MarkerOrdinal, MessageNumber, ProcessId,
};
use tokio_util::sync::CancellationToken;

use crate::{Mark, Plan, Sent, check, cpu_ns, fill, run};

/// As in [`cutline::protocol::link::Limits`].
const WINDOW_MESSAGES: u64 = 8192;

fn channel() -> ChannelId {
    ChannelId::new(ProcessId::new(0), ProcessId::new(1))
}

pub(crate) fn hello() -> Hello {
    Hello {
        topology: 0,
        job: JobId::default(),
        generation: Generation::new(1),
        incarnation: Incarnation::new(1),
    }
}

/// The receiver's CPU time comes back in the bytes of the last credit.
pub(crate) fn feedback(handled: u64, bytes: u64) -> Feedback {
    Feedback {
        next: MessageNumber::new(handled + 1),
        next_marker: MarkerOrdinal::new(1),
        credit: Credit {
            number: MessageNumber::new(handled + WINDOW_MESSAGES),
            bytes,
        },
    }
}

pub(crate) fn streams(listener: TcpListener) -> Streams {
    listener.set_nonblocking(true).unwrap();
    let listener = tokio::net::TcpListener::from_std(listener).unwrap();
    Streams::new(listener, 1, &CancellationToken::new())
}

pub(crate) fn send(address: SocketAddr, plan: Plan) -> Sent {
    run(async move {
        let mut streams = streams(TcpListener::bind("127.0.0.1:0").unwrap());
        streams.dial(channel(), address.to_string(), hello());
        let mut packer = Packer::new(plan);
        let Some(Event::Greeted(_, _, Greeting::Welcome { feedback, .. })) = streams.recv().await
        else {
            panic!("not welcome");
        };
        let mut credit = feedback.credit.number.get();
        let began = Mark::now();
        loop {
            while streams.can_write(channel())
                && let Some(batch) = packer.next(credit)
            {
                streams.write(channel(), Frame::Messages(batch));
            }
            match streams.recv().await.expect("not shut down") {
                Event::Heard(_, _, heard) if heard.next.get() > plan.messages => {
                    streams.shutdown().await;
                    return Sent {
                        began,
                        answer_ns: heard.credit.bytes,
                    };
                }
                Event::Heard(_, _, heard) => credit = heard.credit.number.get(),
                Event::Writable(_) => {}
                other => panic!("{other:?}"),
            }
        }
    })
}

/// Fills batches as long as there is credit.
struct Packer {
    plan: Plan,
    message: Vec<u8>,
    sent: u64,
}

impl Packer {
    fn new(plan: Plan) -> Self {
        Self {
            plan,
            message: vec![0; plan.bytes],
            sent: 0,
        }
    }

    fn next(&mut self, credit: u64) -> Option<Batch> {
        let fit = BATCH_BYTES / (LENGTH_BYTES + self.plan.bytes);
        let last = credit.min(self.plan.messages).min(self.sent + fit as u64);
        let first = self.sent + 1;
        if first > last {
            return None;
        }
        let mut packed = BytesMut::with_capacity(BATCH_BYTES);
        for number in first..=last {
            fill(&mut self.message, number);
            packed.put_u32_le(u32::try_from(self.plan.bytes).unwrap());
            packed.put_slice(&self.message);
        }
        self.sent = last;
        let count = u32::try_from(last - first + 1).unwrap();
        Some(Batch::new(MessageNumber::new(first), count, packed.freeze()).unwrap())
    }
}

pub(crate) fn welcome() -> Greeting {
    Greeting::Welcome {
        incarnation: Incarnation::new(2),
        feedback: feedback(0, 0),
    }
}

pub(crate) fn receive(listener: TcpListener, plan: Plan) {
    run(async move {
        let mut streams = streams(listener);
        let (mut began, mut handled, mut stated) = (0, 0, 0);
        while let Some(event) = streams.recv().await {
            match event {
                Event::Dialled(channel, _) => {
                    began = cpu_ns();
                    streams.greet(channel, welcome());
                }
                Event::Arrived(_, _, Frame::Messages(batch)) => {
                    for (number, message) in batch.messages() {
                        handled += 1;
                        assert_eq!(number.get(), handled);
                        check(message, plan.bytes, handled);
                    }
                }
                Event::Broken(_) => break,
                other => panic!("{other:?}"),
            }
            if handled == plan.messages {
                streams.feedback(channel(), feedback(handled, cpu_ns() - began));
            } else if handled - stated >= WINDOW_MESSAGES / 4 {
                stated = handled;
                streams.feedback(channel(), feedback(handled, 0));
            }
        }
        streams.shutdown().await;
    });
}
