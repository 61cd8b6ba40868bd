//! Buffers that are freed are kept for the next ones.
//!
//! A frame passes through buffers of 64 KiB and more, in tonic and in HTTP/2, all short-lived.
//! glibc gives such memory back to the system as soon as 128 KiB of it lie free, and the system
//! clears each page again when it is touched anew: at 256-byte messages, half of a receiver's
//! time. glibc learns from what is freed (`mallopt(3)`, *dynamic mmap threshold*): once a block
//! of this size has been, smaller ones come out of the heap, and twice as much may lie free
//! there. On other systems this does nothing.

use std::hint::black_box;
use std::sync::Once;

/// No buffer is longer: tonic decodes nothing longer than this. Twice as much is what is under
/// way on a channel that is busy.
const BUFFER_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Has the process keep what its buffers free. The memory asked for is never touched.
pub(super) fn keep_freed_buffers() {
    static KEPT: Once = Once::new();
    KEPT.call_once(|| drop(black_box(Vec::<u8>::with_capacity(BUFFER_BYTES_MAX))));
}
