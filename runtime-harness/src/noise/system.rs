//! Reads the state of the host from the files of Linux. What is missing, unreadable or garbled is `None`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::cpu_list;
use super::process_usage::ProcessUsage;
use crate::platform;
use crate::printable::printable;

/// Where the files are.
#[derive(Clone, Debug)]
pub(super) struct System {
    pub(super) proc: PathBuf,
    pub(super) sys: PathBuf,
    /// The process that calls a kernel for this one: its time is no other's.
    pub(super) runner: Option<i32>,
}

/// The time that a processor has spent, in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CpuTimes {
    pub(super) busy: u64,
    pub(super) idle: u64,
    pub(super) stolen: u64,
}

/// What changes all the time.
#[derive(Clone, Debug)]
pub(super) struct Snapshot {
    pub(super) taken: Instant,
    pub(super) cpus: BTreeMap<u32, CpuTimes>,
    pub(super) own: Option<ProcessUsage>,
}

impl Snapshot {
    /// Adds what has happened between two others.
    pub(super) fn add(&mut self, begin: &Self, end: &Self) {
        self.taken += end.taken.saturating_duration_since(begin.taken);
        for (cpu, times) in &mut self.cpus {
            if let (Some(begin), Some(end)) = (begin.cpus.get(cpu), end.cpus.get(cpu)) {
                times.busy += end.busy.saturating_sub(begin.busy);
                times.idle += end.idle.saturating_sub(begin.idle);
                times.stolen += end.stolen.saturating_sub(begin.stolen);
            }
        }
        if let (Some(own), Some(begin), Some(end)) = (&mut self.own, begin.own, end.own) {
            own.cpu_s += (end.cpu_s - begin.cpu_s).max(0.0);
        }
    }
}

impl System {
    /// The files of this machine.
    pub(super) fn of_machine() -> Self {
        Self { proc: "/proc".into(), sys: "/sys".into(), runner: None }
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        let cpus = text(&self.proc.join("stat")).map(|stat| cpu_times(&stat)).unwrap_or_default();
        let mut own = ProcessUsage::now();
        if let (Some(own), Some(runner)) = (&mut own, self.runner) {
            own.cpu_s += platform::processor_time(runner).as_secs_f64();
        }
        Snapshot { taken: Instant::now(), cpus, own }
    }

    /// The processors that the calling thread may run on.
    pub(super) fn affinity(&self) -> Option<Vec<u32>> {
        let status = text(&self.proc.join("thread-self/status"))?;
        let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
        cpu_list::parse(list)
    }

    /// The load average over the last minute.
    pub(super) fn load(&self) -> Option<f64> {
        let load: f64 = text(&self.proc.join("loadavg"))?.split_whitespace().next()?.parse().ok()?;
        load.is_finite().then_some(load)
    }

    /// The frequency governors of these processors, each once.
    pub(super) fn governors(&self, cpus: &[u32]) -> Option<Vec<String>> {
        let file = |cpu: &u32| self.cpu(*cpu).join("cpufreq/scaling_governor");
        let mut governors: Vec<String> = cpus.iter().filter_map(|cpu| text(&file(cpu))).collect();
        governors.sort_unstable();
        governors.dedup();
        (!governors.is_empty()).then_some(governors)
    }

    /// Whether processors may run above their nominal frequency.
    pub(super) fn turbo(&self) -> Option<bool> {
        let folder = self.sys.join("devices/system/cpu");
        let switch = |file: &str, on: &str| text(&folder.join(file)).map(|value| value == on);
        switch("intel_pstate/no_turbo", "0").or_else(|| switch("cpufreq/boost", "1"))
    }

    /// The processors that share a core with this one, itself included.
    pub(super) fn siblings(&self, cpu: u32) -> Option<Vec<u32>> {
        cpu_list::parse(&text(&self.cpu(cpu).join("topology/thread_siblings_list"))?)
    }

    /// The name of a process. Its control characters are replaced.
    pub(super) fn process_name(&self, id: u32) -> Option<String> {
        text(&self.proc.join(id.to_string()).join("comm")).map(|name| printable(&name))
    }

    fn cpu(&self, cpu: u32) -> PathBuf {
        self.sys.join("devices/system/cpu").join(format!("cpu{cpu}"))
    }
}

fn text(path: &Path) -> Option<String> {
    fs::read(path).ok().map(|bytes| String::from_utf8_lossy(&bytes).trim().to_owned())
}

/// The processors of `/proc/stat`: user, nice, system, idle, iowait, irq, softirq, steal. Time of guests is part of user.
fn cpu_times(stat: &str) -> BTreeMap<u32, CpuTimes> {
    let times = |line: &str| {
        let mut fields = line.split_whitespace();
        // The first line, without a number, is the sum.
        let cpu = fields.next()?.strip_prefix("cpu")?.parse().ok()?;
        let ticks: Vec<u64> = fields.map_while(|field| field.parse().ok()).collect();
        let [user, nice, system, idle, iowait, irq, softirq, stolen] = *ticks.first_chunk()?;
        let busy = [user, nice, system, irq, softirq].into_iter().fold(0, u64::saturating_add);
        Some((cpu, CpuTimes { busy, idle: idle.saturating_add(iowait), stolen }))
    };
    stat.lines().filter_map(times).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The files of a machine with four threads on two cores.
    pub(in crate::noise) fn machine(folder: &Path) -> System {
        let system = System { proc: folder.join("proc"), sys: folder.join("sys"), runner: None };
        let write = |path: PathBuf, text: &str| {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let stat = "cpu  40 0 0 0 0 0 0 0 0 0\ncpu0 10 1 2 100 3 1 1 7 5 0\ncpu2 20 0 0 5 0 0 0 0 0 0\nintr 5\ncpu9 x\n";
        write(system.proc.join("stat"), stat);
        write(system.proc.join("loadavg"), "1.25 0.80 0.81 1/88 7208\n");
        write(
            system.proc.join("thread-self/status"),
            "Name:\tx\nCpus_allowed:\t5\nCpus_allowed_list:\t0,2\n",
        );
        write(system.proc.join("77/comm"), "train\x1b.py\n");
        for (cpu, siblings) in [(0, "0-1"), (1, "0-1"), (2, "2-3"), (3, "2-3")] {
            write(system.cpu(cpu).join("topology/thread_siblings_list"), siblings);
            write(
                system.cpu(cpu).join("cpufreq/scaling_governor"),
                if cpu == 3 { "powersave\n" } else { "performance\n" },
            );
        }
        write(system.sys.join("devices/system/cpu/intel_pstate/no_turbo"), "1\n");
        system
    }

    /// The time of a runner would otherwise be that of others, who keep the processors busy.
    #[test]
    fn the_time_of_a_runner_is_its_judges_own() {
        let mut busy = std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        let process = i32::try_from(busy.id()).unwrap();
        while platform::processor_time(process).as_millis() < 100 {
            std::thread::yield_now();
        }
        let alone = System::of_machine().snapshot().own.unwrap();
        let both = System { runner: Some(process), ..System::of_machine() }.snapshot().own.unwrap();
        busy.kill().unwrap();
        busy.wait().unwrap();
        assert!(both.cpu_s >= alone.cpu_s + 0.1, "{both:?}, {alone:?}");
    }

    #[test]
    fn files_of_a_machine_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let system = machine(folder.path());
        let snapshot = system.snapshot();
        assert_eq!(snapshot.cpus.keys().copied().collect::<Vec<_>>(), [0, 2]);
        assert_eq!(snapshot.cpus[&0], CpuTimes { busy: 15, idle: 103, stolen: 7 });
        assert_eq!(system.affinity().unwrap(), [0, 2]);
        assert_eq!(system.load(), Some(1.25));
        assert_eq!(system.governors(&[0, 1]).unwrap(), ["performance"]);
        assert_eq!(system.governors(&[0, 3]).unwrap(), ["performance", "powersave"]);
        assert_eq!((system.turbo(), system.siblings(3)), (Some(false), Some(vec![2, 3])));
        assert_eq!(system.process_name(77).as_deref(), Some("train .py"));
    }

    #[test]
    fn nothing_is_known_without_files() {
        let folder = tempfile::tempdir().unwrap();
        let system = System { proc: folder.path().into(), sys: folder.path().into(), runner: None };
        assert!(system.snapshot().cpus.is_empty());
        assert_eq!((system.affinity(), system.load(), system.governors(&[0])), (None, None, None));
        assert_eq!((system.turbo(), system.siblings(0), system.process_name(1)), (None, None, None));
    }

    #[test]
    fn garbled_files_are_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let system = machine(folder.path());
        fs::write(
            system.proc.join("stat"),
            b"cpu0 1 2\ncpu1 99999999999999999999 0 0 0 0 0 0 0\ncpu\n\xff\xfe",
        )
        .unwrap();
        fs::write(system.proc.join("loadavg"), "nan").unwrap();
        fs::write(system.proc.join("thread-self/status"), "Cpus_allowed_list:\t0-99999999\n").unwrap();
        assert!(system.snapshot().cpus.is_empty());
        assert_eq!((system.load(), system.affinity()), (None, None));
    }
}
