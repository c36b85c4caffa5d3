//! Windows of calls in a runner: what is prepared before them, and compared after them.

use runtime_core::evaluate::{CallWindows, Tolerance, Validation};
use runtime_core::{Access, Error, ErrorKind, HostArray, Result};

use super::memory::SharedMemory;
use super::process::Runner;

/// A tensor in the shared memory.
#[derive(Debug)]
pub(super) struct SharedTensor {
    /// The index of its argument.
    pub(super) arg: usize,
    /// Where it begins.
    pub(super) at: usize,
    pub(super) bytes: usize,
    pub(super) access: Access,
    /// Its initial content, if it is read.
    pub(super) initial: Option<HostArray>,
    /// What it holds before a call that only writes it.
    pub(super) poison: u8,
}

/// A runner with its tensors, and what is expected of them.
#[derive(Debug)]
pub(super) struct Windows<'j> {
    pub(super) runner: Runner,
    pub(super) memory: SharedMemory,
    pub(super) tensors: Vec<SharedTensor>,
    pub(super) expected: &'j [(usize, HostArray)],
    pub(super) tolerance: Tolerance,
    /// Calls of the last window.
    pub(super) last: u64,
}

impl Windows<'_> {
    /// Writes inputs and poison.
    fn prepare(&self) {
        for tensor in &self.tensors {
            match &tensor.initial {
                Some(initial) => self.memory.write(tensor.at, initial.bytes()),
                None => self.memory.fill(tensor.at, tensor.bytes, tensor.poison),
            }
        }
    }

    /// Compares what the last window left. Tensors that the kernel reads and writes hold what is expected after a single call only.
    ///
    /// # Errors
    /// `InvalidArgument` if dtype or shape differ.
    pub(super) fn compare(&self) -> Result<Validation> {
        if self.expected.is_empty() {
            return Ok(Validation::Skipped { reason: "there is no reference".to_owned() });
        }
        self.tolerance.compare_outputs(self.expected, |arg| {
            let Some(tensor) = self.tensors.iter().find(|tensor| tensor.arg == arg) else { return Ok(None) };
            if tensor.access == Access::ReadWrite && self.last != 1 {
                return Ok(None);
            }
            let expected = self.expected.iter().find(|(index, _)| *index == arg);
            let Some((_, expected)) = expected else { return Ok(None) };
            let mut actual = HostArray::new(expected.dtype(), expected.shape())?;
            self.memory.read(tensor.at, actual.bytes_mut());
            Ok(Some((actual, tensor.access)))
        })
    }

    /// Checks that the kernel has not changed what it only reads.
    ///
    /// # Errors
    /// `Failed`, with the argument.
    pub(super) fn check_inputs(&self) -> Result<()> {
        for tensor in self.tensors.iter().filter(|tensor| tensor.access == Access::Read) {
            let Some(initial) = &tensor.initial else { continue };
            let mut now = vec![0; tensor.bytes];
            self.memory.read(tensor.at, &mut now);
            if now != initial.bytes() {
                let message = format!("the kernel has changed argument {}, which it only reads", tensor.arg);
                return Err(Error::new(ErrorKind::Failed, message));
            }
        }
        Ok(())
    }
}

impl CallWindows for Windows<'_> {
    fn calls(&mut self, number: u64) -> Result<f64> {
        self.prepare();
        self.last = number;
        self.runner.window(number, false).map(|elapsed| elapsed.as_nanos() as f64)
    }

    fn empty_calls(&mut self, number: u64) -> Result<f64> {
        self.runner.window(number, true).map(|elapsed| elapsed.as_nanos() as f64)
    }

    fn flush_cache(&mut self) -> Result<()> {
        Err(Error::unsupported("a flushed cache is not measured in a runner yet"))
    }
}
