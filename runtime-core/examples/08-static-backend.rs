//! A statically linked backend: no library is searched, and everything else is the same.

#![allow(unsafe_code, reason = "loads native code")]
#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use runtime_core::{ModuleSource, Options, Result, Runtime, read, write};

fn main() -> Result<()> {
    let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
    for line in runtime.load_report() {
        println!("{line}");
    }
    let target = &runtime.targets()[0];
    assert_eq!((target.name.as_str(), &target.path), ("null", &None));

    // A device can be opened with options, which the backend documents and core validates.
    for option in target.options.iter().take(3) {
        println!("option {} (default {}): {}", option.key, option.default, option.doc);
    }
    let error = runtime
        .open_with("null:0", &Options::new().with("speed", 11i64))
        .expect_err("there is no such option");
    println!("as expected: {error}");
    let device = runtime.open("null:0")?;

    // SAFETY: `add_f32` reads a and b and writes sum; all have the same number of elements.
    let source = unsafe { ModuleSource::native("null", "plus = add_f32") };
    let plus = device.kernel(&source, "plus")?;
    let a = device.tensor([2], &[1.0f32, 2.0])?;
    let b = device.tensor([2], &[10.0f32, 20.0])?;
    let sum = device.empty::<f32>([2])?;
    device.queue()?.call(&plus, (1, 1), (read(&a), read(&b), write(&sum)))?; // launch and wait
    assert_eq!(sum.to_vec::<f32>()?, [11.0, 22.0]);
    Ok(())
}
