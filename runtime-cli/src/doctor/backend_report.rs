//! `runtime doctor --mppa`: one text file for the developers, who have no MPPA.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use runtime_core::{Error, ErrorKind, LoadOutcome, LoadReport, Result};
use runtime_mppa::Environment;
use runtime_mppa::report::{self, Private, Section};
use serde_json::Value;

use crate::{output, probe, registry};

/// The backend's name.
const TARGET: &str = "mppa";
const INTRODUCTION: &str = "What `runtime doctor --mppa` found. Home folders, user names and the host's name are replaced; \
                            serial numbers of boards are not. Read it before you send it.\n";

/// Writes the report to a new file, or to standard output for `-`.
///
/// # Errors
/// `InvalidArgument` if the file exists; `Io`.
pub(crate) fn write(path: &Path) -> Result<()> {
    let mut file = NewFile::create(path)?;
    let private = Private::of_process();
    file.write(INTRODUCTION)?;
    let program = Section { title: "program", lines: super::program() };
    // Loading a library may crash this process, so everything else is written first.
    let sections = std::iter::once(program).chain(report::sections(&Environment::of_process()));
    for section in sections.chain(std::iter::once_with(backend)) {
        file.write(&private.hide(&format!("\n{section}")))?;
    }
    file.write("\nend of the report\n")?;
    match &file {
        NewFile::Standard => Ok(()),
        NewFile::File(..) => {
            output::print(&format!("wrote {}; read it before you send it\n", path.display()))
        }
    }
}

/// Where the report goes. Nothing is overwritten.
#[derive(Debug)]
enum NewFile<'a> {
    Standard,
    File(File, &'a Path),
}

impl<'a> NewFile<'a> {
    fn create(path: &'a Path) -> Result<Self> {
        if path == Path::new("-") {
            return Ok(Self::Standard);
        }
        match File::create_new(path) {
            Ok(file) => Ok(Self::File(file, path)),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                let message = format!(
                    "{} exists and is not overwritten; remove it, or give another FILE",
                    path.display()
                );
                Err(Error::new(ErrorKind::InvalidArgument, message))
            }
            Err(error) => Err(output::write_error(path, &error)),
        }
    }

    fn write(&mut self, text: &str) -> Result<()> {
        match self {
            Self::Standard => output::print(text),
            Self::File(file, path) => {
                file.write_all(text.as_bytes()).map_err(|error| output::write_error(path, &error))
            }
        }
    }
}

/// The backend's library and its devices, which a child process lists.
fn backend() -> Section {
    let runtime = registry::runtime();
    let report = runtime.load_report();
    let ours: Vec<_> = report.iter().filter(|line| is_ours(line)).collect();
    let mut lines: Vec<String> = ours.iter().map(ToString::to_string).collect();
    if ours.is_empty() {
        lines.push("the backend's library was not found in these folders:".to_owned());
        lines.extend(super::search_paths(report));
    }
    for line in ours.iter().filter(|line| line.outcome == LoadOutcome::Loaded) {
        lines.extend(probe::devices_json(&line.path).map_or_else(|reason| vec![reason], devices));
    }
    Section { title: "backend and devices", lines }
}

fn is_ours(line: &LoadReport) -> bool {
    let file = line.path.file_name().unwrap_or_default().to_string_lossy();
    line.target.as_deref() == Some(TARGET) || file.contains("runtime_mppa")
}

/// The devices in a list of `runtime devices --json`, with all that is known about them.
fn devices(text: String) -> Vec<String> {
    let Ok(mut document) = serde_json::from_str::<Value>(&text) else { return vec![text] };
    let mut target = document["targets"][0].take();
    // The same for every user.
    target.as_object_mut().and_then(|target| target.remove("options"));
    vec![format!("{target:#}")]
}
