//! Kernels of `kernels/` that make a whole of several launches, on every device that is there.

#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

use std::path::Path;

use runtime_core::{
    Arg, CodeFormat, CommonRuntime, DType, Geometry, Kernel, ModuleSource, Placement, Queue, QueueOptions,
    Runtime, Tensor,
};

const GROUP: u32 = 64;
const ITEMS: u32 = 4;
const BLOCK: u32 = GROUP * ITEMS;

/// The backends that lie beside the command, not those of another profile.
#[allow(unsafe_code, reason = "loads libraries")]
fn runtime() -> Runtime {
    let folder = Path::new(env!("CARGO_BIN_EXE_runtime")).parent().unwrap();
    // SAFETY: the backends of this workspace.
    unsafe { Runtime::builder().directory(folder) }.discover(false).lower_with(runtime_kernel::wgsl()).build()
}

fn kernel(device: &dyn CommonRuntime, name: &str) -> Kernel {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kernels").join(name).with_extension("wgsl");
    let source = ModuleSource::wgsl_file(path).element(DType::I32);
    let source = source.constant("GROUP", GROUP).constant("ITEMS", ITEMS);
    device.load(&source).unwrap().kernel(name).unwrap()
}

/// A device with the kernels.
struct On<'a> {
    device: &'a dyn CommonRuntime,
    queue: Queue,
}

impl On<'_> {
    fn allocate(&self, elements: u32) -> Tensor {
        self.device.allocate(DType::I32, &[elements as usize], &Placement::default()).unwrap()
    }

    /// Whole exclusive prefix sums: blocks, the scan of their sums, and those added to the blocks.
    fn scan(&self, x: &Tensor, n: u32) -> Tensor {
        let blocks = n.div_ceil(BLOCK);
        let (out, totals) = (self.allocate(n), self.allocate(blocks));
        let geometry = Geometry::new(blocks, GROUP);
        let arguments = [Arg::read(x), Arg::write(&out), Arg::write(&totals), Arg::scalar(n)];
        self.queue.launch(&kernel(self.device, "scan"), &geometry, &arguments).unwrap();
        if blocks > 1 {
            let offsets = self.scan(&totals, blocks);
            let arguments = [Arg::read(&offsets), Arg::read_write(&out), Arg::scalar(n)];
            self.queue.launch(&kernel(self.device, "scan_offset"), &geometry, &arguments).unwrap();
        }
        out
    }

    /// The sum of everything: sums of blocks, until one is left.
    fn sum(&self, x: &Tensor, n: u32) -> i32 {
        let blocks = n.div_ceil(BLOCK);
        let sums = self.allocate(blocks);
        let arguments = [Arg::read(x), Arg::write(&sums), Arg::scalar(n)];
        let geometry = Geometry::new(blocks, GROUP);
        self.queue.launch(&kernel(self.device, "reduction"), &geometry, &arguments).unwrap();
        if blocks > 1 { self.sum(&sums, blocks) } else { sums.to_vec::<i32>().unwrap()[0] }
    }
}

#[test]
fn blocks_make_a_whole() {
    let runtime = runtime();
    let takes = |info: &&runtime_core::DeviceInfo| {
        info.unusable.is_none()
            && info.id.sub.is_none()
            && info.formats.iter().any(|format| format == CodeFormat::WGSL.as_str())
    };
    let mut devices = Vec::new();
    for info in runtime.devices().iter().filter(takes) {
        let device = runtime.open(&info.id.to_string()).unwrap();
        let on = On { device: &*device, queue: device.open_queue(&QueueOptions::default()).unwrap() };
        // One block, several, and more blocks than a block has elements.
        for n in [1, BLOCK, 5 * BLOCK + 1, 100_003] {
            let data: Vec<i32> = (0..n).map(|i| (i * 7919 % 201).cast_signed() - 100).collect();
            let x = Tensor::from_slice(&*device, &[data.len()], &data).unwrap();
            let mut before = 0;
            let scanned = data.iter().map(|value| {
                before += value;
                before - value
            });
            let expected: Vec<i32> = scanned.collect();
            assert_eq!(on.scan(&x, n).to_vec::<i32>().unwrap(), expected, "{} of {n}", info.id);
            assert_eq!(on.sum(&x, n), before, "{} of {n}", info.id);
        }
        devices.push(info.id.to_string());
    }
    assert!(devices.iter().any(|device| device == "host:0"), "{devices:?}");
}
