//! `runtime cache`: lists, verifies and removes the native code that was kept on disk.

mod json;
mod text;

use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use runtime_core::cache::{CacheUsage, CodeCache, PruneOptions, parse_byte_count};
use runtime_core::{Error, ErrorKind, Result};

use crate::output;
use crate::table::terminal_width;

const SECONDS_PER_DAY: f64 = 86_400.0;

#[derive(Debug, Args)]
pub(crate) struct CacheArguments {
    #[command(subcommand)]
    action: CacheAction,
}

#[derive(Debug, Subcommand)]
enum CacheAction {
    /// List the entries, the most recently used first
    List(ListArguments),
    /// Read every entry completely, and remove the damaged ones
    Verify,
    /// Remove all entries
    Clear,
    /// Remove the least recently used entries [default: those that exceed the bounds of the cache]
    Prune(PruneArguments),
    /// Print the folder of the cache
    Path,
}

#[derive(Debug, Args)]
struct ListArguments {
    /// Print everything that is known, as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct PruneArguments {
    /// Keep at most this many bytes, e.g. 500MiB
    #[arg(long, value_name = "N", value_parser = |text: &str| parse_byte_count(text))]
    max_bytes: Option<u64>,
    /// Remove what was not used for this many days
    #[arg(long, value_name = "DAYS", value_parser = parse_days)]
    older_than: Option<Duration>,
}

fn parse_days(text: &str) -> Result<Duration, String> {
    let seconds = crate::arguments::parse_real(text)? * SECONDS_PER_DAY;
    Duration::try_from_secs_f64(seconds).map_err(|_| "expected fewer days".to_owned())
}

/// Runs the subcommand. The exit code is 1 if entries were damaged.
///
/// # Errors
/// `Unavailable` if there is no cache; `Io`.
pub(crate) fn run(arguments: &CacheArguments) -> Result<ExitCode> {
    let cache = CodeCache::from_environment();
    match &arguments.action {
        CacheAction::List(list) => {
            let entries = cache.list()?;
            match list.json {
                true => output::print_exact(&json::list(&cache, &entries))?,
                false => output::print(&text::list(&entries, terminal_width()))?,
            }
        }
        CacheAction::Verify => {
            let report = cache.verify()?;
            output::print(&text::verified(&report))?;
            return Ok(if report.damaged.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) });
        }
        CacheAction::Clear => print_removed(cache.clear()?)?,
        CacheAction::Prune(prune) => {
            let mut options = PruneOptions::default();
            (options.max_bytes, options.older_than) = (prune.max_bytes, prune.older_than);
            print_removed(cache.prune(&options)?)?;
        }
        CacheAction::Path => {
            let path = cache.path().ok_or_else(no_folder)?;
            output::print(&format!("{}\n", path.display()))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn print_removed(removed: CacheUsage) -> Result<()> {
    output::print(&format!("removed {}\n", text::amount(removed)))
}

fn no_folder() -> Error {
    let message = "there is no cache folder; set HOME, or RUNTIME_CACHE to an absolute path";
    Error::new(ErrorKind::Unavailable, message)
}
