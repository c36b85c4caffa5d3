//! Sub-buffers: ranges of a buffer as `cl_mem` objects of their own.

#![allow(unsafe_code, reason = "makes sub-buffers through the driver")]

use std::sync::Arc;

use cl3::ext::{CL_BUFFER_CREATE_TYPE_REGION, CL_MEM_READ_WRITE, cl_buffer_region};
use parking_lot::Mutex;
use runtime_core::Result;

use crate::context::SharedContext;
use crate::driver::handle::{Memory, Owned};
use crate::driver::{Raw, create};

/// Maximum number of sub-buffers that a buffer caches for later launches.
const MAX_CACHED: usize = 64;

/// A range of a buffer as a `cl_mem` of its own.
#[derive(Debug)]
pub(crate) struct SubBuffer {
    origin: usize,
    bytes: usize,
    pub(crate) id: u64,
    pub(crate) object: Owned<Memory>,
}

/// The sub-buffers of a buffer, for later launches.
#[derive(Debug, Default)]
pub(crate) struct SubBuffers(Mutex<Vec<Arc<SubBuffer>>>);

impl SubBuffers {
    /// The sub-buffer for a range of the buffer `raw`.
    pub(crate) fn get(
        &self,
        context: &SharedContext,
        raw: Raw,
        origin: usize,
        bytes: usize,
    ) -> Result<Arc<SubBuffer>> {
        let mut cached = self.0.lock();
        if let Some(known) = cached.iter().find(|known| known.origin == origin && known.bytes == bytes) {
            return Ok(Arc::clone(known));
        }
        let region = cl_buffer_region { origin, size: bytes };
        let (kind, region) = (CL_BUFFER_CREATE_TYPE_REGION, (&raw const region).cast());
        // SAFETY: the buffer is alive, the region lies within it, and has the structure that the type requires.
        let object = unsafe {
            create!(context.driver.create, clCreateSubBuffer(raw, CL_MEM_READ_WRITE, kind, region))
        }?;
        let sub_buffer = Arc::new(SubBuffer { origin, bytes, id: context.next_id(), object });
        if cached.len() == MAX_CACHED {
            // Bindings and submitted commands that still use it hold references of their own.
            cached.remove(0);
        }
        cached.push(Arc::clone(&sub_buffer));
        Ok(sub_buffer)
    }

    pub(crate) fn clear(&mut self) {
        self.0.get_mut().clear();
    }
}
