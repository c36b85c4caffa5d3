//! `runtime doctor BACKEND`: one text file for the authors of a backend, who may not have its devices.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use runtime_core::backend::{LoadOutcome, LoadReport};
use runtime_core::{Error, ErrorKind, Result, Runtime};
use serde_json::Value;

use super::privacy::Private;
use crate::{output, probe, registry};

/// Writes the report to a new file, or to standard output for `-`.
///
/// # Errors
/// `InvalidArgument` if the file exists; `Io`.
pub(super) fn write(backend: &str, path: Option<&Path>) -> Result<()> {
    let usual = PathBuf::from(format!("runtime-{backend}-report.txt"));
    let path = path.unwrap_or(&usual);
    let mut file = NewFile::create(path)?;
    let private = Private::of_process();
    file.write(&format!(
        "What `runtime doctor {backend}` found. Home folders, user names and the host's name are replaced; serial numbers of \
         boards are not. Read it before you send it.\n"
    ))?;
    let mut add = |title: &str, lines: Vec<String>| {
        file.write(&private.hide(&format!("\n{}", super::section_text(title, &lines))))
    };
    add("program", super::program())?;
    // Loading a library may crash this process, and listing its devices may crash another, so each comes as late as it can.
    let runtime = registry::runtime();
    let ours: Vec<_> = runtime.load_report().iter().filter(|line| is_of(backend, line)).collect();
    add("backend", libraries(&runtime, &ours))?;
    match runtime.diagnose(backend) {
        Ok(sections) => sections.iter().try_for_each(|(title, text)| add(title, vec![text.to_string()]))?,
        Err(error) => add("diagnosis", vec![error.message().to_owned()])?,
    }
    let loaded = ours.iter().filter(|line| line.outcome == LoadOutcome::Loaded);
    add("devices", loaded.map(|line| devices(&line.path)).collect())?;
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

fn is_of(backend: &str, line: &LoadReport) -> bool {
    let file = line.path.file_name().unwrap_or_default().to_string_lossy();
    line.target.as_deref() == Some(backend) || file.contains(&format!("runtime_{backend}"))
}

/// Where the backend's library was found, or where it was searched for.
fn libraries(runtime: &Runtime, ours: &[&LoadReport]) -> Vec<String> {
    if ours.is_empty() {
        let missing = "the backend's library was not found in these folders:".to_owned();
        return std::iter::once(missing).chain(super::search_paths(runtime.load_report())).collect();
    }
    ours.iter().map(ToString::to_string).collect()
}

/// What a child process lists of a library's devices.
fn devices(library: &Path) -> String {
    let text = match probe::devices_json(library) {
        Ok(text) | Err(text) => text,
    };
    let Ok(mut document) = serde_json::from_str::<Value>(&text) else { return text };
    let mut target = document["targets"][0].take();
    // The same for every user.
    target.as_object_mut().and_then(|target| target.remove("options"));
    format!("{target:#}")
}
