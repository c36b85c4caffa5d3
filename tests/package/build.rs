//! Compiles kernels into the packages that the library includes.

use runtime_core::Runtime;

fn main() {
    // A program would leave this out, and use the backends of the machine that builds it.
    let runtime = Runtime::builder()
        .discover(false)
        .register(runtime_null::backend())
        .register(runtime_host::backend())
        .with_lowering(runtime_kernel::wgsl())
        .build();
    runtime_build::package("kernels/scale.null")
        .target("null:null")
        .target("absent:any")
        .option("prefix", "my_")
        .runtime(runtime.clone())
        .build();
    runtime_build::package("kernels/square.wgsl").target("host:native").runtime(runtime).build();
}
