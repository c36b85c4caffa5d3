//! An advisory lock per physical device, so that the processes of a machine time their kernels one after the other.
//!
//! It is held while a kernel is checked and timed, not while it is compiled, so that two tuners take turns. On Linux it is a
//! listening socket with an abstract name (`unix(7)`): the kernel releases it when its process ends, however it ends, and
//! it leaves no file. It holds for all users, and for all processes in one network namespace. Elsewhere there is no lock.

mod holder;
mod key;
#[cfg(target_os = "linux")]
mod socket;

pub use holder::Holder;
pub use key::lock_key;

/// The lock of a device, which is held until it is dropped.
#[derive(Debug)]
pub struct DeviceLock {
    #[cfg(target_os = "linux")]
    _socket: Option<socket::BoundName>,
}

impl DeviceLock {
    /// Waits for the lock named `key`, as [`lock_key`] returns it. Calls `on_wait` before it waits, once for each holder.
    ///
    /// A lock that the system cannot provide, for example for want of descriptors, is not held, and not waited for.
    #[cfg(target_os = "linux")]
    #[must_use]
    pub fn acquire(key: &str, on_wait: &mut dyn FnMut(&Holder)) -> Self {
        Self { _socket: socket::BoundName::acquire(key, on_wait).ok() }
    }

    /// There are no locks on this system.
    #[cfg(not(target_os = "linux"))]
    #[must_use]
    pub fn acquire(_: &str, _: &mut dyn FnMut(&Holder)) -> Self {
        Self {}
    }
}
