//! The kernels of the suite: one source per code format, the same names and arguments in each.

#![allow(unsafe_code, reason = "loads the native code of the suite itself")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use runtime_core::{CodeFormat, DeviceInfo, ModuleSource, abi};

mod folder;

pub(crate) use folder::{FOLDER_VARIABLE, KernelFolder};

/// What the cases of a device share: where its kernels come from, and how many of them have been launched.
#[derive(Clone, Debug, Default)]
pub(crate) struct KernelProvider {
    given: Option<&'static KernelFolder>,
    launches: Arc<AtomicU64>,
}

impl KernelProvider {
    /// With the kernels of a folder, if one was given, before those of the suite.
    pub(crate) fn new(given: Option<&'static KernelFolder>) -> Self {
        Self { given, launches: Arc::default() }
    }

    /// In a process that another one started: with the kernels that it was given.
    pub(crate) fn from_environment() -> Self {
        Self::new(KernelFolder::from_environment())
    }

    /// The folder of kernels that was given.
    pub(crate) fn given(&self) -> Option<&'static KernelFolder> {
        self.given
    }

    /// Notes that a device has accepted a kernel.
    pub(crate) fn launched(&self) {
        self.launches.fetch_add(1, Ordering::Relaxed);
    }

    /// How many kernels the device has accepted.
    pub(crate) fn launches(&self) -> u64 {
        self.launches.load(Ordering::Relaxed)
    }

    /// The kernels for a device: those that were given, else the first of its formats, in its order of preference, that the
    /// suite has sources for.
    pub(crate) fn choose(&self, device: &DeviceInfo) -> Option<&'static FormatKernels> {
        let fits = |kernels: &&FormatKernels, format: &str| {
            kernels.format == format && device.capabilities.has(kernels.needs)
        };
        let own =
            || device.formats.iter().find_map(|format| SOURCES.iter().find(|kernels| fits(kernels, format)));
        self.given.and_then(|given| given.choose(device)).or_else(own)
    }
}

/// Every kernel that a case asks for.
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
    /// FormatKernels that other sources of this format have.
    without: &'static [&'static str],
    /// FormatKernels that are there if the loaded module says so.
    optional: &'static [&'static str],
    /// The kernels on tensors of any size take the element count as one more argument, the last.
    pub(crate) takes_count: bool,
    /// They run work-items of groups; else each is one call.
    pub(crate) grouped: bool,
    /// Portable code: tensors come before scalars, the group size is fixed by the constants X, Y and Z when it is loaded,
    /// there is no clock, and tensors of a launch that writes one of them do not overlap.
    pub(crate) portable: bool,
    /// `CAP_*` bits that the device needs for it.
    needs: u64,
    /// Code of that format that must be refused.
    broken: &'static [u8],
    /// Programs of one kernel each, for embedded devices.
    programs: Vec<(&'static str, &'static [u8])>,
    /// What an error holds that `fail` ended with.
    pub(crate) cause: &'static str,
}

static SOURCES: [FormatKernels; 6] = [
    FormatKernels {
        format: "c",
        source: include_bytes!("kernels/suite.c"),
        without: &[],
        optional: &["fail"],
        takes_count: true,
        grouped: false,
        portable: false,
        needs: 0,
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
        needs: 0,
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
        needs: 0,
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
        needs: 0,
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
        needs: abi::CAP_F64,
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
        needs: 0,
        broken: b"@compute @workgroup_size(1) fn noop() { this is not WGSL; }",
        programs: Vec::new(),
        cause: "",
    },
];

/// The kernels that a format has no source of, and why. `docs/backends.md` tells which tests try what the suite cannot.
const OMITTED: &[(&str, &str, &str)] = &[
    ("wgsl", "reverse_f32", "portable code fixes its work-group memory"),
    ("wgsl", "sum_record", "portable code takes no bytes by value"),
    ("wgsl", "sum20", "portable code has no scalars of 8 and 16 bits"),
    ("wgsl", "fail", "portable code cannot fail: Vulkan loses the device with it"),
    ("cuda-c", "fail", "CUDA loses the context of a kernel that fails, and every queue with it"),
    ("opencl-c", "fail", "OpenCL C cannot fail; a driver's stub defines SUITE_CAN_FAIL, and fails it"),
    ("c", "group_ids_u32", "a function in C is one call"),
    ("cuda-c", "hold", "it would wait for the program on the device"),
    ("opencl-c", "hold", "it would wait for the program on the device"),
    ("wgsl", "hold", "it would wait for the program on the device"),
    ("null", "hold", "its kernels are built in"),
    ("null", "sum20", "its kernels are built in"),
    ("null", "sum_record", "its kernels are built in"),
    ("null", "reverse_f32", "its kernels are built in"),
];

impl FormatKernels {
    /// Of a folder that was given: whatever its module says that it has.
    fn given(format: &'static str) -> Self {
        Self {
            format,
            source: &[],
            without: &[],
            optional: ALL,
            takes_count: format != "wgsl",
            grouped: true,
            portable: format == "wgsl",
            needs: 0,
            broken: b"this is no code of any format",
            programs: Vec::new(),
            cause: "",
        }
    }

    /// Whether there is a kernel of this name; `None`: if the loaded module says so.
    pub(crate) fn has(&self, name: &str) -> Option<bool> {
        if self.optional.contains(&name) {
            return if self.source.is_empty() { Some(false) } else { None };
        }
        Some(ALL.contains(&name) && !self.without.contains(&name) && self.omitted(name).is_none())
    }

    /// The names of those that are there, or may be.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        ALL.iter().copied().filter(|name| self.has(name) != Some(false))
    }

    /// Why the format has no source of a kernel.
    fn omitted(&self, name: &str) -> Option<&'static str> {
        let found = OMITTED.iter().find(|(format, lacked, _)| *format == self.format && *lacked == name);
        found.map(|(.., reason)| *reason)
    }

    /// Why there is no kernel of this name.
    pub(crate) fn lacks(&self, name: &str) -> String {
        let reason = self.omitted(name).map(|reason| format!(": {reason}")).unwrap_or_default();
        format!("a {} source of kernel {name} in the suite{reason}", self.format)
    }

    /// The code for groups of a size, which only portable code wants to know.
    pub(crate) fn source_for(&self, [x, y, z]: [u32; 3]) -> ModuleSource {
        if !self.portable {
            return self.source();
        }
        self.source().constant("X", x).constant("Y", y).constant("Z", z)
    }

    /// The code.
    pub(crate) fn source(&self) -> ModuleSource {
        if self.portable {
            return ModuleSource::wgsl(&String::from_utf8_lossy(self.source));
        }
        // SAFETY: every case passes what the kernels declare, with the access that they have; of kernels that are given,
        // whoever gives them vouches for that.
        unsafe { ModuleSource::native(CodeFormat::from(self.format), self.source) }
    }

    /// A program of one kernel, for an embedded device; `None` where the format has no such programs.
    pub(crate) fn program(&self, name: &str) -> Option<ModuleSource> {
        let given = self.programs.iter().find(|(kernel, _)| *kernel == name).map(|(_, code)| *code);
        let built_in = || (self.format == "null" && self.has(name) == Some(true)).then_some(name.as_bytes());
        // SAFETY: as above.
        given
            .or_else(built_in)
            .map(|code| unsafe { ModuleSource::native(CodeFormat::from(self.format), code) })
    }

    /// Code that must be refused.
    pub(crate) fn broken(&self) -> ModuleSource {
        // SAFETY: it is no code.
        unsafe { ModuleSource::native(CodeFormat::from(self.format), self.broken) }
    }
}

/// A source of a format that no device has.
pub(crate) fn unsupported_format() -> ModuleSource {
    // SAFETY: nobody loads it.
    unsafe { ModuleSource::native(CodeFormat::from("no-such-format"), "anything") }
}

/// A file that does not exist.
pub(crate) fn missing_file(format: &str) -> ModuleSource {
    // SAFETY: there is no code.
    unsafe { ModuleSource::native_file(CodeFormat::from(format), "/no/such/folder/kernel") }
}
