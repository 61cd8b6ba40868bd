//! Bytes: protobuf to and from the protocol's words.

pub mod control;

/// The code generated from `proto/cutline/v1`.
#[allow(clippy::all, missing_docs, unreachable_pub, unused_qualifications)]
pub mod pb {
    tonic::include_proto!("cutline.v1");
}
