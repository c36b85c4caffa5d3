//! Programs that must not compile without `unsafe`.

/// A program that needs `unsafe`, written as `UNSAFE`.
#[derive(Debug)]
pub(crate) struct UnsafeProgram {
    pub(crate) name: &'static str,
    /// The error without it: E0133, call of an unsafe function; E0200, `impl` of an unsafe trait.
    pub(crate) code: &'static str,
    pub(crate) program: &'static str,
}

/// Ways from safe code to foreign memory and native code.
pub(crate) const NEEDS_UNSAFE: &[UnsafeProgram] = &[
    UnsafeProgram {
        name: "a table made by hand",
        code: "E0133",
        program: "
            use runtime_core::abi::{self, BackendTable, Header, Str};
            use runtime_core::backend::LinkedBackend;
            use std::ptr::null;
            static TABLE: BackendTable = BackendTable {
                header: Header { magic: abi::MAGIC, struct_size: 120, major: abi::MAJOR, minor: abi::MINOR },
                name: Str { ptr: std::ptr::without_provenance(1 << 16), len: 1 << 20 }, version: Str::EMPTY,
                instance: null(), device: null(), memory: null(), module: null(), queue: null(), graph: null(),
                embedded: null(), counters: null(), native: null(),
            };
            pub fn main() {
                let backend = UNSAFE { LinkedBackend::from_table(&TABLE) };
                let _ = runtime_core::Runtime::builder().register(backend).build();
            }",
    },
    UnsafeProgram {
        name: "a lowering that makes native code",
        code: "E0200",
        program: "
            use runtime_core::backend::OptionSpec;
            use runtime_core::lowering::{Lowered, Lowering, PortableSource};
            use runtime_core::{CodeFormat, DeviceInfo, Result};
            #[derive(Debug)]
            pub struct Evil;
            UNSAFE impl Lowering for Evil {
                fn format(&self) -> CodeFormat { CodeFormat::WGSL }
                fn options(&self) -> Vec<OptionSpec> { Vec::new() }
                fn target(&self, _: &DeviceInfo) -> Option<CodeFormat> { Some(CodeFormat::C) }
                fn lower(&self, _: &PortableSource<'_>, _: &DeviceInfo) -> Result<Lowered> { todo!() }
            }
            pub fn main() { let _ = runtime_core::Runtime::builder().with_lowering(std::sync::Arc::new(Evil)); }",
    },
    UnsafeProgram {
        name: "a store that answers with other code",
        code: "E0200",
        program: "
            use runtime_core::{Result, cache::SharedStore};
            #[derive(Debug)]
            pub struct Evil;
            UNSAFE impl SharedStore for Evil {
                fn location(&self) -> String { String::new() }
                fn get(&self, _: &str) -> Result<Option<Vec<u8>>> { Ok(None) }
                fn put(&self, _: &str, _: &[u8]) -> Result<()> { Ok(()) }
            }",
    },
    UnsafeProgram {
        name: "a code cache with the code of others",
        code: "E0133",
        program: "
            pub fn main() { let _ = UNSAFE { runtime_core::cache::CacheOptions::default().with_folder(\"/tmp\") }; }",
    },
    UnsafeProgram {
        name: "a store of code",
        code: "E0133",
        program: "
            use std::sync::Arc; use runtime_core::cache::{CacheOptions, SharedStore};
            pub fn f(store: Arc<dyn SharedStore>) { let _ = UNSAFE { CacheOptions::default().with_shared(store) }; }",
    },
    UnsafeProgram {
        name: "code in place of that of kernels",
        code: "E0133",
        program: "
            pub fn main() { let _ = UNSAFE { runtime_core::cache::CacheOptions::default().with_override_folder(\"/tmp\") }; }",
    },
    UnsafeProgram {
        name: "a note that decides what is executed",
        code: "E0133",
        program: "
            pub fn main() { UNSAFE { runtime_core::cache::Notes::from_environment().write(b\"key\", b\"code\") }; }",
    },
    UnsafeProgram {
        name: "work that the runtime does not know",
        code: "E0133",
        program: "
            use runtime_core::{Queue, Tensor};
            pub fn f(queue: &Queue, x: &Tensor) { let _ = UNSAFE { queue.native((x,), |_| Ok(())) }; }",
    },
    UnsafeProgram {
        name: "a queue of the program",
        code: "E0133",
        program: "
            pub fn f(device: &runtime_core::Device) { let _ = UNSAFE { device.queue_from_native(4096) }; }",
    },
    UnsafeProgram {
        name: "a device with options that name code",
        code: "E0133",
        program: "
            pub fn f(runtime: &runtime_core::Runtime, options: &runtime_core::Options) {
                let _ = UNSAFE { runtime.open_with_code(\"mppa\", options) };
            }",
    },
    UnsafeProgram {
        name: "a backend whose buffers lie anywhere",
        code: "E0200",
        program: "
            use runtime_core::backend::{Backend, LinkedBackend, Log};
            use runtime_core::{DeviceInfo, Options, Result};
            pub struct Evil;
            UNSAFE impl Backend for Evil {
                const NAME: &'static str = \"evil\";
                type Device = runtime_host::HostDevice;
                UNSAFE fn open(_: Log) -> Result<Self> { Ok(Self) }
                fn devices(&self) -> Result<Vec<DeviceInfo>> { Ok(Vec::new()) }
                fn open_device(&self, _: u32, _: Option<u32>, _: &Options) -> Result<Self::Device> { todo!() }
            }
            pub fn main() { let _ = LinkedBackend::of::<Evil>(); }",
    },
    UnsafeProgram {
        name: "a backend's objects without core: their methods check nothing",
        code: "E0133",
        program: "
            use runtime_core::backend::{Backend, Device, Log, Source};
            pub fn main() {
                let backend = UNSAFE { runtime_host::HostBackend::open(Log::silent()) }.unwrap();
                let options = runtime_core::Options::new();
                let code = b\"__attribute__((constructor)) static void f(void) { *(volatile int *)8 = 1; }\";
                let source = Source { format: \"c\", path: \"\", code: Some(code), options: &options };
                let _ = backend.open_device(0, None, &options).unwrap().load(&source);
            }",
    },
    UnsafeProgram {
        name: "a driver by its path",
        code: "E0133",
        program: "
            use runtime_core::backend::Log;
            use runtime_opencl::{DeviceFilter, OpenCl, Quirks};
            pub fn main() {
                let filter = DeviceFilter { library: Some(\"/tmp/mine.so\".into()), ..DeviceFilter::default() };
                let _ = UNSAFE { OpenCl::with(filter, Quirks::default(), Log::silent()) };
            }",
    },
    UnsafeProgram {
        name: "a backend by its path",
        code: "E0133",
        program: "pub fn main() { let _ = UNSAFE { runtime_core::Runtime::builder().library(\"/tmp/mine.so\") }; }",
    },
    UnsafeProgram {
        name: "backends by their folder",
        code: "E0133",
        program: "pub fn main() { let _ = UNSAFE { runtime_core::Runtime::builder().directory(\"/tmp\") }; }",
    },
    UnsafeProgram {
        name: "native code",
        code: "E0133",
        program: "pub fn main() { let _ = UNSAFE { runtime_core::ModuleSource::native(\"c\", \"void f(void) {}\") }; }",
    },
    UnsafeProgram {
        name: "native code in a file",
        code: "E0133",
        program: "pub fn main() { let _ = UNSAFE { runtime_core::ModuleSource::native_file(\"c\", \"f.c\") }; }",
    },
    UnsafeProgram {
        name: "portable code without its checks",
        code: "E0133",
        program: "pub fn main() { let _ = UNSAFE { runtime_core::ModuleSource::wgsl(\"\").unchecked() }; }",
    },
    UnsafeProgram {
        name: "host memory by its address",
        code: "E0133",
        program: "
            pub fn f(host: &runtime_core::Host) {
                let _ = UNSAFE { host.import(std::ptr::without_provenance_mut(8), runtime_core::DType::U8, &[1]) };
            }",
    },
    UnsafeProgram {
        name: "memory of another library",
        code: "E0133",
        program: "
            pub fn f(device: &dyn runtime_core::CommonRuntime) {
                let _ = UNSAFE { device.import_dlpack(std::ptr::null_mut()) };
            }",
    },
    UnsafeProgram {
        name: "memory of another library, by the older protocol",
        code: "E0133",
        program: "
            pub fn f(device: &dyn runtime_core::CommonRuntime) {
                let _ = UNSAFE { device.import_dlpack_unversioned(std::ptr::null_mut()) };
            }",
    },
    UnsafeProgram {
        name: "a file that may change while it is mapped",
        code: "E0133",
        program: "
            pub fn f(file: &runtime_core::Safetensors, host: &runtime_core::Host) {
                let _ = UNSAFE { host.map(file, \"x\") };
            }",
    },
    UnsafeProgram {
        name: "a launch that nobody orders",
        code: "E0133",
        program: "
            use runtime_core::{Geometry, Kernel, Queue};
            pub fn f(queue: &Queue, kernel: &Kernel) {
                let _ = UNSAFE { queue.launch_untracked(kernel, Geometry::single(), &[]) };
            }",
    },
    UnsafeProgram {
        name: "text of any length at any address",
        code: "E0133",
        program: "
            use runtime_core::abi::Str; use runtime_core::backend::convert::read_str;
            pub fn main() {
                let _ = UNSAFE { read_str(\"x\", Str { ptr: std::ptr::without_provenance(1 << 16), len: 9 }) };
            }",
    },
    UnsafeProgram {
        name: "an error object at any address",
        code: "E0133",
        program: "
            pub fn main() {
                let _ = UNSAFE { runtime_core::backend::convert::from_status(std::ptr::without_provenance_mut(1 << 16)) };
            }",
    },
];

/// Objects that cannot be constructed outside core: the name, the compiler's error, and the attempt.
pub(crate) const NOT_CONSTRUCTIBLE: &[(&str, &str, &str)] = &[
    ("a folder of code, by its field", "E0616", "
        pub fn f(options: &mut runtime_core::cache::CacheOptions) { options.folder = None; }"),
    ("a store of code, by its field", "E0616", "
        pub fn f(options: &mut runtime_core::cache::CacheOptions) { options.shared = None; }"),
    ("code in place of that of kernels, by its field", "E0616", "
        pub fn f(options: &mut runtime_core::cache::CacheOptions) { options.override_folder = None; }"),
    ("a table as a backend", "E0308", "
        pub fn f(table: &'static runtime_core::abi::BackendTable) { let _ = runtime_core::Runtime::builder().register(table); }"),
    ("the token of a backend", "E0423", "
        pub fn f(table: &'static runtime_core::abi::BackendTable) { let _ = runtime_core::backend::LinkedBackend(table); }"),
    ("lent host memory", "E0451", "
        pub fn main() { let _ = runtime_core::backend::HostBytes { ptr: std::ptr::null(), len: 1 }; }"),
    ("lent host memory, by its constructor", "E0624", "
        pub fn main() { let _ = unsafe { runtime_core::backend::HostBytesMut::new(std::ptr::null_mut(), 1) }; }"),
    ("device memory", "E0624", "
        pub fn main() { let _ = unsafe { runtime_core::backend::DeviceBytes::new(std::ptr::null_mut(), 1) }; }"),
    ("a launch", "E0624", "
        pub fn f<B: runtime_core::backend::Buffer>(raw: &runtime_core::abi::Launch) {
            let _ = unsafe { runtime_core::backend::Launch::<B>::new(raw) };
        }"),
    ("a source that its author trusts", "E0451", "
        pub fn f(source: runtime_core::ModuleSource) { let _ = runtime_core::ModuleSource { trusted: true, ..source }; }"),
    ("a log that calls any function", "E0603", "
        pub fn main() { let _ = runtime_core::backend::Log(None); }"),
    ("an opened device of one's own", "E0277", "
        #[derive(Debug)]
        pub struct Mine;
        impl runtime_core::CommonRuntime for Mine {}"),
];
