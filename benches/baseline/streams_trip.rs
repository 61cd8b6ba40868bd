//! A message there and back over two channels of cutline's streams, one at a time, without the
//! core. None is acknowledged: the core does so when it has time.

use std::net::{SocketAddr, TcpListener};
use std::time::Instant;

use cutline::net::{Event, Streams};
use cutline::protocol::frame::{Batch, Frame};
use cutline::protocol::ids::{ChannelId, MessageNumber, ProcessId};

use crate::streams::{hello, streams, welcome};
use crate::{Mark, Plan, Sent, check, fill, run};

fn there() -> ChannelId {
    ChannelId::new(ProcessId::new(0), ProcessId::new(1))
}

fn back() -> ChannelId {
    ChannelId::new(ProcessId::new(1), ProcessId::new(0))
}

fn message(bytes: usize, number: u64, content: u64) -> Frame {
    let mut packed = u32::try_from(bytes).unwrap().to_le_bytes().to_vec();
    packed.resize(4 + bytes, 0);
    fill(&mut packed[4..], content);
    Frame::Messages(Batch::new(MessageNumber::new(number), 1, packed.into()).unwrap())
}

/// Waits for the next message, answers everything else as a node would.
async fn next(streams: &mut Streams) -> Option<Batch> {
    loop {
        match streams.recv().await? {
            Event::Arrived(_, _, Frame::Messages(batch)) => return Some(batch),
            Event::Dialled(channel, _) => streams.greet(channel, welcome()),
            Event::Broken(_) => return None,
            _ => {}
        }
    }
}

/// The first message says where the sender takes streams; it is no trip.
pub(crate) fn send(address: SocketAddr, plan: Plan) -> Sent {
    run(async move {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut streams = streams(listener);
        streams.dial(there(), address.to_string(), hello());
        while !matches!(streams.recv().await, Some(Event::Greeted(..))) {}
        streams.write(there(), message(plan.bytes, 1, port.into()));
        next(&mut streams).await.unwrap();
        let began = Mark::now();
        let mut trips = Vec::new();
        for number in 1..=plan.messages {
            let left = Instant::now();
            streams.write(there(), message(plan.bytes, number + 1, number));
            let batch = next(&mut streams).await.unwrap();
            trips.push(u64::try_from(left.elapsed().as_nanos()).unwrap());
            let (_, message) = batch.messages().next().unwrap();
            check(message, plan.bytes, number);
        }
        streams.shutdown().await;
        trips.sort_unstable();
        Sent {
            began,
            answer_ns: trips[trips.len() / 2],
        }
    })
}

pub(crate) fn receive(listener: TcpListener, plan: Plan) {
    run(async move {
        let mut streams = streams(listener);
        let first = next(&mut streams).await.unwrap();
        let (_, first) = first.messages().next().unwrap();
        let port = u16::from_le_bytes([first[0], first[1]]);
        streams.dial(back(), format!("127.0.0.1:{port}"), hello());
        while !matches!(streams.recv().await, Some(Event::Greeted(..))) {}
        streams.write(back(), message(plan.bytes, 1, 0));
        while let Some(batch) = next(&mut streams).await {
            let (number, message_bytes) = batch.messages().next().unwrap();
            check(message_bytes, plan.bytes, number.get() - 1);
            streams.write(back(), message(plan.bytes, number.get(), number.get() - 1));
        }
        streams.shutdown().await;
    });
}
