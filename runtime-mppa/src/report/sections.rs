//! The sections of the report.

use std::path::{Path, PathBuf};
use std::time::Duration;

use runtime_core::Options;

use super::folder::{Bounds, Lines, lines_within, list};
use crate::board_diag;
use crate::config::{Arch, MppaConfig};
use crate::environment::{self, Environment};
use crate::offload::{HEADER, has_header, try_compile};
use crate::tools::Tools;

/// How long reading files may take.
const DEADLINE: Duration = Duration::from_secs(20);
/// The part of a variable's value that is shown.
const MAX_VALUE_CHARS: usize = 1024;
const DRIVER: Bounds = Bounds {
    depth: 4,
    per_folder: 64,
    entries: 400,
    bytes: 128 << 10,
    shows: |_| true,
    follows: |name| name.starts_with("board") || name.starts_with("mppa"),
};
const SDK: Bounds = Bounds {
    depth: 5,
    per_folder: 150,
    entries: 3000,
    bytes: 16 << 10,
    // No file of a known name has the version of an SDK.
    shows: |name| name.to_ascii_lowercase().contains("version") && !name.ends_with(".h"),
    follows: |_| false,
};
/// What the backend searches for in the SDK.
const PARTS: [&str; 5] = [
    "lib/libOpenCL.so",
    HEADER,
    "lib/libmppa_offload_host.so",
    "lib/libmppa_rproc_host.so",
    "lib/libmopd.so",
];
const TOOLS: [&str; 7] =
    ["kvx-board-diag", "kvx-jtag-runner", "kvx-mppa", "kvx-cluster", "qemu-system-kvx", "kvx-poclcc", "cc"];

/// A section: its title, and how its lines are found.
pub(super) type Find = (&'static str, fn(&Source) -> Vec<String>);

pub(super) const SECTIONS: [Find; 7] = [
    ("environment", variables),
    ("configuration", configuration),
    ("driver", driver),
    ("tools and libraries", parts),
    ("sdk", sdk),
    ("kvx-board-diag --list-board", board_diag),
    ("compiler of the offload library's shim", shim),
];

/// What is reported. The folders are known even where the configuration is wrong.
#[derive(Debug)]
pub(super) struct Source {
    environment: Environment,
    config: Result<MppaConfig, String>,
    root: PathBuf,
    sdk: Option<PathBuf>,
    tools: Tools,
}

impl Source {
    pub(super) fn new(environment: &Environment) -> Self {
        let folder = |name| environment.text(name).map(PathBuf::from);
        let sdk = folder(environment::SDK);
        Self {
            config: MppaConfig::resolve(environment, &Options::new())
                .map_err(|error| error.message().to_owned()),
            root: folder(environment::ROOT).unwrap_or_else(|| PathBuf::from("/")),
            tools: Tools::new(sdk.as_deref(), environment),
            sdk,
            environment: environment.clone(),
        }
    }

    fn no_sdk() -> Vec<String> {
        vec![format!("no SDK: {} is not set", environment::SDK)]
    }
}

fn variables(source: &Source) -> Vec<String> {
    let line = |(name, value): (&str, Option<&str>)| {
        let value: String = value.unwrap_or("not set").chars().take(MAX_VALUE_CHARS).collect();
        format!("{name:<34} {value}")
    };
    source.environment.reported().map(line).collect()
}

fn configuration(source: &Source) -> Vec<String> {
    match &source.config {
        Ok(config) => vec![format!("{config:#?}")],
        Err(reason) => vec![reason.clone()],
    }
}

fn driver(source: &Source) -> Vec<String> {
    let folder = source.root.join("mppa");
    lines_within(DEADLINE, move |lines| list_named(&folder, DRIVER, lines))
}

fn sdk(source: &Source) -> Vec<String> {
    let Some(sdk) = source.sdk.clone() else { return Source::no_sdk() };
    lines_within(DEADLINE, move |lines| list_named(&sdk, SDK, lines))
}

fn list_named(folder: &Path, bounds: Bounds, lines: Lines<'_>) {
    match folder.metadata() {
        Ok(_) => lines(format!("below {}:", folder.display())),
        Err(error) => return lines(format!("{}: {error}", folder.display())),
    }
    list(folder, bounds, lines);
}

fn parts(source: &Source) -> Vec<String> {
    let firmware = |config: &MppaConfig| {
        Arch::NAMES.iter().filter_map(|(_, arch)| config.firmware_path(*arch)).collect::<Vec<_>>()
    };
    let firmware = source.config.as_ref().map(firmware).unwrap_or_default();
    let libraries = source.sdk.iter().flat_map(|sdk| PARTS.map(|part| sdk.join(part)));
    let files: Vec<_> = libraries.chain(firmware).collect();
    let tools = source.tools.clone();
    lines_within(DEADLINE, move |lines| {
        for file in files {
            lines(match file.metadata() {
                Ok(found) => format!("{}: {} bytes", file.display(), found.len()),
                Err(error) => format!("{}: {error}", file.display()),
            });
        }
        for tool in TOOLS {
            let found = tools.find(tool).map(|path| path.display().to_string());
            lines(format!("{tool}: {}", found.as_deref().unwrap_or("not found")));
        }
    })
}

fn board_diag(source: &Source) -> Vec<String> {
    match board_diag::list_boards(&source.tools) {
        None => vec!["kvx-board-diag was not found".to_owned()],
        Some(Err(error)) => vec![error.message().to_owned()],
        Some(Ok((status, output))) => vec![status.to_string(), output],
    }
}

fn shim(source: &Source) -> Vec<String> {
    let Some(sdk) = &source.sdk else { return Source::no_sdk() };
    if !has_header(sdk) {
        return vec![format!("no header: {} does not exist", sdk.join(HEADER).display())];
    }
    match try_compile(sdk) {
        Ok(output) if output.is_empty() => vec!["compiled without a warning".to_owned()],
        Ok(output) => vec!["compiled".to_owned(), output],
        Err(error) => vec![error.message().to_owned()],
    }
}
