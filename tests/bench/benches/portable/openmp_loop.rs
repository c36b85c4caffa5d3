//! Saxpy as a plain C loop with OpenMP.

#![allow(unsafe_code, reason = "calls native code by its address: that is what is compared with")]

use std::process::Command;

use libloading::Library;

use crate::host_kernel::{HostKernel, RawArg};

const CODE: &str = "#include <stdint.h>
void saxpy(const float *restrict x, float *restrict y, float alpha, int64_t n) {
#pragma omp parallel for
    for (int64_t i = 0; i < n; i++) y[i] = alpha * x[i] + y[i];
}
";

type Saxpy = unsafe extern "C" fn(*const f32, *mut f32, f32, i64);

/// The compiled loop.
#[derive(Debug)]
pub(crate) struct OpenMpLoop {
    saxpy: Saxpy,
}

impl OpenMpLoop {
    pub(crate) fn compile() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (code, library) = (folder.path().join("saxpy.c"), folder.path().join("saxpy.so"));
        std::fs::write(&code, CODE).expect("a temporary file");
        let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
        let flags = ["-O3", "-march=native", "-fopenmp", "-shared", "-fPIC", "-o"];
        let status = Command::new(compiler).args(flags).arg(&library).arg(&code).status();
        assert!(status.is_ok_and(|status| status.success()), "the loop compiles");
        // SAFETY: the library is that of the loop above, which runs nothing when it is loaded.
        let library = unsafe { Library::new(library) }.expect("the loop loads");
        // SAFETY: `saxpy` has this type.
        let saxpy = *unsafe { library.get::<Saxpy>(b"saxpy\0") }.expect("`saxpy` is exported");
        // It stays loaded, because OpenMP's threads run on in its library.
        std::mem::forget(library);
        Self { saxpy }
    }

    /// Runs the loop on our arguments.
    pub(crate) fn call(&self, ours: &HostKernel<'_>) {
        let [RawArg::Tensor(x, bytes), RawArg::Tensor(y, _), RawArg::Scalar(alpha, _), _] = ours.raw()[..]
        else {
            panic!("saxpy has two tensors and two scalars");
        };
        let alpha = f32::from_bits(u32::try_from(alpha).expect("four bytes"));
        let n = i64::try_from(bytes / size_of::<f32>()).expect("a length");
        // SAFETY: both are memory of `n` floats, and nothing else uses them while this runs.
        unsafe { (self.saxpy)(x.cast(), y.cast(), alpha, n) }
    }
}
