//! Two queues: core orders launches that share a tensor, and a kept event can be waited for.

#![allow(unsafe_code, reason = "loads native code")]

use std::time::Duration;

use runtime_core::{ModuleSource, Result, Runtime, read, write};

const CODE: &str = "
void set(float *x, long n, float value) { for (long i = 0; i < n; i++) x[i] = value; }
void twice(const float *x, float *y, long n) { for (long i = 0; i < n; i++) y[i] = 2 * x[i]; }";
const N: usize = 1 << 20;

fn main() -> Result<()> {
    let device = Runtime::new().open("host")?;
    // SAFETY: both functions access n elements, as the launches below declare.
    let module = device.load(&unsafe { ModuleSource::native("c", CODE) })?;
    let (set, twice) = (module.kernel("set")?, module.kernel("twice")?);
    let (producer, consumer) = (device.queue()?, device.queue()?);
    let (x, y, n) = (device.empty::<f32>([N])?, device.empty::<f32>([N])?, N as i64);

    producer.launch(&set, (1, 1), (write(&x), n, 1.0f32))?; // an event that nobody keeps is free
    let doubled = consumer.launch(&twice, (1, 1), (read(&x), write(&y), n))?; // waits for that write of x
    let again = producer.launch(&set, (1, 1), (write(&x), n, 5.0f32))?; // and this for that read
    doubled.wait_timeout(Duration::from_secs(30))?; // a kept event: later work is not waited for
    assert_eq!(y.to_vec::<f32>()?, vec![2.0; N]);

    consumer.wait_for(&again)?; // an order that no tensor implies
    consumer.launch_noop()?.wait()?;
    assert!(again.is_done()?);

    let submitted = consumer.submitted();
    assert!(consumer.launch(&twice, (8, 0), ()).is_err()); // refused: takes no ticket,
    assert_eq!(consumer.submitted(), submitted);
    consumer.wait_idle() // and has no effect
}
