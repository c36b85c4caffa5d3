//! Graphs on the null devices: recording, explicit nodes and edges, sub-graphs, replays and new arguments. `null:0` replays node by
//! node, `null:1` has native graphs.

#![allow(unsafe_code, reason = "loads code of the null device, and imports its memory twice")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod building;
mod rebinding;
mod replays;

use runtime_core::{Device, ErrorKind, Kernel, ModuleSource, Options, Queue, Result, Runtime, Tensor};

/// Node by node, and native.
const DEVICES: [&str; 2] = ["null:0", "null:1"];

/// A device with the kernels of these tests.
struct Scene {
    device: Device,
    queue: Queue,
    /// `x = a x`
    scale: Kernel,
    /// `y = a x + y`
    saxpy: Kernel,
    copy: Kernel,
    spin: Kernel,
    fail: Kernel,
}

impl Scene {
    fn new(name: &str, options: &Options) -> Self {
        let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
        let device = runtime.open_with(name, options).unwrap();
        let code = "scale_f32\nsaxpy_f32\ncopy_bytes\nspin\nfail";
        // SAFETY: the builtins check their arguments.
        let module = device.load(&unsafe { ModuleSource::native("null", code) }).unwrap();
        let kernel = |name| module.kernel(name).unwrap();
        Self {
            queue: device.queue().unwrap(),
            scale: kernel("scale_f32"),
            saxpy: kernel("saxpy_f32"),
            copy: kernel("copy_bytes"),
            spin: kernel("spin"),
            fail: kernel("fail"),
            device,
        }
    }

    /// One scene per device.
    fn all() -> impl Iterator<Item = Self> {
        DEVICES.into_iter().map(|name| Self::new(name, &Options::new()))
    }

    fn tensor(&self, values: &[f32]) -> Tensor {
        self.device.tensor([values.len()], values).unwrap()
    }

    /// A tensor in the same memory, of which core does not know that it is the same.
    fn alias(&self, tensor: &Tensor) -> Tensor {
        // SAFETY: the structure was exported just now, and is imported once.
        unsafe { self.device.import_dlpack(tensor.to_dlpack().unwrap().into_raw()) }.unwrap()
    }
}

fn values(tensor: &Tensor) -> Vec<f32> {
    tensor.to_vec().unwrap()
}

/// The one line of an `InvalidArgument`.
fn refused<T>(result: Result<T>) -> String {
    let Err(error) = result else { panic!("accepted") };
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    error.to_string()
}
