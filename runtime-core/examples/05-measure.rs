//! A timed evaluation: checks a kernel's result, and measures its time with a confidence interval.

#![allow(unsafe_code, reason = "loads native code")]
#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use runtime_core::{ModuleSource, Result, Runtime, read, write};

const CODE: &str = "
void squares(const float *x, float *y, long n) { for (long i = 0; i < n; i++) y[i] = x[i] * x[i]; }";
const N: usize = 1 << 16;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let device = Runtime::new().open("host")?;
    // SAFETY: `squares` reads n elements of x and writes n of y, as the arguments below say.
    let kernel = device.kernel(&unsafe { ModuleSource::native("c", CODE) }, "squares")?;
    let input: Vec<f32> = (0..N).map(|i| i as f32 * 0.001).collect();
    let right: Vec<f32> = input.iter().map(|x| x * x).collect();
    let x = device.tensor([N], &input)?;
    let y = device.zeros::<f32>([N])?;

    let answer = device
        .bench(&kernel, (1, 1), (read(&x), write(&y), N as i64))
        .expect(1, &right) // what argument 1 should hold after a call
        .flops(N as f64)
        .bytes(8.0 * N as f64)
        .samples(20)
        .sample_time(std::time::Duration::from_millis(2))
        .await?; // or `.run()?`, without an executor
    let (time, rate) = (answer.statistics.median_ns, answer.gbytes_per_s().unwrap_or(f64::NAN));
    let [low, high] = answer.statistics.median_ci95_ns.unwrap_or([f64::NAN; 2]);
    println!("{time:.0} ns ({low:.0} to {high:.0}, 95% confidence) by {}: {rate:.1} GB/s", answer.clock);
    println!("{} samples of {} calls; {:?}", answer.samples_ns.len(), answer.number, answer.validation);
    assert!(answer.validation.is_passed());
    assert!(answer.is_complete() && answer.samples_ns.iter().all(|&sample| sample > 0.0));
    Ok(())
}
