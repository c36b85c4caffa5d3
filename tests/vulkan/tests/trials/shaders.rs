//! SPIR-V of other compilers: GLSL shaders, compiled by `glslangValidator` and run by the command from specifications. Results
//! are right, and the validation layer is silent.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use libtest_mimic::{Failed, Trial};
use vulkan_tests::{
    Driver, Finished, VALIDATION_VARIABLE, built_file, compile_glsl, finish, lavapipe, missing,
    require_glslang, use_driver, validation_layer, with_validation_log,
};

const DEADLINE: Duration = Duration::from_secs(120);

/// Valid shaders, with their compiler options.
const VALID: &[(&str, &[&str])] =
    &[("saxpy", &[]), ("sums", &[]), ("wide", &["-e", "count", "--source-entrypoint", "main"])];

/// A change that makes a specification invalid, and what the error must contain.
struct InvalidSpec {
    name: &'static str,
    shader: &'static str,
    from: &'static str,
    to: &'static str,
    error: &'static [&'static str],
}

const INVALID: &[InvalidSpec] = &[
    InvalidSpec {
        name: "a_missing_argument",
        shader: "saxpy",
        from: "[[arg]]\nname = \"alpha\"\nscalar = \"f32\"\nvalue = 2.5\n",
        to: "",
        error: &["argument"],
    },
    InvalidSpec {
        name: "a_scalar_of_the_wrong_size",
        shader: "saxpy",
        from: "scalar = \"f32\"",
        to: "scalar = \"f64\"",
        error: &["argument 2", "f32", "f64"],
    },
    InvalidSpec {
        name: "a_written_tensor_declared_read_only",
        shader: "saxpy",
        from: "use = \"read\"\n\n[[arg]]\nname = \"y\"\ndtype = \"f32\"\nshape = [\"n\"]\ninit = \"ones\"\nuse = \"readwrite\"",
        to: "use = \"readwrite\"\n\n[[arg]]\nname = \"y\"\ndtype = \"f32\"\nshape = [\"n\"]\nuse = \"read\"",
        error: &["argument 1", "read"],
    },
    InvalidSpec {
        name: "the_wrong_group_size",
        shader: "saxpy",
        from: "group_size = 64",
        to: "group_size = 32",
        error: &["group_size", "64"],
    },
    InvalidSpec {
        name: "the_wrong_group_size_for_a_constant",
        shader: "sums",
        from: "\"0=32\"",
        to: "\"0=16\"",
        error: &["group_size", "16"],
    },
    InvalidSpec {
        name: "an_unknown_constant",
        shader: "sums",
        from: "\"7=3.0\"",
        to: "\"5=3.0\"",
        error: &["5"],
    },
    InvalidSpec {
        name: "an_unknown_entry_point",
        shader: "wide",
        from: "entry = \"count\"",
        to: "entry = \"cuont\"",
        error: &["cuont", "count"],
    },
    InvalidSpec {
        name: "a_capability_that_is_never_enabled",
        shader: "clock",
        from: "",
        to: "",
        error: &["capability 5055", "which this backend does not support"],
    },
    InvalidSpec {
        name: "an_image",
        shader: "picture",
        from: "",
        to: "",
        error: &["images and samplers cannot be kernel arguments"],
    },
];

pub(crate) fn trials() -> Vec<Trial> {
    match (lavapipe(), validation_layer(), require_glslang()) {
        (Err(reason), ..) => vec![missing("vulkan::shaders", "vulkan", reason)],
        (_, Err(reason), _) => vec![missing("vulkan::shaders", "vulkan-validation", reason)],
        (.., Err(reason)) => vec![missing("vulkan::shaders", "glslang", reason)],
        (Ok(driver), Ok(()), Ok(())) => of_driver(&driver),
    }
}

fn of_driver(driver: &Driver) -> Vec<Trial> {
    let valid = VALID.iter().map(|(shader, _)| {
        let driver = driver.clone();
        Trial::test(format!("shaders::{shader}_is_right"), move || is_right(&driver, shader))
    });
    let invalid = INVALID.iter().map(|invalid| {
        let driver = driver.clone();
        Trial::test(format!("shaders::{}", invalid.name), move || is_refused(&driver, invalid))
    });
    let driver = driver.clone();
    let warning =
        Trial::test("shaders::a_missing_layer_is_reported", move || missing_layer_is_reported(&driver));
    valid.chain(invalid).chain([warning]).collect()
}

/// The command prints the log of backends.
fn missing_layer_is_reported(driver: &Driver) -> Result<(), Failed> {
    let temporary = tempfile::tempdir()?;
    let mut command = Command::new(built_file("runtime")?);
    use_driver(&mut command, &driver.manifest).env("RUNTIME_BACKENDS", built_file("libruntime_vulkan.so")?);
    command.env(VALIDATION_VARIABLE, "1").env("VK_LAYER_PATH", temporary.path());
    let ended = finish(command.arg("devices"), DEADLINE)?;
    let says = ended.text().contains("warning: vulkan: RUNTIME_VULKAN_VALIDATION is set, but the layer");
    if ended.status.success() && says { Ok(()) } else { Err(ended.text().into()) }
}

fn is_right(driver: &Driver, shader: &str) -> Result<(), Failed> {
    let (ended, log) = run(driver, shader, |spec| spec)?;
    if !ended.status.success() || !ended.text().contains("right") {
        return Err(format!("{}: {}", ended.status, ended.text()).into());
    }
    if log.is_empty() { Ok(()) } else { Err(log.into()) }
}

fn is_refused(driver: &Driver, invalid: &InvalidSpec) -> Result<(), Failed> {
    let (ended, log) = run(driver, invalid.shader, |spec| {
        assert!(spec.contains(invalid.from), "{}", invalid.name);
        spec.replacen(invalid.from, invalid.to, 1)
    })?;
    let says = invalid.error.iter().all(|word| ended.text().contains(word));
    if ended.status.code() != Some(1) || !says {
        return Err(format!("{}, not 1 with {:?}: {}", ended.status, invalid.error, ended.text()).into());
    }
    if log.is_empty() { Ok(()) } else { Err(log.into()) }
}

/// Compiles a shader and runs its changed specification; returns the command's result and the layer's log.
fn run(
    driver: &Driver,
    shader: &str,
    change: impl FnOnce(String) -> String,
) -> Result<(Finished, String), Failed> {
    let temporary = tempfile::tempdir()?;
    let (folder, sources) = (temporary.path(), Path::new(env!("CARGO_MANIFEST_DIR")).join("shaders"));
    let options = VALID.iter().find(|(name, _)| *name == shader).map_or(&[][..], |(_, options)| options);
    compile_glsl(&sources.join(shader).with_extension("comp"), options, folder)?;
    std::fs::copy(sources.join("reference.c"), folder.join("reference.c"))?;
    let spec = folder.join(shader).with_extension("toml");
    std::fs::write(&spec, change(std::fs::read_to_string(sources.join(shader).with_extension("toml"))?))?;
    let mut command = Command::new(built_file("runtime")?);
    let backends = [built_file("libruntime_vulkan.so")?, built_file("libruntime_host.so")?];
    use_driver(&mut command, &driver.manifest).env("RUNTIME_BACKENDS", std::env::join_paths(backends)?);
    with_validation_log(&mut command, folder, "log")?;
    let ended = finish(command.arg("run").arg(&spec).args(["--device", "vulkan:0"]), DEADLINE)?;
    // A specification that is refused before the driver is called leaves no log.
    let log = std::fs::read_to_string(folder.join("log")).ok();
    if log.is_none() && ended.status.success() {
        return Err("the validation layer was not loaded".into());
    }
    Ok((ended, log.unwrap_or_default()))
}
