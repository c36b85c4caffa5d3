//! Optional features: half precision, sub-groups, host-visible memory, kernel information, timestamps, sub-devices.

use runtime_core::{
    Arg, CommonRuntime, DType, Element, ErrorKind, Geometry, Options, Placement, Queue, QueueOptions, Result,
    Runtime,
};

use super::Case;
use super::fixture::{Fixture, assert_equal, opencl_c, unsupported};

pub(crate) const CASES: &[Case] = &[
    ("half_precision", half_precision),
    ("sub_groups", sub_groups),
    ("host_visible_memory", host_visible_memory),
    ("kernel_information", kernel_information),
    ("device_timestamps", device_timestamps),
    ("large_transfers_are_staged", large_transfers_are_staged),
    ("sub_devices_compute", sub_devices_compute),
];

/// Cases that call the driver from several threads.
pub(crate) const THREADED: &[Case] = &[("large_transfers_are_staged", large_transfers_are_staged)];

/// A kernel of `kernels/features.cl`, of which a device supports some.
fn kernel(fixture: &Fixture, name: &str) -> Result<runtime_core::Kernel> {
    let text = include_str!("../../../kernels/features.cl");
    let module = fixture
        .device
        .load(&opencl_c(text).option("build_options", "-cl-std=CL3.0"))
        .or_else(|_| fixture.device.load(&opencl_c(text)))?;
    // Without its extension, the code does not have it.
    module.kernel(name).map_err(|error| match error.kind() {
        ErrorKind::NotFound => unsupported(name),
        _ => error,
    })
}

fn half_precision(fixture: &Fixture) -> Result<()> {
    let kernel = kernel(fixture, "half_saxpy")?;
    let half = half::f16::from_f32;
    let data: Vec<_> = (0..100u8).map(|value| half(f32::from(value) / 4.0)).collect();
    let place = |data: &[half::f16]| -> Result<_> {
        let tensor = fixture.device.allocate(DType::F16, &[data.len()], &Placement::default())?;
        tensor.write_bytes(&data.iter().flat_map(|value| value.to_ne_bytes()).collect::<Vec<_>>())?;
        Ok(tensor)
    };
    let (x, y) = (place(&data)?, place(&data)?);
    let factor = Arg::scalar_bits(DType::F16, u64::from(half(2.0).to_bits()));
    let args = [Arg::read(&x), Arg::read_write(&y), factor, Arg::scalar(100u32)];
    fixture.queue.launch(&kernel, Geometry::cover(100, 16), &args)?.wait()?;
    let right: Vec<u8> = data.iter().flat_map(|value| half(value.to_f32() * 3.0).to_ne_bytes()).collect();
    let mut found = vec![0; right.len()];
    y.read_bytes(&mut found)?;
    assert_eq!(found, right);
    Ok(())
}

fn sub_groups(fixture: &Fixture) -> Result<()> {
    let (sums, sizes) = (kernel(fixture, "subgroup_sums")?, kernel(fixture, "subgroup_sizes")?);
    let (ones, out, widths) =
        (fixture.tensor(&[1i32; 64])?, fixture.zeros::<i32>(64)?, fixture.zeros::<u32>(64)?);
    let geometry = Geometry::new(1, 64);
    fixture.queue.launch(&sizes, geometry, &[Arg::write(&widths)])?.wait()?;
    fixture.queue.launch(&sums, geometry, &[Arg::read(&ones), Arg::write(&out)])?.wait()?;
    let widths = widths.to_vec::<u32>()?;
    assert!(widths.iter().all(|width| (1..=64).contains(width)), "{widths:?}");
    assert_equal(&out, &widths.iter().map(|width| i32::try_from(*width).unwrap_or(0)).collect::<Vec<_>>())
}

fn host_visible_memory(fixture: &Fixture) -> Result<()> {
    let spaces = &fixture.device.info().spaces;
    let visible: Vec<_> = spaces.iter().filter(|space| space.host_visible && space.kernel_visible).collect();
    if visible.is_empty() {
        return Err(unsupported("host-visible memory"));
    }
    for space in visible {
        let tensor = fixture.device.allocate(i32::DTYPE, &[1000], &Placement::space(&space.name))?;
        tensor.write(&(0..1000).collect::<Vec<i32>>())?;
        let out = fixture.device.allocate(i32::DTYPE, &[1000], &Placement::space(&space.name))?;
        let args = [Arg::read(&tensor), Arg::write(&out), Arg::scalar(1000u32)];
        fixture.run("add_ints", &Geometry::new(4, 32), &args)?;
        assert_equal(&out, &(1..=1000).collect::<Vec<i32>>())?;
    }
    Ok(())
}

fn kernel_information(fixture: &Fixture) -> Result<()> {
    let heat = fixture.idioms.kernel("heat")?;
    let info = heat.info();
    assert_eq!(info.group_size, Some([16, 16, 1]), "fixed by the kernel");
    assert!(info.max_group_items.is_some_and(|items| items >= 256), "{info:?}");
    assert!(info.shared_bytes.is_some_and(|bytes| bytes >= 18 * 18 * 4), "{info:?}");
    let sum = fixture.idioms.kernel("sum")?;
    assert!(sum.info().group_size.is_none() && sum.info().max_group_items.is_some(), "{:?}", sum.info());
    Ok(())
}

/// For a long kernel, the device's clock agrees with the host's.
fn device_timestamps(fixture: &Fixture) -> Result<()> {
    let queue = fixture.device.open_queue(&QueueOptions { timestamps: true, ..QueueOptions::default() })?;
    let data = fixture.tensor(&vec![1.0f32; 1 << 20])?;
    let sums = fixture.zeros::<f32>(1)?;
    let args = [Arg::read(&data), Arg::write(&sums), Arg::local(4), Arg::scalar(1u32 << 20)];
    let kernel = fixture.idioms.kernel("sum")?;
    queue.launch(&kernel, Geometry::new(1, 1), &args)?.wait()?;
    let start = std::time::Instant::now();
    let begin = queue.timestamp()?;
    drop(queue.launch(&kernel, Geometry::new(1, 1), &args)?);
    let end = queue.timestamp()?;
    end.wait()?;
    let wall = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let device = queue.read_timestamp(&end)?.checked_sub(queue.read_timestamp(&begin)?);
    // A million dependent additions take longer than 100 µs anywhere.
    assert!(device.is_some_and(|device| device >= 100_000 && device <= wall), "{device:?} ns of {wall} ns");
    Ok(())
}

fn sub_devices_compute(fixture: &Fixture) -> Result<()> {
    let parts = fixture.device.sub_devices()?;
    let Some(part) = parts.first() else { return Err(unsupported("sub-devices")) };
    let device = Runtime::new().open(&part.id.to_string())?;
    assert!(device.info().compute_units <= fixture.device.info().compute_units);
    let module = device.load(&opencl_c(include_str!("../../../kernels/idioms.cl")))?;
    let queue = device.queue()?;
    let from = device.tensor([10], &[1i32; 10])?;
    let to = device.allocate(i32::DTYPE, &[10], &Placement::default())?;
    let args = [Arg::read(&from), Arg::write(&to), Arg::scalar(10u32)];
    queue.launch(&module.kernel("add_ints")?, Geometry::new(1, 1), &args)?.wait()?;
    assert_equal(&to, &[2i32; 10])
}

/// Without pointers, large transfers are staged by threads; another queue waits on the device for all of them.
fn large_transfers_are_staged(_: &Fixture) -> Result<()> {
    const N: i32 = 10 << 20;
    let device = Runtime::new().open_with("opencl:0", &Options::new().with("pointers", false))?;
    let (one, other) = (open(&*device)?, open(&*device)?);
    let place = || device.empty::<i32>([N.unsigned_abs() as usize]);
    let (from, to) = (place()?, place()?);
    for round in 0..2 {
        let data: Vec<u8> = (0..N).flat_map(|at| (at ^ round).to_ne_bytes()).collect();
        one.write(&from, &data)?;
        let copied = other.copy(&to, &from)?;
        one.wait_for(&copied)?;
        let mut found = vec![0; data.len()];
        one.read(&to, &mut found)?;
        assert!(found == data, "round {round}");
    }
    Ok(())
}

fn open(device: &dyn CommonRuntime) -> Result<Queue> {
    device.queue()
}
