//! Compilers and validators that check lowered code: `spirv-val`, clang's OpenCL front end, NVRTC, the system's C compiler.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use runtime_kernel::Dialect;

use crate::module::Language;
use crate::nvrtc::Nvrtc;

/// The target architecture of CUDA code.
const ARCHITECTURE: &str = "sm_90";

/// A checker for one language.
#[derive(Debug)]
pub enum Tool {
    /// `spirv-val`.
    SpirvVal,
    /// The command of a clang.
    Clang(String),
    /// NVIDIA's run-time compiler.
    Nvrtc(Nvrtc),
    /// The system's C compiler, which the tests of the host need anyway.
    Cc,
}

/// All tools; for a missing one, how to install it.
#[must_use]
pub fn all() -> Vec<(&'static str, Result<Tool, String>)> {
    let spirv =
        if runs("spirv-val") { Ok(Tool::SpirvVal) } else { Err("on Debian, install spirv-tools".to_owned()) };
    vec![("spirv-val", spirv), ("clang", clang().map(Tool::Clang)), ("nvrtc", nvrtc())]
}

/// The command of an installed clang.
///
/// # Errors
/// How to install one.
pub fn clang() -> Result<String, String> {
    let named = std::env::var("RUNTIME_TEST_CLANG").into_iter();
    let versions = (14..24).rev().map(|version| format!("clang-{version}"));
    let mut clangs = named.chain(["clang".to_owned()]).chain(versions).filter(|clang| runs(clang));
    clangs.next().ok_or("on Debian, install clang; or set RUNTIME_TEST_CLANG".to_owned())
}

fn nvrtc() -> Result<Tool, String> {
    let path = std::env::var_os("RUNTIME_TEST_NVRTC")
        .ok_or("RUNTIME_TEST_NVRTC is not set to a libnvrtc.so; tests/portable/install.sh downloads one")?;
    Nvrtc::load(Path::new(&path)).map(Tool::Nvrtc)
}

fn runs(program: &str) -> bool {
    let mut command = Command::new(program);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

impl Tool {
    /// The language that it checks.
    #[must_use]
    pub const fn language(&self) -> Language {
        match self {
            Self::SpirvVal => Language::Spirv,
            Self::Clang(_) => Language::C(Dialect::OpenCl),
            Self::Nvrtc(_) => Language::C(Dialect::Cuda),
            Self::Cc => Language::C(Dialect::Host),
        }
    }

    /// Checks code that needs these optional features.
    ///
    /// # Errors
    /// The messages of the tool.
    pub fn check(&self, code: &[u8], needs: &[String]) -> Result<(), String> {
        match self {
            Self::SpirvVal => {
                run_with_input(Command::new("spirv-val").args(["--target-env", "vulkan1.2", "-"]), code)
            }
            Self::Clang(clang) => {
                let mut command = Command::new(clang);
                let subgroups = needs.iter().any(|need| need == "subgroups");
                let version = if subgroups { "-cl-std=CL3.0" } else { "-cl-std=CL1.2" };
                command.args(["-x", "cl", version, "-target", "spir64-unknown-unknown"]);
                command.args([
                    "-Xclang",
                    "-finclude-default-header",
                    "-fsyntax-only",
                    "-Werror=implicit",
                    "-",
                ]);
                run_with_input(&mut command, code)
            }
            Self::Nvrtc(nvrtc) => nvrtc.compile(code, ARCHITECTURE),
            Self::Cc => run_with_input(
                Command::new("cc")
                    .args(["-std=gnu11", "-march=native", "-fsyntax-only", "-Werror=implicit"])
                    .args(["-x", "c", "-"]),
                code,
            ),
        }
    }
}

/// Runs a command with `input` as its standard input.
fn run_with_input(command: &mut Command, input: &[u8]) -> Result<(), String> {
    let said = |error: std::io::Error| error.to_string();
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(said)?;
    if let Some(mut stdin) = child.stdin.take() {
        // If the tool stopped reading, it reports why.
        let _ = stdin.write_all(input);
    }
    let output = child.wait_with_output().map_err(said)?;
    if output.status.success() {
        return Ok(());
    }
    let text = [output.stdout, output.stderr].concat();
    Err(format!("{}\n{}", output.status, String::from_utf8_lossy(&text)))
}
