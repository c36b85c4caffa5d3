//! `.safetensors` files: loads weights to a device chunk by chunk, or maps them on the host.
//!
//! The format is that of <https://github.com/huggingface/safetensors>: header length, header in JSON, then the
//! bytes of the tensors, little-endian and row-major, without gaps. The `safetensors` crate parses the header.

#![allow(unsafe_code, reason = "maps a file into host memory, which the caller must keep unchanged")]

mod save;

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use ::safetensors::tensor::{Dtype, Metadata, TensorInfo};
use memmap2::{MmapOptions, MmapRaw};

use crate::memory::buffer::Buffer;
use crate::model::options::did_you_mean;
use crate::model::placement::Placement;
use crate::platform::{open_regular_file, read_at};
use crate::tensor::layout::Layout;
use crate::timeline::deferred_free::ExternalOwner;
use crate::timeline::open_device::OpenDevice;
use crate::{DType, Error, ErrorKind, HostArray, Result, Tensor};

/// Size of the staging buffer for loads and saves.
const CHUNK_BYTES: usize = 8 << 20;
/// The longest header that the format allows.
const MAX_HEADER_BYTES: u64 = 100_000_000;
/// Size of the header length field in bytes.
const LENGTH_BYTES: usize = size_of::<u64>();

/// An open `.safetensors` file: the header has been read, no tensor has been loaded.
///
/// ```
/// # use runtime_core::{Placement, Runtime, Safetensors, Tensor};
/// # let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
/// # let device = runtime.open("null:0")?;
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("model.safetensors");
/// let bias = device.tensor(&[3], &[1f32, 2.0, 3.0])?;
/// Safetensors::save(&path, &[("layer.bias", &bias)])?;
///
/// let file = Safetensors::open(&path)?;
/// assert_eq!(file.info("layer.bias")?.shape, [3]);
/// let bias = device.load_tensor(&file, "layer.bias", &Placement::default())?;
/// assert_eq!(bias.to_vec::<f32>()?, [1.0, 2.0, 3.0]);
/// # Ok::<(), runtime_core::Error>(())
/// ```
#[derive(Debug)]
pub struct Safetensors {
    path: PathBuf,
    file: File,
    /// Offset of the tensors' bytes in the file.
    data_at: u64,
    header: Metadata,
    mapped: OnceLock<Arc<MmapRaw>>,
}

/// The description of a tensor in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredTensor {
    /// Element type.
    pub dtype: DType,
    /// Extents in elements.
    pub shape: Vec<usize>,
    /// Size of the elements in bytes.
    pub bytes: usize,
}

impl Safetensors {
    /// Opens a file, then reads and validates its header: every byte of the data must belong to exactly one
    /// tensor.
    ///
    /// # Errors
    /// `Io` for a file that cannot be read or is truncated; `InvalidArgument` for a malformed header.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        Self::read_header(path)
            .map_err(|error| error.in_operation(&path.display().to_string()).in_operation("open"))
    }

    fn read_header(path: &Path) -> Result<Self> {
        let file = open_regular_file(path)?;
        let file_bytes = file.metadata()?.len();
        let mut length = [0; LENGTH_BYTES];
        read_at(&file, &mut length, 0).map_err(|_| truncated(LENGTH_BYTES as u64, file_bytes))?;
        let length = u64::from_le_bytes(length);
        if length > MAX_HEADER_BYTES {
            return Err(Error::invalid(format!(
                "not a .safetensors file: a header of {length} bytes exceeds the limit of {MAX_HEADER_BYTES}"
            )));
        }
        let data_at = length + LENGTH_BYTES as u64;
        if data_at > file_bytes {
            return Err(truncated(data_at, file_bytes));
        }
        let mut text = vec![0; usize::try_from(length).unwrap_or(usize::MAX)];
        read_at(&file, &mut text, LENGTH_BYTES as u64)?;
        let header: Metadata = serde_json::from_slice(&text)
            .map_err(|error| Error::invalid(format!("malformed header: {error}")).with_source(error))?;
        let needed = data_at.saturating_add(header.data_len() as u64);
        if needed > file_bytes {
            return Err(truncated(needed, file_bytes));
        }
        if needed < file_bytes {
            let rest = file_bytes - needed;
            return Err(Error::invalid(format!("the last {rest} bytes do not belong to a tensor")));
        }
        Ok(Self { path: path.to_owned(), file, data_at, header, mapped: OnceLock::new() })
    }

    /// The names of the tensors, in file order.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.header.offset_keys()
    }

    /// The metadata of the file: the entries under `__metadata__`.
    #[must_use]
    pub fn notes(&self) -> BTreeMap<String, String> {
        let notes = self.header.metadata().iter().flatten();
        notes.map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    /// Element type and shape of a tensor.
    ///
    /// # Errors
    /// `NotFound`, with the existing names; `Unsupported` for elements smaller than a byte.
    pub fn info(&self, name: &str) -> Result<StoredTensor> {
        let (info, dtype) = self.find(name).map_err(|error| error.in_operation("info"))?;
        let (from, to) = info.data_offsets;
        Ok(StoredTensor { dtype, shape: info.shape.clone(), bytes: to - from })
    }

    /// Reads a tensor into an array.
    ///
    /// # Errors
    /// `NotFound` for an unknown name; `Unsupported` for its type; `Io`.
    pub fn array(&self, name: &str) -> Result<HostArray> {
        let read = || {
            let (info, dtype) = self.find(name)?;
            let read = || {
                let mut array = HostArray::new(dtype, &info.shape)?;
                self.read(array.bytes_mut(), self.data_at + info.data_offsets.0 as u64)?;
                Ok(array)
            };
            read().map_err(|error| self.annotate(name, error))
        };
        read().map_err(|error: Error| error.in_operation("array"))
    }

    /// Maps a tensor of the file into the memory of the host `device`; see [`Host::map`](crate::Host::map).
    ///
    /// # Safety
    /// As for `Host::map`.
    pub(crate) unsafe fn map(&self, name: &str, device: &Arc<OpenDevice>) -> Result<Tensor> {
        let (info, dtype) = self.find(name)?;
        if info.data_offsets.0 == info.data_offsets.1 {
            let empty = Tensor::allocate(device, dtype, &info.shape, &Placement::default())?;
            return empty.freeze().map(|()| empty);
        }
        let map = || {
            let mapped = self.mapping()?;
            let at = self.data_at + info.data_offsets.0 as u64;
            let start = mapped.as_mut_ptr().wrapping_add(usize::try_from(at).unwrap_or(usize::MAX));
            if !start.addr().is_multiple_of(dtype.alignment_bytes()) {
                return Err(Error::invalid(format!(
                    "byte {at} of the file is not aligned for {dtype}; use load_tensor instead"
                )));
            }
            let bytes = info.data_offsets.1 - info.data_offsets.0;
            // SAFETY: the range is within the mapping, which the buffer will own; the caller keeps the file
            // unchanged.
            let buffer = unsafe { Buffer::import_host(device, 0, start, bytes) }?;
            let layout = Layout::contiguous(&info.shape)?;
            Ok(Tensor::from_buffer(buffer.owned_by(ExternalOwner::new(mapped), true), dtype, layout))
        };
        map().map_err(|error| self.annotate(name, error))
    }

    fn mapping(&self) -> Result<Arc<MmapRaw>> {
        if let Some(mapped) = self.mapped.get() {
            return Ok(mapped.clone());
        }
        let mapped = Arc::new(MmapOptions::new().map_raw_read_only(&self.file)?);
        Ok(self.mapped.get_or_init(|| mapped).clone())
    }

    /// Allocates a tensor with `allocate`, which gets the element type and shape, and reads its content:
    /// directly into host-visible memory, otherwise through `chunk`.
    pub(crate) fn load_with(
        &self,
        name: &str,
        chunk: &mut Vec<u8>,
        allocate: impl FnOnce(DType, &[usize]) -> Result<Tensor>,
    ) -> Result<Tensor> {
        let (info, dtype) = self.find(name)?;
        let at = self.data_at + info.data_offsets.0 as u64;
        let load = || {
            let tensor = allocate(dtype, &info.shape)?;
            match tensor.map_mut() {
                Ok(mut view) => self.read(&mut view, at)?,
                Err(error) if error.kind() == ErrorKind::Unsupported => {
                    self.load_chunks(&tensor, at, chunk)?;
                }
                Err(error) => return Err(error),
            }
            Ok(tensor)
        };
        load().map_err(|error| self.annotate(name, error))
    }

    /// Reads the tensor chunk by chunk, and writes each chunk to the device.
    fn load_chunks(&self, tensor: &Tensor, at: u64, chunk: &mut Vec<u8>) -> Result<()> {
        let (elements, size) = (tensor.len(), tensor.dtype().bytes());
        let flat = tensor.reshape(&[elements])?;
        let max_elements = CHUNK_BYTES / size;
        for first in (0..elements).step_by(max_elements) {
            let count = max_elements.min(elements - first);
            chunk.resize(count * size, 0);
            self.read(chunk, at + (first * size) as u64)?;
            flat.slice(0, first..first + count)?.write_bytes(chunk)?;
        }
        Ok(())
    }

    fn read(&self, bytes: &mut [u8], at: u64) -> Result<()> {
        read_at(&self.file, bytes, at).map_err(|error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => {
                Error::new(ErrorKind::Io, "the file was truncated after it was opened")
            }
            _ => Error::from(error),
        })
    }

    fn find(&self, name: &str) -> Result<(&TensorInfo, DType)> {
        let Some(info) = self.header.info(name) else {
            let names = self.names();
            let names: Vec<_> = names.iter().map(String::as_str).collect();
            let error = Error::new(ErrorKind::NotFound, did_you_mean(name, &names));
            return Err(self.annotate(name, error));
        };
        match element_type(info.dtype) {
            Some(dtype) => Ok((info, dtype)),
            None => Err(self
                .annotate(name, Error::unsupported(format!("element type {} is not supported", info.dtype)))),
        }
    }

    fn annotate(&self, name: &str, error: Error) -> Error {
        error.in_operation(&format!("{}: {name}", self.path.display()))
    }
}

fn truncated(needed: u64, there: u64) -> Error {
    Error::new(ErrorKind::Io, format!("truncated: {needed} bytes are needed, but the file has {there}"))
}

/// The format's element types and their counterparts here; those smaller than a byte have none.
const ELEMENT_TYPES: [(Dtype, DType); 19] = [
    (Dtype::BOOL, DType::BOOL),
    (Dtype::U8, DType::U8),
    (Dtype::I8, DType::I8),
    (Dtype::F8_E5M2, DType::FP8_E5M2),
    (Dtype::F8_E4M3, DType::FP8_E4M3FN),
    (Dtype::F8_E8M0, DType::from_dlpack(14, 8, 1)),
    (Dtype::F8_E4M3FNUZ, DType::from_dlpack(11, 8, 1)),
    (Dtype::F8_E5M2FNUZ, DType::from_dlpack(13, 8, 1)),
    (Dtype::I16, DType::I16),
    (Dtype::U16, DType::U16),
    (Dtype::F16, DType::F16),
    (Dtype::BF16, DType::BF16),
    (Dtype::I32, DType::I32),
    (Dtype::U32, DType::U32),
    (Dtype::F32, DType::F32),
    (Dtype::C64, DType::COMPLEX64),
    (Dtype::F64, DType::F64),
    (Dtype::I64, DType::I64),
    (Dtype::U64, DType::U64),
];

fn element_type(stored: Dtype) -> Option<DType> {
    ELEMENT_TYPES.iter().find(|(theirs, _)| *theirs == stored).map(|(_, ours)| *ours)
}
