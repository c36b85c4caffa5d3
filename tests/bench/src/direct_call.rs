//! Calls the kernel directly, without a runtime: a library, a symbol, a call.

#![allow(unsafe_code, reason = "calls native code by its address, as the baseline")]

use std::io::Write;

use libloading::Library;

/// The library with the kernels, compiled by the build script.
pub(crate) const LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/launch.so"));

type Touch = unsafe extern "C" fn(*const f32, *const f32, *mut f32, f32);

/// The kernel `touch` by its address, with memory of its own.
#[derive(Debug)]
pub struct DirectCall {
    touch: Touch,
    tensors: [Vec<f32>; 3],
    _library: Library,
}

impl DirectCall {
    /// Loads the library.
    ///
    /// # Panics
    /// If the library cannot be loaded.
    #[must_use]
    pub fn load() -> Self {
        let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
        file.write_all(LIBRARY).expect("a temporary file can be written");
        // SAFETY: the library is compiled from `kernels/launch.c`, which runs nothing when it is loaded.
        let library = unsafe { Library::new(file.path()) }.expect("the compiled kernels load");
        // SAFETY: `touch` of `kernels/launch.c` has this type.
        let touch = *unsafe { library.get::<Touch>(b"touch\0") }.expect("`touch` is exported");
        Self { touch, tensors: std::array::from_fn(|_| vec![1.0; 64]), _library: library }
    }

    /// Calls the kernel through its pointer.
    #[inline]
    pub fn call(&mut self, scale: f32) {
        let [a, b, c] = &mut self.tensors;
        let touch = std::hint::black_box(self.touch);
        // SAFETY: each pointer is that of 64 elements, of which `touch` uses the first.
        unsafe { touch(a.as_ptr(), b.as_ptr(), c.as_mut_ptr(), scale) }
    }

    /// What the last call wrote.
    #[must_use]
    pub fn result(&self) -> f32 {
        self.tensors[2][0]
    }
}

#[cfg(test)]
mod tests {
    use super::DirectCall;

    #[test]
    fn the_pointer_is_that_of_the_kernel() {
        let mut direct = DirectCall::load();
        direct.call(3.0);
        assert_eq!(direct.result().to_bits(), 4.0f32.to_bits());
    }
}
