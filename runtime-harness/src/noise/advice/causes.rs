//! Why the times of a measurement vary, ranked by the share of the time that each cause explains.

use super::Evidence;
use crate::row::OtherProcess;

/// Smaller shares explain no wide interval.
const MIN_SHARE: f64 = 0.01;
/// Causes whose share of the time is unknown, after those whose share is known and large.
const UNKNOWN_SHARE: f64 = 0.05;
/// The typical cost of a page fault without input, and of one with input.
const FAULT_S: f64 = 1e-6;
const INPUT_FAULT_S: f64 = 1e-4;
/// The typical loss by one involuntary context switch: what else ran did so for a few milliseconds.
const SWITCH_S: f64 = 2e-3;
/// Shorter samples are disturbed by the clock itself.
const SHORT_SAMPLE_NS: f64 = 20_000.0;
/// Few samples have a wide interval without any cause.
const FEW_SAMPLES: usize = 20;

/// A cause of noise.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Cause {
    /// The share of the time that it explains.
    pub(super) share: f64,
    pub(super) text: String,
    pub(super) remedy: &'static str,
}

/// The causes for which there is evidence, the strongest first.
pub(super) fn causes(evidence: &Evidence<'_>) -> Vec<Cause> {
    let mut causes: Vec<Cause> =
        [stolen, other_work, switched, paged, shared_device, slow_governor, short_samples, few_samples]
            .iter()
            .filter_map(|cause| cause(evidence))
            .filter(|cause| cause.share >= MIN_SHARE)
            .collect();
    causes.sort_by(|a, b| b.share.total_cmp(&a.share));
    causes
}

fn stolen(evidence: &Evidence<'_>) -> Option<Cause> {
    let share = evidence.noise.host.steal_share?;
    let text = format!("{} of the time was stolen by the hypervisor", super::percent(share));
    Some(Cause { share, text, remedy: "run again when the machine is quieter" })
}

fn other_work(evidence: &Evidence<'_>) -> Option<Cause> {
    let host = &evidence.noise.host;
    let (others, cpus) = (host.others_busy_cpus?, host.affinity.as_ref()?.len());
    let text = format!("other processes kept {others:.1} of {cpus} processors busy");
    let share = others / cpus as f64;
    (share >= 0.1).then_some(Cause { share: share.min(1.0), text, remedy: "stop them" })
}

fn switched(evidence: &Evidence<'_>) -> Option<Cause> {
    let host = &evidence.noise.host;
    let (switches, elapsed_s) = (host.involuntary_switches?, host.elapsed_s?);
    let share = (switches as f64 * SWITCH_S / elapsed_s).min(1.0);
    let text = format!("other work interrupted this process {switches} times");
    evidence.on_host.then_some(Cause { share, text, remedy: "stop it, or raise the priority" })
}

fn paged(evidence: &Evidence<'_>) -> Option<Cause> {
    let host = &evidence.noise.host;
    let (minor, major) = (host.minor_page_faults?, host.major_page_faults?);
    let cost_s = minor as f64 * FAULT_S + major as f64 * INPUT_FAULT_S;
    let share = (cost_s / host.elapsed_s?).min(1.0);
    let text = format!("there were {} page faults during the samples", minor + major);
    evidence.on_host.then_some(Cause {
        share,
        text,
        remedy: "reuse memory instead of mapping it in each call",
    })
}

fn shared_device(evidence: &Evidence<'_>) -> Option<Cause> {
    let processes = evidence.noise.device.processes.as_ref().filter(|processes| !processes.is_empty())?;
    let name = |process: &OtherProcess| match (&process.name, process.id) {
        (Some(name), Some(id)) => format!("{name} ({id})"),
        (None, Some(id)) => format!("process {id}"),
        (_, None) => "a process of another container".to_owned(),
    };
    let mut names: Vec<String> = processes.iter().take(3).map(name).collect();
    names.extend((processes.len() > 3).then(|| format!("{} more", processes.len() - 3)));
    let text = format!("the device is also used by {}", names.join(", "));
    Some(Cause { share: 4.0 * UNKNOWN_SHARE, text, remedy: "stop that, or use another device" })
}

fn slow_governor(evidence: &Evidence<'_>) -> Option<Cause> {
    let governors = evidence.noise.host.governors.as_ref()?;
    let varies = governors.iter().find(|governor| *governor != "performance" && *governor != "userspace")?;
    let text = format!("the frequency governor is {varies}");
    evidence.on_host.then_some(Cause { share: UNKNOWN_SHARE, text, remedy: "set it to performance" })
}

fn short_samples(evidence: &Evidence<'_>) -> Option<Cause> {
    let measurement = evidence.measurement;
    let sample_ns = measurement.number as f64 * measurement.statistics.median_ns;
    let text = format!("a sample lasts only {:.1} µs", sample_ns / 1e3);
    let remedy = "make more calls per sample (--number)";
    (sample_ns < SHORT_SAMPLE_NS).then_some(Cause { share: 2.0 * UNKNOWN_SHARE, text, remedy })
}

fn few_samples(evidence: &Evidence<'_>) -> Option<Cause> {
    let count = evidence.measurement.samples_ns.len();
    let text = format!("there are only {count} samples");
    let remedy = "take more of them (--repeat)";
    (count < FEW_SAMPLES).then_some(Cause { share: UNKNOWN_SHARE / 2.0, text, remedy })
}
