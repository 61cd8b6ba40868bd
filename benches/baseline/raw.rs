//! The least that two processes can do: frames of a length and its bytes over std TCP, in writes
//! of 64 KiB.

use std::io::{BufWriter, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use crate::{Mark, Plan, Sent, check, cpu_ns, fill};

const BUFFER_BYTES: usize = 64 * 1024;

pub(crate) fn send(address: SocketAddr, plan: Plan) -> Sent {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_nodelay(true).unwrap();
    let began = Mark::now();
    let mut writer = BufWriter::with_capacity(BUFFER_BYTES, &stream);
    let mut message = vec![0; plan.bytes];
    let length = u32::try_from(plan.bytes).unwrap().to_le_bytes();
    for number in 1..=plan.messages {
        fill(&mut message, number);
        writer.write_all(&length).unwrap();
        writer.write_all(&message).unwrap();
    }
    writer.flush().unwrap();
    drop(writer);
    let mut answer = [0; 8];
    stream.read_exact(&mut answer).unwrap();
    Sent {
        began,
        answer_ns: u64::from_le_bytes(answer),
    }
}

pub(crate) fn receive(listener: &TcpListener, plan: Plan) {
    let (mut stream, _) = listener.accept().unwrap();
    let began = cpu_ns();
    let mut buffer = vec![0; BUFFER_BYTES];
    let (mut begin, mut end, mut number) = (0, 0, 0);
    while number < plan.messages {
        buffer.copy_within(begin..end, 0);
        (begin, end) = (0, end - begin);
        end += stream.read(&mut buffer[end..]).unwrap();
        while let Some((length, rest)) = buffer[begin..end].split_first_chunk() {
            let length = u32::from_le_bytes(*length) as usize;
            let Some(message) = rest.get(..length) else {
                break;
            };
            number += 1;
            check(message, plan.bytes, number);
            begin += 4 + length;
        }
    }
    let used = cpu_ns() - began;
    stream.write_all(&used.to_le_bytes()).unwrap();
}
