//! Each wrong protocol is killed by the test named for it.
