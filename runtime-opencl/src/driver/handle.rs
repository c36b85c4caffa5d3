//! Objects of the driver, released when they are dropped.

use std::fmt;
use std::marker::PhantomData;

use cl3::types::cl_int;
use runtime_core::Result;

use super::{Calls, Driver, Raw};

/// A sort of object, and how it is released.
pub(crate) trait Sort {
    const RELEASE: &'static str;

    /// # Safety
    /// `object` is of this sort, and its owner uses it no more.
    unsafe fn release(calls: &Calls, object: Raw) -> Option<cl_int>;
}

macro_rules! sorts {
    ($($sort:ident $doc:literal $release:ident),* $(,)?) => {$(
        #[doc = $doc]
        #[derive(Debug)]
        pub(crate) struct $sort;

        impl Sort for $sort {
            const RELEASE: &'static str = stringify!($release);

            unsafe fn release(calls: &Calls, object: Raw) -> Option<cl_int> {
                // SAFETY: the caller's promise.
                Some(unsafe { (calls.$release?)(object) })
            }
        }
    )*};
}
sorts! {
    Context "A context." clReleaseContext,
    CommandQueue "A command queue." clReleaseCommandQueue,
    Event "An event." clReleaseEvent,
    Function "A kernel." clReleaseKernel,
    Memory "A memory object." clReleaseMemObject,
    Program "A program." clReleaseProgram,
}

/// One reference to an object of the driver.
pub(crate) struct Owned<S: Sort> {
    driver: &'static Driver,
    raw: Raw,
    sort: PhantomData<S>,
}

// SAFETY: OpenCL's objects may be used by any thread, but for the arguments of a kernel, which their owner guards.
unsafe impl<S: Sort> Send for Owned<S> {}
// SAFETY: as above.
unsafe impl<S: Sort> Sync for Owned<S> {}

impl<S: Sort> Owned<S> {
    /// Takes over an object that the driver has just made.
    ///
    /// # Safety
    /// `raw` is alive, of this sort, and nobody else releases this reference.
    pub(crate) const unsafe fn new(driver: &'static Driver, raw: Raw) -> Self {
        Self { driver, raw, sort: PhantomData }
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
        self.driver.check("clRetainEvent", |calls| {
            // SAFETY: the event is alive, since this is a reference to it.
            Some(unsafe { (calls.clRetainEvent?)(self.raw) })
        })?;
        // SAFETY: the reference that was just made.
        Ok(unsafe { Self::new(self.driver, self.raw) })
    }
}

impl<S: Sort> Drop for Owned<S> {
    #[inline]
    fn drop(&mut self) {
        // What cannot be released leaks: there is nobody to tell.
        // SAFETY: the reference is this one's own, and is given up here.
        let _ = self.driver.call(S::RELEASE, |calls| unsafe { S::release(calls, self.raw) });
    }
}

impl<S: Sort> fmt::Debug for Owned<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:p}", self.raw)
    }
}
