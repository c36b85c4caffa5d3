//! The kernels of the suite: one source per code format, with the same names and arguments in each.

#![allow(unsafe_code, reason = "loads native code of the suite")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use runtime_core::{CodeFormat, DeviceInfo, DeviceKind, ModuleSource, abi};

mod folder;

pub(crate) use folder::{FOLDER_VARIABLE, KernelFolder};

/// Provides the kernels for a device, and counts their launches.
#[derive(Clone, Debug, Default)]
pub(crate) struct KernelProvider {
    folder: Option<&'static KernelFolder>,
    launches: Arc<AtomicU64>,
}

impl KernelProvider {
    /// Prefers the kernels of `folder` to those of the suite.
    pub(crate) fn new(folder: Option<&'static KernelFolder>) -> Self {
        Self { folder, launches: Arc::default() }
    }

    /// For a child process: with the folder of its parent.
    pub(crate) fn from_environment() -> Self {
        Self::new(KernelFolder::from_environment())
    }

    /// The folder of kernels, if there is one.
    pub(crate) fn folder(&self) -> Option<&'static KernelFolder> {
        self.folder
    }

    /// Counts a launch that the device accepted.
    pub(crate) fn launched(&self) {
        self.launches.fetch_add(1, Ordering::Relaxed);
    }

    /// The number of launches that the device accepted.
    pub(crate) fn launches(&self) -> u64 {
        self.launches.load(Ordering::Relaxed)
    }

    /// The kernels for a device: those of the folder, or else those of the suite, in the first format of the device for
    /// which there are any.
    pub(crate) fn choose(&self, device: &DeviceInfo) -> Option<&'static FormatKernels> {
        let fits = |kernels: &&FormatKernels, format: &CodeFormat| {
            let is_embedded = device.kind == DeviceKind::Embedded;
            *format == *kernels.format
                && device.capabilities.has(kernels.requires)
                && (is_embedded || !kernels.embedded)
        };
        let own =
            || device.formats.iter().find_map(|format| SOURCES.iter().find(|kernels| fits(kernels, format)));
        self.folder.and_then(|folder| folder.choose(device)).or_else(own)
    }
}

/// The names of all kernels.
const ALL: &[&str] = &[
    "noop",
    "spin",
    "hold",
    "fail",
    "add_f32",
    "saxpy_f32",
    "scale_f32",
    "fill_f32",
    "copy_f32",
    "iota_i32",
    "sum9",
    "sum20",
    "sum_record",
    "reverse_f32",
    "group_ids_u32",
];

/// The suite's kernels in one code format.
#[derive(Clone, Debug)]
pub(crate) struct FormatKernels {
    /// The format.
    pub(crate) format: &'static str,
    source: &'static [u8],
    /// Kernels missing in this source, although other sources of the format have them.
    without: &'static [&'static str],
    /// Kernels that exist only if the loaded module lists them.
    optional: &'static [&'static str],
    /// Kernels on tensors of any size take the element count as an additional last argument.
    pub(crate) takes_count: bool,
    /// Kernels run in work-groups; otherwise each launch is one call.
    pub(crate) grouped: bool,
    /// Portable code: tensors come before scalars, the constants X, Y and Z fix the group size at load time, there is no
    /// clock, and a tensor that a launch writes must not overlap its other tensors.
    pub(crate) portable: bool,
    /// Programs of embedded devices; the option `entry` chooses one.
    embedded: bool,
    /// The `CAP_*` bits that the source requires.
    requires: u64,
    /// Invalid code of the format, which must fail to load.
    broken: &'static [u8],
    /// Single-kernel programs, for embedded devices.
    programs: Vec<(&'static str, &'static [u8])>,
    /// Text that the error of the kernel `fail` contains.
    pub(crate) cause: &'static str,
}

static SOURCES: [FormatKernels; 7] = [
    FormatKernels {
        format: "c",
        source: include_bytes!("kernels/embedded.c"),
        without: &[
            "hold",
            "add_f32",
            "saxpy_f32",
            "fill_f32",
            "copy_f32",
            "iota_i32",
            "sum9",
            "sum20",
            "sum_record",
            "reverse_f32",
        ],
        optional: &[],
        takes_count: true,
        grouped: false,
        portable: false,
        embedded: true,
        requires: 0,
        broken: b"void noop(void) { this is not C; }",
        programs: Vec::new(),
        cause: "",
    },
    FormatKernels {
        format: "c",
        source: include_bytes!("kernels/suite.c"),
        without: &[],
        optional: &["fail"],
        takes_count: true,
        grouped: false,
        portable: false,
        embedded: false,
        requires: 0,
        broken: b"void noop(void) { this is not C; }",
        programs: Vec::new(),
        cause: "fail",
    },
    FormatKernels {
        format: "cuda-c",
        source: include_bytes!("kernels/suite.cu"),
        without: &[],
        optional: &["fail"],
        takes_count: true,
        grouped: true,
        portable: false,
        embedded: false,
        requires: 0,
        broken: b"extern \"C\" __global__ void noop() { this is not CUDA; }",
        programs: Vec::new(),
        cause: "",
    },
    FormatKernels {
        format: "opencl-c",
        source: include_bytes!("kernels/suite.cl"),
        without: &[],
        optional: &["fail"],
        takes_count: true,
        grouped: true,
        portable: false,
        embedded: false,
        requires: 0,
        broken: b"kernel void noop(void) { this is not OpenCL C; }",
        programs: Vec::new(),
        cause: "",
    },
    FormatKernels {
        format: "null",
        source: include_bytes!("kernels/suite.null"),
        without: &[],
        optional: &[],
        takes_count: false,
        grouped: true,
        portable: false,
        embedded: false,
        requires: 0,
        broken: b"no_such_builtin",
        programs: Vec::new(),
        cause: "the kernel `fail`",
    },
    FormatKernels {
        format: "wgsl",
        source: concat!(include_str!("kernels/suite.wgsl"), include_str!("kernels/wide.wgsl")).as_bytes(),
        without: &[],
        optional: &[],
        takes_count: false,
        grouped: true,
        portable: true,
        embedded: false,
        requires: abi::CAP_F64,
        broken: b"@compute @workgroup_size(1) fn noop() { this is not WGSL; }",
        programs: Vec::new(),
        cause: "",
    },
    FormatKernels {
        format: "wgsl",
        source: include_bytes!("kernels/suite.wgsl"),
        without: &["sum9"],
        optional: &[],
        takes_count: false,
        grouped: true,
        portable: true,
        embedded: false,
        requires: 0,
        broken: b"@compute @workgroup_size(1) fn noop() { this is not WGSL; }",
        programs: Vec::new(),
        cause: "",
    },
];

/// Kernels that a format cannot have, and the reason. `docs/backends.md` lists the tests that cover them elsewhere.
const OMITTED: &[(&str, &str, &str)] = &[
    ("wgsl", "reverse_f32", "portable code has work-group memory of fixed size only"),
    ("wgsl", "sum_record", "portable code has no arguments of bytes by value"),
    ("wgsl", "sum20", "portable code has no scalars of 8 and 16 bits"),
    ("wgsl", "fail", "portable code cannot fail: on Vulkan the device would be lost"),
    ("cuda-c", "fail", "a failing kernel destroys the CUDA context, with all its queues"),
    ("opencl-c", "fail", "OpenCL C cannot fail; a stub driver defines SUITE_CAN_FAIL and fails the kernel"),
    ("c", "group_ids_u32", "a C function runs no work-groups"),
    ("cuda-c", "hold", "the kernel would wait on the device for the host"),
    ("opencl-c", "hold", "the kernel would wait on the device for the host"),
    ("wgsl", "hold", "the kernel would wait on the device for the host"),
    ("null", "hold", "its kernels are built in"),
    ("null", "sum20", "its kernels are built in"),
    ("null", "sum_record", "its kernels are built in"),
    ("null", "reverse_f32", "its kernels are built in"),
];

impl FormatKernels {
    /// Kernels from a folder: whichever its module lists.
    fn from_folder(format: &'static str) -> Self {
        Self {
            format,
            source: &[],
            without: &[],
            optional: ALL,
            takes_count: format != "wgsl",
            grouped: true,
            portable: format == "wgsl",
            embedded: false,
            requires: 0,
            broken: b"this is no code of any format",
            programs: Vec::new(),
            cause: "",
        }
    }

    /// Whether the format has a kernel of this name; `None` if the loaded module decides.
    pub(crate) fn has(&self, name: &str) -> Option<bool> {
        if self.optional.contains(&name) {
            return if self.source.is_empty() { Some(false) } else { None };
        }
        Some(ALL.contains(&name) && !self.without.contains(&name) && self.omitted(name).is_none())
    }

    /// The names of all kernels that exist or may exist.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        ALL.iter().copied().filter(|name| self.has(name) != Some(false))
    }

    /// Why the format cannot have a kernel.
    fn omitted(&self, name: &str) -> Option<&'static str> {
        let found = OMITTED.iter().find(|(format, lacked, _)| *format == self.format && *lacked == name);
        found.map(|(.., reason)| *reason)
    }

    /// Describes the missing kernel, with the reason.
    pub(crate) fn lacks(&self, name: &str) -> String {
        let reason = self.omitted(name).map(|reason| format!(": {reason}")).unwrap_or_default();
        format!("a {} source of kernel {name} in the suite{reason}", self.format)
    }

    /// The source for a group size, which is a constant in portable code only.
    pub(crate) fn source_for(&self, [x, y, z]: [u32; 3]) -> ModuleSource {
        if !self.portable {
            return self.source();
        }
        self.source().constant("X", x).constant("Y", y).constant("Z", z)
    }

    /// The source.
    pub(crate) fn source(&self) -> ModuleSource {
        if self.portable {
            return ModuleSource::wgsl(&String::from_utf8_lossy(self.source));
        }
        // SAFETY: every case passes the arguments that the kernels declare, with the right access; for kernels from a
        // folder, the user guarantees that.
        unsafe { ModuleSource::native(CodeFormat::from(self.format), self.source) }
    }

    /// A single-kernel program for an embedded device; `None` if there is none.
    pub(crate) fn program(&self, name: &str) -> Option<ModuleSource> {
        let given = self.programs.iter().find(|(kernel, _)| *kernel == name).map(|(_, code)| *code);
        let built_in = || (self.format == "null" && self.has(name) == Some(true)).then_some(name.as_bytes());
        if self.embedded && self.has(name) == Some(true) {
            return Some(self.source().option("entry", name));
        }
        // SAFETY: as above.
        given
            .or_else(built_in)
            .map(|code| unsafe { ModuleSource::native(CodeFormat::from(self.format), code) })
    }

    /// Invalid code, which must fail to load.
    pub(crate) fn broken(&self) -> ModuleSource {
        // SAFETY: it is not valid code, so it never runs.
        unsafe { ModuleSource::native(CodeFormat::from(self.format), self.broken) }
    }
}

/// A source of a format that no device has.
pub(crate) fn unsupported_format() -> ModuleSource {
    // SAFETY: no backend supports the format, so the code never runs.
    unsafe { ModuleSource::native(CodeFormat::from("no-such-format"), "anything") }
}

/// A file that does not exist.
pub(crate) fn missing_file(format: &str) -> ModuleSource {
    // SAFETY: the file does not exist, so no code runs.
    unsafe { ModuleSource::native_file(CodeFormat::from(format), "/no/such/folder/kernel") }
}
