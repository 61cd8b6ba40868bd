//! Compiles the protobuf files with protox, so that no protoc is needed.

use std::error::Error;

const FILES: [&str; 3] = [
    "cutline/v1/channel.proto",
    "cutline/v1/control.proto",
    "cutline/v1/part.proto",
];

fn main() -> Result<(), Box<dyn Error>> {
    // `compile_fds` prints no rerun line of its own.
    println!("cargo:rerun-if-changed=proto");
    let descriptors = protox::compile(FILES, ["proto"])?;
    tonic_prost_build::configure()
        .bytes(".")
        .compile_fds(descriptors)?;
    Ok(())
}
