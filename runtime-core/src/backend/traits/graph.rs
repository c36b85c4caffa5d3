//! Native graphs.

use crate::backend::{Buffer, Launch};
use crate::{Error, Result};

/// A native graph.
pub trait Graph: Send + Sync + 'static {
    /// A buffer of the device.
    type Buffer: Buffer;

    /// Replaces the arguments of launch node `node`.
    ///
    /// # Errors
    /// `Unsupported`.
    fn update(&mut self, node: u32, launch: &Launch<'_, Self::Buffer>) -> Result<()>;
}

/// Graph type of a device without native graphs.
#[derive(Debug)]
pub struct NoGraph<B>(std::marker::PhantomData<fn() -> B>);

impl<B: Buffer> Graph for NoGraph<B> {
    type Buffer = B;

    fn update(&mut self, _node: u32, _launch: &Launch<'_, B>) -> Result<()> {
        Err(Error::unsupported("update is not supported"))
    }
}
