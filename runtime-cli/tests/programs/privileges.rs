//! A set-uid process starts no program and loads no library that its user chose, whatever the subcommand. As an ordinary process,
//! the command falls for the lures. Needs root, to run programs as another user, and a mount namespace: a set-uid process looks for
//! backends in the system's folders alone.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::lures;

/// The user that starts the command: `nobody`.
const USER: &str = "65534";
const BACKENDS: [&str; 4] = ["host", "cuda", "opencl", "embedded"];
const DEADLINE: Duration = Duration::from_secs(120);
/// Shows the folder `$0` as `/usr/local/lib`, and runs the rest of the arguments as a user.
const AS_USER: &str = "mount --bind \"$0\" /usr/local/lib && \
                       exec setpriv --reuid=65534 --regid=65534 --clear-groups -- env --ignore-environment \"$@\"";
const SPEC: &str = "version = 1\n[kernel]\npath = \"k.c\"\nentry = \"f\"\n[[arg]]\ndtype = \"f32\"\nshape = [4]\nuse = \"write\"\n";

/// A command line of the command, in a folder with kernels.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    arguments: &'static [&'static str],
    /// Whether it falls for a lure without privileges.
    is_lured: bool,
}

const fn lured(name: &'static str, arguments: &'static [&'static str]) -> Case {
    Case { name, arguments, is_lured: true }
}

const fn harmless(name: &'static str, arguments: &'static [&'static str]) -> Case {
    Case { name, arguments, is_lured: false }
}

pub(crate) const CASES: &[Case] = &[
    lured("compile_c", &["compile", "k.c", "--target", "host:native", "-o", "x.rtpkg"]),
    lured("compile_ptx", &["compile", "k.ptx", "--target", "cuda:sm_80", "-o", "x.rtpkg"]),
    lured("compile_cuda_c", &["compile", "k.cu", "--target", "cuda:sm_80", "-o", "x.rtpkg"]),
    lured(
        "compile_opencl_offline",
        &[
            "compile",
            "k.cl",
            "--target",
            "opencl:pvc",
            "--option",
            "offline_compiler=offline-compiler {input} {output}",
            "-o",
            "x.rtpkg",
        ],
    ),
    lured("doctor", &["doctor"]),
    lured("devices", &["devices"]),
    lured("eval", &["eval", "k.toml", "--device", "host"]),
    lured("eval_isolated", &["eval", "k.toml", "--device", "host", "--isolate"]),
    lured(
        "eval_launched",
        &["eval", "k.toml", "--device", "host", "--isolate", "--launch", "ssh there {worker}"],
    ),
    lured("eval_embedded", &["eval", "k.toml", "--device", "embedded:riscv64-virt"]),
    lured("run", &["run", "k.toml", "--device", "host"]),
    lured("tune", &["tune", "t.toml", "--device", "host", "--log", "log.jsonl"]),
    lured("peak", &["peak", "--device", "host"]),
    harmless("lower", &["lower", "k.wgsl", "--target", "host"]),
    harmless("cache", &["cache"]),
];

/// A copy of the command for two users, with lures in every place that a variable names.
pub(crate) struct Sandbox(tempfile::TempDir);

impl Sandbox {
    /// Why this machine cannot run it as two users.
    pub(crate) fn new() -> Result<Self, String> {
        let sandbox = Self(tempfile::tempdir().map_err(|error| error.to_string())?);
        sandbox.chmod("", 0o755);
        let built = Path::new(env!("CARGO_BIN_EXE_runtime"));
        fs::create_dir_all(sandbox.path("lib/runtime")).unwrap();
        for name in BACKENDS {
            let file = format!("libruntime_{name}.so");
            let library = built.with_file_name(&file);
            assert!(library.is_file(), "{} is missing: build the workspace first", library.display());
            fs::copy(library, sandbox.path("lib/runtime").join(file)).unwrap();
        }
        fs::copy(built, sandbox.path("runtime")).unwrap();
        fs::create_dir(sandbox.path("work")).unwrap();
        sandbox.chmod("work", 0o777);
        for (name, text) in [
            ("k.c", "void f(float *x) { x[0] = 1; }"),
            ("k.cu", "extern \"C\" __global__ void f(float *x) { x[0] = 1; }"),
            ("k.cl", "kernel void f(global float *x) { x[0] = 1; }"),
            ("k.ptx", ".version 7.0\n.target sm_80\n"),
            ("k.wgsl", "@compute @workgroup_size(1) fn f() {}"),
            ("k.toml", SPEC),
            ("t.toml", &format!("{SPEC}[specialise]\nconstants = {{ N = 1 }}\n[tune]\nN = [1, 2]\n")),
        ] {
            fs::write(sandbox.path("work").join(name), text).unwrap();
        }
        sandbox.clear();
        lures::lay(&sandbox.path("lures"), &sandbox.path("marker"));
        sandbox.chmod("runtime", 0o4755);
        // The other command that is set-uid shows whether the bit has an effect here.
        fs::copy("/usr/bin/id", sandbox.path("id")).map_err(|error| error.to_string())?;
        sandbox.chmod("id", 0o4755);
        let ids = sandbox.run("id", &["--user"])?.success()?;
        match ids.trim() {
            "0" => Ok(sandbox),
            _ => Err(format!("set-uid bits have no effect here: {ids:?}")),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn chmod(&self, name: &str, mode: u32) {
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(mode)).unwrap();
    }

    /// Empties the marker, to which every user may write, and removes what a run has left.
    fn clear(&self) {
        for file in ["x.rtpkg", "log.jsonl"] {
            // It may not be there.
            let _ = fs::remove_file(self.path("work").join(file));
        }
        fs::write(self.path("marker"), "").unwrap();
        self.chmod("marker", 0o666);
    }

    /// Runs a program of the sandbox as `nobody`, with variables that name the lures.
    fn run(&self, program: &str, arguments: &[&str]) -> Result<test_process::Finished, String> {
        let lures = self.path("lures");
        let variables = [
            ("PATH", format!("{}:/usr/bin:/bin", lures.join("bin").display())),
            ("CC", lures.join("bin/cc").display().to_string()),
            ("CUDA_HOME", lures.display().to_string()),
            ("CUDA_PATH", lures.display().to_string()),
            ("OPENCL_DYLIB_PATH", lures.join("lib64/libOpenCL.so.1").display().to_string()),
            ("RUNTIME_BACKEND_PATH", lures.join("lib64").display().to_string()),
            ("LD_LIBRARY_PATH", lures.join("lib64").display().to_string()),
            ("KALRAY_TOOLCHAIN_DIR", lures.display().to_string()),
            ("HOME", lures.display().to_string()),
            ("RUNTIME_DUMP", format!("asm {}", self.path("work").display())),
            ("RUNTIME_SHARE", "1".to_owned()),
            ("RUNTIME_CACHE", "off".to_owned()),
        ];
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", AS_USER]).arg(self.path("lib"));
        command.args(variables.map(|(name, value)| format!("{name}={value}")));
        command.arg(self.path(program)).args(arguments).current_dir(self.path("work"));
        test_process::finish(&mut command, DEADLINE)
    }

    /// Checks that the command runs nothing of its user's with privileges, and falls for the lures without.
    ///
    /// # Errors
    /// What ran.
    pub(crate) fn check(&self, case: &Case) -> Result<(), String> {
        for (mode, is_lured) in [(0o4755, false), (0o755, case.is_lured)] {
            self.chmod("runtime", mode);
            self.clear();
            let finished = self.run("runtime", case.arguments)?;
            let caught = fs::read_to_string(self.path("marker")).unwrap();
            if caught.is_empty() == is_lured {
                return Err(format!("mode {mode:o}, user {USER}: ran {caught:?}\n{finished:?}"));
            }
        }
        Ok(())
    }
}
