//! Lifetimes, the third form: a value is dropped once some work has ended, and the program goes on.

#![allow(unsafe_code, reason = "loads native code")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use runtime_core::{Event, ModuleSource, Result, Runtime, read, read_write};

const CODE: &str = "
#include <unistd.h>
void slow_add(const float *x, float *y, long n) { usleep(50000); for (long i = 0; i < n; i++) y[i] += x[i]; }";

fn main() -> Result<()> {
    let device = Runtime::new().open("host")?;
    // SAFETY: the function accesses n elements, as the launches declare.
    let add = device.kernel(&unsafe { ModuleSource::native("c", CODE) }, "slow_add")?;
    let (one, other) = (device.queue()?, device.queue()?);
    let weights = Arc::new([1.0f32, 2.0]); // of a cache that may forget them, but not while they are in use
    let x = device.tensor([2], &weights[..])?;
    let (y, z) = (device.zeros::<f32>([2])?, device.zeros::<f32>([2])?);

    let first = one.launch(&add, (1, 1), (read(&x), read_write(&y), 2i64))?;
    let second = other.launch(&add, (1, 1), (read(&x), read_write(&z), 2i64))?;
    one.keep_until(&[&first, &second], weights.clone())?;
    assert_eq!(Arc::strong_count(&weights), 2);

    Event::all(&[&first, &second]).wait()?;
    let start = Instant::now();
    while Arc::strong_count(&weights) > 1 {
        assert!(start.elapsed() < Duration::from_secs(30), "still in use");
        std::thread::sleep(Duration::from_millis(1)); // a thread of the runtime drops it
    }
    Ok(())
}
