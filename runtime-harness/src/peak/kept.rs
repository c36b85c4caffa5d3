//! Peaks that were measured before, kept in the user's cache folder.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use runtime_core::backend::cache_folder;
use runtime_core::cache::AtomicFile;
use runtime_core::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{Peak, Subject, VERSION};
use crate::row::Row;

/// The folder of kept peaks, one file per device.
#[derive(Clone, Debug)]
pub struct KeptPeaks {
    folder: Option<PathBuf>,
}

/// What is kept of a device.
#[derive(Clone, Debug, PartialEq)]
pub enum Lookup {
    /// A peak of the device as it is.
    Found(Box<Peak>),
    /// Nothing that can be read.
    Absent,
    /// A peak of the same device in another state: with another driver, clock limit or version of this program.
    Outdated,
}

/// The content of a file.
#[derive(Serialize, Deserialize)]
struct Document {
    version: u64,
    peak: Peak,
}

impl KeptPeaks {
    /// The peaks in the user's cache folder, if there is one.
    #[must_use]
    pub fn of_user() -> Self {
        Self { folder: cache_folder("peak") }
    }

    /// The peaks in another folder.
    #[must_use]
    pub fn in_folder(folder: impl Into<PathBuf>) -> Self {
        Self { folder: Some(folder.into()) }
    }

    /// The kept peak of a device.
    #[must_use]
    pub fn find(&self, subject: &Subject) -> Lookup {
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

    /// The kept peaks of the devices of these rows.
    #[must_use]
    pub fn of_rows(&self, rows: &[Row]) -> BTreeMap<Subject, Peak> {
        let timed = rows.iter().filter(|row| row.measurement.is_some());
        let subjects: BTreeSet<Subject> = timed.filter_map(Subject::of_row).collect();
        let kept = subjects.into_iter().filter_map(|subject| match self.find(&subject) {
            Lookup::Found(peak) => Some((subject, *peak)),
            _ => None,
        });
        kept.collect()
    }

    /// Keeps a peak, in place of the device's earlier one.
    ///
    /// # Errors
    /// `Io` if there is no folder, or the file cannot be written.
    pub fn keep(&self, peak: &Peak) -> Result<()> {
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
