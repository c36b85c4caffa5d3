//! Blocking transfers between a tensor and host memory, and fills.

use std::cell::OnceCell;

use crate::memory::blocking_copy::{BlockingCopy, exclusively};
use crate::tensor::host_array::HostArray;
use crate::tensor::layout::Layout;
use crate::tensor::pitched_copies::PitchedCopies;
use crate::{Access, DType, Element, Error, ErrorKind, Result, Tensor};

impl Tensor {
    /// Writes row-major elements; waits for work in flight on the tensor.
    ///
    /// # Errors
    /// `InvalidArgument` for a wrong element type or count; any error of the device.
    pub fn write<T: Element>(&self, data: &[T]) -> Result<()> {
        self.check_dtype(T::DTYPE, "write")?;
        self.write_bytes(bytemuck::cast_slice(data))
    }

    /// Writes a host array of the same type and element count; waits for work in flight on the tensor.
    ///
    /// # Errors
    /// As [`Tensor::write`].
    pub fn write_array(&self, array: &HostArray) -> Result<()> {
        self.check_dtype(array.dtype(), "write_array")?;
        self.write_bytes(array.bytes())
    }

    /// Writes row-major bytes; waits for work in flight on the tensor.
    ///
    /// # Errors
    /// As [`Tensor::write`].
    pub fn write_bytes(&self, bytes: &[u8]) -> Result<()> {
        let wanted = self.size_bytes();
        if bytes.len() != wanted {
            return Err(Error::invalid(format!(
                "the tensor has {wanted} bytes, but the slice has {}",
                bytes.len()
            ))
            .in_operation("write"));
        }
        self.overwrite(|copy| self.write_elements(copy, bytes)).map_err(|error| error.in_operation("write"))
    }

    /// Calls `write` to overwrite all elements, once nothing else uses the buffer.
    fn overwrite<'a>(&'a self, write: impl FnOnce(&mut BlockingCopy<'a>) -> Result<()>) -> Result<()> {
        let buffer = self.buffer("write")?;
        buffer.check_writable("write")?;
        // A view that repeats elements may have as many bytes as the buffer without covering it.
        let whole = self.size_bytes() == buffer.bytes && self.is_contiguous();
        exclusively(buffer, if whole { Access::Write } else { Access::ReadWrite }, write)
    }

    /// Reads row-major bytes; waits for work in flight on the tensor.
    ///
    /// # Errors
    /// `InvalidArgument` for a wrong length; the failure of the work that wrote the tensor.
    pub fn read_bytes(&self, bytes: &mut [u8]) -> Result<()> {
        let wanted = self.size_bytes();
        if bytes.len() != wanted {
            return Err(Error::invalid(format!(
                "the tensor has {wanted} bytes, but the slice has {}",
                bytes.len()
            ))
            .in_operation("read"));
        }
        let buffer = self.buffer("read")?;
        exclusively(buffer, Access::Read, |copy| self.read_elements(copy, bytes))
            .map_err(|error| error.in_operation("read"))
    }

    /// Reads all elements in row-major order; waits for work in flight on the tensor.
    ///
    /// # Errors
    /// `InvalidArgument` for a wrong element type; `OutOfMemory`; the failure of the work that wrote the
    /// tensor.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        self.check_dtype(T::DTYPE, "to_vec")?;
        let mut data = self.zeroed_host_vec(self.len(), "to_vec")?;
        self.read_bytes(bytemuck::cast_slice_mut(&mut data))?;
        Ok(data)
    }

    /// Reads all elements into a host array; waits for work in flight on the tensor.
    ///
    /// # Errors
    /// The failure of the work that wrote the tensor; `OutOfMemory`.
    pub fn to_array(&self) -> Result<HostArray> {
        let mut array = HostArray::new(self.dtype(), self.shape())?;
        self.read_bytes(array.bytes_mut())?;
        Ok(array)
    }

    /// Fills the tensor with a repeated pattern of bytes; waits for work in flight on it.
    ///
    /// The device fills it, also a view with gaps: row by row, or by copying rows from a filled buffer. Through host
    /// memory go patterns that are not 1, 2, 4, 8 or 16 bytes long, views whose elements overlap or form too many
    /// rows, and whatever the device does not support.
    ///
    /// # Errors
    /// `InvalidArgument` unless the tensor's size is a multiple of the pattern's; `OutOfMemory` for a view with gaps
    /// that only the program can fill, through host memory.
    pub fn fill(&self, pattern: &[u8]) -> Result<()> {
        let bytes = self.size_bytes();
        if pattern.is_empty() || !bytes.is_multiple_of(pattern.len()) {
            return Err(Error::invalid(format!(
                "a pattern of {} bytes does not evenly fill a tensor of {bytes} bytes",
                pattern.len()
            ))
            .in_operation("fill"));
        }
        let filled = match self.in_memory_order(pattern) {
            Some(ordered) => ordered.fill_elements(pattern),
            None => self.fill_elements(pattern),
        };
        filled.map_err(|error| error.in_operation("fill"))
    }

    /// The same elements, each once and in the order of their addresses, if the pattern gives all of them one value.
    fn in_memory_order(&self, pattern: &[u8]) -> Option<Self> {
        if self.is_contiguous() || !self.dtype().bytes().is_multiple_of(pattern.len()) {
            return None;
        }
        self.with_layout("fill", Ok(self.layout().in_memory_order())).ok()
    }

    fn fill_elements(&self, pattern: &[u8]) -> Result<()> {
        let bytes = self.size_bytes();
        if self.is_contiguous() {
            return self.overwrite(|copy| copy.fill(self.byte_offset(), bytes, pattern));
        }
        let dense = Layout::contiguous(self.shape())?;
        let pieces = PitchedCopies::of(self.layout(), &dense, self.dtype().bytes());
        let elements = OnceCell::new();
        self.overwrite(|copy| {
            if let Some(pieces) = &pieces
                && copy.fill_pieces(pieces.iter(), bytes, pattern)?
            {
                return Ok(());
            }
            let filled = self.filled_host_vec(pattern)?;
            self.write_elements(copy, elements.get_or_init(|| filled))
        })
    }

    fn filled_host_vec(&self, pattern: &[u8]) -> Result<Vec<u8>> {
        let mut elements = self.zeroed_host_vec(self.size_bytes(), "fill")?;
        for piece in elements.chunks_exact_mut(pattern.len()) {
            piece.copy_from_slice(pattern);
        }
        Ok(elements)
    }

    /// A zeroed vector in host memory. A broadcast view may have more elements than fit: the error names the
    /// tensor.
    fn zeroed_host_vec<T: bytemuck::Zeroable>(&self, len: usize, operation: &str) -> Result<Vec<T>> {
        bytemuck::allocation::try_zeroed_vec(len).map_err(|()| {
            let bytes = len.saturating_mul(size_of::<T>());
            Error::new(
                ErrorKind::OutOfMemory,
                format!("cannot allocate {bytes} bytes of host memory for {self:?}"),
            )
            .in_operation(operation)
        })
    }

    /// Writes row-major bytes to the locations of the elements.
    fn write_elements<'a>(&self, copy: &mut BlockingCopy<'a>, bytes: &'a [u8]) -> Result<()> {
        if self.is_contiguous() {
            return copy.write(self.byte_offset(), bytes);
        }
        if let Some(rows) = self.rows()
            && copy.write_rows(&rows, bytes)?
        {
            return Ok(());
        }
        let mut span = self.read_span(copy)?;
        self.scatter(bytes, &mut span);
        copy.write_now(self.first_byte_offset(), &span)
    }

    /// Reads the elements as row-major bytes.
    fn read_elements<'a>(&self, copy: &mut BlockingCopy<'a>, bytes: &'a mut [u8]) -> Result<()> {
        if self.is_contiguous() {
            return copy.read(self.byte_offset(), bytes);
        }
        if let Some(rows) = self.rows()
            && copy.read_rows(&rows, bytes)?
        {
            return Ok(());
        }
        let span = self.read_span(copy)?;
        self.gather(&span, bytes);
        Ok(())
    }

    fn read_span(&self, copy: &mut BlockingCopy<'_>) -> Result<Vec<u8>> {
        let mut span = self.zeroed_host_vec(self.span_bytes(), "span")?;
        copy.read_now(self.first_byte_offset(), &mut span)?;
        Ok(span)
    }

    /// Scatters row-major elements over the bytes of the span.
    fn scatter(&self, elements: &[u8], span: &mut [u8]) {
        if let Some(rows) = self.rows() {
            return rows.scatter(elements, span);
        }
        let size = self.dtype().bytes();
        let mut source = elements.chunks_exact(size);
        self.for_each_span_index(|at| {
            if let Some(element) = source.next() {
                span[at * size..(at + 1) * size].copy_from_slice(element);
            }
        });
    }

    /// Gathers row-major elements from the bytes of the span.
    fn gather(&self, span: &[u8], elements: &mut [u8]) {
        if let Some(rows) = self.rows() {
            return rows.gather(span, elements);
        }
        let size = self.dtype().bytes();
        let mut destination = elements.chunks_exact_mut(size);
        self.for_each_span_index(|at| {
            if let Some(element) = destination.next() {
                element.copy_from_slice(&span[at * size..(at + 1) * size]);
            }
        });
    }

    fn for_each_span_index(&self, visit: impl FnMut(usize)) {
        let low = self.0.layout.offset_bounds().map_or(0, |(low, _)| low);
        self.0.layout.for_each(-low, visit);
    }

    fn check_dtype(&self, given: DType, operation: &str) -> Result<()> {
        if given == self.dtype() {
            return Ok(());
        }
        Err(Error::invalid(format!("the tensor holds {}, not {given}", self.dtype())).in_operation(operation))
    }
}
