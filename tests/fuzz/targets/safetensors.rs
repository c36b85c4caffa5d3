//! Arbitrary files as `.safetensors`: rejected, or every listed tensor has the stated size.
#![no_main]

mod file;

use libfuzzer_sys::fuzz_target;
use runtime_core::{Placement, Runtime, Safetensors};

fuzz_target!(|bytes: &[u8]| {
    file::with(
        bytes,
        |_| (),
        |path| {
            let Ok(stored) = Safetensors::open(path) else { return };
            let runtime = Runtime::builder().discover(false).register(runtime_null::backend());
            let runtime = runtime.register(runtime_host::backend()).build();
            let device = runtime.open("null:0").expect("null opens");
            let host = runtime.open("host:0").expect("the host opens");
            let _ = stored.notes();
            for name in stored.names() {
                // SAFETY: the file is not written during the run.
                let mapped = unsafe { host.as_host().expect("it is the host").map(&stored, &name) };
                for space in ["device", "pinned"] {
                    let loaded = device.load_tensor(&stored, &name, &Placement::space(space));
                    let (Ok(tensor), Ok(info)) = (loaded, stored.info(&name)) else { continue };
                    assert_eq!((tensor.dtype(), tensor.shape()), (info.dtype, &info.shape[..]));
                    let array = tensor.to_array().expect("it is loaded");
                    assert_eq!(array.bytes().len(), info.bytes);
                    if let Ok(mapped) = &mapped {
                        assert_eq!(mapped.to_array().expect("it is mapped").bytes(), array.bytes());
                    }
                }
            }
        },
    );
});
