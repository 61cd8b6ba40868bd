//! A part as a file.
