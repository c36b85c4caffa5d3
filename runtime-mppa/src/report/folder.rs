//! Lists folders within bounds: what is read may not be the driver's or the SDK's, and a driver may never answer.

use std::collections::VecDeque;
use std::fs::{DirEntry, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Entries of a folder that are looked at, so that they can be sorted.
const MAX_SCANNED: usize = 4096;
/// Part of a file that is shown.
const MAX_FILE_BYTES: u64 = 4 << 10;

/// Where lines go.
pub(super) type Lines<'a> = &'a mut dyn FnMut(String);

/// The lines that a thread finds within the deadline. A thread that a driver holds up is left behind.
pub(super) fn lines_within(deadline: Duration, find: impl FnOnce(Lines<'_>) + Send + 'static) -> Vec<String> {
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        find(&mut |line| {
            // After the deadline, nothing receives.
            let _ = send.send(line);
        });
    });
    let started = Instant::now();
    let mut lines = Vec::new();
    loop {
        match receive.recv_timeout(deadline.saturating_sub(started.elapsed())) {
            Ok(line) => lines.push(line),
            Err(RecvTimeoutError::Disconnected) => return lines,
            Err(RecvTimeoutError::Timeout) => {
                lines.push(format!("not finished within {deadline:?}; the rest is missing"));
                return lines;
            }
        }
    }
}

/// How much of a folder is listed, the upper levels first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Levels of folders.
    pub(super) depth: usize,
    /// Entries of each folder.
    pub(super) per_folder: usize,
    /// Entries of all folders.
    pub(super) entries: usize,
    /// Contents of all files.
    pub(super) bytes: usize,
    /// Whether the contents of a file are shown, by name.
    pub(super) shows: fn(&str) -> bool,
    /// Whether a link to a folder is followed, by name.
    pub(super) follows: fn(&str) -> bool,
}

/// Lists a folder: names, sizes, and contents of some files. What cannot be read is a line.
pub(super) fn list(root: &Path, mut bounds: Bounds, lines: Lines<'_>) {
    // Relative to the root, with their level.
    let mut folders = VecDeque::from([(PathBuf::new(), 1)]);
    while let Some((folder, level)) = folders.pop_front() {
        if bounds.entries == 0 {
            return lines("more entries are left out".to_owned());
        }
        let name = if level == 1 { "the folder".to_owned() } else { format!("{}/", folder.display()) };
        let scanned = match entries(&root.join(&folder)) {
            Ok(scanned) => scanned,
            Err(error) => {
                lines(format!("{name}: cannot be read: {error}"));
                continue;
            }
        };
        let shown = scanned.len().min(bounds.per_folder).min(bounds.entries);
        bounds.entries -= shown;
        for entry in &scanned[..shown] {
            let path = folder.join(entry.file_name());
            if describe(entry, &path, &mut bounds, lines) && level < bounds.depth {
                folders.push_back((path, level + 1));
            }
        }
        if shown < scanned.len() {
            lines(format!("{name}: {} or more entries are left out", scanned.len() - shown));
        }
    }
}

/// Describes an entry, and returns whether it is a folder to list.
fn describe(entry: &DirEntry, path: &Path, bounds: &mut Bounds, lines: Lines<'_>) -> bool {
    let (name, full, shown) = (entry.file_name(), entry.path(), path.display());
    let name = name.to_string_lossy();
    match entry.metadata() {
        Err(error) => lines(format!("{shown}: cannot be read: {error}")),
        Ok(file) if file.is_symlink() => {
            let target =
                full.read_link().map_or_else(|error| error.to_string(), |to| to.display().to_string());
            lines(format!("{shown} -> {target}"));
            return (bounds.follows)(&name) && full.is_dir();
        }
        Ok(file) if file.is_dir() => {
            lines(format!("{shown}/"));
            return true;
        }
        Ok(file) if file.is_file() => {
            lines(format!("{shown}: {} bytes", file.len()));
            if (bounds.shows)(&name) {
                contents(&full, bounds, lines);
            }
        }
        Ok(_) => lines(format!("{shown}: neither a file nor a folder")),
    }
    false
}

fn contents(file: &Path, bounds: &mut Bounds, lines: Lines<'_>) {
    if bounds.bytes == 0 {
        return lines("    | left out: too much was shown already".to_owned());
    }
    match beginning(file) {
        Err(error) => lines(format!("    cannot be read: {error}")),
        Ok((text, is_cut)) => {
            bounds.bytes = bounds.bytes.saturating_sub(text.len());
            text.lines().for_each(|line| lines(format!("    | {line}")));
            if is_cut {
                lines(format!("    the rest after {MAX_FILE_BYTES} bytes is left out"));
            }
        }
    }
}

/// The entries of a folder by name.
fn entries(folder: &Path) -> io::Result<Vec<DirEntry>> {
    let mut entries = std::fs::read_dir(folder)?.take(MAX_SCANNED).collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(DirEntry::file_name);
    Ok(entries)
}

/// The beginning of a file, and whether there is more.
fn beginning(path: &Path) -> io::Result<(String, bool)> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    let is_cut = bytes.len() as u64 > MAX_FILE_BYTES;
    if is_cut {
        bytes.pop();
    }
    Ok((String::from_utf8_lossy(&bytes).into_owned(), is_cut))
}
