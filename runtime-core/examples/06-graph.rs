//! Records work once and replays it, as a single submission where the device supports graphs.

#![allow(unsafe_code, reason = "loads native code")]
#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use runtime_core::{Arg, Geometry, ModuleSource, QueueOptions, Result, Runtime};

const CODE: &str = "
void scale(float *x, float factor, long n) { for (long i = 0; i < n; i++) x[i] *= factor; }
void add(const float *x, float *sum, long n) { for (long i = 0; i < n; i++) sum[i] += x[i]; }";

fn main() -> Result<()> {
    let device = Runtime::new().open("host")?;
    // SAFETY: both functions access n elements, as the launches below declare.
    let module = device.load(&unsafe { ModuleSource::native("c", CODE) })?;
    let (scale, add, plain) = (module.kernel("scale")?, module.kernel("add")?, Geometry::single());
    let x = device.tensor([2], &[1.0f32, 10.0])?;
    let sum = device.tensor([2], &[0.0f32, 0.0])?;
    let (n, queue) = (Arg::scalar(2i64), device.open_queue(&QueueOptions::default())?);

    let graph = queue.record(|recorder| {
        recorder.launch(&scale, plain, &[Arg::read_write(&x), Arg::scalar(2.0f32), n])?;
        recorder.launch(&add, plain, &[Arg::read(&x), Arg::read_write(&sum), n])
    })?;
    assert_eq!(graph.dependencies(1), Some(&[0][..])); // `add` reads what `scale` writes
    assert_eq!(x.to_vec::<f32>()?, [1.0, 10.0]); // nothing has run yet

    let mut work = queue.instantiate(&graph)?;
    for _ in 0..3 {
        queue.replay(&work)?;
    }
    assert_eq!(sum.to_vec::<f32>()?, [14.0, 140.0]); // 2 + 4 + 8

    work.update(0, &[Arg::read_write(&x), Arg::scalar(0.5f32), n])?; // other arguments, same dependencies
    queue.replay(&work)?.wait()?;
    assert_eq!(sum.to_vec::<f32>()?, [18.0, 180.0]); // + 4
    println!("{} nodes, native graph: {}", graph.len(), work.is_native());
    Ok(())
}
