//! Compiles the kernels here, so that the benchmarks run on machines without a C compiler.

use std::path::PathBuf;
use std::process::Command;

fn main() {
    let source = "kernels/launch.c";
    println!("cargo:rerun-if-changed={source}");
    let library = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default()).join("launch.so");
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let status =
        Command::new(&compiler).args(["-O2", "-shared", "-fPIC", "-o"]).arg(&library).arg(source).status();
    assert!(
        status.as_ref().is_ok_and(std::process::ExitStatus::success),
        "`{}` did not compile {source} ({status:?}): install a C compiler or name one in CC",
        compiler.display()
    );
}
