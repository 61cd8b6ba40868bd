//! Writing the trace of one process down. Blocks; whoever must not wait does it elsewhere.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::line::Names;
use super::{FILE_BYTES_MAX, GENERATIONS_MAX, file_name, folder, generation_folder};
use crate::protocol::ids::{Generation, Incarnation, ProcessId};
use crate::protocol::topology::Topology;
use crate::protocol::trace::Event;

/// What is kept back before it is written: a kill loses at most this and what has not come here.
const BUFFER_BYTES: usize = 64 * 1024;

/// Writes the trace of one incarnation, a file for each generation.
#[derive(Debug)]
pub struct Writer {
    directory: PathBuf,
    names: Names,
    process: ProcessId,
    incarnation: Incarnation,
    file: Option<OpenFile>,
    buffer: Vec<u8>,
}

#[derive(Debug)]
struct OpenFile {
    generation: Generation,
    path: PathBuf,
    file: File,
    bytes: u64,
    /// Whether it has reached its bound.
    full: bool,
}

impl Writer {
    /// A writer for this process, in the job's directory. Nothing is created before an event.
    pub fn new(
        directory: &Path,
        topology: Arc<Topology>,
        process: ProcessId,
        incarnation: Incarnation,
    ) -> Self {
        Self {
            directory: directory.to_owned(),
            names: Names::new(topology),
            process,
            incarnation,
            file: None,
            buffer: Vec::with_capacity(BUFFER_BYTES),
        }
    }

    /// Writes an event down, or keeps it for the next [`flush`](Self::flush).
    ///
    /// # Errors
    /// If the file system says no; with the path.
    pub fn write(&mut self, event: &Event, at_us: u64) -> io::Result<()> {
        let current = self.file.as_ref().map(|open| open.generation);
        if current != Some(event.generation) {
            self.flush()?;
            self.file = Some(self.open(event.generation)?);
        }
        let Some(open) = self.file.as_mut().filter(|open| !open.full) else {
            return Ok(());
        };
        let line = self.names.write(event, at_us);
        open.bytes += line.len() as u64 + 1;
        if open.bytes > FILE_BYTES_MAX {
            open.full = true;
            tracing::warn!(
                "the trace of {} ends here: {} has {FILE_BYTES_MAX} bytes",
                open.generation,
                open.path.display()
            );
            return self.flush();
        }
        self.buffer.extend_from_slice(line.as_bytes());
        self.buffer.push(b'\n');
        if self.buffer.len() >= BUFFER_BYTES {
            return self.flush();
        }
        Ok(())
    }

    /// Writes what was kept back.
    ///
    /// # Errors
    /// If the file system says no; with the path.
    pub fn flush(&mut self) -> io::Result<()> {
        if let Some(open) = &mut self.file {
            let written = open.file.write_all(&self.buffer);
            written.map_err(|error| at(&open.path, &error))?;
        }
        self.buffer.clear();
        Ok(())
    }

    /// A generation is run by one incarnation of a process: what another has left under its
    /// number is of a job that was begun anew in this directory.
    fn open(&self, generation: Generation) -> io::Result<OpenFile> {
        let folder = generation_folder(&self.directory, generation);
        fs::create_dir_all(&folder).map_err(|error| at(&folder, &error))?;
        let name = self.names.topology().name(self.process);
        self.remove(&folder, name)?;
        self.retire(generation, name)?;
        let path = folder.join(file_name(name, self.incarnation));
        let file = File::create(&path).map_err(|error| at(&path, &error))?;
        Ok(OpenFile {
            generation,
            path,
            file,
            bytes: 0,
            full: false,
        })
    }

    /// Removes the process's files in one generation's folder.
    fn remove(&self, folder: &Path, name: &str) -> io::Result<()> {
        let start = format!("{}.", crate::name::encode_name(name));
        for entry in fs::read_dir(folder).map_err(|error| at(folder, &error))? {
            let path = entry.map_err(|error| at(folder, &error))?.path();
            let file = path.file_name().and_then(|file| file.to_str());
            if file.is_some_and(|file| file.starts_with(&start)) {
                fs::remove_file(&path).map_err(|error| at(&path, &error))?;
            }
        }
        Ok(())
    }

    /// Removes the process's files of generations that are too old to be kept.
    fn retire(&self, newest: Generation, name: &str) -> io::Result<()> {
        let all = folder(&self.directory);
        for entry in fs::read_dir(&all).map_err(|error| at(&all, &error))? {
            let path = entry.map_err(|error| at(&all, &error))?.path();
            let generation = path.file_name().and_then(|file| file.to_str());
            let generation = generation.and_then(|text| text.parse::<Generation>().ok());
            if generation.is_some_and(|old| old.get() + GENERATIONS_MAX <= newest.get()) {
                self.remove(&path, name)?;
                // The last process to leave takes the folder with it.
                let _ = fs::remove_dir(&path);
            }
        }
        Ok(())
    }
}

fn at(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}
