//! Lists folders within bounds: what is read may not be the driver's or the SDK's, and a driver may never answer.

use std::collections::VecDeque;
use std::fs::{DirEntry, File, Metadata};
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

/// A folder that is being listed.
struct Listing<'a, 'b> {
    root: &'a Path,
    bounds: Bounds,
    /// Folders to list, relative to the root, with their level.
    folders: VecDeque<(PathBuf, usize)>,
    lines: Lines<'b>,
}

/// Lists a folder: names, sizes, and contents of some files. What cannot be read is a line.
pub(super) fn list(root: &Path, bounds: Bounds, lines: Lines<'_>) {
    let mut listing = Listing { root, bounds, folders: VecDeque::from([(PathBuf::new(), 1)]), lines };
    while let Some((folder, level)) = listing.folders.pop_front() {
        if listing.bounds.entries == 0 {
            (listing.lines)("more entries are left out".to_owned());
            return;
        }
        listing.folder(&folder, level);
    }
}

impl Listing<'_, '_> {
    fn folder(&mut self, folder: &Path, level: usize) {
        let scanned = match entries(&self.root.join(folder)) {
            Ok(scanned) => scanned,
            Err(error) => return (self.lines)(format!("{}: cannot be read: {error}", folder_name(folder))),
        };
        let shown = scanned.len().min(self.bounds.per_folder).min(self.bounds.entries);
        self.bounds.entries -= shown;
        for entry in &scanned[..shown] {
            self.entry(folder, level, entry);
        }
        if shown < scanned.len() {
            let left_out = scanned.len() - shown;
            (self.lines)(format!("{}: {left_out} or more entries are left out", folder_name(folder)));
        }
    }

    fn entry(&mut self, folder: &Path, level: usize, entry: &DirEntry) {
        let path = folder.join(entry.file_name());
        let name = entry.file_name().to_string_lossy().into_owned();
        let shown = path.display();
        match entry.metadata() {
            Err(error) => (self.lines)(format!("{shown}: cannot be read: {error}")),
            Ok(file) if file.is_symlink() => self.link(&path, level, &name),
            Ok(file) if file.is_dir() => {
                (self.lines)(format!("{shown}/"));
                self.enqueue(path, level);
            }
            Ok(file) if file.is_file() => self.file(&path, &name, &file),
            Ok(_) => (self.lines)(format!("{shown}: neither a file nor a folder")),
        }
    }

    fn link(&mut self, path: &Path, level: usize, name: &str) {
        let full = self.root.join(path);
        let target = full.read_link().map_or_else(|error| error.to_string(), |to| to.display().to_string());
        (self.lines)(format!("{} -> {target}", path.display()));
        if (self.bounds.follows)(name) && full.is_dir() {
            self.enqueue(path.to_owned(), level);
        }
    }

    fn enqueue(&mut self, path: PathBuf, level: usize) {
        if level < self.bounds.depth {
            self.folders.push_back((path, level + 1));
        }
    }

    fn file(&mut self, path: &Path, name: &str, file: &Metadata) {
        (self.lines)(format!("{}: {} bytes", path.display(), file.len()));
        if !(self.bounds.shows)(name) {
            return;
        }
        if self.bounds.bytes == 0 {
            return (self.lines)("    | left out: too much was shown already".to_owned());
        }
        match beginning(&self.root.join(path)) {
            Err(error) => (self.lines)(format!("    cannot be read: {error}")),
            Ok((text, is_cut)) => {
                self.bounds.bytes = self.bounds.bytes.saturating_sub(text.len());
                text.lines().for_each(|line| (self.lines)(format!("    | {line}")));
                if is_cut {
                    (self.lines)(format!("    the rest after {MAX_FILE_BYTES} bytes is left out"));
                }
            }
        }
    }
}

/// The name of a folder in a line.
fn folder_name(folder: &Path) -> String {
    if folder.as_os_str().is_empty() { "the folder".to_owned() } else { format!("{}/", folder.display()) }
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
