//! Lifetimes, the first form: wait, and everything that the work uses is yours again.

#![allow(unsafe_code, reason = "loads native code")]

use runtime_core::{Device, Kernel, ModuleSource, Result, Runtime, read_write};

const CODE: &str = "
#include <unistd.h>
void slow_twice(float *x, long n) { usleep(50000); for (long i = 0; i < n; i++) x[i] *= 2; }";

/// Doubles numbers on the device. All that it allocates ends with it.
fn doubled(device: &Device, twice: &Kernel, values: &[f32]) -> Result<Vec<f32>> {
    let x = device.tensor([values.len()], values)?;
    let queue = device.queue()?;
    let event = queue.launch(twice, (1, 1), (read_write(&x), values.len() as i64))?;
    event.wait()?; // `queue.call(…)` is this in one; so is the read below, which waits for the last writer
    x.to_vec()
}

fn main() -> Result<()> {
    let device = Runtime::new().open("host")?;
    // SAFETY: the function accesses n elements, as the launches declare.
    let twice = device.kernel(&unsafe { ModuleSource::native("c", CODE) }, "slow_twice")?;
    assert_eq!(doubled(&device, &twice, &[1.0, 2.0])?, [2.0, 4.0]);

    // Not waiting is safe as well: the queue keeps the tensor until the work on it has ended.
    let queue = device.queue()?;
    let x = device.tensor([2], &[3.0f32, 4.0])?;
    let event = queue.launch(&twice, (1, 1), (read_write(&x), 2i64))?;
    drop((x, queue, twice, device));
    event.wait()
}
