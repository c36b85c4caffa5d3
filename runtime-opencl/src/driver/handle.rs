//! OpenCL objects, released on drop.

use std::fmt;
use std::marker::PhantomData;

use cl3::types::cl_int;
use runtime_core::Result;

use super::{DispatchTable, Driver, Raw, call};

/// A kind of object, and how it is released.
pub(crate) trait ObjectKind {
    const RELEASE: &'static str;

    /// # Safety
    /// `object` is of this kind, and its owner no longer uses it.
    unsafe fn release(cl: &DispatchTable, object: Raw) -> Option<cl_int>;
}

macro_rules! object_kinds {
    ($($kind:ident $doc:literal $release:ident),* $(,)?) => {$(
        #[doc = $doc]
        #[derive(Debug)]
        pub(crate) struct $kind;

        impl ObjectKind for $kind {
            const RELEASE: &'static str = stringify!($release);

            unsafe fn release(cl: &DispatchTable, object: Raw) -> Option<cl_int> {
                // SAFETY: the caller's promise.
                Some(unsafe { (cl.$release?)(object) })
            }
        }
    )*};
}
object_kinds! {
    Context "A context." clReleaseContext,
    CommandQueue "A command queue." clReleaseCommandQueue,
    Event "An event." clReleaseEvent,
    Kernel "A kernel." clReleaseKernel,
    Memory "A memory object." clReleaseMemObject,
    Program "A program." clReleaseProgram,
}

/// One reference to an OpenCL object.
pub(crate) struct Owned<K: ObjectKind> {
    driver: &'static Driver,
    raw: Raw,
    kind: PhantomData<K>,
}

// SAFETY: OpenCL objects may be used by any thread, except for kernel arguments, which the kernel's owner guards.
unsafe impl<K: ObjectKind> Send for Owned<K> {}
// SAFETY: the same holds for several threads at once.
unsafe impl<K: ObjectKind> Sync for Owned<K> {}

impl<K: ObjectKind> Owned<K> {
    /// Takes ownership of an object that the driver just created.
    ///
    /// # Safety
    /// `raw` is alive and of this kind, and nothing else releases this reference.
    pub(crate) const unsafe fn new(driver: &'static Driver, raw: Raw) -> Self {
        Self { driver, raw, kind: PhantomData }
    }

    /// The raw handle.
    #[inline]
    pub(crate) const fn raw(&self) -> Raw {
        self.raw
    }
}

macro_rules! retained_kinds {
    ($($kind:ident $retain:ident),* $(,)?) => {$(
        impl Owned<$kind> {
            /// Adds a reference to an object.
            ///
            /// # Errors
            /// The driver's error.
            ///
            /// # Safety
            /// `raw` is alive and of this kind.
            pub(crate) unsafe fn retain(driver: &'static Driver, raw: Raw) -> Result<Self> {
                // SAFETY: guaranteed by the caller.
                unsafe { call!(driver.check, $retain(raw)) }?;
                // SAFETY: the reference that was just added.
                Ok(unsafe { Self::new(driver, raw) })
            }
        }
    )*};
}
retained_kinds! {
    CommandQueue clRetainCommandQueue,
    Event clRetainEvent,
    Memory clRetainMemObject,
}

impl Owned<Event> {
    /// Another reference to the event.
    pub(crate) fn share(&self) -> Result<Self> {
        // SAFETY: the event is alive, since this is a reference to it.
        unsafe { Self::retain(self.driver, self.raw) }
    }
}

impl<K: ObjectKind> Drop for Owned<K> {
    #[inline]
    fn drop(&mut self) {
        // What cannot be released leaks: a drop cannot return an error.
        // SAFETY: `self` owns the reference and gives it up here.
        let _ = self.driver.call(K::RELEASE, |cl| unsafe { K::release(cl, self.raw) });
    }
}

impl<K: ObjectKind> fmt::Debug for Owned<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:p}", self.raw)
    }
}
