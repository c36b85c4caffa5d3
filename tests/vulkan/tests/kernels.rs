//! Every kernel of `kernels/` on lavapipe, through the command: right, and without a word of the validation layer.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use libtest_mimic::{Arguments, Failed, Trial};
use vulkan_tests::{Driver, beside, finish, lavapipe, layer, missing, on, watched};

const DEADLINE: Duration = Duration::from_secs(120);

/// Numbers that are fit for a test, and no multiples of a group: what `--set` takes.
const SIZES: &[(&str, &[&str])] = &[
    ("convolution", &["height=67", "width=131"]),
    ("histogram", &["n=100003"]),
    ("layer_norm", &["rows=5", "columns=1003"]),
    ("mandelbrot", &["width=301", "height=203"]),
    ("matmul", &["m=67", "n=45", "k=81"]),
    ("n_body", &["n=777"]),
    ("reduction", &["n=100003"]),
    ("saxpy", &["n=100003"]),
    ("scan", &["n=100003"]),
    ("scan_offset", &["n=100003"]),
    ("softmax", &["rows=5", "columns=1003"]),
    ("transpose", &["rows=67", "columns=131"]),
    ("vector_add", &["n=100003"]),
];

fn main() -> ExitCode {
    let trials = match (lavapipe(), layer()) {
        (Err(reason), _) => vec![missing("vulkan::kernels", "vulkan", reason)],
        (_, Err(reason)) => vec![missing("vulkan::kernels", "vulkan-validation", reason)],
        (Ok(driver), Ok(())) => trials(&driver),
    };
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn trials(driver: &Driver) -> Vec<Trial> {
    let specs = specs();
    let mut trials: Vec<_> = specs
        .into_iter()
        .map(|spec| {
            let (driver, name) =
                (driver.clone(), spec.file_stem().unwrap_or_default().to_string_lossy().into_owned());
            Trial::test(format!("{name}_is_right"), move || right(&driver, &spec, &name))
        })
        .collect();
    let driver = driver.clone();
    trials.push(Trial::test("times_come_from_the_device", move || timed(&driver)));
    trials
}

/// The folder's specifications.
fn specs() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder()).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.filter(|path| path.extension().is_some_and(|extension| extension == "toml")).collect()
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kernels")
}

/// The command, which sees this driver and these two backends.
fn runtime(driver: &Driver) -> Result<Command, Failed> {
    let mut command = Command::new(beside("runtime")?);
    let backends = [beside("libruntime_vulkan.so")?, beside("libruntime_host.so")?];
    on(&mut command, &driver.manifest).env("RUNTIME_BACKENDS", std::env::join_paths(backends)?);
    Ok(command)
}

fn right(driver: &Driver, spec: &Path, name: &str) -> Result<(), Failed> {
    let sizes = SIZES.iter().find(|(kernel, _)| *kernel == name).ok_or("it has no sizes in this test")?.1;
    let temporary = tempfile::tempdir()?;
    let mut command = runtime(driver)?;
    watched(&mut command, temporary.path(), "log")?;
    command.arg("run").arg(spec).args(["--device", "vulkan:0"]);
    command.args(sizes.iter().flat_map(|size| ["--set", size]));
    let ended = finish(&mut command, DEADLINE)?;
    if !ended.status.success() || !ended.text().contains("right") {
        return Err(format!("{}: {}", ended.status, ended.text()).into());
    }
    let log = std::fs::read_to_string(temporary.path().join("log"))?;
    if log.is_empty() { Ok(()) } else { Err(log.into()) }
}

fn timed(driver: &Driver) -> Result<(), Failed> {
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
