//! The boards under QEMU: results, faults, refusals, and what is left of a process.

#![allow(clippy::unwrap_used, unsafe_code, reason = "a test, which loads code")]

mod faults;
mod images;
mod kernels;
mod lifetime;
mod portable;
mod refusals;
mod results;

use std::process::ExitCode;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use runtime_core::{Arg, CommonRuntime, EmbeddedDevice, ErrorKind, ModuleSource, Result, Runtime};

/// Longer than any run here takes.
const DEADLINE: Duration = Duration::from_secs(60);
const BOARDS: [&str; 4] = ["riscv64-virt", "riscv32-virt", "mps2-an385", "mps2-an500"];
const CORTEX_M: [&str; 2] = ["mps2-an385", "mps2-an500"];

/// A board under test.
struct Board {
    name: &'static str,
    device: Arc<dyn CommonRuntime>,
}

impl Board {
    fn open(name: &'static str) -> Result<Self> {
        // One for all, so that the firmware is compiled once per board.
        static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
            Runtime::builder()
                .discover(false)
                .register(runtime_embedded::backend())
                .with_lowering(runtime_kernel::wgsl())
                .build()
        });
        let runtime = &*RUNTIME;
        Ok(Self { name, device: runtime.open(&format!("embedded:{name}"))? })
    }

    fn embedded(&self) -> &EmbeddedDevice {
        self.device.as_embedded().unwrap()
    }

    fn flash(&self, code: &str, args: &[Arg<'_>]) -> Result<()> {
        self.embedded().flash(&c(code), args)
    }

    fn is_cortex_m(&self) -> bool {
        CORTEX_M.contains(&self.name)
    }
}

fn c(code: &str) -> ModuleSource {
    // SAFETY: the code runs on the target, not in this process.
    unsafe { ModuleSource::native("c", code) }
}

type Case = (&'static str, fn(&Board));

/// A trial per case and board; a single one, ignored or failed, for a board that cannot be opened.
fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for board in BOARDS {
        match Board::open(board) {
            Err(error) if error.kind() == ErrorKind::Unavailable => {
                trials.push(Trial::ignorable_test(format!("{board}::open"), move || {
                    match test_process::required("embedded") {
                        true => Err(Failed::from(error.to_string())),
                        false => Ok(Completion::ignored_with(error.to_string())),
                    }
                }));
            }
            _ => {
                for cases in [
                    results::CASES,
                    kernels::CASES,
                    portable::CASES,
                    faults::CASES,
                    images::CASES,
                    refusals::CASES,
                    lifetime::CASES,
                ] {
                    trials.extend(cases.iter().map(|&(name, case)| {
                        Trial::test(format!("{board}::{name}"), move || {
                            case(&Board::open(board)?);
                            Ok(())
                        })
                    }));
                }
            }
        }
    }
    trials
}

fn main() -> ExitCode {
    if lifetime::is_child() {
        return lifetime::child();
    }
    libtest_mimic::run(&Arguments::from_args(), trials()).exit_code()
}
