//! `runtime doctor`: shows what was loaded from where, what is missing and how to get it.

mod backend_report;
mod privacy;

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use runtime_core::backend::{
    LoadOutcome, LoadReport, OUTPUT_BYTES, check_privileges, missing_sandbox_parts, run_program,
    trusted_variable,
};
use runtime_core::cache::{CodeCache, LoadTotals, StageTotals};
use runtime_core::{ErrorKind, Result, abi};
use runtime_harness::printable::printable_lines;

use crate::arguments::DoctorArguments;
use crate::output;
use crate::probe::{self, ProbeResult};
use crate::registry;

/// How to get each backend of this project that may be missing.
const HINTS: [(&str, &str); 1] = [(
    "host",
    "build it with `cargo build --release -p runtime-host-plugin`; libruntime_host.so must be in a search path",
)];

/// How long a C compiler may take to say its version.
const COMPILER_TIMEOUT: Duration = Duration::from_secs(10);

/// Environment variables that affect what is found or done.
const VARIABLES: [&str; 5] = ["RUNTIME_BACKENDS", "RUNTIME_BACKEND_PATH", "RUNTIME_CACHE", "CC", "NO_COLOR"];

pub(crate) fn run(arguments: &DoctorArguments) -> Result<()> {
    match &arguments.backend {
        Some(backend) => backend_report::write(backend, arguments.file.as_deref()),
        None => report(),
    }
}

fn report() -> Result<()> {
    section("program", &program())?;
    section("environment", &environment())?;
    let compilers = compilers();
    section("c compiler", &compilers)?;
    section("sandbox", &sandbox())?;
    // Loading a library may crash this process, so everything above is printed first.
    let runtime = registry::runtime();
    section("search paths", &search_paths(runtime.load_report()))?;
    section("load report", &lines(runtime.load_report()))?;
    let loaded = runtime.load_report().iter().filter(|line| line.outcome == LoadOutcome::Loaded);
    let probed: Vec<ProbeResult> =
        loaded.map(|line| probe::probe_library(&line.path, line.target.as_deref())).collect();
    section("backends", &lines(&probed))?;
    section("code cache", &code_cache(&CodeCache::from_environment()))?;
    section("missing", &missing(&probed, &compilers))
}

fn section(title: &str, lines: &[String]) -> Result<()> {
    output::print(&section_text(title, lines))
}

/// A title and its indented lines, without what a terminal would obey: they may come from a driver.
fn section_text(title: &str, lines: &[String]) -> String {
    let lines: String = lines
        .iter()
        .flat_map(|line| line.lines())
        .map(|line| format!("  {}\n", printable_lines(line)))
        .collect();
    format!("{title}\n{}", if lines.is_empty() { "  nothing\n" } else { &lines })
}

fn lines<T: Display>(items: &[T]) -> Vec<String> {
    items.iter().map(ToString::to_string).collect()
}

fn program() -> Vec<String> {
    let mut lines = vec![
        format!("runtime {}, ABI {}.{}", env!("CARGO_PKG_VERSION"), abi::MAJOR, abi::MINOR),
        format!("built for {} {}", std::env::consts::OS, std::env::consts::ARCH),
    ];
    let first_line = |path: &str| Some(std::fs::read_to_string(path).ok()?.lines().next()?.to_owned());
    lines.extend(first_line("/proc/sys/kernel/osrelease").map(|release| format!("kernel {release}")));
    lines.extend(distribution().map(|name| format!("system {name}")));
    lines.extend(std::env::current_exe().ok().map(|path| format!("executable {}", path.display())));
    lines
}

fn distribution() -> Option<String> {
    let text = std::fs::read_to_string("/etc/os-release").ok()?;
    let value = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(value.trim_matches('"').to_owned())
}

fn environment() -> Vec<String> {
    let value = |name| {
        std::env::var_os(name).map_or("not set".to_owned(), |value| value.to_string_lossy().into_owned())
    };
    VARIABLES.iter().map(|name| format!("{name:<21} {}", value(name))).collect()
}

/// The directories searched, in order, and why each of them was.
fn search_paths(report: &[LoadReport]) -> Vec<String> {
    let mut paths: Vec<(PathBuf, &str)> = Vec::new();
    for line in report.iter().filter(|line| !line.path.as_os_str().is_empty()) {
        let is_library = line.path.extension().is_some();
        let folder = if is_library { line.path.parent().unwrap_or(Path::new("")) } else { &line.path };
        if !paths.iter().any(|(path, _)| path == folder) {
            paths.push((folder.to_owned(), line.origin));
        }
    }
    paths.iter().map(|(path, origin)| format!("{} [{origin}]", path.display())).collect()
}

/// The C compilers available to kernels, with the first line of their `--version`.
fn compilers() -> Vec<String> {
    if let Err(refused) = check_privileges() {
        return vec![refused.message().to_owned()];
    }
    let chosen = trusted_variable("CC").and_then(|compiler| compiler.into_string().ok());
    let names = chosen.iter().map(String::as_str).chain(["cc", "clang", "gcc"]);
    names.filter_map(|name| Some(format!("{name}: {}", compiler_version(name)?))).collect()
}

fn compiler_version(name: &str) -> Option<String> {
    let mut words = name.split_whitespace();
    let mut command = Command::new(words.next()?);
    match run_program(command.args(words).arg("--version"), COMPILER_TIMEOUT, OUTPUT_BYTES) {
        Ok(output) if output.status.success() => {
            Some(String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or_default().to_owned())
        }
        Err(error) if error.kind() == ErrorKind::Timeout => {
            let seconds = COMPILER_TIMEOUT.as_secs();
            Some(format!("did not answer `--version` within {seconds} s; set CC to another compiler"))
        }
        _ => None,
    }
}

/// Whether compilers of kernels can run in a sandbox, or what the system lacks.
fn sandbox() -> Vec<String> {
    if let Err(refused) = check_privileges() {
        return vec![refused.message().to_owned()];
    }
    match &*missing_sandbox_parts() {
        [] => vec!["whole: name spaces, Landlock, seccomp".to_owned()],
        missing => missing.iter().map(|part| format!("missing {part}")).collect(),
    }
}

/// Where compiled code is kept, and what loads have cost so far.
fn code_cache(cache: &CodeCache) -> Vec<String> {
    let Some(folder) = cache.path() else { return vec!["off".to_owned()] };
    let mut lines = vec![format!("folder {}", folder.display())];
    match cache.usage().and_then(|usage| Ok((usage, cache.totals()?))) {
        Err(error) => lines.push(error.to_string()),
        Ok((usage, LoadTotals { hits, misses, .. })) => {
            lines.push(format!("entries: {}, {} bytes", usage.entries, usage.bytes));
            for (what, totals) in [("hits", hits), ("misses", misses)] {
                lines.extend(
                    average(&totals).map(|stages| format!("{} {what}, on average {stages}", totals.loads)),
                );
            }
        }
    }
    lines
}

/// The average time of each stage in milliseconds; `None` without loads.
fn average(totals: &StageTotals) -> Option<String> {
    let loads = u32::try_from(totals.loads).unwrap_or(u32::MAX);
    let stages =
        [("read", totals.read), ("lower", totals.lower), ("compile", totals.compile), ("load", totals.load)];
    let stage = |(name, time): (&str, Duration)| {
        Some(format!("{name} {:.2} ms", time.checked_div(loads)?.as_secs_f64() * 1e3))
    };
    // A stage that no such load has is left out.
    let taken = stages.into_iter().filter(|(_, time)| !time.is_zero() || loads == 0);
    taken.map(stage).collect::<Option<Vec<_>>>().map(|stages| stages.join(", "))
}

fn missing(probed: &[ProbeResult], compilers: &[String]) -> Vec<String> {
    let not_found = HINTS.iter().filter(|(name, _)| !probed.iter().any(|answer| answer.target == *name));
    let mut lines: Vec<_> = not_found.map(|(name, hint)| format!("backend {name}: {hint}")).collect();
    if compilers.is_empty() {
        lines.push("a C compiler: kernels in C need one; install gcc or clang, or set CC".to_owned());
    }
    lines.extend(probed.iter().flat_map(ProbeResult::missing));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_has_indented_lines_that_a_terminal_does_not_obey() {
        let lines = ["K300\u{1b}[2J\u{2066}\tz".to_owned(), "two\nlines".to_owned()];
        assert_eq!(section_text("t", &lines), "t\n  K300\u{fffd}[2J\u{fffd}\tz\n  two\n  lines\n");
        assert_eq!(section_text("t", &[]), "t\n  nothing\n");
    }
}
