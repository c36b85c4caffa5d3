//! Current clock, temperature and energy of the processors, from Linux's sysfs. A value whose files are missing, unreadable or
//! garbled is `None`.

use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use runtime_core::device::Telemetry;
use runtime_core::{Error, Result};

use crate::sysfs::{number, numbered, text};

/// Where Linux mounts sysfs.
pub(crate) const SYSFS: &str = "/sys";
/// Sensor chips that are part of the processor: Intel's and AMD's.
const PROCESSOR_CHIPS: [&str; 2] = ["coretemp", "k10temp"];

/// The sensors of the host, or of one of its nodes.
#[derive(Debug)]
pub(crate) struct Sensors {
    sysfs: PathBuf,
    /// The node's processors; empty for the whole host.
    cpus: Vec<usize>,
    packages: Mutex<Vec<Package>>,
}

impl Sensors {
    /// The sensors of these processors, or of the whole host for none.
    ///
    /// Temperature and energy are measured per package, which may contain several nodes, so a node has neither.
    pub(crate) fn new(sysfs: &Path, cpus: &[usize]) -> Self {
        let packages = if cpus.is_empty() { packages(sysfs) } else { Vec::new() };
        Self { sysfs: sysfs.to_owned(), cpus: cpus.to_owned(), packages: Mutex::new(packages) }
    }

    /// Whether any value can be read; stops at the first.
    pub(crate) fn has_values(&self) -> bool {
        self.clocks_hz().next().is_some()
            || self.temperature_millicelsius().is_some()
            || self.energy_microjoules().is_some()
    }

    /// Reads all values.
    ///
    /// # Errors
    /// `Unsupported` if there are none.
    pub(crate) fn read(&self) -> Result<Telemetry> {
        let telemetry = Telemetry {
            clock_hz: self.clocks_hz().max(),
            temperature_millicelsius: self.temperature_millicelsius(),
            energy_microjoules: self.energy_microjoules(),
            ..Telemetry::default()
        };
        if telemetry == Telemetry::default() {
            return Err(Error::unsupported(
                "the system reports no clock, temperature or energy of the processors in /sys; virtual machines hide \
                 them, and energy can be read by root only",
            ));
        }
        Ok(telemetry)
    }

    /// The current clock of each processor. [`Sensors::read`] reports the highest: busy processors run at it, and idle ones
    /// would lower a mean.
    fn clocks_hz(&self) -> impl Iterator<Item = u64> {
        let folder = self.sysfs.join("devices/system/cpu");
        let names = match self.cpus.is_empty() {
            true => numbered(&folder, "cpu"),
            false => self.cpus.iter().map(|cpu| format!("cpu{cpu}")).collect(),
        };
        let khz = move |name: String| number::<u64>(folder.join(name).join("cpufreq/scaling_cur_freq"));
        names.into_iter().filter_map(khz).filter(|khz| *khz > 0).map(|khz| khz.saturating_mul(1000))
    }

    /// The highest temperature that the processor's own sensors report, or else its thermal zones.
    fn temperature_millicelsius(&self) -> Option<i64> {
        if !self.cpus.is_empty() {
            return None;
        }
        let chips = self.sysfs.join("class/hwmon");
        let chips = numbered(&chips, "hwmon").into_iter().map(|name| chips.join(name));
        let is_processor = |chip: &PathBuf| {
            text(chip.join("name")).is_some_and(|name| PROCESSOR_CHIPS.contains(&name.as_str()))
        };
        let hottest = chips.filter(is_processor).filter_map(|chip| chip_millicelsius(&chip)).max();
        hottest.or_else(|| zone_millicelsius(&self.sysfs.join("class/thermal")))
    }

    /// Energy of all packages since the counters started, or last wrapped around before this device was opened; `None` if that
    /// of any package is unknown.
    fn energy_microjoules(&self) -> Option<u64> {
        let mut packages = self.packages.lock();
        if packages.is_empty() {
            return None;
        }
        packages.iter_mut().try_fold(0_u64, |sum, package| Some(sum.saturating_add(package.read()?)))
    }
}

/// The highest temperature of a sensor chip.
fn chip_millicelsius(chip: &Path) -> Option<i64> {
    let entries = std::fs::read_dir(chip).into_iter().flatten().flatten();
    let sensor = |name: String| Some(name.strip_suffix("_input")?.to_owned());
    let sensors = entries.filter_map(|entry| sensor(entry.file_name().into_string().ok()?));
    let sensors: Vec<_> = sensors.filter(|name| name.starts_with("temp")).collect();
    let has_label = |name: &String, label| text(chip.join(format!("{name}_label"))).as_deref() == Some(label);
    // On some processors `Tctl`, which controls the fan, is `Tdie` plus a constant.
    let has_die = sensors.iter().any(|name| has_label(name, "Tdie"));
    let measured = sensors.iter().filter(|name| !(has_die && has_label(name, "Tctl")));
    measured.filter_map(|name| number(chip.join(format!("{name}_input")))).max()
}

/// The highest temperature of the thermal zones of processors.
fn zone_millicelsius(folder: &Path) -> Option<i64> {
    let zones = numbered(folder, "thermal_zone").into_iter().map(|name| folder.join(name));
    let is_processor = |zone: &PathBuf| {
        text(zone.join("type")).is_some_and(|kind| kind == "x86_pkg_temp" || kind.starts_with("cpu"))
    };
    zones.filter(is_processor).filter_map(|zone| number(zone.join("temp"))).max()
}

/// The energy counter of a processor package (RAPL).
#[derive(Debug)]
struct Package {
    folder: PathBuf,
    /// The last reading.
    last: u64,
    /// What the counter lost by wrapping around.
    wrapped: u64,
}

/// The packages that have a counter. Other domains are parts of a package, or contain packages.
fn packages(sysfs: &Path) -> Vec<Package> {
    let folder = sysfs.join("class/powercap");
    let domains = numbered(&folder, "intel-rapl:").into_iter().map(|name| folder.join(name));
    let is_package =
        |folder: &PathBuf| text(folder.join("name")).is_some_and(|name| name.starts_with("package"));
    domains.filter(is_package).map(|folder| Package { folder, last: 0, wrapped: 0 }).collect()
}

impl Package {
    /// The energy in microjoules. The counter wraps around after some minutes at full power: one wrap between two readings is
    /// made up for, more go unnoticed.
    fn read(&mut self) -> Option<u64> {
        let now: u64 = number(self.folder.join("energy_uj"))?;
        if now < self.last {
            let range: u64 = number(self.folder.join("max_energy_range_uj"))?;
            self.wrapped = self.wrapped.saturating_add(range);
        }
        self.last = now;
        Some(self.wrapped.saturating_add(now))
    }
}

#[cfg(test)]
pub(crate) mod tests;
