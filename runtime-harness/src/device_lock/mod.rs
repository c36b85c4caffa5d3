//! An advisory lock per physical device, so that the processes of a machine time their kernels one after the other.
//!
//! It is held while a kernel is checked and timed, not while it is compiled, so that two tuners take turns. It is a
//! listening socket with an abstract name (`unix(7)`): the kernel releases it when its process ends, however it ends, and
//! it leaves no file. It holds for all users, and for all processes in one network namespace.

mod holder;
mod key;
mod socket;

pub use holder::Holder;
pub use key::lock_key;

/// The lock of a device, which is held until it is dropped.
#[derive(Debug)]
pub struct DeviceLock {
    _socket: Option<socket::BoundName>,
}

impl DeviceLock {
    /// Waits for the lock named `key`, as [`lock_key`] returns it. Calls `on_wait` before it waits, once for each holder.
    ///
    /// A lock that the system cannot provide, for example for want of descriptors, is not held, and not waited for.
    #[must_use]
    pub fn acquire(key: &str, on_wait: &mut dyn FnMut(&Holder)) -> Self {
        Self { _socket: socket::BoundName::acquire(key, on_wait).ok() }
    }
}
