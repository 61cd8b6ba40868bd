//! Bytes: what the protobuf files describe, and its conversion to and from the protocol's types.

pub mod channel;
pub mod control;
pub mod part;

mod mode;

/// What the protobuf files describe, as generated.
#[allow(clippy::all, missing_docs, unreachable_pub, unused_qualifications)]
pub mod pb {
    tonic::include_proto!("cutline.v1");
}
