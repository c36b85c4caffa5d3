//! Runs every kernel of `kernels/` on lavapipe through the command: results are right, and the validation layer is silent.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use libtest_mimic::{Failed, Trial};
use vulkan_tests::{
    Driver, built_file, finish, lavapipe, missing, use_driver, validation_layer, with_validation_log,
};

const DEADLINE: Duration = Duration::from_secs(120);

/// Sizes for `--set`: small, and not multiples of a group.
const SIZES: &[(&str, &[&str])] = &[
    ("bias", &["rows=5", "columns=1003"]),
    ("blur", &["n=100003"]),
    ("convolution", &["height=67", "width=131"]),
    ("gelu", &["rows=5", "columns=1003"]),
    ("gemm_f32", &["m=136", "n=260", "k=20"]),
    ("histogram", &["n=100003"]),
    ("layer_norm", &["rows=5", "columns=1003"]),
    ("mandelbrot", &["width=301", "height=203"]),
    ("matmul", &["m=67", "n=45", "k=81"]),
    ("multiply_subtract", &["n=100003"]),
    ("n_body", &["n=777"]),
    ("reduction", &["n=100003"]),
    ("relu", &["n=100003"]),
    ("residual", &["rows=5", "columns=1003"]),
    ("saxpy", &["n=100003"]),
    ("scale", &["n=100003"]),
    ("scale_mask", &["rows=5", "columns=1003"]),
    ("scan", &["n=100003"]),
    ("scan_offset", &["n=100003"]),
    ("sharpen", &["n=100003"]),
    ("softmax", &["rows=5", "columns=1003"]),
    ("transpose", &["rows=67", "columns=131"]),
    ("vector_add", &["n=100003"]),
];

pub(crate) fn trials() -> Vec<Trial> {
    match (lavapipe(), validation_layer()) {
        (Err(reason), _) => vec![missing("vulkan::kernels", "vulkan", reason)],
        (_, Err(reason)) => vec![missing("vulkan::kernels", "vulkan-validation", reason)],
        (Ok(driver), Ok(())) => of_driver(&driver),
    }
}

fn of_driver(driver: &Driver) -> Vec<Trial> {
    let specs = specs();
    let mut trials: Vec<_> = specs
        .into_iter()
        .map(|spec| {
            let (driver, name) =
                (driver.clone(), spec.file_stem().unwrap_or_default().to_string_lossy().into_owned());
            Trial::test(format!("kernels::{name}_is_right"), move || is_right(&driver, &spec, &name))
        })
        .collect();
    let driver = driver.clone();
    trials.push(Trial::test("kernels::times_come_from_the_device", move || device_clock_is_used(&driver)));
    trials
}

/// The specifications in the folder.
fn specs() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder()).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.filter(|path| path.extension().is_some_and(|extension| extension == "toml")).collect()
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kernels")
}

/// The command, restricted to this driver and two backends.
fn runtime(driver: &Driver) -> Result<Command, Failed> {
    let mut command = Command::new(built_file("runtime")?);
    let backends = [built_file("libruntime_vulkan.so")?, built_file("libruntime_host.so")?];
    use_driver(&mut command, &driver.manifest).env("RUNTIME_BACKENDS", std::env::join_paths(backends)?);
    Ok(command)
}

fn is_right(driver: &Driver, spec: &Path, name: &str) -> Result<(), Failed> {
    let sizes = SIZES.iter().find(|(kernel, _)| *kernel == name).ok_or("it has no entry in SIZES")?.1;
    let temporary = tempfile::tempdir()?;
    let mut command = runtime(driver)?;
    with_validation_log(&mut command, temporary.path(), "log")?;
    command.arg("run").arg(spec).args(["--device", "vulkan:0"]);
    command.args(sizes.iter().flat_map(|size| ["--set", size]));
    let ended = finish(&mut command, DEADLINE)?;
    if !ended.status.success() || !ended.text().contains("right") {
        return Err(format!("{}: {}", ended.status, ended.text()).into());
    }
    let log = std::fs::read_to_string(temporary.path().join("log"))?;
    if log.is_empty() { Ok(()) } else { Err(log.into()) }
}

fn device_clock_is_used(driver: &Driver) -> Result<(), Failed> {
    let spec = folder().join("saxpy.toml");
    let mut command = runtime(driver)?;
    command.arg("eval").arg(spec).args(["--device", "vulkan:0", "--set", "n=100003", "--json", "-"]);
    command.args(["--repeat", "3", "--number", "3", "--warmup", "1"]);
    let ended = finish(&mut command, DEADLINE)?;
    let text = ended.text();
    let from = text.find('{').ok_or(format!("no report: {text}"))?;
    let mut documents = serde_json::Deserializer::from_str(&text[from..]).into_iter::<serde_json::Value>();
    let document = documents.next().ok_or("no report")??;
    let row = &document["rows"][0];
    let is_device = row["measurement"]["clock"].as_str().is_some_and(|clock| clock.starts_with("device"));
    if row["status"] == "right" && is_device { Ok(()) } else { Err(format!("{row:#}").into()) }
}
