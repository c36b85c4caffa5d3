//! Measures how fast data reaches an emulated board and comes back:
//! `cargo run --release -p runtime-embedded --example transfer_speed [DEVICE [BYTES]]`.

use std::error::Error;
use std::time::{Duration, Instant};

use runtime_core::{Arg, HostArray, ModuleSource, Runtime};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().unwrap_or_else(|| "embedded:riscv64-virt".to_owned());
    let bytes: usize = arguments.next().map_or(Ok(3 << 20), |text| text.parse())?;
    let runtime = Runtime::builder().discover(false).register(runtime_embedded::backend()).build();
    let opened = runtime.open(&name)?;
    let device = opened.as_embedded().ok_or("not an embedded device")?;
    // SAFETY: the code runs on the target, and accesses nothing.
    #[allow(unsafe_code, reason = "native code")]
    let code = unsafe { ModuleSource::native("c", "void f(unsigned char *x) {}") };
    // Compiles, and starts the emulator.
    device
        .flash(&code, &[Arg::read_write(&device.tensor_from_array(HostArray::from_slice(&[1], &[0u8])?)?)])?;
    let data: Vec<u8> = (0..bytes).map(|at| ((at * at) >> 7).to_le_bytes()[0]).collect();
    let array = device.tensor_from_array(HostArray::from_slice(&[bytes], &data)?)?;
    let begin = Instant::now();
    device.flash(&code, &[Arg::read_write(&array)])?;
    report("sent, with the image, and checked", bytes, begin.elapsed());
    let begin = Instant::now();
    let back = device.read(0)?;
    report("read and compared", bytes, begin.elapsed());
    assert_eq!(back.bytes(), data);
    Ok(())
}

#[allow(clippy::print_stdout, reason = "an example")]
fn report(what: &str, bytes: usize, time: Duration) {
    println!("{bytes} bytes {what}: {:.1} MB/s", bytes as f64 / time.as_secs_f64() / 1e6);
}
