//! The kernels of the suite: one source per code format, the same names and arguments in each.

#![allow(unsafe_code, reason = "loads the native code of the suite itself")]

use runtime_core::{CodeFormat, DeviceInfo, ModuleSource, abi};

/// The suite's kernels in one code format.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kernels {
    /// The format.
    pub(crate) format: &'static str,
    source: &'static str,
    names: &'static [&'static str],
    /// The kernels on tensors of any size take the element count as one more argument, the last.
    pub(crate) counted: bool,
    /// They run work-items of groups; else each is one call.
    pub(crate) grouped: bool,
    /// Portable code: tensors come before scalars, the group size is fixed by the constants X, Y and Z when it is loaded,
    /// there is no clock, and tensors of a launch that writes one of them do not overlap.
    pub(crate) portable: bool,
    /// `CAP_*` bits that the device needs for it.
    needs: u64,
    /// Code of that format that must be refused.
    broken: &'static str,
}

/// The names of the kernels that every sort of C has, and those of some more.
macro_rules! names_of_c {
    ($($more:literal),*) => {
        &["noop", "spin", "add_f32", "saxpy_f32", "scale_f32", "fill_f32", "copy_f32", "iota_i32", "sum9", "sum20",
          "sum_record", "reverse_f32", $($more),*]
    };
}

const SOURCES: &[Kernels] = &[
    Kernels {
        format: "c",
        source: include_str!("kernels/suite.c"),
        names: names_of_c!("hold"),
        counted: true,
        grouped: false,
        portable: false,
        needs: 0,
        broken: "void noop(void) { this is not C; }",
    },
    Kernels {
        format: "cuda-c",
        source: include_str!("kernels/suite.cu"),
        names: names_of_c!("group_ids_u32"),
        counted: true,
        grouped: true,
        portable: false,
        needs: 0,
        broken: "extern \"C\" __global__ void noop() { this is not CUDA; }",
    },
    Kernels {
        format: "opencl-c",
        source: include_str!("kernels/suite.cl"),
        names: names_of_c!("group_ids_u32"),
        counted: true,
        grouped: true,
        portable: false,
        needs: 0,
        broken: "kernel void noop(void) { this is not OpenCL C; }",
    },
    Kernels {
        format: "null",
        source: include_str!("kernels/suite.null"),
        names: &[
            "noop",
            "spin",
            "fail",
            "counters",
            "add_f32",
            "saxpy_f32",
            "scale_f32",
            "fill_f32",
            "copy_f32",
            "iota_i32",
            "sum9",
            "group_ids_u32",
        ],
        counted: false,
        grouped: true,
        portable: false,
        needs: 0,
        broken: "no_such_builtin",
    },
    Kernels {
        format: "wgsl",
        source: concat!(include_str!("kernels/suite.wgsl"), include_str!("kernels/wide.wgsl")),
        names: &[
            "noop",
            "spin",
            "add_f32",
            "saxpy_f32",
            "scale_f32",
            "fill_f32",
            "copy_f32",
            "iota_i32",
            "group_ids_u32",
            "sum9",
        ],
        counted: false,
        grouped: true,
        portable: true,
        needs: abi::CAP_F64,
        broken: "@compute @workgroup_size(1) fn noop() { this is not WGSL; }",
    },
    Kernels {
        format: "wgsl",
        source: include_str!("kernels/suite.wgsl"),
        names: &[
            "noop",
            "spin",
            "add_f32",
            "saxpy_f32",
            "scale_f32",
            "fill_f32",
            "copy_f32",
            "iota_i32",
            "group_ids_u32",
        ],
        counted: false,
        grouped: true,
        portable: true,
        needs: 0,
        broken: "@compute @workgroup_size(1) fn noop() { this is not WGSL; }",
    },
];

/// What portable code cannot say, and why.
const NOT_PORTABLE: &[(&str, &str)] = &[
    ("reverse_f32", "portable code fixes its work-group memory"),
    ("sum_record", "portable code takes no bytes by value"),
    ("sum20", "portable code has no scalars of 8 and 16 bits"),
];

/// The first of a device's formats, in its order of preference, that the suite has sources for.
pub(crate) fn choose(device: &DeviceInfo) -> Option<&'static Kernels> {
    let fits =
        |kernels: &&Kernels, format: &str| kernels.format == format && device.capabilities.has(kernels.needs);
    device.formats.iter().find_map(|format| SOURCES.iter().find(|kernels| fits(kernels, format)))
}

impl Kernels {
    /// Whether there is a kernel of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.names.contains(&name)
    }

    /// All names.
    pub(crate) fn names(&self) -> &'static [&'static str] {
        self.names
    }

    /// Why there is no kernel of this name.
    pub(crate) fn lacks(&self, name: &str) -> String {
        let reason = NOT_PORTABLE.iter().find(|(lacked, _)| self.portable && *lacked == name);
        let reason = reason.map(|(_, reason)| format!(": {reason}")).unwrap_or_default();
        format!("a {} source of kernel {name} in the suite{reason}", self.format)
    }

    /// The code for groups of a size, which only portable code wants to know.
    pub(crate) fn source_for(&self, [x, y, z]: [u32; 3]) -> ModuleSource {
        if !self.portable {
            return self.source();
        }
        ModuleSource::wgsl(self.source).constant("X", x).constant("Y", y).constant("Z", z)
    }

    /// The code.
    pub(crate) fn source(&self) -> ModuleSource {
        if self.portable {
            return ModuleSource::wgsl(self.source);
        }
        // SAFETY: every case passes what the kernels declare, with the access that they have.
        unsafe { ModuleSource::native(CodeFormat::from(self.format), self.source) }
    }

    /// A program of one kernel, for an embedded device; `None` where the format has no such programs.
    pub(crate) fn program(&self, name: &str) -> Option<ModuleSource> {
        // SAFETY: as above.
        (self.format == "null").then(|| unsafe { ModuleSource::native(CodeFormat::from(self.format), name) })
    }

    /// Code that must be refused.
    pub(crate) fn broken(&self) -> ModuleSource {
        // SAFETY: it is no code.
        unsafe { ModuleSource::native(CodeFormat::from(self.format), self.broken) }
    }
}

/// A source of a format that no device has.
pub(crate) fn foreign() -> ModuleSource {
    // SAFETY: nobody loads it.
    unsafe { ModuleSource::native(CodeFormat::from("no-such-format"), "anything") }
}

/// A file that does not exist.
pub(crate) fn missing_file(format: &str) -> ModuleSource {
    // SAFETY: there is no code.
    unsafe { ModuleSource::native_file(CodeFormat::from(format), "/no/such/folder/kernel") }
}
