//! Remembers the hash of preprocessed text, with the state of all that the preprocessor looked at, so that it need not run again.
//!
//! As ccache's direct mode, and stricter: whatever could make another preprocessor run give other text is either part of the key
//! or of the state, or nothing is remembered. The state has each included file (`-MD`), and for each of their names which folder on
//! the search path (`-v`) has such a file, so that one that appears earlier on the path is noticed.

use std::collections::BTreeSet;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use runtime_core::backend::{Notes, Source, read_file};
use serde::{Deserialize, Serialize};

use super::joints::without_joints;
use super::twins;
use crate::compile::Preprocessed;

/// The version of the notes, which is part of their key.
const VERSION: &str = "preprocessed text 2";
/// A file that changed so shortly before the preprocessor ran may change again without another time.
const QUIET: Duration = Duration::from_secs(2);
/// More places than this are not looked at.
const MAX_PLACES: usize = 20_000;
/// Tokens that make the result depend on more than the contents of files; the result for such a file is never noted.
const DOUBTFUL: [&str; 9] =
    ["__has_include", "__has_embed", "__DATE__", "__TIME__", "__TIMESTAMP__", "??=", "??/", "\"../", "<../"];

/// What the result of a preprocessor run depends on beside the files that it reads.
pub(super) fn key(base: &str, source: &Source<'_>, text: &[u8]) -> Vec<u8> {
    let mut key = format!("{VERSION}\n{base}\n{:?} {:?}\n", source.format, source.path);
    for (name, value) in source.options.iter() {
        key.push_str(&format!("{name:?}={value:?}\n"));
    }
    key.push_str(blake3::hash(text).to_hex().as_str());
    key.into_bytes()
}

/// The hash of the text, if everything is as it was when it was made.
pub(super) fn find(notes: &Notes, key: &[u8]) -> Option<String> {
    let note = notes.read(key)?;
    let (hash, state): (String, State) = serde_json::from_slice(&note).ok()?;
    state.is_current().then_some(hash)
}

/// Keeps the hash of what a run of the preprocessor made of `text`, unless there is any doubt that the state is complete.
#[allow(unsafe_code, reason = "a note of what was found out")]
pub(super) fn keep(
    notes: &Notes,
    key: &[u8],
    hash: &str,
    (text, run): (&[u8], &Preprocessed),
    started: SystemTime,
) {
    let state = if is_doubtful(text) { None } else { State::of(text, run, started) };
    // A path that is not UTF-8 cannot be written.
    if let Some(Ok(note)) = state.map(|state| serde_json::to_vec(&(hash, state))) {
        // SAFETY: the preprocessor has just made text with this hash, in this state.
        unsafe { notes.write(key, &note) };
    }
}

/// A file as it was.
#[derive(Debug, Deserialize, PartialEq, Eq, Serialize)]
struct File {
    path: PathBuf,
    /// Size, times and place on disk.
    stat: String,
    hash: String,
}

/// All that a preprocessor looked at.
#[derive(Debug, Deserialize, PartialEq, Eq, Serialize)]
struct State {
    files: Vec<File>,
    folders: Vec<PathBuf>,
    names: Vec<PathBuf>,
    /// The places, folder by folder, where there is a file of the name.
    present: Vec<PathBuf>,
}

impl State {
    /// The state after a run; `None` in doubt.
    fn of(text: &[u8], run: &Preprocessed, started: SystemTime) -> Option<Self> {
        let quiet_since = started.checked_sub(QUIET)?;
        if let Some(main) = &run.main
            && File::read(main, quiet_since)?.hash != blake3::hash(text).to_hex().as_str()
        {
            // It changed between the key and the run.
            return None;
        }
        let searched = searched_folders(&run.messages)?;
        let base = run.folder.as_deref();
        let searched: Vec<_> = searched.iter().map(|folder| absolute(folder, base)).collect::<Option<_>>()?;
        let paths: Vec<_> =
            included(&run.dependencies)?.iter().map(|path| absolute(path, base)).collect::<Option<_>>()?;
        let files: Vec<_> = paths.iter().map(|path| File::read(path, quiet_since)).collect::<Option<_>>()?;
        let mut roots: BTreeSet<_> =
            searched.iter().filter_map(|folder| folder.canonicalize().ok()).collect();
        roots.extend(searched.into_iter().chain(run.folder.clone()));
        if !paths.iter().all(|path| roots.iter().any(|root| path.starts_with(root))) {
            // Its name in the text is unknown.
            return None;
        }
        let mut folders = roots.clone();
        folders.extend(paths.iter().filter_map(|path| path.parent().map(Path::to_owned)));
        if twins::may_be_hidden(text, &paths, &folders) {
            return None;
        }
        let is_quiet = |folder: &PathBuf| folder.metadata().map_or(true, |it| changed(&it) < quiet_since);
        if !folders.iter().all(is_quiet) {
            return None;
        }
        let names = names(&paths, &folders).into_iter().collect();
        let folders = folders.into_iter().collect();
        let mut state = Self { files, folders, names, present: Vec::new() };
        state.present = state.places()?;
        let appeared = |path: &PathBuf| path.metadata().map_or(true, |it| changed(&it) >= quiet_since);
        if state.present.iter().any(appeared) { None } else { Some(state) }
    }

    /// Where there is a file of one of the names; `None` if that is too much to look at.
    fn places(&self) -> Option<Vec<PathBuf>> {
        if self.folders.len().checked_mul(self.names.len())? > MAX_PLACES {
            return None;
        }
        let places = self.folders.iter().flat_map(|folder| self.names.iter().map(|name| folder.join(name)));
        Some(places.filter(|place| place.is_file()).collect())
    }

    fn is_current(&self) -> bool {
        self.files.iter().all(File::is_current) && self.places().as_ref() == Some(&self.present)
    }
}

impl File {
    /// Reads a file; `None` if it changed lately, or if what it says depends on more than itself.
    fn read(path: &Path, quiet_since: SystemTime) -> Option<Self> {
        let content = read_file(path).ok()?;
        if is_doubtful(&content) {
            return None;
        }
        // After it was read: what changes it later changes its times, too.
        let metadata = path.metadata().ok()?;
        let is_quiet = metadata.is_file()
            && changed(&metadata) < quiet_since
            && metadata.modified().ok()? < quiet_since
            && metadata.len() == content.len() as u64;
        let (path, hash) = (path.to_owned(), blake3::hash(&content).to_hex().to_string());
        is_quiet.then(|| Self { path, stat: stat(&metadata), hash })
    }

    fn is_current(&self) -> bool {
        let Ok(metadata) = self.path.metadata() else { return false };
        let is_same = || {
            let content = read_file(&self.path).ok()?;
            Some(blake3::hash(&content).to_hex().as_str() == self.hash)
        };
        metadata.is_file() && (stat(&metadata) == self.stat || is_same().unwrap_or(false))
    }
}

/// Whether the result of preprocessing a text may depend on more than what it includes.
fn is_doubtful(text: &[u8]) -> bool {
    let text = without_joints(text);
    let embeds = |line: &str| line.contains("embed") && (line.contains('#') || line.contains("%:"));
    DOUBTFUL.iter().any(|word| text.contains(word)) || text.lines().any(embeds)
}

/// When the content, the name or the permissions of a file last changed. Programs cannot set this time.
fn changed(metadata: &Metadata) -> SystemTime {
    let (seconds, nanoseconds) = (metadata.ctime(), metadata.ctime_nsec());
    let since = Duration::new(u64::try_from(seconds).unwrap_or(0), u32::try_from(nanoseconds).unwrap_or(0));
    SystemTime::UNIX_EPOCH + since
}

fn stat(metadata: &Metadata) -> String {
    let (modified, changed) =
        ((metadata.mtime(), metadata.mtime_nsec()), (metadata.ctime(), metadata.ctime_nsec()));
    format!("{} {modified:?} {changed:?} {} {}", metadata.len(), metadata.dev(), metadata.ino())
}

/// The folders that a preprocessor searches, and those that it would search if they existed, from what it says with `-v`.
fn searched_folders(messages: &str) -> Option<Vec<PathBuf>> {
    let (mut folders, mut is_list, mut is_complete) = (Vec::new(), false, false);
    for line in messages.lines() {
        if let Some(ignored) = line.strip_prefix("ignoring ") {
            // `nonexistent directory "…"`, or `duplicate directory "…"`.
            folders.push(PathBuf::from(ignored.split_once('"')?.1.strip_suffix('"')?));
        } else if line.ends_with("search starts here:") {
            is_list = true;
        } else if line == "End of search list." {
            (is_list, is_complete) = (false, true);
        } else if is_list {
            let folder = line.strip_prefix(' ').filter(|folder| !folder.ends_with(')'))?;
            folders.push(PathBuf::from(folder));
        } else if line.contains("[-Wdate-time]") {
            return None;
        }
    }
    is_complete.then_some(folders)
}

/// The files that were read beside the source itself, from the rule that `-MD` writes; `None` for names that it escapes.
fn included(dependencies: &str) -> Option<Vec<PathBuf>> {
    let (_, files) = dependencies.split_once(": ")?;
    let joined = files.replace("\\\n", " ");
    if joined.contains(['\\', '$', '#']) {
        return None;
    }
    let mut files = joined.split_whitespace().map(PathBuf::from);
    files.next()?;
    Some(files.collect())
}

/// A path that does not depend on the folder that the compiler runs in, or lies in the source's own.
fn absolute(path: &Path, base: Option<&Path>) -> Option<PathBuf> {
    if path.is_absolute() { Some(path.to_owned()) } else { Some(base?.join(path)) }
}

/// The names by which files may have been included: their paths from each folder that has them.
fn names(paths: &[PathBuf], folders: &BTreeSet<PathBuf>) -> BTreeSet<PathBuf> {
    let names =
        paths.iter().flat_map(|path| folders.iter().filter_map(|folder| path.strip_prefix(folder).ok()));
    names.map(Path::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_search_path_is_read_with_folders_that_do_not_exist() {
        let messages = "gcc version 12\nignoring nonexistent directory \"/none\"\nignoring duplicate directory \"/twice\"\n  as it is a \
            system directory\n#include \"...\" search starts here:\n /own\n#include <...> search starts here:\n /usr/include\nEnd of \
            search list.\nCOMPILER_PATH=/x\n";
        let expected = ["/none", "/twice", "/own", "/usr/include"].map(PathBuf::from);
        assert_eq!(searched_folders(messages).unwrap(), expected);
        assert_eq!(searched_folders("#include <...> search starts here:\n /usr/include\n"), None);
        assert_eq!(searched_folders(&messages.replace("/usr/include", "/f (framework directory)")), None);
        let dated = format!("{messages}k.c:1: warning: macro \"__DATE__\" might prevent … [-Wdate-time]\n");
        assert_eq!(searched_folders(&dated), None);
    }

    #[test]
    fn the_rule_of_dependencies_is_read_without_the_source() {
        let files = |text: &str| included(text);
        let expected = ["/a.h", "b/c.h"].map(PathBuf::from).to_vec();
        assert_eq!(files("kernel.o: kernel.c /a.h \\\n b/c.h\n").unwrap(), expected);
        assert_eq!(files("kernel.o: kernel.c\n").unwrap(), Vec::<PathBuf>::new());
        assert_eq!(
            (files("kernel.o: kernel.c a\\ b.h\n"), files("kernel.o: kernel.c a$$b.h\n")),
            (None, None)
        );
        assert_eq!((files(""), files("kernel.o: ")), (None, None));
    }

    #[test]
    fn a_state_is_read_as_it_was_written() {
        let file = File { path: "/a\nb.h".into(), stat: "1 2".to_owned(), hash: "ab".to_owned() };
        let state = State {
            files: vec![file],
            folders: vec!["/".into(), "/usr".into()],
            names: vec!["a\nb.h".into()],
            present: Vec::new(),
        };
        let note = serde_json::to_vec(&state).unwrap();
        assert_eq!(serde_json::from_slice::<State>(&note).unwrap(), state);
        for length in 0..note.len() {
            assert!(serde_json::from_slice::<State>(&note[..length]).is_err(), "{length}");
        }
    }
}
