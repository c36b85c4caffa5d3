//! What the host is: name, cores, caches, SIMD level, memory, read from the system's own files.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;

use runtime_core::{Capabilities, DeviceInfo, DeviceKind, Limits, MemorySpace, Options, abi};

use crate::{memory, platform};

/// `DLDeviceType` of plain memory.
const DLPACK_CPU: i32 = 1;
/// Most scratch memory of one launch.
const SCRATCH_BYTES: u64 = 256 << 20;
const CPU: &str = "/sys/devices/system/cpu";

/// Describes the host as device 0.
pub(crate) fn describe() -> DeviceInfo {
    let cpuinfo = head("/proc/cpuinfo");
    let total_bytes = platform::memory_usage().total_bytes;
    let features = simd_features();
    let mut info = DeviceInfo::new(DeviceKind::Host, 0, &cpu_name(&cpuinfo));
    info.arch = arch(&features).to_owned();
    info.vendor = field(&cpuinfo, "vendor_id").unwrap_or_default().to_owned();
    info.driver_version = kernel_version();
    info.dlpack_type = DLPACK_CPU;
    info.compute_units = platform::logical_cores();
    info.clock_hz = number(&format!("{CPU}/cpu0/cpufreq/cpuinfo_max_freq")).unwrap_or(0) * 1000;
    info.capabilities = Capabilities(
        abi::CAP_INLINE
            | abi::CAP_WAIT_FOR
            | abi::CAP_TIMESTAMPS
            | abi::CAP_EMPTY_KERNEL
            | abi::CAP_F64
            | abi::CAP_IMPORT,
    );
    info.limits =
        Limits { shared_bytes: SCRATCH_BYTES, allocation_bytes: isize::MAX as u64, ..Limits::default() };
    info.spaces = vec![MemorySpace {
        name: "device".to_owned(),
        total_bytes,
        alignment_bytes: memory::ALIGNMENT_BYTES as u64,
        host_visible: true,
        kernel_visible: true,
    }];
    info.formats = ["shared-object", "c"].map(str::to_owned).to_vec();
    info.properties = properties(&features);
    info
}

fn properties(features: &[&str]) -> Options {
    let available = std::thread::available_parallelism().map_or(1, usize::from);
    let mut properties = Options::new().with("simd", features.join(" "));
    let mut put = |key: &str, value: u64| {
        if let (1.., Ok(value)) = (value, i64::try_from(value)) {
            properties.push(key, value);
        }
    };
    put("physical_cores", physical_cores());
    put("logical_cores", u64::from(platform::logical_cores()));
    put("available_cores", available as u64);
    put("numa_nodes", numbered(Path::new("/sys/devices/system/node"), "node").len() as u64);
    for (level, kind, key) in
        [("1", "Data", "l1d_bytes"), ("2", "Unified", "l2_bytes"), ("3", "Unified", "l3_bytes")]
    {
        put(key, cache_bytes(level, kind));
    }
    put("page_bytes", platform::page_bytes());
    put("huge_page_bytes", platform::huge_page_bytes());
    properties
}

/// The first processors' lines: the whole file of a large machine takes milliseconds.
fn head(path: &str) -> String {
    let mut bytes = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(4096).read_to_end(&mut bytes));
    read.map_or_else(|_| String::new(), |_| String::from_utf8_lossy(&bytes).into_owned())
}

fn text(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

fn number(path: &str) -> Option<u64> {
    text(path)?.parse().ok()
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

fn numbered(folder: &Path, prefix: &str) -> Vec<String> {
    let names = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name.strip_prefix(prefix).is_some_and(|rest| rest.parse::<u32>().is_ok())).collect()
}

fn physical_cores() -> u64 {
    let siblings = |cpu: &String| text(&format!("{CPU}/{cpu}/topology/thread_siblings_list"));
    numbered(Path::new(CPU), "cpu").iter().filter_map(siblings).collect::<BTreeSet<_>>().len() as u64
}

fn cache_bytes(level: &str, kind: &str) -> u64 {
    let folder = format!("{CPU}/cpu0/cache");
    let matches = |name: &String| {
        text(&format!("{folder}/{name}/level")).as_deref() == Some(level)
            && text(&format!("{folder}/{name}/type")).as_deref() == Some(kind)
    };
    let found = numbered(Path::new(&folder), "index").into_iter().find(matches);
    found.and_then(|name| size_bytes(&text(&format!("{folder}/{name}/size"))?)).unwrap_or(0)
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

/// Names of the instruction set extensions that this processor and its system offer.
#[cfg(target_arch = "x86_64")]
fn simd_features() -> Vec<&'static str> {
    macro_rules! detected {
        ($($name:tt),* $(,)?) => {
            [$(($name, std::is_x86_feature_detected!($name))),*]
        };
    }
    let features = detected![
        "sse3",
        "ssse3",
        "sse4.1",
        "sse4.2",
        "popcnt",
        "cmpxchg16b",
        "avx",
        "avx2",
        "fma",
        "f16c",
        "bmi1",
        "bmi2",
        "lzcnt",
        "movbe",
        "avx512f",
        "avx512bw",
        "avx512cd",
        "avx512dq",
        "avx512vl",
        "avx512vnni",
        "avx512bf16",
    ];
    features.into_iter().filter(|(_, there)| *there).map(|(name, _)| name).collect()
}

/// Names of the instruction set extensions that this processor and its system offer.
#[cfg(target_arch = "aarch64")]
fn simd_features() -> Vec<&'static str> {
    macro_rules! detected {
        ($($name:tt),* $(,)?) => {
            [$(($name, std::arch::is_aarch64_feature_detected!($name))),*]
        };
    }
    let features = detected!["neon", "fp16", "dotprod", "i8mm", "bf16", "sve", "sve2"];
    features.into_iter().filter(|(_, there)| *there).map(|(name, _)| name).collect()
}

/// Names of the instruction set extensions that this processor and its system offer.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn simd_features() -> Vec<&'static str> {
    Vec::new()
}

/// The x86-64 psABI's micro-architecture level that `features` reach; the plain architecture elsewhere.
fn arch(features: &[&str]) -> &'static str {
    const LEVELS: [(&str, &[&str]); 3] = [
        ("x86-64-v4", &["avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"]),
        ("x86-64-v3", &["avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "lzcnt", "movbe"]),
        ("x86-64-v2", &["cmpxchg16b", "popcnt", "sse3", "sse4.1", "sse4.2", "ssse3"]),
    ];
    if cfg!(not(target_arch = "x86_64")) {
        return std::env::consts::ARCH;
    }
    // A level needs all of the levels below it.
    let reached = |from: usize| {
        LEVELS[from..].iter().all(|(_, needs)| needs.iter().all(|name| features.contains(name)))
    };
    (0..LEVELS.len()).find(|&level| reached(level)).map_or("x86-64", |level| LEVELS[level].0)
}

#[cfg(test)]
mod tests {
    use super::*;

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
    #[cfg(target_arch = "x86_64")]
    fn a_level_needs_the_levels_below() {
        let v2 = ["cmpxchg16b", "popcnt", "sse3", "sse4.1", "sse4.2", "ssse3"];
        let v3 = ["avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "lzcnt", "movbe"];
        assert_eq!(arch(&[]), "x86-64");
        assert_eq!(arch(&v2), "x86-64-v2");
        assert_eq!(arch(&v3), "x86-64");
        assert_eq!(arch(&[v2.as_slice(), v3.as_slice()].concat()), "x86-64-v3");
    }

    #[test]
    fn this_machine_is_described() {
        let info = describe();
        assert!(!info.name.is_empty() && !info.driver_version.is_empty());
        assert!(info.compute_units >= 1);
        assert!(info.spaces[0].total_bytes > 1 << 20);
        assert!(info.properties.integer("page_bytes").is_some_and(|bytes| bytes >= 4096));
    }
}
