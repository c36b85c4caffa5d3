//! The zip archive around a package. It may be hostile: what it declares is limited before it is believed.

use std::io::{Read, Seek, Write};
use std::sync::{Mutex, PoisonError};

use runtime_core::{Error, ErrorKind, Result};
use zip::result::ZipError;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

/// The most files of an archive.
const MAX_FILES: usize = 1 << 16;
/// How much memory is reserved before there are bytes for it.
const FIRST_BYTES: u64 = 1 << 20;

/// Where an archive is read from.
pub(crate) trait Reader: Read + Seek + Send {}
impl<R: Read + Seek + Send> Reader for R {}

/// An archive whose files are read one by one.
pub(crate) struct Archive(Mutex<ZipArchive<Box<dyn Reader>>>);

impl Archive {
    /// Reads the directory of an archive.
    ///
    /// # Errors
    /// `InvalidArgument` if it is damaged, or has files of the same name or that share bytes; `Io`.
    pub(crate) fn open(reader: Box<dyn Reader>) -> Result<Self> {
        let mut archive = ZipArchive::new(reader).map_err(|error| zip_error(&error))?;
        if archive.len() > MAX_FILES {
            return Err(Error::invalid(format!("it has {} files; the most are {MAX_FILES}", archive.len())));
        }
        if archive.has_duplicate_names() {
            return Err(Error::invalid("it has two files of the same name"));
        }
        if archive.has_overlapping_files().map_err(|error| zip_error(&error))? {
            return Err(Error::invalid("it has files that share bytes"));
        }
        Ok(Self(Mutex::new(archive)))
    }

    /// Reads a file.
    ///
    /// # Errors
    /// `NotFound` if there is none of this name; `InvalidArgument` if it is damaged, or larger than `most_bytes`; `Io`.
    pub(crate) fn read(&self, name: &str, most_bytes: u64) -> Result<Vec<u8>> {
        let mut archive = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let index = archive
            .index_for_name(name)
            .ok_or_else(|| Error::new(ErrorKind::NotFound, format!("it has no file \"{name}\"")))?;
        let file = archive.by_index(index).map_err(|error| zip_error(&error).with_note(name))?;
        if file.size() > most_bytes {
            return Err(too_large(name, most_bytes));
        }
        let mut content = Vec::with_capacity(usize::try_from(file.size().min(FIRST_BYTES)).unwrap_or(0));
        // The declared size may be wrong.
        let read = file.take(most_bytes.saturating_add(1)).read_to_end(&mut content);
        read.map_err(|error| zip_error(&error.into()).with_note(name))?;
        if content.len() as u64 > most_bytes {
            return Err(too_large(name, most_bytes));
        }
        Ok(content)
    }
}

fn too_large(name: &str, most_bytes: u64) -> Error {
    Error::invalid(format!("file \"{name}\" has more than {most_bytes} bytes"))
}

fn zip_error(error: &ZipError) -> Error {
    use std::io::ErrorKind::{InvalidData, InvalidInput, Other, UnexpectedEof};
    match error {
        // Damaged streams have one of these kinds.
        ZipError::Io(error)
            if !matches!(error.kind(), InvalidData | InvalidInput | Other | UnexpectedEof) =>
        {
            Error::new(ErrorKind::Io, error.to_string())
        }
        other => Error::invalid(format!("the archive is damaged: {other}")),
    }
}

/// Writes an archive of these files, in order. The same files make the same bytes.
///
/// # Errors
/// `InvalidArgument` for what a zip archive cannot hold.
pub(crate) fn write<'a>(files: impl Iterator<Item = (&'a str, &'a [u8])>) -> Result<Vec<u8>> {
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
    let mut writer = ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, content) in files {
        writer.start_file(name, options).map_err(|error| zip_error(&error).with_note(name))?;
        writer.write_all(content).map_err(|error| zip_error(&error.into()).with_note(name))?;
    }
    Ok(writer.finish().map_err(|error| zip_error(&error))?.into_inner())
}
