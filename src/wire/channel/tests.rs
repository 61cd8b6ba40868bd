//! Words of a channel there and back, and those that are refused.

use proptest::prelude::*;
use prost::Message as _;

use super::*;

fn messages(first: u64, count: u32, packed: &'static [u8]) -> pb::ToReceiver {
    let packed = packed.into();
    pb::ToReceiver {
        word: Some(ToReceiver::Messages(pb::Messages {
            first,
            count,
            packed,
            clock: vec![2, 7],
        })),
    }
}

fn marker(snapshot: u64, mode: u32, ordinal: u64) -> pb::ToReceiver {
    pb::ToReceiver {
        word: Some(ToReceiver::Marker(pb::Marker {
            snapshot,
            mode,
            ordinal,
            after: 7,
            sent: 9,
            limit_ms: (mode == 2).then_some(500),
            used_ms: 20,
        })),
    }
}

fn hello() -> (ChannelId, Hello) {
    let channel = ChannelId {
        from: ProcessId::new(3),
        to: ProcessId::new(1),
        nth: 2,
    };
    let hello = Hello {
        topology: 0xbeef,
        job: JobId::new(58),
        generation: Generation::new(4),
        incarnation: Incarnation::new(u64::MAX),
    };
    (channel, hello)
}

fn feedback() -> Feedback {
    Feedback {
        next: MessageNumber::new(9),
        next_marker: MarkerOrdinal::new(2),
        credit: Credit {
            number: MessageNumber::new(100),
            bytes: 1 << 40,
        },
    }
}

#[test]
fn every_word_of_a_sender_comes_back_as_it_was_said() {
    let (channel, said) = hello();
    assert_eq!(read_hello(hello_word(channel, &said)), Ok((channel, said)));
    let batch = read_frame(messages(5, 2, b"\x01\0\0\0a\0\0\0\0")).expect("well formed");
    let markers = [1, 2, 3, 4].map(|mode| read_frame(marker(42, mode, 3)).expect("well formed"));
    for frame in markers.into_iter().chain([batch]) {
        let bytes = frame_word(frame.clone()).encode_to_vec();
        let word = pb::ToReceiver::decode(&bytes[..]).expect("what was encoded");
        assert_eq!(read_frame(word), Ok(frame));
    }
}

#[test]
fn every_word_of_a_receiver_comes_back_as_it_was_said() {
    let welcome = Greeting::Welcome {
        incarnation: Incarnation::new(77),
        feedback: feedback(),
    };
    for greeting in [
        welcome,
        Greeting::NotYet,
        Greeting::Refused("generation g1 is over".to_owned()),
    ] {
        assert_eq!(read_greeting(greeting_word(greeting.clone())), Ok(greeting));
    }
    assert_eq!(read_feedback(feedback_word(feedback())), Ok(feedback()));
}

#[test]
fn a_word_out_of_its_place_is_named() {
    let (channel, said) = hello();
    let error = read_hello(messages(1, 1, b"\0\0\0\0")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "a frame of messages came where a hello was due"
    );
    assert!(read_hello(marker(1, 1, 1)).is_err());
    assert!(read_frame(hello_word(channel, &said)).is_err());
    assert!(read_greeting(feedback_word(feedback())).is_err());
    assert!(read_feedback(greeting_word(Greeting::NotYet)).is_err());
    assert_eq!(read_frame(pb::ToReceiver::default()), Err(WireError::Empty));
    assert_eq!(
        read_greeting(pb::ToSender::default()),
        Err(WireError::Empty)
    );
}

#[test]
fn numbers_that_cannot_be_are_refused() {
    assert_eq!(read_frame(marker(1, 9, 1)), Err(WireError::Mode(9)));
    assert!(read_frame(marker(0, 1, 1)).is_err());
    assert!(read_frame(marker(1, 1, 0)).is_err());
    let mut ahead = marker(1, 3, 1);
    if let Some(ToReceiver::Marker(marker)) = &mut ahead.word {
        marker.after = marker.sent + 1;
    }
    assert!(read_frame(ahead).is_err(), "more on the wire than was sent");
    let mut nothing_next = feedback();
    nothing_next.next = MessageNumber::new(0);
    assert!(read_feedback(feedback_word(nothing_next)).is_err());
    let (mut channel, said) = hello();
    channel.nth = 0;
    assert!(read_hello(hello_word(channel, &said)).is_err());
}

#[test]
fn a_batch_that_is_torn_or_beyond_all_numbers_is_refused() {
    assert!(read_frame(messages(1, 2, b"\0\0\0\0")).is_err());
    assert!(read_frame(messages(1, 1, b"\x09\0\0\0a")).is_err());
    assert!(read_frame(messages(0, 1, b"\0\0\0\0")).is_err());
    let error = read_frame(messages(u64::MAX, 1, b"\0\0\0\0")).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("first is {}, which cannot be", u64::MAX)
    );
}

proptest! {
    #[test]
    fn nonsense_is_refused_and_never_a_panic(bytes in proptest::collection::vec(0u8.., 0..64)) {
        if let Ok(word) = pb::ToReceiver::decode(&bytes[..]) {
            let _ = read_hello(word.clone());
            if let Ok(Frame::Messages(batch)) = read_frame(word) {
                prop_assert_eq!(batch.messages().count(), batch.count() as usize);
            }
        }
        if let Ok(word) = pb::ToSender::decode(&bytes[..]) {
            let _ = read_greeting(word.clone());
            let _ = read_feedback(word);
        }
    }
}
