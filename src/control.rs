//! Running a job on one machine, and asking about it: what is behind the program `cutline`.
//!
//! [`session`] makes a job's directory ready; [`supervisor`] starts the collector and the nodes
//! as processes of the operating system and keeps them running; [`stop`] ends them. The rest
//! finds a job, asks its collector or reads its store, and shows how it stands.

pub mod client;
pub mod command;
pub mod detach;
pub mod directory;
mod gated;
mod held_store;
pub mod incarnations;
pub mod interrupt;
pub mod lock;
pub mod log;
pub mod logs;
pub mod notice;
pub mod place;
pub mod run;
pub mod session;
pub mod stop;
pub mod supervisor;
pub mod table;
pub mod traces;
pub mod up;
pub mod view;
pub mod wanted;
pub mod watch;
pub mod who;
