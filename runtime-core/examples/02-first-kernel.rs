//! A first kernel: open a device, create tensors, load code, launch it on a queue.

#![allow(unsafe_code, reason = "loads native code")]
#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use runtime_core::{CodeFormat, ModuleSource, Result, Runtime, read, write};

const CODE: &str = "
void axpy(float a, const float *x, const float *y, float *z, long n) {
    for (long i = 0; i < n; i++) z[i] = a * x[i] + y[i];
}";

fn main() -> Result<()> {
    let device = Runtime::new().open("host")?;
    let x = device.tensor([4], &[1.0f32, 2.0, 3.0, 4.0])?;
    let y = device.tensor([4], &[10.0f32, 20.0, 30.0, 40.0])?;
    let z = device.empty::<f32>([4])?; // its content is undefined

    // SAFETY: `axpy` reads n elements of x and y and writes n of z, as the launch below declares.
    let source = unsafe { ModuleSource::native(CodeFormat::C, CODE) };
    let axpy = device.kernel(&source, "axpy")?;

    // One call of the function, with arguments in the order of its parameters. C does not say how it uses a
    // tensor, so the launch does.
    let queue = device.queue()?;
    let args = (2.0f32, read(&x), read(&y), write(&z), 4i64);
    let done = queue.launch(&axpy, (1, 1), args)?; // returns at once
    done.wait()?;

    let result = z.to_vec::<f32>()?; // waits by itself, too, since the launch writes z
    println!("{} on {}: {result:?}", axpy.name(), device.device_name());
    assert_eq!(result, [12.0, 24.0, 36.0, 48.0]);
    Ok(())
}
