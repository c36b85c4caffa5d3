//! Algorithms of `kernels/` that take several launches, on every available device.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use runtime_core::{
    Arg, CodeFormat, CommonRuntime, DType, Geometry, Kernel, ModuleSource, Queue, Runtime, Tensor,
};

const GROUP: u32 = 64;
const ITEMS: u32 = 4;
const BLOCK: u32 = GROUP * ITEMS;

/// A runtime with the backends next to the command, not those of another profile.
#[allow(unsafe_code, reason = "loads libraries")]
fn runtime() -> Runtime {
    let folder = Path::new(env!("CARGO_BIN_EXE_runtime")).parent().unwrap();
    // SAFETY: loads the backends of this workspace.
    unsafe { Runtime::builder().directory(folder) }
        .discover(false)
        .with_lowering(runtime_kernel::wgsl())
        .build()
}

fn kernel(device: &dyn CommonRuntime, name: &str) -> Kernel {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kernels").join(name).with_extension("wgsl");
    let source = ModuleSource::wgsl_file(path).element(DType::I32);
    let source = source.constant("GROUP", GROUP).constant("ITEMS", ITEMS);
    device.kernel(&source, name).unwrap()
}

/// A device with a queue.
struct DeviceQueue<'a> {
    device: &'a dyn CommonRuntime,
    queue: Queue,
}

impl DeviceQueue<'_> {
    fn allocate(&self, elements: u32) -> Tensor {
        self.device.empty::<i32>([elements as usize]).unwrap()
    }

    /// The exclusive prefix sums of `x`: scans the blocks, scans the block sums, and adds those to the blocks.
    fn scan(&self, x: &Tensor, n: u32) -> Tensor {
        let blocks = n.div_ceil(BLOCK);
        let (out, totals) = (self.allocate(n), self.allocate(blocks));
        let geometry = Geometry::new(blocks, GROUP);
        let arguments = [Arg::read(x), Arg::write(&out), Arg::write(&totals), Arg::scalar(n)];
        self.queue.launch(&kernel(self.device, "scan"), geometry, &arguments).unwrap();
        if blocks > 1 {
            let offsets = self.scan(&totals, blocks);
            let arguments = [Arg::read(&offsets), Arg::read_write(&out), Arg::scalar(n)];
            self.queue.launch(&kernel(self.device, "scan_offset"), geometry, &arguments).unwrap();
        }
        out
    }

    /// The sum of `x`: reduces blocks until one sum is left.
    fn sum(&self, x: &Tensor, n: u32) -> i32 {
        let blocks = n.div_ceil(BLOCK);
        let sums = self.allocate(blocks);
        let arguments = [Arg::read(x), Arg::write(&sums), Arg::scalar(n)];
        let geometry = Geometry::new(blocks, GROUP);
        self.queue.launch(&kernel(self.device, "reduction"), geometry, &arguments).unwrap();
        if blocks > 1 { self.sum(&sums, blocks) } else { sums.to_vec::<i32>().unwrap()[0] }
    }
}

#[test]
fn scans_and_sums_of_any_length_are_right() {
    let runtime = runtime();
    let accepts = |info: &&runtime_core::DeviceInfo| {
        info.unavailable_reason.is_none() && info.id.sub.is_none() && info.accepts(&CodeFormat::WGSL)
    };
    let mut devices = Vec::new();
    for info in runtime.devices().iter().filter(accepts) {
        let device = runtime.open(&info.id.to_string()).unwrap();
        let device_queue = DeviceQueue { device: &*device, queue: device.queue().unwrap() };
        // One block, several blocks, and more blocks than a block has elements.
        for n in [1, BLOCK, 5 * BLOCK + 1, 100_003] {
            let data: Vec<i32> = (0..n).map(|i| (i * 7919 % 201).cast_signed() - 100).collect();
            let x = device.tensor([data.len()], &data).unwrap();
            let mut before = 0;
            let scanned = data.iter().map(|value| {
                before += value;
                before - value
            });
            let expected: Vec<i32> = scanned.collect();
            assert_eq!(device_queue.scan(&x, n).to_vec::<i32>().unwrap(), expected, "{} of {n}", info.id);
            assert_eq!(device_queue.sum(&x, n), before, "{} of {n}", info.id);
        }
        devices.push(info.id.to_string());
    }
    assert!(devices.iter().any(|device| device == "host:0"), "{devices:?}");
}
