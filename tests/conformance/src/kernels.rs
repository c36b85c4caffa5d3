//! The kernels of the suite: one source per code format, the same names and arguments in each.

#![allow(unsafe_code, reason = "loads the native code of the suite itself")]

use runtime_core::{CodeFormat, ModuleSource};

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
    /// Code of that format that must be refused.
    broken: &'static str,
}

const SOURCES: &[Kernels] = &[
    Kernels {
        format: "c",
        source: include_str!("kernels/suite.c"),
        names: &[
            "noop",
            "spin",
            "hold",
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
        ],
        counted: true,
        grouped: false,
        broken: "void noop(void) { this is not C; }",
    },
    Kernels {
        format: "cuda-c",
        source: include_str!("kernels/suite.cu"),
        names: &[
            "noop",
            "spin",
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
        ],
        counted: true,
        grouped: true,
        broken: "extern \"C\" __global__ void noop() { this is not CUDA; }",
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
        broken: "no_such_builtin",
    },
];

/// The first of a device's formats, in its order of preference, that the suite has sources for.
pub(crate) fn choose(formats: &[String]) -> Option<&'static Kernels> {
    formats.iter().find_map(|format| SOURCES.iter().find(|kernels| kernels.format == format))
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

    /// The code.
    pub(crate) fn source(&self) -> ModuleSource {
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
