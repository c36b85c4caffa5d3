//! Writing a `.safetensors` file.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use ::safetensors::tensor::{Dtype, Metadata, TensorInfo};

use super::{ELEMENT_TYPES, LENGTH_BYTES, PIECE_BYTES, Safetensors};
use crate::tensor::atomic_file::write_atomic;
use crate::{Error, Result, Tensor};

/// The tensors' bytes begin at a multiple of this.
const DATA_ALIGNMENT: usize = 64;

/// A tensor on its way into a file.
struct Entry<'a> {
    name: &'a str,
    tensor: &'a Tensor,
    dtype: Dtype,
}

impl Safetensors {
    /// Writes tensors into a file; waits for what is in flight on them. Reads them in pieces, unless they have gaps.
    ///
    /// The bytes go to a temporary file beside `path`, which replaces `path` when it is complete. A pipe or
    /// a device is written as it is.
    ///
    /// # Errors
    /// `InvalidArgument` for a name that stands there twice; `Unsupported` for an element type that the format does not
    /// have (complex128); `Io`; the failure of the work that wrote a tensor.
    pub fn save(path: impl AsRef<Path>, tensors: &[(&str, &Tensor)]) -> Result<()> {
        let path = path.as_ref();
        let save = || {
            let entries = sorted(tensors)?;
            let header = header(&entries)?;
            write_atomic(path, |file| write(file, &header, &entries))
        };
        save().map_err(|error: Error| error.in_operation(&path.display().to_string()))
    }
}

/// As the format asks: large elements first, so that all are aligned, then by name.
fn sorted<'a>(tensors: &[(&'a str, &'a Tensor)]) -> Result<Vec<Entry<'a>>> {
    let entry = |&(name, tensor): &(&'a str, &'a Tensor)| {
        let found = ELEMENT_TYPES.iter().find(|(_, ours)| *ours == tensor.dtype());
        let Some(&(dtype, _)) = found else {
            return Err(Error::unsupported(format!(
                "{name}: the format has no element type {}",
                tensor.dtype()
            )));
        };
        Ok(Entry { name, tensor, dtype })
    };
    let mut entries = tensors.iter().map(entry).collect::<Result<Vec<_>>>()?;
    entries.sort_by(|a, b| b.dtype.cmp(&a.dtype).then(a.name.cmp(b.name)));
    let mut names: Vec<_> = entries.iter().map(|entry| entry.name).collect();
    names.sort_unstable();
    if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(Error::invalid(format!("two tensors are named \"{}\"", pair[0])));
    }
    if names.contains(&"__metadata__") {
        return Err(Error::invalid(
            "a tensor cannot be named \"__metadata__\": the format uses the name itself",
        ));
    }
    Ok(entries)
}

/// Length and JSON, padded.
fn header(entries: &[Entry<'_>]) -> Result<Vec<u8>> {
    let mut end = 0;
    let infos = entries.iter().map(|entry| {
        let begin = end;
        end += entry.tensor.bytes();
        let shape = entry.tensor.shape().to_vec();
        (entry.name.to_owned(), TensorInfo { dtype: entry.dtype, shape, data_offsets: (begin, end) })
    });
    let broken = |error: &dyn std::error::Error| Error::invalid(error.to_string());
    let header = Metadata::new(None, infos.collect()).map_err(|error| broken(&error))?;
    let mut text = serde_json::to_vec(&header).map_err(|error| broken(&error))?;
    let padded = (text.len() + LENGTH_BYTES).next_multiple_of(DATA_ALIGNMENT) - LENGTH_BYTES;
    text.resize(padded, b' ');
    Ok([&(padded as u64).to_le_bytes(), &text[..]].concat())
}

fn write(file: &mut File, header: &[u8], entries: &[Entry<'_>]) -> Result<()> {
    file.write_all(header)?;
    let mut piece = Vec::new();
    for entry in entries {
        let named = |error: Error| error.in_operation(entry.name);
        append(file, entry.tensor, &mut piece).map_err(named)?;
    }
    Ok(())
}

fn append(file: &mut File, tensor: &Tensor, piece: &mut Vec<u8>) -> Result<()> {
    if !tensor.is_contiguous() {
        return Ok(file.write_all(tensor.to_array()?.bytes())?);
    }
    let (elements, size) = (tensor.element_count(), tensor.dtype().bytes());
    let row = tensor.reshape(&[elements])?;
    let most = PIECE_BYTES / size;
    for first in (0..elements).step_by(most) {
        let part = row.slice(0, first..elements.min(first + most))?;
        piece.resize(part.bytes(), 0);
        part.read_bytes(piece)?;
        file.write_all(piece)?;
    }
    Ok(())
}
