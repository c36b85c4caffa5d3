//! The instruction-set extensions of the processor, and the x86-64 level that they amount to.

/// Names of the instruction-set extensions that the processor and the system support.
#[cfg(target_arch = "x86_64")]
pub(crate) fn features() -> Vec<&'static str> {
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

/// Names of the instruction-set extensions that the processor and the system support.
#[cfg(target_arch = "aarch64")]
pub(crate) fn features() -> Vec<&'static str> {
    macro_rules! detected {
        ($($name:tt),* $(,)?) => {
            [$(($name, std::arch::is_aarch64_feature_detected!($name))),*]
        };
    }
    let features = detected!["neon", "fp16", "dotprod", "i8mm", "bf16", "sve", "sve2"];
    features.into_iter().filter(|(_, there)| *there).map(|(name, _)| name).collect()
}

/// Names of the instruction-set extensions that the processor and the system support.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) fn features() -> Vec<&'static str> {
    Vec::new()
}

/// The micro-architecture level of the x86-64 psABI that `features` satisfy; elsewhere the architecture's name.
pub(crate) fn arch(features: &[&str]) -> &'static str {
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
#[cfg(target_arch = "x86_64")]
mod tests {
    use super::*;

    #[test]
    fn a_level_needs_the_levels_below() {
        let v2 = ["cmpxchg16b", "popcnt", "sse3", "sse4.1", "sse4.2", "ssse3"];
        let v3 = ["avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "lzcnt", "movbe"];
        assert_eq!(arch(&[]), "x86-64");
        assert_eq!(arch(&v2), "x86-64-v2");
        assert_eq!(arch(&v3), "x86-64");
        assert_eq!(arch(&[v2.as_slice(), v3.as_slice()].concat()), "x86-64-v3");
    }
}
