//! Records work once and replays it, as a single submission where the device supports graphs.

#![allow(unsafe_code, reason = "loads native code")]
#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use runtime_core::{ModuleSource, Result, Runtime, read, read_write};

const CODE: &str = "
void scale(float *x, float factor, long n) { for (long i = 0; i < n; i++) x[i] *= factor; }
void add(const float *x, float *sum, long n) { for (long i = 0; i < n; i++) sum[i] += x[i]; }";

fn main() -> Result<()> {
    let device = Runtime::new().open("host")?;
    // SAFETY: both functions access n elements, as the launches below declare.
    let module = device.load(&unsafe { ModuleSource::native("c", CODE) })?;
    let (scale, add) = (module.kernel("scale")?, module.kernel("add")?);
    let x = device.tensor([2], &[1.0f32, 10.0])?;
    let sum = device.zeros::<f32>([2])?;
    let (n, queue) = (2i64, device.queue()?);

    let graph = queue.record(|recorder| {
        recorder.launch(&scale, (1, 1), (read_write(&x), 2.0f32, n))?;
        recorder.launch(&add, (1, 1), (read(&x), read_write(&sum), n))
    })?;
    assert_eq!(graph.dependencies(1), Some(&[0][..])); // `add` reads what `scale` writes
    assert_eq!(x.to_vec::<f32>()?, [1.0, 10.0]); // nothing has run yet

    let mut work = queue.instantiate(&graph)?;
    for _ in 0..3 {
        queue.replay(&work)?;
    }
    assert_eq!(sum.to_vec::<f32>()?, [14.0, 140.0]); // 2 + 4 + 8

    work.update(0, (read_write(&x), 0.5f32, n))?; // other arguments, the same order
    queue.replay(&work)?.wait()?;
    assert_eq!(sum.to_vec::<f32>()?, [18.0, 180.0]); // + 4
    println!("{} nodes, native graph: {}", graph.len(), work.is_native());
    Ok(())
}
