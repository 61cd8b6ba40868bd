//! A message there and back over std TCP, one at a time.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Instant;

use crate::{Mark, Plan, Sent, check, fill};

pub(crate) fn send(address: SocketAddr, plan: Plan) -> Sent {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_nodelay(true).unwrap();
    let began = Mark::now();
    let mut message = vec![0; plan.bytes];
    let mut trips: Vec<u64> = (1..=plan.messages)
        .map(|number| {
            let left = Instant::now();
            fill(&mut message, number);
            stream.write_all(&message).unwrap();
            stream.read_exact(&mut message).unwrap();
            u64::try_from(left.elapsed().as_nanos()).unwrap()
        })
        .collect();
    trips.sort_unstable();
    Sent {
        began,
        answer_ns: trips[trips.len() / 2],
    }
}

pub(crate) fn receive(listener: &TcpListener, plan: Plan) {
    let (mut stream, _) = listener.accept().unwrap();
    stream.set_nodelay(true).unwrap();
    let mut message = vec![0; plan.bytes];
    for number in 1..=plan.messages {
        stream.read_exact(&mut message).unwrap();
        check(&message, plan.bytes, number);
        stream.write_all(&message).unwrap();
    }
}
