//! Writes `.safetensors` files.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use ::safetensors::tensor::{Dtype, Metadata, TensorInfo};

use super::{CHUNK_BYTES, ELEMENT_TYPES, LENGTH_BYTES, Safetensors};
use crate::atomic_file::write_atomic;
use crate::{Error, Result, Tensor};

/// Alignment of the tensors' bytes in the file.
const DATA_ALIGNMENT: usize = 64;

/// A tensor to be written.
struct Entry<'a> {
    name: &'a str,
    tensor: &'a Tensor,
    dtype: Dtype,
}

impl Safetensors {
    /// Writes tensors to a file; waits for work in flight on them. Contiguous tensors are read in chunks,
    /// others whole.
    ///
    /// Writes a temporary file next to `path`, which replaces `path` once it is complete. Pipes and devices are
    /// written directly.
    ///
    /// # Errors
    /// `InvalidArgument` for a duplicate name; `Unsupported` for an element type that the format lacks
    /// (complex128); `Io`; the failure of the work that wrote a tensor.
    pub fn save(path: impl AsRef<Path>, tensors: &[(&str, &Tensor)]) -> Result<()> {
        let path = path.as_ref();
        let save = || {
            let entries = sort_entries(tensors)?;
            let header = encode_header(&entries)?;
            write_atomic(path, |file| write(file, &header, &entries))
        };
        save().map_err(|error: Error| error.in_operation(&path.display().to_string()).in_operation("save"))
    }
}

/// In the order that the format requires: by descending element size, so that all are aligned, then by name.
fn sort_entries<'a>(tensors: &[(&'a str, &'a Tensor)]) -> Result<Vec<Entry<'a>>> {
    let entry = |&(name, tensor): &(&'a str, &'a Tensor)| {
        let found = ELEMENT_TYPES.iter().find(|(_, ours)| *ours == tensor.dtype());
        let Some(&(dtype, _)) = found else {
            return Err(Error::unsupported(format!(
                "{name}: the format does not support {}",
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
            "a tensor cannot be named \"__metadata__\": the format reserves that name",
        ));
    }
    Ok(entries)
}

/// The header length and the JSON header, padded.
fn encode_header(entries: &[Entry<'_>]) -> Result<Vec<u8>> {
    let mut end = 0;
    let infos = entries.iter().map(|entry| {
        let begin = end;
        end += entry.tensor.size_bytes();
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
    let mut chunk = Vec::new();
    for entry in entries {
        let named = |error: Error| error.in_operation(entry.name);
        append(file, entry.tensor, &mut chunk).map_err(named)?;
    }
    Ok(())
}

fn append(file: &mut File, tensor: &Tensor, chunk: &mut Vec<u8>) -> Result<()> {
    if !tensor.is_contiguous() {
        return Ok(file.write_all(tensor.to_array()?.bytes())?);
    }
    let (elements, size) = (tensor.len(), tensor.dtype().bytes());
    let flat = tensor.reshape(&[elements])?;
    let max_elements = CHUNK_BYTES / size;
    for first in (0..elements).step_by(max_elements) {
        let part = flat.slice(0, first..elements.min(first + max_elements))?;
        chunk.resize(part.size_bytes(), 0);
        part.read_bytes(chunk)?;
        file.write_all(chunk)?;
    }
    Ok(())
}
