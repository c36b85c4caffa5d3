//! Builds a graph node by node, repeats it in another graph, and replays that on other tensors.

#![allow(unsafe_code, reason = "loads native code")]
#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use runtime_core::{Graph, ModuleSource, Result, Runtime, read, read_write};

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

    let mut step = Graph::new(&queue);
    let scaled = step.add_launch(&scale, (1, 1), (read_write(&x), 2.0f32, n), &[])?;
    step.add_launch(&add, (1, 1), (read(&x), read_write(&sum), n), &[scaled])?;

    let mut steps = Graph::new(&queue);
    let zeroed = steps.add_fill(&sum, &[0; 4], &[])?;
    for _ in 0..3 {
        steps.add_graph(&step, &[zeroed])?; // the steps follow each other, because they share tensors
    }
    let mut work = queue.instantiate(&steps)?;
    queue.replay(&work)?;
    assert_eq!(sum.to_vec::<f32>()?, [14.0, 140.0]); // 2 + 4 + 8

    let other = device.tensor([2], &[3.0f32, 5.0])?;
    work.rebind(&[(&x, &other)])?;
    queue.replay(&work)?;
    assert_eq!(sum.to_vec::<f32>()?, [42.0, 70.0]); // 6 + 12 + 24
    println!("{} nodes", steps.len());
    Ok(())
}
