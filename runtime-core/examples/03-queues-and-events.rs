//! Two queues: core orders launches that share a tensor, and a kept event can be waited for.

#![allow(unsafe_code, reason = "loads native code")]

use std::time::Duration;

use runtime_core::{Arg, DType, Geometry, ModuleSource, QueueOptions, Result, Runtime};

const CODE: &str = "
void set(float *x, long n, float value) { for (long i = 0; i < n; i++) x[i] = value; }
void twice(const float *x, float *y, long n) { for (long i = 0; i < n; i++) y[i] = 2 * x[i]; }";
const N: usize = 1 << 20;

fn main() -> Result<()> {
    let device = Runtime::new().open("host")?;
    // SAFETY: both functions access n elements, as the launches below declare.
    let module = device.load(&unsafe { ModuleSource::native("c", CODE) })?;
    let (set, twice) = (module.kernel("set")?, module.kernel("twice")?);
    let open_queue = || device.open_queue(&QueueOptions::default());
    let (producer, consumer) = (open_queue()?, open_queue()?);
    let tensor = || device.allocate(DType::F32, &[N], &Default::default());
    let (x, y, n, plain) = (tensor()?, tensor()?, Arg::scalar(N as i64), Geometry::single());

    producer.launch(&set, plain, &[Arg::write(&x), n, Arg::scalar(1.0f32)])?; // a dropped event costs nothing
    let doubled = consumer.launch(&twice, plain, &[Arg::read(&x), Arg::write(&y), n])?; // waits for that write of x
    let again = producer.launch(&set, plain, &[Arg::write(&x), n, Arg::scalar(5.0f32)])?; // and this one for that read
    doubled.wait_timeout(Duration::from_secs(30))?; // a kept event: does not wait for later work
    assert_eq!(y.to_vec::<f32>()?, vec![2.0; N]);

    consumer.wait_for(&again)?; // an order that no tensor implies
    consumer.launch_noop()?.wait()?;
    assert!(again.is_done()?);

    let submitted = consumer.submitted();
    assert!(consumer.launch(&twice, Geometry::new(8, 0), &[]).is_err()); // rejected: takes no ticket
    assert_eq!(consumer.submitted(), submitted);
    consumer.wait_idle() // and has no effect
}
