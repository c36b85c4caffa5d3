use tempfile::TempDir;

use super::*;

/// A sysfs with these files.
pub(crate) fn sysfs(files: &[(&str, &str)]) -> TempDir {
    let root = tempfile::tempdir().unwrap();
    files.iter().for_each(|(path, content)| write(&root, path, content));
    root
}

fn write(root: &TempDir, path: &str, content: &str) {
    let path = root.path().join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, format!("{content}\n")).unwrap();
}

fn host(root: &TempDir) -> Sensors {
    Sensors::new(root.path(), &[])
}

fn clock_file(cpu: u32) -> String {
    format!("devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq")
}

#[test]
fn the_clock_is_the_highest_of_the_processors_in_use() {
    let clocks = [(0, "800000"), (1, "3600000"), (2, "<unsupported>"), (3, "0"), (10, "1200000")];
    let files = clocks.map(|(cpu, khz)| (clock_file(cpu), khz));
    let files: Vec<_> = files.iter().map(|(path, khz)| (path.as_str(), *khz)).collect();
    let root = sysfs(&files);
    // Reading a folder fails for every user.
    std::fs::create_dir_all(root.path().join(clock_file(4))).unwrap();
    write(&root, "devices/system/cpu/cpufreq/scaling_cur_freq", "9900000");
    let clock = |cpus: &[usize]| Sensors::new(root.path(), cpus).read().ok()?.clock_hz;
    assert_eq!(clock(&[]), Some(3_600_000_000));
    assert_eq!(clock(&[0, 2, 10, 99]), Some(1_200_000_000));
    assert_eq!(clock(&[2, 3, 4, 99]), None);
}

#[test]
fn the_temperature_is_the_highest_of_the_processors_own_sensors() {
    let root = sysfs(&[
        ("class/hwmon/hwmon0/name", "nvme"),
        ("class/hwmon/hwmon0/temp1_input", "95000"),
        ("class/hwmon/hwmon1/name", "coretemp"),
        ("class/hwmon/hwmon1/temp1_input", "51000"),
        ("class/hwmon/hwmon1/temp1_crit", "100000"),
        ("class/hwmon/hwmon1/temp2_input", "garbled"),
        ("class/hwmon/hwmon1/in0_input", "99000"),
        ("class/hwmon/hwmon3/name", "coretemp"),
        ("class/hwmon/hwmon3/temp1_input", "58500"),
        ("class/thermal/thermal_zone0/type", "x86_pkg_temp"),
        ("class/thermal/thermal_zone0/temp", "70000"),
    ]);
    std::fs::create_dir_all(root.path().join("class/hwmon/hwmon1/temp3_input")).unwrap();
    assert_eq!(host(&root).read().unwrap().temperature_millicelsius, Some(58_500));
    let node = Sensors::new(root.path(), &[0]);
    assert!(!node.has_values() && node.read().is_err(), "a package's temperature is not a node's");
}

#[test]
fn a_control_temperature_is_no_temperature() {
    let files = [
        ("class/hwmon/hwmon2/name", "k10temp"),
        ("class/hwmon/hwmon2/temp1_input", "68125"),
        ("class/hwmon/hwmon2/temp1_label", "Tctl"),
        ("class/hwmon/hwmon2/temp2_input", "41125"),
        ("class/hwmon/hwmon2/temp2_label", "Tdie"),
    ];
    assert_eq!(host(&sysfs(&files)).temperature_millicelsius(), Some(41_125));
    assert_eq!(host(&sysfs(&files[..3])).temperature_millicelsius(), Some(68_125), "the only one there is");
}

#[test]
fn thermal_zones_of_processors_serve_where_no_sensor_does() {
    let root = sysfs(&[
        ("class/hwmon/hwmon0/name", "coretemp"),
        ("class/hwmon/hwmon0/temp1_input", ""),
        ("class/thermal/thermal_zone0/type", "acpitz"),
        ("class/thermal/thermal_zone0/temp", "90000"),
        ("class/thermal/thermal_zone1/type", "cpu-thermal"),
        ("class/thermal/thermal_zone1/temp", "-4500"),
        ("class/thermal/thermal_zone2/type", "cpu1-thermal"),
        ("class/thermal/cooling_device0/type", "cpu"),
        ("class/thermal/cooling_device0/temp", "80000"),
    ]);
    assert_eq!(host(&root).temperature_millicelsius(), Some(-4500));
    assert!(host(&root).has_values());
}

const ENERGY: [(&str, &str); 10] = [
    ("class/powercap/intel-rapl:0/name", "package-0"),
    ("class/powercap/intel-rapl:0/energy_uj", "1000"),
    ("class/powercap/intel-rapl:0/max_energy_range_uj", "5000"),
    ("class/powercap/intel-rapl:1/name", "package-1"),
    ("class/powercap/intel-rapl:1/energy_uj", "200"),
    // A part of a package, the whole machine, and a package once more.
    ("class/powercap/intel-rapl:0:0/name", "core"),
    ("class/powercap/intel-rapl:0:0/energy_uj", "10000"),
    ("class/powercap/intel-rapl:2/name", "psys"),
    ("class/powercap/intel-rapl:2/energy_uj", "20000"),
    ("class/powercap/intel-rapl-mmio:0/energy_uj", "30000"),
];

#[test]
fn energy_is_the_sum_of_the_packages_and_survives_a_wrap() {
    let root = sysfs(&ENERGY);
    let (sensors, package) =
        (host(&root), |index: u32| format!("class/powercap/intel-rapl:{index}/energy_uj"));
    assert_eq!(sensors.read().unwrap().energy_microjoules, Some(1200));
    for (energy, total) in [("4900", 5100), ("100", 5300), ("99", 10299), ("5000", 15200)] {
        write(&root, &package(0), energy);
        assert_eq!(sensors.energy_microjoules(), Some(total), "at {energy}");
    }
    write(&root, &package(1), "100");
    assert_eq!(sensors.energy_microjoules(), None, "it wrapped around, and its range is unknown");
    write(&root, &package(1), "201");
    assert_eq!(sensors.energy_microjoules(), Some(15201));
}

#[test]
fn energy_is_unknown_if_that_of_a_package_is() {
    for garbled in ["", "-5", "1e6", "99999999999999999999999"] {
        let root = sysfs(&ENERGY);
        write(&root, "class/powercap/intel-rapl:1/energy_uj", garbled);
        assert_eq!(host(&root).energy_microjoules(), None, "{garbled}");
    }
    let root = sysfs(&ENERGY);
    std::fs::remove_file(root.path().join("class/powercap/intel-rapl:0/energy_uj")).unwrap();
    assert_eq!(host(&root).energy_microjoules(), None);
    assert!(!host(&root).has_values());
}

#[test]
fn a_system_without_sensors_says_so() {
    for root in [tempfile::tempdir().unwrap().path(), Path::new("/no/such/folder")] {
        let sensors = Sensors::new(root, &[]);
        assert!(!sensors.has_values());
        let error = sensors.read().unwrap_err();
        assert!(
            error.kind() == runtime_core::ErrorKind::Unsupported && error.message().contains("/sys"),
            "{error}"
        );
    }
}
