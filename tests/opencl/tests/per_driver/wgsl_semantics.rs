//! WGSL semantics on Intel's driver: a part of the programs, since the package of portable kernels runs all of them on the drivers
//! of the machine, PoCL among them, most from the same text.

use libtest_mimic::Trial;
use portable::{batch, device, programs, properties};
use test_process::sample;

/// One program in so many is run: without options, and in each other way.
const PLAIN_SHARE: usize = 2;
const SHARE: usize = 4;

pub(crate) fn trials() -> Vec<Trial> {
    let (machines, mut trials) = device::all();
    let mut modules = Vec::new();
    for machine in &machines {
        let share = if machine.name().contains('/') { SHARE } else { PLAIN_SHARE };
        for (topic, programs) in programs::all() {
            let count = programs.len().div_ceil(share);
            let programs = sample(&format!("{topic} on {}", machine.name()), programs, count);
            modules.extend(batch::trials(machine, topic, programs));
        }
        modules.extend(properties::trials(machine, properties::FEW));
    }
    trials.extend(batch::in_order(modules));
    trials
}
