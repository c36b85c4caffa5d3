//! Measured peaks, saved in the user's cache folder.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use runtime_core::backend::cache_folder;
use runtime_core::cache::AtomicFile;
use runtime_core::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{Part, Peak, Subject, VERSION};
use crate::row::Row;

/// How often a peak is measured again while the machine is busy.
const MAX_ATTEMPTS: u32 = 3;

/// A folder of saved peaks, one file per device.
#[derive(Clone, Debug)]
pub struct PeakStore {
    folder: Option<PathBuf>,
    again: Arc<Mutex<Again>>,
}

/// What this process has measured again. It is kept here as well, since the folder may be read-only.
#[derive(Debug, Default)]
struct Again {
    peaks: BTreeMap<Subject, Peak>,
    attempts: BTreeMap<(Subject, Part), Attempt>,
}

/// The attempts to measure a part of a peak again.
#[derive(Clone, Debug, Default)]
struct Attempt {
    count: u32,
    /// Why the last one does not say what the device can do.
    obstacle: Option<String>,
}

/// The saved peak of a device.
#[derive(Clone, Debug, PartialEq)]
pub enum Lookup {
    /// It was measured in the device's present state.
    Found(Box<Peak>),
    /// There is none that can be read.
    Absent,
    /// It was measured in another state: with another driver, clock limit or version of this program.
    Outdated,
}

/// The content of a file.
#[derive(Serialize, Deserialize)]
struct Document {
    version: u64,
    peak: Peak,
}

impl PeakStore {
    /// The peaks in the user's cache folder, if there is one.
    #[must_use]
    pub fn of_user() -> Self {
        // One for all devices of the process, however often they are opened.
        static OF_USER: LazyLock<PeakStore> =
            LazyLock::new(|| PeakStore { folder: cache_folder("peak"), again: Arc::default() });
        OF_USER.clone()
    }

    /// The peaks in another folder.
    #[must_use]
    pub fn in_folder(folder: impl Into<PathBuf>) -> Self {
        Self { folder: Some(folder.into()), again: Arc::default() }
    }

    /// Reads the peak of a device.
    #[must_use]
    pub fn find(&self, subject: &Subject) -> Lookup {
        if let Some(peak) = self.again().peaks.get(subject) {
            return Lookup::Found(Box::new(peak.clone()));
        }
        let text = self.file(subject).and_then(|path| std::fs::read_to_string(path).ok());
        let document = text.and_then(|text| serde_json::from_str::<Document>(&text).ok());
        match document {
            Some(Document { version: VERSION, peak }) if peak.is_sound() => {
                match peak.subject.is_same(subject) {
                    true => Lookup::Found(Box::new(peak)),
                    false => Lookup::Outdated,
                }
            }
            _ => Lookup::Absent,
        }
    }

    /// Reads the peaks of the devices of these rows.
    #[must_use]
    pub fn of_rows(&self, rows: &[Row]) -> BTreeMap<Subject, Peak> {
        let timed = rows.iter().filter(|row| row.measurement.is_some());
        let subjects: BTreeSet<Subject> = timed.filter_map(Subject::of_row).collect();
        let found = subjects.into_iter().filter_map(|subject| match self.find(&subject) {
            Lookup::Found(peak) => Some((subject, *peak)),
            _ => None,
        });
        found.collect()
    }

    /// Saves a peak, and replaces an earlier one of the device.
    ///
    /// # Errors
    /// `Io` if there is no folder, or the file cannot be written.
    pub fn save(&self, peak: &Peak) -> Result<()> {
        let path = self.file(&peak.subject).ok_or_else(|| {
            Error::new(
                ErrorKind::Io,
                "there is no cache folder to keep the peaks in; set XDG_CACHE_HOME or HOME",
            )
        })?;
        let document = Document { version: VERSION, peak: peak.clone() };
        let text = serde_json::to_string_pretty(&document)
            .map_err(|error| Error::new(ErrorKind::Internal, format!("JSON: {error}")))?;
        let written = AtomicFile::new(&path).and_then(|file| file.replace(&[text.as_bytes(), b"\n"]));
        written.map_err(|error| {
            Error::new(ErrorKind::Io, format!("cannot keep the peaks in {}: {error}", path.display()))
        })
    }

    /// Measures a part of a peak again, if this process has not done so already, and keeps what is better.
    pub(crate) fn measured_again(
        &self,
        mut peak: Peak,
        part: &Part,
        measure: &mut dyn FnMut(&Part) -> Result<Peak>,
    ) -> Peak {
        let key = (peak.subject.clone(), part.attempted());
        let mut attempt = self.again().attempts.get(&key).cloned().unwrap_or_default();
        if attempt.count >= MAX_ATTEMPTS || (attempt.count > 0 && attempt.obstacle.is_none()) {
            return peak;
        }
        attempt.count += 1;
        match measure(part) {
            Ok(again) => {
                attempt.obstacle =
                    again.disturbance().map(|it| format!("when the peak was measured again: {it}"));
                peak.improve(again);
                // The copy in memory is enough for this process.
                let _ = self.save(&peak);
                self.again().peaks.insert(peak.subject.clone(), peak.clone());
            }
            Err(error) => {
                attempt.obstacle = Some(format!("the peak could not be measured again: {error}"));
                attempt.count = MAX_ATTEMPTS;
            }
        }
        self.again().attempts.insert(key, attempt);
        peak
    }

    /// Why measuring a part again has not shown what the device can do.
    pub(crate) fn obstacle(&self, subject: &Subject, part: &Part) -> Option<String> {
        let again = self.again();
        again.attempts.get(&(subject.clone(), part.attempted())).and_then(|attempt| attempt.obstacle.clone())
    }

    fn again(&self) -> MutexGuard<'_, Again> {
        self.again.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The file of a device, whatever its driver: a new driver replaces the peaks of the old one.
    fn file(&self, subject: &Subject) -> Option<PathBuf> {
        let Subject { target, name, identity, .. } = subject;
        let digest = Sha256::digest(format!("{target}\n{name}\n{identity}"));
        let name: String = digest[..8].iter().map(|byte| format!("{byte:02x}")).collect();
        // A target is a short word, but it comes from a library.
        let target: String = target.chars().filter(char::is_ascii_alphanumeric).take(32).collect();
        Some(self.folder.as_ref()?.join(format!("{target}-{name}.json")))
    }
}
