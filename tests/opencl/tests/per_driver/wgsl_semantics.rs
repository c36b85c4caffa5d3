//! WGSL semantics on Intel's driver. The package of portable kernels tests the drivers of the machine, PoCL among them.

use libtest_mimic::Trial;
use portable::{batch, device, programs, properties};

pub(crate) fn trials() -> Vec<Trial> {
    let (machines, mut trials) = device::all();
    let mut modules = Vec::new();
    for machine in &machines {
        for (topic, programs) in programs::all() {
            modules.extend(batch::trials(machine, topic, programs));
        }
        modules.extend(properties::trials(machine, properties::FEW));
    }
    trials.extend(batch::in_order(modules));
    trials
}
