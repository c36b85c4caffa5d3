//! A fake of Kalray's SDK and of a machine with chips, made by `cc`: **a stand-in, not an MPPA.** Its programs run on this machine.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::elf_header::{CORE, KV3_2};

/// The board's type, in the properties of its devices.
const BOARD: &str = "stand-in (fake SDK), not an MPPA";

/// A fake SDK (`include`, `lib`) and machine (`mppa`, `lib/firmware`) in one temporary folder.
#[derive(Debug)]
pub struct FakeSdk(TempDir);

impl FakeSdk {
    /// Compiles the library, and makes a board with `chips` chips.
    ///
    /// # Panics
    /// If a file cannot be written, or `cc` fails.
    #[must_use]
    pub fn new(chips: u32) -> Self {
        let sdk = Self(TempDir::new().expect("a temporary folder"));
        let source = sources().join("include/mppa_offload_host.h");
        sdk.write("include/mppa_offload_host.h", &std::fs::read_to_string(source).expect("the header"));
        for name in ["mppa_rproc_host", "mopd"] {
            sdk.library(Path::new("/dev/null"), &format!("lib/lib{name}.so"));
        }
        sdk.library(&sources().join("fake.c"), "lib/libmppa_offload_host.so");
        sdk.write("mppa/version", "5.0.0 (fake)\n").write("mppa/board0/archver", "kv3-2\n");
        sdk.write("mppa/board0/type", &format!("{BOARD}\n"));
        sdk.write("lib/firmware/kalray/opencl/kv3-2/ocl_fw_l1.elf", "");
        for chip in 0..chips {
            sdk.write(&format!("mppa/board0/mppa{chip}/freq"), "cluster0 : 1000000000\n");
        }
        sdk
    }

    /// The folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes a file, with its folders.
    ///
    /// # Panics
    /// If it cannot.
    pub fn write(&self, name: &str, text: &str) -> &Self {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a writable folder");
        std::fs::write(path, text).expect("a writable file");
        self
    }

    /// Compiles a C file to a shared object.
    fn library(&self, source: &Path, name: &str) -> PathBuf {
        let (include, path) =
            (format!("-I{}", self.path().join("include").display()), self.path().join(name));
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a writable folder");
        let mut cc = Command::new("cc");
        cc.args(["-shared", "-fPIC", "-O1", "-Wall", "-Werror", &include, "-x", "c"]);
        cc.arg(source).arg("-o").arg(&path).args(["-ldl", "-lpthread"]);
        assert!(cc.status().expect("cc").success(), "{cc:?}");
        path
    }

    /// A program of the fake chip with the suite's kernels, as an ELF file for kv3-2.
    ///
    /// # Panics
    /// If `cc` fails.
    #[must_use]
    pub fn program(&self) -> Vec<u8> {
        let path = self.library(&sources().join("kernels.c"), "kernels.so");
        let mut code = std::fs::read(path).expect("a program");
        code[CORE] = KV3_2;
        code
    }

    /// Compiles a fake simulator, as a tool of the SDK.
    ///
    /// # Panics
    /// If `cc` fails.
    pub fn simulator(&self, tool: &str) {
        let path = self.path().join("bin").join(tool);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a writable folder");
        let mut cc = Command::new("cc");
        cc.args(["-O1", "-Wall"]).arg(sources().join("simulator.c")).arg("-o").arg(&path);
        assert!(cc.status().expect("cc").success(), "{cc:?}");
    }

    /// Compiles a host-driven module with a definition for the preprocessor, and returns its path.
    ///
    /// # Panics
    /// If `cc` fails.
    #[must_use]
    pub fn host_module(&self, definition: &str) -> PathBuf {
        let source = std::fs::read_to_string(sources().join("host_module.c")).expect("the source");
        let name = format!("{definition}.c");
        self.write(&name, &format!("#define {definition}\n{source}"));
        let path = self.path().join(format!("{definition}.so"));
        let mut cc = Command::new("cc");
        cc.current_dir(self.path())
            .args(["-shared", "-fPIC", "-O1", "-Wall", "-Iinclude", &name, "-o"])
            .arg(&path);
        cc.args(["-Llib", "-lmppa_offload_host"]);
        cc.arg(format!("-Wl,-rpath,{}", self.path().join("lib").display()));
        assert!(cc.status().expect("cc").success(), "{cc:?}");
        path
    }

    /// The variables with which a process sees this machine.
    #[must_use]
    pub fn variables(&self) -> [(&'static str, PathBuf); 2] {
        [("KALRAY_TOOLCHAIN_DIR", self.path().to_owned()), ("RUNTIME_MPPA_ROOT", self.path().to_owned())]
    }
}

/// The folder of the fake's sources.
fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("sdk")
}
