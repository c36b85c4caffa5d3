//! Describes the host (name, cores, caches, SIMD level, memory) from `/proc` and `/sys`.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;

use runtime_core::device::{Capabilities, Limits, MemorySpace};
use runtime_core::{DeviceInfo, DeviceKind, Options, abi};

use crate::architecture::Architecture;
use crate::sysfs::{number, numbered, text};
use crate::telemetry::Sensors;
use crate::topology::{Node, SYSTEM, Topology};
use crate::{compiler, cpu_features, memory, options, platform};

/// `DLDeviceType` of plain memory.
const DLPACK_CPU: i32 = 1;
/// Limit of the scratch memory of one launch.
const SCRATCH_BYTES: u64 = 256 << 20;
/// Limit of the work-items per group: their values are on the stack.
const GROUP_ITEMS: u32 = 1024;
const CPU: &str = "/sys/devices/system/cpu";

/// Describes the host as device 0; several NUMA nodes are its sub-devices. `sysfs` has their sensors.
pub(crate) fn describe(topology: &Topology, sysfs: &Path) -> Vec<DeviceInfo> {
    let mut whole = whole(topology);
    let parts: Vec<_> = topology.with_processors().map(|node| part(&whole, node, sysfs)).collect();
    whole.capabilities.0 |= telemetry(&Sensors::new(sysfs, &[]));
    std::iter::once(whole).chain(parts).collect()
}

/// Name of the memory space of a node.
pub(crate) fn node_space(node: &Node) -> String {
    format!("node{}", node.id)
}

fn space(name: &str, total_bytes: u64) -> MemorySpace {
    MemorySpace {
        name: name.to_owned(),
        total_bytes: Some(total_bytes).filter(|bytes| *bytes > 0),
        alignment_bytes: memory::ALIGNMENT_BYTES as u64,
        host_visible: true,
        kernel_visible: true,
    }
}

fn part(whole: &DeviceInfo, node: &Node, sysfs: &Path) -> DeviceInfo {
    let mut info = whole.clone();
    info.id.sub = Some(node.id);
    info.name = format!("{} (node {})", whole.name, node.id);
    info.compute_units = u32::try_from(node.cpus.len()).ok();
    // Work runs on the node's processors, never on the caller's thread.
    info.capabilities = Capabilities(whole.capabilities.0 & !abi::CAP_INLINE);
    info.capabilities.0 |= telemetry(&Sensors::new(sysfs, &node.cpus));
    info.spaces = vec![space("device", node.memory_usage().total_bytes)];
    info
}

fn whole(topology: &Topology) -> DeviceInfo {
    let cpuinfo = head("/proc/cpuinfo");
    let total_bytes = platform::memory_usage().total_bytes;
    let features = cpu_features::features();
    let mut info = describe_architecture(Architecture::Native);
    info.name = cpu_name(&cpuinfo);
    info.vendor = field(&cpuinfo, "vendor_id").map(str::to_owned);
    info.driver_version = Some(kernel_version());
    info.compute_units = Some(platform::logical_cores());
    info.clock_hz = number::<u64>(format!("{CPU}/cpu0/cpufreq/cpuinfo_max_freq")).map(|khz| khz * 1000);
    info.spaces = vec![space("device", total_bytes)];
    info.spaces
        .extend(topology.with_memory().map(|node| space(&node_space(node), node.memory_usage().total_bytes)));
    info.properties = properties(&features);
    info
}

/// Describes the host that code for `architecture` runs on: formats, capabilities and limits.
pub(crate) fn describe_architecture(architecture: Architecture) -> DeviceInfo {
    let name = architecture.name();
    let mut info = DeviceInfo::new(DeviceKind::Host, 0, name);
    info.arch = Some(name.to_owned());
    info.dlpack_type = DLPACK_CPU;
    info.capabilities = Capabilities(
        abi::CAP_INLINE
            | abi::CAP_WAIT_FOR
            | abi::CAP_TIMESTAMPS
            | abi::CAP_NOOP_KERNEL
            | abi::CAP_F64
            | abi::CAP_IMPORT_HOST
            | abi::CAP_RANGE
            | abi::CAP_GROUPS
            | half_precision(architecture)
            | abi::CAP_COUNTERS,
    );
    info.limits = Limits {
        groups: [i32::MAX as u64; 3],
        group_size: [GROUP_ITEMS; 3],
        group_items: GROUP_ITEMS,
        shared_bytes: SCRATCH_BYTES,
        allocation_bytes: Some(isize::MAX as u64),
    };
    info.formats = options::FORMATS.map(|(format, _)| format.into()).to_vec();
    info
}

/// Compilers support the type everywhere; this reports it only if the processor can at least convert it to and from f32.
fn half_precision(architecture: Architecture) -> u64 {
    let converts = match architecture {
        Architecture::Native => {
            cpu_features::features().iter().any(|feature| ["f16c", "fp16"].contains(feature))
        }
        // From x86-64-v3 on.
        Architecture::Level(level) => level >= 2,
        Architecture::Aarch64 => true,
    };
    if converts { abi::CAP_F16 } else { 0 }
}

fn telemetry(sensors: &Sensors) -> u64 {
    if sensors.has_values() { abi::CAP_TELEMETRY } else { 0 }
}

fn properties(features: &[&str]) -> Options {
    let available = std::thread::available_parallelism().map_or(1, usize::from);
    let mut properties = Options::new().with("simd", features.join(" "));
    properties.push_nonzero("physical_cores", physical_cores());
    properties.push_nonzero("logical_cores", u64::from(platform::logical_cores()));
    properties.push_nonzero("available_cores", available as u64);
    properties.push_nonzero("numa_nodes", numbered(Path::new(SYSTEM), "node").len() as u64);
    for (level, kind, key) in
        [("1", "Data", "l1d_bytes"), ("2", "Unified", "l2_bytes"), ("3", "Unified", "l3_bytes")]
    {
        properties.push_nonzero(key, cache_bytes(level, kind));
    }
    properties.push_nonzero("page_bytes", platform::page_bytes());
    properties.push_nonzero("huge_page_bytes", platform::huge_page_bytes());
    // Not asked for its version: listing devices starts no program.
    if let Some((_, file)) = compiler::found(&Options::new()) {
        properties.push("compiler", file.display().to_string());
    }
    // By the lowering of portable kernels.
    properties.push("cooperative_matrix", "16x16x16 float16 * float16 + float16 (emulated)");
    properties.push("cooperative_matrix", "16x16x16 float16 * float16 + float32 (emulated)");
    properties
}

/// The beginning of a file: on a large machine, reading all of `/proc/cpuinfo` takes milliseconds.
fn head(path: &str) -> String {
    let mut bytes = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(4096).read_to_end(&mut bytes));
    read.map_or_else(|_| String::new(), |_| String::from_utf8_lossy(&bytes).into_owned())
}

fn cpu_name(cpuinfo: &str) -> String {
    let named = field(cpuinfo, "model name").map(str::to_owned);
    let board =
        || text("/sys/firmware/devicetree/base/model").map(|name| name.trim_end_matches('\0').to_owned());
    named.or_else(board).unwrap_or_else(|| format!("{} CPU", std::env::consts::ARCH))
}

fn kernel_version() -> String {
    text("/proc/sys/kernel/osrelease")
        .map_or_else(|| std::env::consts::OS.to_owned(), |release| format!("Linux {release}"))
}

fn field<'a>(cpuinfo: &'a str, key: &str) -> Option<&'a str> {
    let line = cpuinfo.lines().find_map(|line| line.strip_prefix(key)?.trim_start().strip_prefix(':'))?;
    Some(line.trim()).filter(|value| !value.is_empty())
}

fn physical_cores() -> u64 {
    let siblings = |cpu: &String| text(format!("{CPU}/{cpu}/topology/thread_siblings_list"));
    numbered(Path::new(CPU), "cpu").iter().filter_map(siblings).collect::<BTreeSet<_>>().len() as u64
}

fn cache_bytes(level: &str, kind: &str) -> u64 {
    let folder = format!("{CPU}/cpu0/cache");
    let matches = |name: &String| {
        text(format!("{folder}/{name}/level")).as_deref() == Some(level)
            && text(format!("{folder}/{name}/type")).as_deref() == Some(kind)
    };
    let found = numbered(Path::new(&folder), "index").into_iter().find(matches);
    found.and_then(|name| size_bytes(&text(format!("{folder}/{name}/size"))?)).unwrap_or(0)
}

fn size_bytes(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::{SYSFS, tests::sysfs};
    use crate::topology::tests::fake;

    #[test]
    fn fields_and_sizes_are_read() {
        let cpuinfo =
            "processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel name\t: AMD EPYC 9654\nmodel\t\t: 17\n";
        assert_eq!(field(cpuinfo, "model name"), Some("AMD EPYC 9654"));
        assert_eq!(field(cpuinfo, "model"), Some("17"));
        assert_eq!(field(cpuinfo, "flags"), None);
        assert_eq!(size_bytes("32K"), Some(32768));
        assert_eq!(size_bytes("4M"), Some(4 << 20));
        assert_eq!(size_bytes("3 apples"), None);
    }

    #[test]
    fn this_machine_is_described() {
        let info = describe(&Topology::default(), Path::new(SYSFS)).remove(0);
        assert!(!info.name.is_empty() && info.driver_version.is_some());
        assert!(info.compute_units >= Some(1));
        assert!(info.spaces[0].total_bytes > Some(1 << 20));
        assert!(info.properties.integer("page_bytes").is_some_and(|bytes| bytes >= 4096));
        let compiler = info.properties.text("compiler").map(Path::new);
        assert!(compiler.is_some_and(|file| file.is_file() && !file.is_symlink()), "{compiler:?}");
    }

    #[test]
    fn nodes_are_spaces_and_sub_devices() {
        let (_folder, topology) = fake(&[(0, "0", 1024), (1, "1-2", 2048), (2, "", 4096)]);
        let [whole, first, second] = &describe(&topology, Path::new(SYSFS))[..] else {
            panic!("one device, two parts")
        };
        let spaces: Vec<_> = whole.spaces.iter().map(|space| space.name.as_str()).collect();
        assert_eq!(spaces, ["device", "node0", "node1", "node2"]);
        assert_eq!((whole.id.sub, first.id.sub, second.id.sub), (None, Some(0), Some(1)));
        assert_eq!(
            (second.compute_units, second.spaces.len(), second.spaces[0].total_bytes),
            (Some(2), 1, Some(2048 << 10))
        );
        assert!(whole.capabilities.has(abi::CAP_INLINE) && !first.capabilities.has(abi::CAP_INLINE));
    }

    #[test]
    fn telemetry_is_declared_where_a_value_can_be_read() {
        let (_folder, topology) = fake(&[(0, "0", 1024), (1, "1", 2048)]);
        let declared = |files: &[(&str, &str)]| {
            let root = sysfs(files);
            let devices = describe(&topology, root.path());
            devices.iter().map(|info| info.capabilities.has(abi::CAP_TELEMETRY)).collect::<Vec<_>>()
        };
        let clock = ("devices/system/cpu/cpu1/cpufreq/scaling_cur_freq", "2000000");
        let zone = "class/thermal/thermal_zone0";
        let temperature = [(&*format!("{zone}/type"), "cpu-thermal"), (&*format!("{zone}/temp"), "40000")];
        assert_eq!(declared(&[]), [false, false, false]);
        assert_eq!(declared(&[clock]), [true, false, true]);
        assert_eq!(declared(&temperature), [true, false, false]);
    }
}
