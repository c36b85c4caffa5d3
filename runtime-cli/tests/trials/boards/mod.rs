//! `runtime eval` on emulated boards. Boards that are not installed are ignored, with the reason; `RUNTIME_REQUIRE=embedded`
//! makes that a failure. Build the workspace first.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod comparison;
mod fixture;
mod kernels;
mod rows;

use libtest_mimic::{Completion, Failed, Trial};

pub(crate) use fixture::missing;

/// A board whose kernels are checked, and nothing else.
const KERNELS_ONLY: &str = "mps3-an547";
/// A board of each processor family.
const BOARDS: [&str; 2] = ["riscv64-virt", "mps2-an385"];

type Case = (&'static str, fn(&str));

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    let all = [kernels::CASES, rows::CASES, comparison::CASES].concat();
    for (board, cases) in
        BOARDS.map(|board| (board, &*all)).into_iter().chain([(KERNELS_ONLY, kernels::CASES)])
    {
        for &(name, case) in cases {
            trials.push(Trial::ignorable_test(format!("boards::{board}::{name}"), move || {
                match missing(board) {
                    None => {
                        case(board);
                        Ok(Completion::Completed)
                    }
                    Some(reason) if test_process::required("embedded") => Err(Failed::from(reason)),
                    Some(reason) => Ok(Completion::ignored_with(reason)),
                }
            }));
        }
    }
    trials
}
