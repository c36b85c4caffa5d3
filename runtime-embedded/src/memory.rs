//! Tensors of an embedded device are described and live in its own memory, so there are no buffers.

use std::convert::Infallible;

use runtime_core::backend::Buffer;

/// Never constructed: embedded devices have no buffers.
#[derive(Debug)]
pub struct NoBuffer(Infallible);

impl Buffer for NoBuffer {
    fn kernel_address(&self) -> u64 {
        match self.0 {}
    }
}
