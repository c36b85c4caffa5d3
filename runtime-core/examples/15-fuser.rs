//! A fuser: launches of code that knows nothing of fusion are listed, and submitted as fewer kernels.
//!
//! Only portable code is fused. This example makes do with native code, for which the report says so; everything else is the same.

#![allow(unsafe_code, reason = "loads native code")]
#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use runtime_core::fusion::FusionOptions;
use runtime_core::{Kernel, ModuleSource, Queue, Result, Runtime, Tensor, read, read_write};

const CODE: &str = "
void scale(float *x, float a, long n) { for (long i = 0; i < n; i++) x[i] *= a; }
void add(const float *x, float *y, long n) { for (long i = 0; i < n; i++) y[i] += x[i]; }";

/// A library function: any queue will do.
fn axpy(queue: &Queue, [scale, add]: [&Kernel; 2], a: f32, x: &Tensor, y: &Tensor) -> Result<()> {
    queue.launch(scale, (1, 1), (read_write(x), a, 2i64))?;
    queue.launch(add, (1, 1), (read(x), read_write(y), 2i64))?;
    Ok(())
}

fn main() -> Result<()> {
    let device = Runtime::new().open("host")?;
    // SAFETY: the functions access n elements, as the launches declare.
    let module = device.load(&unsafe { ModuleSource::native("c", CODE) })?;
    let kernels = [&module.kernel("scale")?, &module.kernel("add")?];
    let (x, y) = (device.tensor([2], &[1.0f32, 2.0])?, device.tensor([2], &[10.0f32, 20.0])?);

    let queue = device.queue()?;
    let fuser = queue.fuser(&FusionOptions::default())?;
    axpy(fuser.queue(), kernels, 2.0, &x, &y)?; // listed: the device has nothing yet
    assert_eq!((fuser.len(), queue.submitted()), (2, 0));
    let (event, report) = fuser.complete()?; // an error before it would have lost nothing: the drop submits the list
    println!("{report}");
    event.wait()?;

    let fuser = queue.fuser(&FusionOptions::default())?;
    axpy(fuser.queue(), kernels, 3.0, &x, &y)?;
    assert_eq!(y.to_vec::<f32>()?, [18.0, 36.0]); // needs the list, which is therefore submitted as it is
    Ok(())
}
