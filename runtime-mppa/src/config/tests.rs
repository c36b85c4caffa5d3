//! Every row of the configuration: default, variable, option, precedence, and refusal.

use runtime_core::backend::OptionScope;
use runtime_core::{ErrorKind, OptionValue};

use super::*;

fn resolve(variables: &[(&str, &str)], options: &Options) -> Result<MppaConfig> {
    MppaConfig::resolve(&variables.iter().copied().collect(), options)
}

fn by_variable(name: &str, value: &str) -> Result<MppaConfig> {
    resolve(&[(name, value)], &Options::new())
}

fn by_option(key: &str, value: impl Into<OptionValue>) -> Result<MppaConfig> {
    resolve(&[], &Options::new().with(key, value))
}

fn refusal(outcome: Result<MppaConfig>) -> String {
    let error = outcome.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    error.message().to_owned()
}

#[test]
fn the_defaults_are_those_of_the_documentation() {
    let config = resolve(&[], &Options::new()).unwrap();
    let expected = MppaConfig {
        platform: Platform::Hardware,
        arch: None,
        firmware: "ocl_fw_l1.elf".to_owned(),
        work_dir: None,
        verbose: false,
        build_verbose: false,
        benchmark: false,
        trace: false,
        trace_use_syscall: true,
        clean_work_dir: true,
        sdk: None,
        root: "/".into(),
        stand_in: false,
    };
    assert_eq!(config, expected);
    assert_eq!(config.arch(), Arch::Kv32);
}

#[test]
fn names_are_read_and_others_are_refused_with_the_valid_ones() {
    for (name, platform) in Platform::NAMES {
        assert_eq!(by_variable("PLATFORM", name).unwrap().platform, platform);
        assert_eq!(by_option("platform", name).unwrap().platform, platform);
        assert_eq!(platform.name(), name);
    }
    for (name, arch) in Arch::NAMES {
        assert_eq!(by_variable("RUNTIME_MPPA_ARCH", name).unwrap().arch, Some(arch));
        assert_eq!(by_option("arch", name).unwrap().arch(), arch);
        assert_eq!(arch.name(), name);
    }
    assert_eq!(
        refusal(by_variable("PLATFORM", "linux")),
        "variable PLATFORM cannot be \"linux\"; valid: hw, iss, qemu"
    );
    assert_eq!(
        refusal(by_option("arch", "kv4-1")),
        "option \"arch\" cannot be \"kv4-1\"; valid: kv3-1, kv3-2"
    );
}

#[test]
fn every_flag_is_read_from_its_variable_and_its_option() {
    type Field = fn(&MppaConfig) -> bool;
    let flags: [(&str, &str, bool, Field); 7] = [
        ("verbose", "RUNTIME_MPPA_VERBOSE", false, |config| config.verbose),
        ("build_verbose", "RUNTIME_MPPA_BUILD_VERBOSE", false, |config| config.build_verbose),
        ("benchmark", "BENCHMARK", false, |config| config.benchmark),
        ("trace", "MPPA_TRACE_ENABLE", false, |config| config.trace),
        ("trace_use_syscall", "MPPA_TRACE_USE_SYSCALL", true, |config| config.trace_use_syscall),
        ("clean_work_dir", "CLEAN_WORK_DIR", true, |config| config.clean_work_dir),
        ("stand_in", "RUNTIME_MPPA_STAND_IN", false, |config| config.stand_in),
    ];
    for (key, variable, default, field) in flags {
        for (text, value) in [("1", true), ("True", true), ("0", false), ("false", false), ("", default)] {
            assert_eq!(field(&by_variable(variable, text).unwrap()), value, "{variable}={text}");
        }
        for value in [true, false] {
            let against = [(variable, if value { "0" } else { "1" })];
            let config = resolve(&against, &Options::new().with(key, value)).unwrap();
            assert_eq!(field(&config), value, "option {key} precedes {variable}");
        }
        let message = refusal(by_variable(variable, "maybe"));
        assert_eq!(message, format!("variable {variable} cannot be \"maybe\"; valid: 0, 1, false, true"));
    }
}

#[test]
fn paths_are_absolute() {
    type Field = fn(&MppaConfig) -> Option<&Path>;
    let paths: [(&str, &str, Field); 3] = [
        ("work_dir", "RUNTIME_MPPA_WORK_DIR", |config| config.work_dir.as_deref()),
        ("sdk", "KALRAY_TOOLCHAIN_DIR", |config| config.sdk.as_deref()),
        ("root", "RUNTIME_MPPA_ROOT", |config| Some(&config.root)),
    ];
    for (key, variable, field) in paths {
        assert_eq!(field(&by_variable(variable, "/a").unwrap()), Some(Path::new("/a")));
        let both = resolve(&[(variable, "/a")], &Options::new().with(key, "/b")).unwrap();
        assert_eq!(field(&both), Some(Path::new("/b")));
        assert!(
            refusal(by_variable(variable, "a")).starts_with(&format!("variable {variable} cannot be \"a\""))
        );
        assert!(refusal(by_option(key, "a")).contains("absolute path"));
    }
}

#[test]
fn firmware_is_found_per_platform_and_architecture() {
    let on = |platform: &str, arch: &str, firmware: &str| {
        let options = Options::new().with("platform", platform).with("arch", arch).with("firmware", firmware);
        let config = resolve(&[("KALRAY_TOOLCHAIN_DIR", "/k")], &options).unwrap();
        config.firmware_path(config.arch()).unwrap().display().to_string()
    };
    let l2 = "ocl_fw_l2_d_1m.elf";
    assert_eq!(on("hw", "kv3-1", ""), "/lib/firmware/kalray/opencl/ocl_fw_l1.elf");
    assert_eq!(on("hw", "kv3-2", l2), format!("/lib/firmware/kalray/opencl/kv3-2/{l2}"));
    assert_eq!(on("iss", "kv3-2", ""), "/k/share/pocl/linux_pcie/kv3-2/ocl_fw_l1.elf");
    assert_eq!(on("qemu", "kv3-1", l2), format!("/k/share/pocl/linux_pcie/{l2}"));
    assert_eq!(on("qemu", "kv3-1", "/my/own.elf"), "/my/own.elf");
    let no_sdk = by_option("platform", "iss").unwrap();
    assert_eq!(no_sdk.firmware_path(Arch::Kv32), None);
    let message = refusal(by_variable("POCL_MPPA_FIRMWARE_NAME", "fw.elf"));
    assert!(
        message.contains("ocl_fw_l1.elf, ocl_fw_l2_d_1m.elf") && message.contains("POCL_MPPA"),
        "{message}"
    );
}

#[test]
fn traces_need_a_board_and_a_benchmark_implies_them() {
    assert!(by_variable("BENCHMARK", "1").unwrap().trace);
    for (variable, option) in [("MPPA_TRACE_ENABLE", "trace"), ("BENCHMARK", "benchmark")] {
        for platform in ["iss", "qemu"] {
            let message = refusal(resolve(&[(variable, "1"), ("PLATFORM", platform)], &Options::new()));
            assert!(message.contains(option) && message.contains(platform), "{message}");
        }
        assert!(by_variable(variable, "1").unwrap().on(Platform::Iss).is_err());
    }
}

#[test]
fn variables_of_programs_follow_the_configuration() {
    let of = |options: &Options| resolve(&[], options).unwrap().variables();
    assert_eq!(of(&Options::new()), [("PLATFORM", "hw".to_owned())]);
    let traced = Options::new().with("trace", true);
    let meta = |variables: &[(&str, String)]| variables.last().unwrap().1.clone();
    assert_eq!(meta(&of(&traced)), "MPPA_TRACE_ENABLE_META=1 MPPA_TRACE_USE_SYSCALL=1");
    assert_eq!(meta(&of(&traced.with("trace_use_syscall", false))), "MPPA_TRACE_ENABLE_META=1");
}

#[test]
fn several_configurations_live_side_by_side() {
    let first = by_option("arch", "kv3-1").unwrap();
    let second = by_option("platform", "qemu").unwrap();
    assert_eq!((first.arch(), second.arch()), (Arch::Kv31, Arch::Kv32));
    assert_eq!((first.platform, second.platform), (Platform::Hardware, Platform::Qemu));
}

#[test]
fn every_option_is_described_and_its_default_is_valid() {
    let specs = options();
    for spec in &specs {
        let names_code = ["firmware", "work_dir", "sdk", "root"].contains(&&*spec.key);
        let scope = if names_code { OptionScope::DeviceCode } else { OptionScope::Device };
        assert_eq!(spec.scope, scope, "{}", spec.key);
        let given = Options::new().with(&spec.key, spec.default.clone());
        assert_eq!(resolve(&[], &given).unwrap(), resolve(&[], &Options::new()).unwrap(), "{}", spec.key);
    }
    assert_eq!(specs.len(), 13, "one option per setting");
}

/// The variable that the error about option "trace" names was not read.
#[test]
fn the_variable_of_the_opencl_library_turns_traces_on() {
    let config = |variables: &[(&str, &str)], options: &Options| {
        MppaConfig::resolve(&variables.iter().copied().collect(), options)
    };
    let (on, none) = (("POCL_MPPA_TRACE_ENABLE", "1"), Options::new());
    let traced = config(&[on], &none).unwrap();
    assert!(traced.trace);
    assert_eq!(
        config(&[], &Options::new().with("trace", true)).unwrap().opencl_variables(),
        traced.opencl_variables()
    );
    assert!(
        !config(&[on, ("MPPA_TRACE_ENABLE", "0")], &none).unwrap().trace,
        "the general variable precedes it"
    );
    let wrong = config(&[("POCL_MPPA_TRACE_ENABLE", "yes")], &none).unwrap_err();
    assert!(wrong.message().contains("POCL_MPPA_TRACE_ENABLE"), "{wrong}");
}
