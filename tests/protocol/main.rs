//! What the core must never do, and what it must always do, one claim a test: the two ends of a
//! channel against whatever a stream can do to them, a process against words of the past, and the
//! collector against stores and nodes that fail. No IO and no threads: every step is written here.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on is to fail")]

mod absence;
mod breaches;
mod channels;
mod desk;
mod diary;
mod ended;
mod failures;
mod feedback;
mod fencing;
mod leadership;
mod limits;
mod loading;
mod log;
mod membership;
mod mixed;
mod modes;
mod overtaking;
mod pressure;
mod receiver;
mod recordings;
mod requests;
mod restores;
mod retention;
mod sender;
mod solo;
mod states;
mod stops;
mod store;
mod unreadable;
mod windows;
mod worlds;
