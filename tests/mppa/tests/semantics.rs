//! WGSL semantics on the stand-in, whose groups have at most 16 items: larger ones run as loops. A part of the programs, since PoCL
//! runs all of them in the tests of the OpenCL backend, most from the same text.

use std::process::ExitCode;

use libtest_mimic::Arguments;
use portable::{batch, device, programs};
use test_process::sample;

/// One program in this many is run.
const SHARE: usize = 4;

fn main() -> ExitCode {
    mppa::on_stand_in("RUNTIME_TEST_MPPA_SEMANTICS", semantics)
}

fn semantics(arguments: &Arguments) -> ExitCode {
    let (machines, _) = device::all();
    let Some(stand_in) = machines.iter().find(|machine| machine.name() == "mppa:0") else {
        return opencl::cannot_run("the stand-in cannot be opened");
    };
    let topics = programs::all().into_iter().map(|(topic, programs)| {
        let count = programs.len().div_ceil(SHARE);
        (topic, sample(topic, programs, count))
    });
    let modules = topics.flat_map(|(topic, programs)| batch::trials(stand_in, topic, programs)).collect();
    libtest_mimic::run(arguments, batch::in_order(modules)).exit_code()
}
