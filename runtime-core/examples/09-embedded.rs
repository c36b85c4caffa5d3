//! An embedded device: flashes an image with its tensors, runs it with a deadline, reads the tensors back.

#![allow(unsafe_code, reason = "loads native code")]
#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use std::time::Duration;

use runtime_core::{Arg, DType, Error, ErrorKind, HostArray, ModuleSource, Result, Runtime};

fn main() -> Result<()> {
    let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
    let opened = runtime.open("null:2")?;
    let Some(device) = opened.as_embedded() else {
        return Err(Error::new(ErrorKind::Unsupported, format!("{} is not embedded", opened.device_id())));
    };

    // Tensors are only described: the device creates them, from data in the image or from a seed.
    let x = device.tensor_from_seed(DType::F32, &[4], 42)?;
    let y = device.tensor_from_array(HostArray::from_slice(&[4], &[1.0f32; 4])?)?;

    // SAFETY: the program reads x, and reads and writes y, which have the same number of elements.
    let image = unsafe { ModuleSource::native("null", "saxpy_f32") };
    device.flash(&image, &[Arg::read(&x), Arg::read_write(&y), Arg::scalar(2.0f32)])?;
    let report = device.run(Duration::from_secs(10))?;
    let cycles = report.cycles.map_or_else(|| "uncounted".to_owned(), |cycles| cycles.to_string());
    println!("exit code {}, {cycles} cycles in {} ns", report.exit_code, report.elapsed_ns);
    assert_eq!(report.exit_code, 0);

    // The tensors of the flashed program are numbered in the order of its arguments.
    let (x, y) = (device.read(0)?, device.read(1)?);
    println!("x = {:?}\ny = {:?}", x.as_slice::<f32>()?, y.as_slice::<f32>()?);
    for (x, y) in x.as_slice::<f32>()?.iter().zip(y.as_slice::<f32>()?) {
        assert!((0.0..1.0).contains(x) && (y - (2.0 * x + 1.0)).abs() < 1e-6);
    }
    assert!(opened.queue().is_err()); // it has no queues
    Ok(())
}
