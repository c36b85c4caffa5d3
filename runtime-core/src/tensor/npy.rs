//! Reads and writes [`HostArray`]s as NumPy `.npy` files.
//!
//! The format is NumPy's NEP 1: magic, version, header length, header (a Python dictionary with the keys
//! `descr`, `fortran_order` and `shape`), then the bytes of the elements.
//!
//! This is written by hand. `npyz` converts one element at a time, while this code moves all bytes at once; it also pulls in
//! 27 crates, among them a parser generator and a build tool for C, to read one line of header.

use std::io::{Read, Write};
use std::path::Path;

use crate::atomic_file::write_atomic;
use crate::platform::open_regular_file;
use crate::tensor::layout::Layout;
use crate::{DType, Error, ErrorKind, HostArray, Result};

const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// Alignment of the elements in the file, so that it can be memory-mapped.
const DATA_ALIGNMENT: usize = 64;

/// NumPy's type codes (kind and size), and the element types they stand for.
const ELEMENT_TYPES: [(&str, DType); 14] = [
    ("b1", DType::BOOL),
    ("i1", DType::I8),
    ("i2", DType::I16),
    ("i4", DType::I32),
    ("i8", DType::I64),
    ("u1", DType::U8),
    ("u2", DType::U16),
    ("u4", DType::U32),
    ("u8", DType::U64),
    ("f2", DType::F16),
    ("f4", DType::F32),
    ("f8", DType::F64),
    ("c8", DType::COMPLEX64),
    ("c16", DType::COMPLEX128),
];

impl HostArray {
    /// Reads a `.npy` file of version 1, 2 or 3.
    ///
    /// Column-major (`fortran_order`) data is transposed to row-major, and foreign byte order is converted.
    ///
    /// # Errors
    /// `Io` for a file that cannot be read, is truncated or has trailing bytes; `InvalidArgument` for a
    /// malformed header; `Unsupported`, with its name, for an element type without a counterpart here (text,
    /// records); `OutOfMemory`.
    pub fn load_npy(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        load(path).map_err(|error| error.in_operation(&path.display().to_string()).in_operation("load_npy"))
    }

    /// Writes a `.npy` file of version 1, or of version 2 if the header is long.
    ///
    /// Writes a temporary file next to `path`, which replaces `path` once it is complete: a full disk leaves no
    /// partial file. Pipes and devices are written directly.
    ///
    /// # Errors
    /// `Unsupported` for element types that `.npy` lacks (bf16, fp8); `Io`.
    pub fn save_npy(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        save(self, path)
            .map_err(|error| error.in_operation(&path.display().to_string()).in_operation("save_npy"))
    }
}

fn load(path: &Path) -> Result<HostArray> {
    let mut file = open_regular_file(path)?;
    let file_bytes = file.metadata()?.len();
    let (header, header_bytes) = read_header(&mut file, file_bytes)?;
    let mut array = header.allocate_array(file_bytes - header_bytes)?;
    file.read_exact(array.bytes_mut()).map_err(|error| truncated(&error))?;
    if header.swapped {
        swap_bytes(&mut array);
    }
    if header.fortran_order { transpose(&array) } else { Ok(array) }
}

/// Reads everything before the first element; also returns its length in bytes.
fn read_header(file: &mut impl Read, file_bytes: u64) -> Result<(Header, u64)> {
    let mut start = [0; 8];
    file.read_exact(&mut start).map_err(|error| truncated(&error))?;
    if start[..6] != *MAGIC {
        return Err(Error::invalid("not a .npy file: it does not start with \\x93NUMPY"));
    }
    let mut length = [0; 4];
    let length_bytes = match start[6] {
        1 => 2,
        2 | 3 => 4,
        major => return Err(Error::unsupported(format!(".npy version {major} is not supported"))),
    };
    file.read_exact(&mut length[..length_bytes]).map_err(|error| truncated(&error))?;
    let header_len = u32::from_le_bytes(length);
    let total = start.len() as u64 + length_bytes as u64 + u64::from(header_len);
    if total > file_bytes {
        return Err(Error::new(
            ErrorKind::Io,
            format!("truncated: the header needs {total} bytes of {file_bytes}"),
        ));
    }
    let mut text = vec![0; header_len as usize];
    file.read_exact(&mut text).map_err(|error| truncated(&error))?;
    let text = std::str::from_utf8(&text).map_err(|_| Error::invalid("the header is not valid UTF-8"))?;
    Ok((Header::parse(text)?, total))
}

fn truncated(error: &std::io::Error) -> Error {
    if error.kind() == std::io::ErrorKind::UnexpectedEof {
        return Error::new(ErrorKind::Io, "truncated: the file ends before its data");
    }
    Error::new(ErrorKind::Io, format!("truncated: {error}"))
}

#[derive(Debug, PartialEq)]
struct Header {
    dtype: DType,
    /// The byte order of the file differs from that of this machine.
    swapped: bool,
    fortran_order: bool,
    shape: Vec<usize>,
}

impl Header {
    fn parse(text: &str) -> Result<Self> {
        let mut literal = PythonLiteral(text);
        let (mut descr, mut fortran_order, mut shape) = (None, None, None);
        literal.expect("{")?;
        while !literal.accept("}") {
            let key = literal.string()?;
            literal.expect(":")?;
            match key {
                "descr" => descr = Some(literal.descr()?),
                "fortran_order" => fortran_order = Some(literal.boolean()?),
                "shape" => shape = Some(literal.tuple()?),
                _ => return Err(Error::invalid(format!("the header has an unknown key '{key}'"))),
            }
            if !literal.accept(",") {
                literal.expect("}")?;
                break;
            }
        }
        let missing = |key| Error::invalid(format!("the header lacks '{key}'"));
        let (dtype, swapped) = element_type(descr.ok_or_else(|| missing("descr"))?)?;
        Ok(Self {
            dtype,
            swapped,
            fortran_order: fortran_order.ok_or_else(|| missing("fortran_order"))?,
            shape: shape.ok_or_else(|| missing("shape"))?,
        })
    }

    /// Allocates the array, after checking that the file has its size: a malformed header must not exhaust
    /// memory.
    fn allocate_array(&self, data_bytes: u64) -> Result<HostArray> {
        let count = self.shape.iter().try_fold(self.dtype.bytes() as u64, |bytes, &extent| {
            bytes
                .checked_mul(extent as u64)
                .ok_or_else(|| Error::invalid(format!("shape {:?} overflows", self.shape)))
        });
        let needed = if self.shape.contains(&0) { 0 } else { count? };
        let problem = match needed.cmp(&data_bytes) {
            std::cmp::Ordering::Equal => return HostArray::new(self.dtype, &self.shape),
            std::cmp::Ordering::Greater => "truncated",
            std::cmp::Ordering::Less => "too long",
        };
        Err(Error::new(
            ErrorKind::Io,
            format!(
                "{problem}: {} {:?} needs {needed} bytes, the file has {data_bytes}",
                self.dtype, self.shape
            ),
        ))
    }
}

fn element_type(descr: &str) -> Result<(DType, bool)> {
    let unsupported = || Error::unsupported(format!("the .npy element type '{descr}' is not supported"));
    let (order, name) = descr.split_at_checked(1).ok_or_else(unsupported)?;
    let dtype = ELEMENT_TYPES
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, dtype)| *dtype)
        .ok_or_else(unsupported)?;
    let swapped = match order {
        "<" => cfg!(target_endian = "big"),
        ">" => cfg!(target_endian = "little"),
        "=" | "|" => false,
        _ => return Err(unsupported()),
    };
    Ok((dtype, swapped && dtype.bytes() > 1))
}

/// The unparsed rest of a Python literal.
struct PythonLiteral<'a>(&'a str);

impl<'a> PythonLiteral<'a> {
    fn accept(&mut self, token: &str) -> bool {
        let rest = self.0.trim_start().strip_prefix(token);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    fn expect(&mut self, token: &str) -> Result<()> {
        if self.accept(token) { Ok(()) } else { Err(self.unexpected(&format!("'{token}'"))) }
    }

    fn unexpected(&self, what: &str) -> Error {
        let rest: String = self.0.trim_start().chars().take(20).collect();
        Error::invalid(format!("malformed header: expected {what}, found \"{rest}\""))
    }

    fn string(&mut self) -> Result<&'a str> {
        let quote = if self.accept("'") { '\'' } else { self.expect("\"").map(|()| '"')? };
        let (text, rest) = self.0.split_once(quote).ok_or_else(|| self.unexpected("a closing quote"))?;
        self.0 = rest;
        Ok(text)
    }

    fn descr(&mut self) -> Result<&'a str> {
        if self.accept("[") || self.accept("(") {
            return Err(Error::unsupported("a .npy file of records (structured dtype) is not supported"));
        }
        self.string()
    }

    fn boolean(&mut self) -> Result<bool> {
        if self.accept("True") { Ok(true) } else { self.expect("False").map(|()| false) }
    }

    fn tuple(&mut self) -> Result<Vec<usize>> {
        let mut items = Vec::new();
        self.expect("(")?;
        while !self.accept(")") {
            items.push(self.integer()?);
            if !self.accept(",") {
                self.expect(")")?;
                break;
            }
        }
        Ok(items)
    }

    fn integer(&mut self) -> Result<usize> {
        let text = self.0.trim_start();
        let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let value = text[..end].parse().map_err(|_| self.unexpected("an extent"))?;
        self.0 = &text[end..];
        // Python 2 wrote long integers with this suffix.
        self.accept("L");
        Ok(value)
    }
}

fn swap_bytes(array: &mut HostArray) {
    let complex = matches!(array.dtype(), DType::COMPLEX64 | DType::COMPLEX128);
    let lane = array.dtype().bytes() / if complex { 2 } else { 1 };
    array.bytes_mut().chunks_exact_mut(lane).for_each(<[u8]>::reverse);
}

/// A row-major copy of an array whose bytes are in column-major order.
fn transpose(source: &HostArray) -> Result<HostArray> {
    let (size, shape) = (source.dtype().bytes(), source.shape());
    let reversed: Vec<_> = shape.iter().rev().copied().collect();
    let column_major = Layout::contiguous(&reversed)?.permute(&(0..shape.len()).rev().collect::<Vec<_>>())?;
    let mut target = HostArray::new(source.dtype(), shape)?;
    let mut elements = target.bytes_mut().chunks_exact_mut(size);
    column_major.for_each(0, |at| {
        if let Some(element) = elements.next() {
            element.copy_from_slice(&source.bytes()[at * size..][..size]);
        }
    });
    Ok(target)
}

fn save(array: &HostArray, path: &Path) -> Result<()> {
    let header = encode_header(array)?;
    write_atomic(path, |file| {
        file.write_all(&header)?;
        Ok(file.write_all(array.bytes())?)
    })
}

fn encode_header(array: &HostArray) -> Result<Vec<u8>> {
    let Some((name, _)) = ELEMENT_TYPES.iter().find(|(_, dtype)| *dtype == array.dtype()) else {
        return Err(Error::unsupported(format!(
            ".npy files do not support {}; convert the elements first, e.g. to f32",
            array.dtype()
        )));
    };
    let order = match array.dtype().bytes() {
        1 => '|',
        _ if cfg!(target_endian = "big") => '>',
        _ => '<',
    };
    let extents: Vec<_> = array.shape().iter().map(|extent| format!("{extent},")).collect();
    let shape = match &extents[..] {
        [one] => one.clone(),
        many => many.join(" ").trim_end_matches(',').to_owned(),
    };
    let mut text = format!("{{'descr': '{order}{name}', 'fortran_order': False, 'shape': ({shape}), }}");
    // Version 1 has a 16-bit header length.
    let long = text.len() + DATA_ALIGNMENT > usize::from(u16::MAX);
    let start = if long { 12 } else { 10 };
    let padded = (start + text.len() + 1).next_multiple_of(DATA_ALIGNMENT) - start;
    text.extend(std::iter::repeat_n(' ', padded - 1 - text.len()));
    text.push('\n');
    let length =
        u32::try_from(padded).map_err(|_| Error::invalid("the shape has too many dimensions"))?.to_le_bytes();
    let (version, length) = if long { ([2, 0], &length[..]) } else { ([1, 0], &length[..2]) };
    Ok([&MAGIC[..], &version, length, text.as_bytes()].concat())
}

#[cfg(test)]
#[path = "npy_tests.rs"]
mod tests;
