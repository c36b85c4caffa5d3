//! The state of the host during the samples.

use super::system::{CpuTimes, Snapshot, System};
use crate::row::HostNoise;

/// The processors' times are counted in ticks of 10 ms; with fewer of them, a share is too coarse.
const MIN_TICKS: u64 = 10;

/// What is known when the samples begin.
#[derive(Debug)]
pub(super) struct Beginning {
    load: Option<f64>,
    snapshot: Snapshot,
}

impl Beginning {
    pub(super) fn now(system: &System) -> Self {
        Self { load: system.load(), snapshot: system.snapshot() }
    }

    /// The beginning of what did not begin just now.
    pub(super) const fn at(snapshot: Snapshot) -> Self {
        Self { load: None, snapshot }
    }
}

impl HostNoise {
    /// What happened from the beginning until `end`.
    pub(super) fn between(system: &System, beginning: &Beginning, end: &Snapshot) -> Self {
        let begin = &beginning.snapshot;
        let elapsed_s = end.taken.saturating_duration_since(begin.taken).as_secs_f64();
        let affinity = system.affinity();
        let cpus: Vec<u32> = affinity.clone().unwrap_or_else(|| end.cpus.keys().copied().collect());
        let all: Vec<_> = cpus.iter().filter_map(|cpu| spent(begin, end, *cpu)).collect();
        let own = begin.own.zip(end.own);
        let own_cpus = own.map(|(before, after)| (after.cpu_s - before.cpu_s).max(0.0) / elapsed_s);
        let others = own_cpus.zip(busy_cpus(&all)).map(|(own, busy)| (busy - own).max(0.0));
        let count = |get: fn(&super::process_usage::ProcessUsage) -> u64| {
            own.map(|(before, after)| get(&after).saturating_sub(get(&before)))
        };
        Self {
            elapsed_s: Some(elapsed_s),
            governors: system.governors(&cpus),
            turbo: system.turbo(),
            load: beginning.load,
            others_busy_cpus: others.filter(|others| others.is_finite()),
            smt_siblings_busy: siblings_busy(system, begin, end, &cpus),
            steal_share: steal_share(&all),
            minor_page_faults: count(|usage| usage.minor_page_faults),
            major_page_faults: count(|usage| usage.major_page_faults),
            voluntary_switches: count(|usage| usage.voluntary_switches),
            involuntary_switches: count(|usage| usage.involuntary_switches),
            affinity,
        }
    }
}

/// The time that a processor has spent between two snapshots.
fn spent(begin: &Snapshot, end: &Snapshot, cpu: u32) -> Option<CpuTimes> {
    let (begin, end) = (begin.cpus.get(&cpu)?, end.cpus.get(&cpu)?);
    let times = CpuTimes {
        busy: end.busy.saturating_sub(begin.busy),
        idle: end.idle.saturating_sub(begin.idle),
        stolen: end.stolen.saturating_sub(begin.stolen),
    };
    (times.busy + times.idle + times.stolen >= MIN_TICKS).then_some(times)
}

fn busy_share(times: &CpuTimes) -> f64 {
    times.busy as f64 / (times.busy + times.idle + times.stolen) as f64
}

fn busy_cpus(all: &[CpuTimes]) -> Option<f64> {
    (!all.is_empty()).then(|| all.iter().map(busy_share).sum())
}

fn steal_share(all: &[CpuTimes]) -> Option<f64> {
    let sum = |get: fn(&CpuTimes) -> u64| all.iter().map(get).sum::<u64>();
    let (busy, stolen) = (sum(|times| times.busy), sum(|times| times.stolen));
    (!all.is_empty()).then(|| stolen as f64 / (busy + stolen).max(1) as f64)
}

/// Of the cores that these processors belong to, the largest share of time of a second busiest thread.
fn siblings_busy(system: &System, begin: &Snapshot, end: &Snapshot, cpus: &[u32]) -> Option<f64> {
    let second = |cpu: &u32| {
        let siblings = system.siblings(*cpu)?;
        let times = siblings.iter().filter_map(|sibling| spent(begin, end, *sibling));
        let mut busy: Vec<f64> = times.map(|times| busy_share(&times)).collect();
        busy.sort_unstable_by(|a, b| b.total_cmp(a));
        busy.get(1).copied()
    };
    cpus.iter().filter_map(second).max_by(f64::total_cmp)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::process_usage::ProcessUsage;
    use super::super::system::tests::machine;
    use super::*;

    /// A second after `begin`, with these ticks of each processor.
    fn later(begin: &Snapshot, ticks: [(u64, u64, u64); 4], cpu_s: f64) -> Snapshot {
        let cpus =
            (0..4).zip(ticks).map(|(cpu, (busy, idle, stolen))| (cpu, CpuTimes { busy, idle, stolen }));
        let own = ProcessUsage { cpu_s, minor_page_faults: 5, ..ProcessUsage::default() };
        Snapshot { taken: begin.taken + Duration::from_secs(1), cpus: cpus.collect(), own: Some(own) }
    }

    fn beginning() -> Beginning {
        let taken = std::time::Instant::now();
        let cpus = (0..4).map(|cpu| (cpu, CpuTimes::default())).collect();
        Beginning { load: Some(0.5), snapshot: Snapshot { taken, cpus, own: Some(ProcessUsage::default()) } }
    }

    #[test]
    fn shares_follow_from_the_differences() {
        let folder = tempfile::tempdir().unwrap();
        let system = machine(folder.path());
        let begin = beginning();
        // Processors 0 and 2 are this thread's. On 1, which shares a core with 0, somebody else is busy.
        let end = later(&begin.snapshot, [(60, 0, 40), (50, 50, 0), (30, 70, 0), (0, 100, 0)], 0.7);
        let noise = HostNoise::between(&system, &begin, &end);
        let close = |value: Option<f64>, expected: f64| (value.unwrap() - expected).abs() < 1e-9;
        assert!(close(noise.others_busy_cpus, 0.9 - 0.7), "{noise:?}");
        assert!(close(noise.steal_share, 40.0 / 130.0) && close(noise.smt_siblings_busy, 0.5), "{noise:?}");
        assert_eq!((noise.minor_page_faults, noise.load, noise.turbo), (Some(5), Some(0.5), Some(false)));
        assert_eq!(noise.affinity.unwrap(), [0, 2]);
    }

    #[test]
    fn short_measurements_have_no_shares() {
        let folder = tempfile::tempdir().unwrap();
        let system = machine(folder.path());
        let begin = beginning();
        let noise = HostNoise::between(&system, &begin, &later(&begin.snapshot, [(3, 3, 3); 4], 0.0));
        assert_eq!((noise.others_busy_cpus, noise.steal_share, noise.smt_siblings_busy), (None, None, None));
        assert_eq!(noise.minor_page_faults, Some(5));
    }

    #[test]
    fn counters_that_run_backwards_give_nothing_negative() {
        let folder = tempfile::tempdir().unwrap();
        let system = machine(folder.path());
        let mut begin = beginning();
        begin.snapshot = later(&begin.snapshot, [(90, 0, 9); 4], 5.0);
        let noise = HostNoise::between(&system, &begin, &later(&begin.snapshot, [(1, 200, 1); 4], 1.0));
        assert_eq!((noise.steal_share, noise.minor_page_faults), (Some(0.0), Some(0)));
        assert!(noise.others_busy_cpus.unwrap() >= 0.0);
    }
}
