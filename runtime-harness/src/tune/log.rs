//! The log of a tuning run: one line per candidate as it was measured, so that an interrupted run goes on where it ended.

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use runtime_core::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::describe::Program;
use crate::row::Row;
use crate::settings::EffectiveSettings;

const SCHEMA: &str = "runtime.tuning.log";
const VERSION: u64 = 1;

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
struct Head {
    schema: String,
    version: u64,
    runtime: Program,
}

/// A candidate that was measured.
#[derive(Debug, Serialize, Deserialize)]
struct Line {
    fingerprint: String,
    /// The program that measured it. Older logs lack it: the program in the first line did.
    #[serde(default)]
    runtime: Option<Program>,
    row: Row,
}

/// The rows of earlier runs, and the file that further rows are added to.
#[derive(Debug)]
pub(super) struct Log {
    path: PathBuf,
    file: File,
    rows: BTreeMap<String, Vec<Row>>,
    read: usize,
    used: usize,
}

impl Log {
    /// Opens a log, or begins it. A last line without an end is removed: its run was killed while it was written.
    ///
    /// # Errors
    /// `Io` if the file cannot be used, or another run writes it; `InvalidArgument` if it is another kind of file.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let failed = |error: &dyn std::fmt::Display| {
            Error::new(ErrorKind::Io, format!("cannot use the log {}: {error}", path.display()))
        };
        if path.metadata().is_ok_and(|metadata| !metadata.is_file()) {
            return Err(failed(&"it is not a regular file"));
        }
        let options = File::options().read(true).append(true).create(true).open(path);
        let mut file = options.map_err(|error| failed(&error))?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => return Err(failed(&"another run is writing it")),
            // Some file systems have no locks.
            Ok(()) | Err(TryLockError::Error(_)) => {}
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(|error| failed(&error))?;
        let complete = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        let foreign = |line: usize, why: &str| {
            Error::invalid(format!("{}:{line}: not a log of `runtime tune`: {why}", path.display()))
        };
        let text = std::str::from_utf8(&bytes[..complete]).map_err(|_| foreign(1, "not text"))?;
        let mut log = Self { path: path.to_owned(), file, rows: BTreeMap::new(), read: 0, used: 0 };
        if complete == 0
            && !bytes.is_empty()
            && !SCHEMA_START.starts_with(&bytes[..bytes.len().min(SCHEMA_START.len())])
        {
            return Err(foreign(1, "no schema"));
        }
        log.parse(text).map_err(|(line, why)| foreign(line, &why))?;
        let cut = |file: &mut File| {
            file.set_len(complete as u64)?;
            file.seek(SeekFrom::End(0))
        };
        if complete < bytes.len() {
            cut(&mut log.file).map_err(|error| failed(&error))?;
        }
        if complete == 0 {
            let head = Head { schema: SCHEMA.to_owned(), version: VERSION, runtime: Program::current() };
            log.append(&head)?;
        }
        Ok(log)
    }

    fn parse(&mut self, text: &str) -> Result<(), (usize, String)> {
        let mut lines = text.lines().zip(1..);
        let Some((head, _)) = lines.next() else { return Ok(()) };
        let head: Head = serde_json::from_str(head).map_err(|error| (1, error.to_string()))?;
        let current = Program::current().without_build();
        if head.schema != SCHEMA || head.version != VERSION {
            return Err((
                1,
                format!("{} version {}; this program reads version {VERSION}", head.schema, head.version),
            ));
        }
        for (line, number) in lines {
            let Line { fingerprint, runtime, row } =
                serde_json::from_str(line).map_err(|error| (number, error.to_string()))?;
            let program = runtime.as_ref().unwrap_or(&head.runtime);
            // Another version of the program may measure in another way.
            let fingerprint = if program.without_build() == current { fingerprint } else { String::new() };
            self.read += 1;
            self.rows.entry(fingerprint).or_default().push(row);
        }
        Ok(())
    }

    /// The row of a candidate with these settings on a device, if it was measured before.
    pub(super) fn take(
        &mut self,
        fingerprint: &str,
        settings: &EffectiveSettings,
        device: &str,
    ) -> Option<Row> {
        let rows = self.rows.get(fingerprint)?;
        let found = rows.iter().find(|row| row.is_on(device) && row.settings == *settings)?;
        self.used += 1;
        Some(found.clone())
    }

    /// The description of a device in a row of an earlier run.
    pub(super) fn device_info(&self, device: &str) -> Option<&Value> {
        self.rows.values().flatten().filter(|row| row.is_on(device)).find_map(|row| row.device_info.as_ref())
    }

    /// Number of rows that were read, and of those that this run has used.
    pub(super) const fn usage(&self) -> (usize, usize) {
        (self.read, self.used)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a row.
    pub(super) fn add(&mut self, fingerprint: &str, row: &Row) -> Result<()> {
        let runtime = Some(Program::current());
        self.append(&Line { fingerprint: fingerprint.to_owned(), runtime, row: row.clone() })
    }

    /// Writes a line in one call: if the process is killed, only the last line is incomplete.
    fn append(&mut self, line: &impl Serialize) -> Result<()> {
        let failed = |error: &dyn std::fmt::Display| {
            Error::new(ErrorKind::Io, format!("cannot write the log {}: {error}", self.path.display()))
        };
        let mut text = serde_json::to_vec(line).map_err(|error| failed(&error))?;
        text.push(b'\n');
        self.file.write_all(&text).map_err(|error| failed(&error))
    }
}

/// How the first line begins, for a file whose run was killed while it wrote that line.
const SCHEMA_START: &[u8] = br#"{"schema":"runtime.tuning.log""#;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::row_fixture::row;

    fn other_version() -> Program {
        Program { version: "0.0.1".to_owned(), ..Program::current() }
    }

    /// A log that `head` began, with a line for each name, measured by the program beside it.
    fn write(path: &Path, head: &Program, lines: &[(&str, Option<Program>)]) {
        let head = json!({ "schema": SCHEMA, "version": VERSION, "runtime": head });
        let lines = lines.iter().map(|(name, program)| {
            let mut line = json!({ "fingerprint": name, "row": row(name, &[5.0], |_| {}) });
            if let Some(program) = program {
                line["runtime"] = json!(program);
            }
            line
        });
        let text: String = [head].into_iter().chain(lines).map(|line| format!("{line}\n")).collect();
        std::fs::write(path, text).unwrap();
    }

    fn has(log: &mut Log, name: &str) -> bool {
        let settings = row(name, &[5.0], |_| {}).settings;
        log.take(name, &settings, "host:0").is_some()
    }

    #[test]
    fn a_log_that_two_versions_wrote_in_turn_has_the_rows_of_each() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.jsonl");
        for head in [other_version(), Program::current()] {
            let lines = [
                ("old", Some(other_version())),
                ("own", Some(Program::current())),
                ("older", Some(other_version())),
                ("older build", Some(Program::current().without_build())),
            ];
            write(&path, &head, &lines);
            let mut log = Log::open(&path).unwrap();
            assert!(has(&mut log, "own") && !has(&mut log, "old") && !has(&mut log, "older"), "{head:?}");
            log.add("added", &row("added", &[5.0], |_| {})).unwrap();
            drop(log);
            let mut log = Log::open(&path).unwrap();
            assert!(
                has(&mut log, "own") && has(&mut log, "added") && has(&mut log, "older build"),
                "{head:?}"
            );
            assert_eq!(log.usage(), (5, 3));
        }
    }

    #[test]
    fn a_line_without_a_program_is_of_the_one_that_began_the_log() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.jsonl");
        for (head, is_used) in [(Program::current(), true), (other_version(), false)] {
            write(&path, &head, &[("plain", None)]);
            assert_eq!(has(&mut Log::open(&path).unwrap(), "plain"), is_used);
        }
    }
}
