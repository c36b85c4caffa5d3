//! Objects of the driver, released when they are dropped.

use std::fmt;
use std::marker::PhantomData;

use cl3::types::cl_int;
use runtime_core::Result;

use super::{DispatchTable, Driver, Raw};

/// A sort of object, and how it is released.
pub(crate) trait ObjectKind {
    const RELEASE: &'static str;

    /// # Safety
    /// `object` is of this sort, and its owner uses it no more.
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
    Function "A kernel." clReleaseKernel,
    Memory "A memory object." clReleaseMemObject,
    Program "A program." clReleaseProgram,
}

/// One reference to an object of the driver.
pub(crate) struct Owned<K: ObjectKind> {
    driver: &'static Driver,
    raw: Raw,
    kind: PhantomData<K>,
}

// SAFETY: OpenCL's objects may be used by any thread, but for the arguments of a kernel, which their owner guards.
unsafe impl<K: ObjectKind> Send for Owned<K> {}
// SAFETY: as above.
unsafe impl<K: ObjectKind> Sync for Owned<K> {}

impl<K: ObjectKind> Owned<K> {
    /// Takes over an object that the driver has just made.
    ///
    /// # Safety
    /// `raw` is alive, of this sort, and nobody else releases this reference.
    pub(crate) const unsafe fn new(driver: &'static Driver, raw: Raw) -> Self {
        Self { driver, raw, kind: PhantomData }
    }

    /// The object.
    #[inline]
    pub(crate) const fn raw(&self) -> Raw {
        self.raw
    }
}

impl Owned<Event> {
    /// Another reference to the event.
    pub(crate) fn share(&self) -> Result<Self> {
        self.driver.check("clRetainEvent", |cl| {
            // SAFETY: the event is alive, since this is a reference to it.
            Some(unsafe { (cl.clRetainEvent?)(self.raw) })
        })?;
        // SAFETY: the reference that was just made.
        Ok(unsafe { Self::new(self.driver, self.raw) })
    }
}

impl<K: ObjectKind> Drop for Owned<K> {
    #[inline]
    fn drop(&mut self) {
        // What cannot be released leaks: there is nobody to tell.
        // SAFETY: the reference is this one's own, and is given up here.
        let _ = self.driver.call(K::RELEASE, |cl| unsafe { K::release(cl, self.raw) });
    }
}

impl<K: ObjectKind> fmt::Debug for Owned<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:p}", self.raw)
    }
}
