//! Private memory of a work-group, which processors keep on the stack of a thread: as much as is accepted runs, and more is
//! refused instead of a crash.

use std::time::Duration;

use libtest_mimic::{Failed, Trial};
use opencl::Driver;
use runtime_core::{
    Arg, CommonRuntime, DType, ErrorKind, Geometry, Kernel, ModuleSource, OptionValue, Result, Runtime,
};

const GROUP_SIZES: [u32; 3] = [1, 64, 256];
const TIMEOUT: Duration = Duration::from_secs(60);
/// The limit where the stack is large.
const MAX_BYTES: u64 = 512 << 10;

pub(crate) fn trials(driver: Driver) -> Vec<Trial> {
    let mut trials = Vec::new();
    for items in GROUP_SIZES {
        for barrier in ["", "workgroupBarrier();"] {
            let between = if barrier.is_empty() { "" } else { "_across_a_barrier" };
            let name = format!("{}::private_memory_of_{items}_items{between}", driver.name());
            trials.push(Trial::test(name, move || check(items, barrier)));
        }
    }
    trials
}

/// Each invocation writes two elements of its array and reads them again.
fn code(items: u32, elements: u64, barrier: &str) -> String {
    format!(
        "struct Scalars {{ a: u32, b: u32 }}
        var<immediate> s: Scalars;
        @group(0) @binding(0) var<storage, read_write> y: array<u32>;
        @compute @workgroup_size({items}) fn k(@builtin(global_invocation_id) id: vec3u) {{
            var t: array<u32, {elements}>;
            t[s.a + id.x] = id.x;
            t[s.b + id.x] = 5u;
            {barrier}
            y[id.x] = t[s.a + id.x] + t[s.b + id.x];
        }}"
    )
}

fn check(items: u32, barrier: &str) -> std::result::Result<(), Failed> {
    let runtime = Runtime::builder().with_lowering(runtime_kernel::wgsl()).build();
    let device = runtime.open("opencl:0")?;
    let Some(OptionValue::Integer(stack)) = device.info().properties.value("thread_stack_bytes") else {
        return Err("the device does not report the size of its stacks".into());
    };
    let limit = (stack.unsigned_abs() / 2 / u64::from(items)).min(MAX_BYTES) / 4;
    let error = device.load(&ModuleSource::wgsl(&code(items, limit + 1, barrier))).map(|_| ());
    match error.map_err(|error| error.kind()) {
        Err(ErrorKind::OutOfResources) => {}
        other => return Err(format!("one element too many: {other:?}").into()),
    }
    let (given, expected) = run(&*device, items, limit, barrier)?;
    if given == expected { Ok(()) } else { Err(format!("{given:?}, not {expected:?}").into()) }
}

fn kernel_limit(kernel: &Kernel) -> u32 {
    kernel.info().max_group_items.unwrap_or(u32::MAX)
}

/// The result of as many elements as are accepted, and the right one.
fn run(device: &dyn CommonRuntime, items: u32, elements: u64, barrier: &str) -> Result<(Vec<u32>, Vec<u32>)> {
    let groups = 4;
    let total = groups * items;
    let kernel = device.kernel(ModuleSource::wgsl(&code(items, elements, barrier)), "k")?;
    let y = device.allocate(DType::U32, &[total as usize], &runtime_core::Placement::default())?;
    let last = u32::try_from(elements).unwrap_or(u32::MAX) - total;
    let args = [Arg::write(&y), Arg::scalar(0_u32), Arg::scalar(last)];
    let geometry = Geometry::new([groups, 1, 1], [items, 1, 1]);
    let expected = (0..total).map(|index| index + 5).collect();
    match device.queue()?.launch(&kernel, geometry, &args) {
        // The driver refuses it, which is as good.
        Err(error) if error.kind() == ErrorKind::OutOfResources && kernel_limit(&kernel) < items => {
            Ok((Vec::clone(&expected), expected))
        }
        launched => {
            launched?.wait_timeout(TIMEOUT)?;
            Ok((y.to_vec()?, expected))
        }
    }
}
