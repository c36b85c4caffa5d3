//! SPIR-V that others' compilers make: GLSL, compiled by `glslangValidator`, run by the command from specifications, right
//! and without a word of the validation layer.

use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;

use libtest_mimic::{Arguments, Failed, Trial};
use vulkan_tests::{
    Driver, Finished, VALIDATION, beside, compile_glsl, finish, glslang, lavapipe, layer, missing, on,
    watched,
};

const DEADLINE: Duration = Duration::from_secs(120);

/// A shader that is right, and what the compiler is told beside.
const RIGHT: &[(&str, &[&str])] =
    &[("saxpy", &[]), ("sums", &[]), ("wide", &["-e", "count", "--source-entrypoint", "main"])];

/// A change of a specification that makes it wrong, and words that the error must have.
struct Wrong {
    name: &'static str,
    shader: &'static str,
    from: &'static str,
    to: &'static str,
    words: &'static [&'static str],
}

const WRONG: &[Wrong] = &[
    Wrong {
        name: "an_argument_too_few",
        shader: "saxpy",
        from: "[[arg]]\nname = \"alpha\"\nscalar = \"f32\"\nvalue = 2.5\n",
        to: "",
        words: &["argument"],
    },
    Wrong {
        name: "a_scalar_of_another_size",
        shader: "saxpy",
        from: "scalar = \"f32\"",
        to: "scalar = \"f64\"",
        words: &["argument 2", "f32", "f64"],
    },
    Wrong {
        name: "a_tensor_given_as_read_that_is_written",
        shader: "saxpy",
        from: "use = \"read\"\n\n[[arg]]\nname = \"y\"\ndtype = \"f32\"\nshape = [\"n\"]\ninit = \"ones\"\nuse = \"readwrite\"",
        to: "use = \"readwrite\"\n\n[[arg]]\nname = \"y\"\ndtype = \"f32\"\nshape = [\"n\"]\nuse = \"read\"",
        words: &["argument 1", "read"],
    },
    Wrong {
        name: "groups_of_another_size",
        shader: "saxpy",
        from: "group_size = 64",
        to: "group_size = 32",
        words: &["group_size", "64"],
    },
    Wrong {
        name: "groups_of_another_size_than_the_constant",
        shader: "sums",
        from: "\"0=32\"",
        to: "\"0=16\"",
        words: &["group_size", "16"],
    },
    Wrong {
        name: "a_constant_that_is_not_there",
        shader: "sums",
        from: "\"7=3.0\"",
        to: "\"5=3.0\"",
        words: &["5"],
    },
    Wrong {
        name: "an_entry_point_that_is_not_there",
        shader: "wide",
        from: "entry = \"count\"",
        to: "entry = \"cuont\"",
        words: &["cuont", "count"],
    },
    Wrong {
        name: "a_clock_that_no_device_is_opened_with",
        shader: "clock",
        from: "",
        to: "",
        words: &["capability 5055", "which this backend does not know"],
    },
    Wrong {
        name: "an_image",
        shader: "picture",
        from: "",
        to: "",
        words: &["images and samplers cannot be kernel arguments"],
    },
];

fn main() -> ExitCode {
    let trials = match (lavapipe(), layer(), glslang()) {
        (Err(reason), ..) => vec![missing("vulkan::shaders", "vulkan", reason)],
        (_, Err(reason), _) => vec![missing("vulkan::shaders", "vulkan-validation", reason)],
        (.., Err(reason)) => vec![missing("vulkan::shaders", "glslang", reason)],
        (Ok(driver), Ok(()), Ok(())) => trials(&driver),
    };
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn trials(driver: &Driver) -> Vec<Trial> {
    let right = RIGHT.iter().map(|(shader, _)| {
        let driver = driver.clone();
        Trial::test(format!("{shader}_is_right"), move || is_right(&driver, shader))
    });
    let wrong = WRONG.iter().map(|wrong| {
        let driver = driver.clone();
        Trial::test(wrong.name, move || is_refused(&driver, wrong))
    });
    let driver = driver.clone();
    let said = Trial::test("a_layer_that_is_missing_is_said", move || is_said(&driver));
    right.chain(wrong).chain([said]).collect()
}

/// The command prints what backends log.
fn is_said(driver: &Driver) -> Result<(), Failed> {
    let temporary = tempfile::tempdir()?;
    let mut command = Command::new(beside("runtime")?);
    on(&mut command, &driver.manifest).env("RUNTIME_BACKENDS", beside("libruntime_vulkan.so")?);
    command.env(VALIDATION, "1").env("VK_LAYER_PATH", temporary.path());
    let ended = finish(command.arg("devices"), DEADLINE)?;
    let says = ended.text().contains("warning: vulkan: RUNTIME_VULKAN_VALIDATION is set, but the layer");
    if ended.status.success() && says { Ok(()) } else { Err(ended.text().into()) }
}

fn is_right(driver: &Driver, shader: &str) -> Result<(), Failed> {
    let (ended, log) = perform(driver, shader, |spec| spec)?;
    if !ended.status.success() || !ended.text().contains("right") {
        return Err(format!("{}: {}", ended.status, ended.text()).into());
    }
    if log.is_empty() { Ok(()) } else { Err(log.into()) }
}

fn is_refused(driver: &Driver, wrong: &Wrong) -> Result<(), Failed> {
    let (ended, log) = perform(driver, wrong.shader, |spec| {
        assert!(spec.contains(wrong.from), "{}", wrong.name);
        spec.replacen(wrong.from, wrong.to, 1)
    })?;
    let says = wrong.words.iter().all(|word| ended.text().contains(word));
    if ended.status.code() != Some(1) || !says {
        return Err(format!("{}, not 1 with {:?}: {}", ended.status, wrong.words, ended.text()).into());
    }
    if log.is_empty() { Ok(()) } else { Err(log.into()) }
}

/// Compiles a shader and runs its specification with a change; gives what the command and the layer said.
fn perform(
    driver: &Driver,
    shader: &str,
    change: impl FnOnce(String) -> String,
) -> Result<(Finished, String), Failed> {
    let temporary = tempfile::tempdir()?;
    let (folder, sources) = (temporary.path(), Path::new(env!("CARGO_MANIFEST_DIR")).join("shaders"));
    let options = RIGHT.iter().find(|(name, _)| *name == shader).map_or(&[][..], |(_, options)| options);
    compile_glsl(&sources.join(shader).with_extension("comp"), options, folder)?;
    std::fs::copy(sources.join("reference.c"), folder.join("reference.c"))?;
    let spec = folder.join(shader).with_extension("toml");
    std::fs::write(&spec, change(std::fs::read_to_string(sources.join(shader).with_extension("toml"))?))?;
    let mut command = Command::new(beside("runtime")?);
    let backends = [beside("libruntime_vulkan.so")?, beside("libruntime_host.so")?];
    on(&mut command, &driver.manifest).env("RUNTIME_BACKENDS", std::env::join_paths(backends)?);
    watched(&mut command, folder, "log")?;
    let ended = finish(command.arg("run").arg(&spec).args(["--device", "vulkan:0"]), DEADLINE)?;
    // What is refused before the driver is asked leaves no log.
    let log = std::fs::read_to_string(folder.join("log")).ok();
    if log.is_none() && ended.status.success() {
        return Err("the validation layer was not there".into());
    }
    Ok((ended, log.unwrap_or_default()))
}
