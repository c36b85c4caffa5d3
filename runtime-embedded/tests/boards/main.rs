//! The boards under QEMU: results, faults, refusals, and what is left of a process.

#![allow(clippy::unwrap_used, unsafe_code, reason = "a test, which loads code")]

mod attached;
mod faults;
mod flash_data;
mod functions;
mod hostile;
mod images;
mod inspection;
mod kernels;
mod lifetime;
mod portable;
mod refusals;
mod results;
mod uart;

use std::process::ExitCode;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use runtime_core::{Arg, CommonRuntime, EmbeddedDevice, ErrorKind, ModuleSource, Options, Result, Runtime};
use test_process::sample;

/// Longer than any run here takes.
const DEADLINE: Duration = Duration::from_secs(60);
/// Adds a number.
const CODE: &str = "void f(int *x, int a) { x[0] += a; }";
const BOARDS: [&str; 5] = ["riscv64-virt", "riscv32-virt", "mps2-an385", "mps2-an500", SMALL];
/// A board whose tests are about the processor only.
const SMALL: &str = "mps3-an547";

/// How a board is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Link {
    Debugger,
    Uart,
}

const CORTEX_M: [&str; 3] = ["mps2-an385", "mps2-an500", SMALL];
/// Boards with the same UART, which its emulator serves a byte at a time: one of them runs a case.
const SLOW_UARTS: [&str; 2] = ["mps2-an385", "mps2-an500"];

/// A board under test.
struct Board {
    name: &'static str,
    link: Link,
    device: Arc<dyn CommonRuntime>,
}

impl Board {
    fn open(name: &'static str, link: Link) -> Result<Self> {
        // One for all, so that the firmware is compiled once per board.
        static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
            Runtime::builder()
                .discover(false)
                .register(runtime_embedded::backend())
                .with_lowering(runtime_kernel::wgsl())
                .build()
        });
        let runtime = &*RUNTIME;
        let link_name = if link == Link::Uart { "uart" } else { "debugger" };
        let options = Options::new().with("link", link_name);
        Ok(Self { name, link, device: runtime.open_with(&format!("embedded:{name}"), &options)? })
    }

    /// Another target of the same kind.
    fn another(&self) -> Self {
        Self::open(self.name, self.link).unwrap()
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

/// Polls until `is_done`; fails at the deadline.
fn wait_until(what: &str, mut is_done: impl FnMut() -> bool) {
    let until = Instant::now() + DEADLINE;
    while !is_done() {
        assert!(Instant::now() < until, "timed out waiting until {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

type Case = (&'static str, fn(&Board));

/// A trial per case, board and link; a single one, ignored or failed, for a board that cannot be opened.
fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for board in BOARDS {
        match Board::open(board, Link::Debugger) {
            Err(error) if error.kind() == ErrorKind::Unavailable => {
                trials.push(Trial::ignorable_test(format!("{board}::open"), move || {
                    match test_process::required("embedded") {
                        true => Err(Failed::from(error.to_string())),
                        false => Ok(Completion::ignored_with(error.to_string())),
                    }
                }));
            }
            _ => trials.extend(cases(board).into_iter().map(|((name, case), link)| {
                let link_name = if link == Link::Uart { "uart::" } else { "" };
                Trial::test(format!("{board}::{link_name}{name}"), move || {
                    case(&Board::open(board, link)?);
                    Ok(())
                })
            })),
        }
    }
    trials
}

/// The cases of a board, with the link that they use.
fn cases(board: &str) -> Vec<(Case, Link)> {
    let all = [
        results::CASES,
        kernels::CASES,
        portable::CASES,
        faults::CASES,
        images::CASES,
        refusals::CASES,
        lifetime::CASES,
        flash_data::CASES,
        functions::CASES,
        functions::IMAGES,
        inspection::CASES,
        hostile::CASES,
    ];
    let both = [
        kernels::CASES,
        faults::CASES,
        uart::SHARED,
        uart::CASES,
        functions::UART,
        inspection::CASES,
        hostile::CASES,
    ];
    let processor = [results::CASES, kernels::CASES, faults::CASES, flash_data::CASES, functions::CASES];
    let over = |lists: &[&'static [Case]], link| {
        lists.concat().into_iter().map(|case| (case, link)).collect::<Vec<_>>()
    };
    if board == SMALL {
        return [
            over(&processor, Link::Debugger),
            over(&[results::WIDE], Link::Debugger),
            over(&[kernels::CASES], Link::Uart),
        ]
        .concat();
    }
    let is_chosen = |((name, _), _): &(Case, Link)| {
        !SLOW_UARTS.contains(&board) || sample(&format!("{name} over a UART"), SLOW_UARTS, 1).contains(&board)
    };
    over(&all, Link::Debugger)
        .into_iter()
        .chain(over(&both, Link::Uart).into_iter().filter(is_chosen))
        .collect()
}

fn main() -> ExitCode {
    if lifetime::is_child() {
        return lifetime::child();
    }
    let bench = attached::Bench::new();
    let mut trials = trials();
    trials.extend(attached::trials(&bench));
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
