//! Options of the timing loop.

use clap::Args;
use runtime_core::evaluate::{ClockChoice, FlushCache};
use runtime_harness::Settings;
use runtime_harness::settings::check_number;

use super::parse_real;

/// Options of the timing loop. They take precedence over the `[eval]` table of the spec.
#[derive(Debug, Args)]
#[command(next_help_heading = "Timing")]
pub(crate) struct SettingsArguments {
    /// Number of samples
    #[arg(long, value_name = "COUNT", value_parser = count("repeat"))]
    repeat: Option<u64>,
    /// Go on until the median's interval is at most this far from it, e.g. `1%`, or the budget is spent
    #[arg(long, allow_hyphen_values = true, value_name = "PERCENT", value_parser = parse_until)]
    until: Option<f64>,
    /// Calls per sample [default: as many as fill --min-repeat-ms]
    #[arg(long, value_name = "COUNT", value_parser = count("number"))]
    number: Option<u64>,
    /// Minimum duration of a sample
    #[arg(long, value_name = "MS", value_parser = real("min_repeat_ms"))]
    min_repeat_ms: Option<f64>,
    /// Calls before the first sample; 0 measures a cold start
    #[arg(long, value_name = "COUNT", value_parser = count("warmup"))]
    warmup: Option<u64>,
    /// Do not compare with the reference
    #[arg(long)]
    no_validate: bool,
    /// Clock: `auto`, `device_kernel`, `device_batch`, `device_graph`, `device_held`, `host_wall` or `host_submit`
    #[arg(long)]
    clock: Option<ClockChoice>,
    /// When to flush caches, outside the timed window: `never`, `sample` or `call`
    #[arg(long, value_name = "WHEN")]
    flush_cache: Option<FlushCache>,
    /// Flush the last-level cache before each call: the same as --flush-cache call
    #[arg(long, conflicts_with = "flush_cache")]
    cold: bool,
    /// Pause between samples
    #[arg(long, value_name = "MS", value_parser = real("cooldown_ms"))]
    cooldown_ms: Option<f64>,
    /// Time limit for one kernel on one device
    #[arg(long, visible_alias = "budget", value_name = "SECONDS", value_parser = real("budget_s"))]
    budget_s: Option<f64>,
    /// Counters to read in a run of their own, after the timing; `runtime counters` lists them. On the host they include
    /// processes that the kernel starts
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', value_parser = parse_counter, help_heading = "Beside the times")]
    counters: Option<Vec<String>>,
    /// Measure the energy of a call in a run of its own, of at most 10 s
    #[arg(long, help_heading = "Beside the times")]
    energy: bool,
}

impl SettingsArguments {
    /// The settings given on the command line.
    pub(crate) fn settings(&self) -> Settings {
        Settings {
            repeat: self.repeat,
            until_percent: self.until,
            number: self.number,
            min_repeat_ms: self.min_repeat_ms,
            warmup: self.warmup,
            validate: self.no_validate.then_some(false),
            clock: self.clock,
            flush_cache: self.flush_cache.or(self.cold.then_some(FlushCache::PerCall)),
            cooldown_ms: self.cooldown_ms,
            budget_s: self.budget_s,
            counters: self.counters.as_deref().map(whole_names),
            energy: self.energy.then_some(true),
        }
    }
}

/// A parser of numbers that the setting may be.
fn real(key: &'static str) -> impl Fn(&str) -> Result<f64, String> + Clone {
    move |text| {
        let value = parse_real(text)?;
        check_number(key, value).map(|()| value)
    }
}

/// As [`real`], of whole numbers.
fn count(key: &'static str) -> impl Fn(&str) -> Result<u64, String> + Clone {
    move |text| {
        let value = text.parse().map_err(|_| "expected a whole number")?;
        real(key)(text).map(|_| value)
    }
}

fn parse_counter(text: &str) -> Result<String, String> {
    if text.is_empty() { Err("expected the name of a counter".to_owned()) } else { Ok(text.to_owned()) }
}

/// Joins the parts of raw codes, which contain commas themselves: `cpu/event=0xc2,umask=0x01/`.
fn whole_names(parts: &[String]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for part in parts {
        match names.last_mut() {
            Some(open) if open.matches('/').count() == 1 => *open = format!("{open},{part}"),
            _ => names.push(part.clone()),
        }
    }
    names
}

/// Parses `1%` as 1. Without the sign, 0.01 and 1 would be ambiguous.
fn parse_until(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').and_then(|number| number.trim_end().parse::<f64>().ok());
    let percent = number.filter(|percent| *percent >= 0.001 && percent.is_finite());
    let percent = percent.ok_or("expected a percentage of at least 0.001%, e.g. `1%`")?;
    check_number("until_percent", percent).map(|()| percent)
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use runtime_core::evaluate::FlushCache;

    use crate::command::{Action, Command};

    #[test]
    fn settings_come_from_the_command_line() {
        let parse = |line: &[&str]| match Command::try_parse_from(line).map(|command| command.action) {
            Ok(Action::Eval(arguments)) => Ok(arguments.settings.settings()),
            Ok(_) => panic!("not eval"),
            Err(error) => Err(error.to_string()),
        };
        let settings =
            parse(&["runtime", "eval", "a.toml", "--repeat", "3", "--no-validate", "--clock", "host_wall"]);
        let settings = settings.unwrap();
        assert_eq!((settings.repeat, settings.validate, settings.number), (Some(3), Some(false), None));
        let cold =
            parse(&["runtime", "eval", "a.toml", "--until", "0.5%", "--cold", "--budget", "3"]).unwrap();
        assert_eq!((cold.until_percent, cold.budget_s), (Some(0.5), Some(3.0)));
        assert_eq!(cold.flush_cache, Some(FlushCache::PerCall));
        assert!(parse(&["runtime", "eval", "a.toml", "--cold", "--flush-cache", "never"]).is_err());
        for until in ["1", "0%", "-1%", "nan%", "inf%", "%"] {
            let error = parse(&["runtime", "eval", "a.toml", "--until", until]).unwrap_err();
            assert!(error.contains("1%"), "{until}: {error}");
        }
        for wrong in [
            ["--repeat", "0"],
            ["--repeat", "1.5"],
            ["--number", "1000000001"],
            ["--warmup", "18446744073709551615"],
            ["--until", "1001%"],
            ["--min-repeat-ms", "1e308"],
            ["--cooldown-ms", "1e308"],
            ["--budget", "1e308"],
        ] {
            let error = parse(&["runtime", "eval", "a.toml", wrong[0], wrong[1]]).unwrap_err();
            assert!(error.contains("a number from") || error.contains("whole number"), "{wrong:?}: {error}");
        }
        assert!(
            parse(&["runtime", "eval", "a.toml", "--clock", "sundial"]).unwrap_err().contains("host_wall")
        );
        assert!(parse(&["runtime", "eval", "a.toml", "--cooldown-ms", "-1"]).is_err());
        assert!(parse(&["runtime", "eval"]).is_err());
        let line = ["runtime", "eval", "a.toml", "--energy", "--counters", "a,cpu/event=1,umask=2/,b"];
        let beside = parse(&line).unwrap();
        let names = ["a", "cpu/event=1,umask=2/", "b"].map(str::to_owned);
        assert_eq!((beside.counters, beside.energy), (Some(names.to_vec()), Some(true)));
        assert!(parse(&["runtime", "eval", "a.toml", "--counters", "a,,b"]).is_err());
        assert!(parse(&["runtime", "eval", "a.toml", "--set", "n=x"]).unwrap_err().contains("NAME=NUMBER"));
        assert!(parse(&["runtime", "eval", "a.toml", "--set", "n=1e3", "--element", "f16"]).is_ok());
        assert!(parse(&["runtime", "eval", "a.toml", "--element", "f23"]).unwrap_err().contains("f23"));
    }
}
