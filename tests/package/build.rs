//! Compiles a kernel into the package that the library includes.

use runtime_core::Runtime;

fn main() {
    // A program would leave this line out, and use the backends of the machine that builds it.
    let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
    runtime_build::package("kernels/scale.null")
        .target("null:null")
        .target("absent:any")
        .option("prefix", "my_")
        .runtime(runtime)
        .build();
}
