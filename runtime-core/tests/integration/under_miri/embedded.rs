//! Embedded devices: described tensors, images, read-back.

use std::time::Duration;

use runtime_core::{Arg, DType, DeviceKind, ErrorKind, HostArray, ModuleSource, Options};

use super::open;

#[test]
fn a_program_is_flashed_run_and_read() {
    let opened = open("null:2", &Options::new());
    let device = opened.as_embedded().unwrap();
    assert_eq!(device.info().kind, DeviceKind::Embedded); // without an import of `CommonRuntime`
    let x = device.tensor_from_seed(DType::F32, &[3], 7).unwrap();
    let y = device.tensor_from_array(HostArray::from_slice(&[3], &[1f32; 3]).unwrap()).unwrap();
    // SAFETY: the null device's builtins check their arguments.
    let image = unsafe { ModuleSource::native("null", "saxpy_f32") };
    assert!(device.run(Duration::ZERO).is_err(), "nothing is flashed");
    device.flash(&image, &[Arg::read(&x), Arg::read_write(&y), Arg::scalar(2f32)]).unwrap();
    drop((x, y));
    let report = device.run(Duration::from_secs(1)).unwrap();
    assert!(report.exit_code == 0 && report.cycles.is_some(), "{report:?}");
    let (x, y) = (device.read(0).unwrap(), device.read(1).unwrap());
    for (x, y) in x.as_slice::<f32>().unwrap().iter().zip(y.as_slice::<f32>().unwrap()) {
        assert!((y - (2.0 * x + 1.0)).abs() < 1e-6);
    }
    // SAFETY: as above.
    let slow = unsafe { ModuleSource::native("null", "spin") };
    device.flash(&slow, &[Arg::scalar(1_000_000i64)]).unwrap();
    assert_eq!(device.run(Duration::from_micros(10)).unwrap_err().kind(), ErrorKind::Timeout);
}
