//! Running a job on one machine, and asking about it: what is behind the program `cutline`.
//!
//! [`supervisor`] starts the collector and the nodes as processes of the operating system and
//! keeps them running; [`stop`] ends them; the rest finds a job and shows how it stands.

pub mod detach;
pub mod directory;
pub mod incarnations;
pub mod logs;
pub mod notice;
pub mod restarts;
pub mod stop;
pub mod supervisor;
pub mod table;
pub mod view;
pub mod who;
