//! The command that repeats the evaluation of a candidate.

use runtime_core::OptionValue;

use super::PoolOptions;
use crate::candidate::Candidate;
use crate::row::{Outcome, Row};
use crate::settings::Settings;
use crate::spec::{Overrides, SpecSource};

/// The option of the seed, which is another one for each row.
const SEED: &str = "--input-seed";

/// The command that repeats a row with the same inputs, as a shell takes it; `None` if it is not rejected, or no command has all options
/// that it needs.
pub(super) fn command(candidate: &Candidate, options: &PoolOptions, row: &Row) -> Option<String> {
    let is_rejected = row.status.is_bad() && !matches!(row.outcome, Outcome::CompileFailed { .. });
    let is_told = is_rejected && (row.is_measured() || row.judged.is_some());
    let SpecSource::File(spec) = &candidate.spec else { return None };
    if !is_told || candidate.chain.is_some() {
        return None;
    }
    let mut words = vec!["runtime".to_owned(), "eval".to_owned(), spec.to_str()?.to_owned()];
    let mut add = |option: &str, value: String| words.extend([option.to_owned(), value]);
    add("--device", candidate.device.clone());
    candidate.options.iter().for_each(|(key, value)| add("--option", format!("{key}={value}")));
    overrides(&candidate.overrides)?.into_iter().for_each(|set| add("--set", set));
    candidate.overrides.element.iter().for_each(|element| add("--element", element.to_string()));
    add_settings(&candidate.settings, &mut words);
    words.push("--isolate".to_owned());
    if let Some(launch) = &options.launch {
        words.extend(["--launch".to_owned(), launch.text()?]);
    }
    let mut arguments = options.arguments.iter().skip(1);
    while let Some(argument) = arguments.next() {
        if argument == SEED {
            arguments.next();
        } else {
            words.push(argument.to_str()?.to_owned());
        }
    }
    if let Some(seed) = row.judged.as_ref().and_then(|judged| judged.input_seed) {
        words.extend([SEED.to_owned(), seed.to_string()]);
    }
    shlex::try_join(words.iter().map(String::as_str)).ok()
}

/// The values of `--set`; `None` if it would take one for something else.
fn overrides(overrides: &Overrides) -> Option<Vec<String>> {
    let mut all: Vec<String> =
        overrides.values.iter().map(|(name, value)| format!("{name}={value}")).collect();
    for (key, values) in &overrides.options {
        let is_taken_as_it_is = |value: &OptionValue| match value {
            OptionValue::Text(text) => text.parse::<f64>().is_err() && text.parse::<bool>().is_err(),
            _ => true,
        };
        if values.is_empty() || !values.iter().all(is_taken_as_it_is) {
            return None;
        }
        all.extend(values.iter().map(|value| format!("options.{key}={value}")));
    }
    for (key, extents) in &overrides.launch {
        let extents: Vec<String> = extents.iter().map(ToString::to_string).collect();
        if extents.iter().any(|extent| extent.contains(',')) {
            return None;
        }
        all.push(format!("launch.{key}={}", extents.join(",")));
    }
    Some(all)
}

/// Adds the options of settings that were given.
fn add_settings(settings: &Settings, words: &mut Vec<String>) {
    fn text(value: Option<&impl ToString>) -> Option<String> {
        value.map(ToString::to_string)
    }
    let values = [
        ("--repeat", text(settings.repeat.as_ref())),
        ("--until", settings.until_percent.filter(|percent| *percent > 0.0).map(|it| format!("{it}%"))),
        ("--number", text(settings.number.as_ref())),
        ("--min-repeat-ms", text(settings.min_repeat_ms.as_ref())),
        ("--warmup", text(settings.warmup.as_ref())),
        ("--clock", text(settings.clock.as_ref())),
        ("--flush-cache", text(settings.flush_cache.as_ref())),
        ("--cooldown-ms", text(settings.cooldown_ms.as_ref())),
        ("--budget-s", text(settings.budget_s.as_ref())),
        ("--counters", settings.counters.as_ref().map(|names| names.join(","))),
    ];
    let given = values.into_iter().filter_map(|(option, value)| Some([option.to_owned(), value?]));
    words.extend(given.flatten());
    let flags =
        [("--no-validate", settings.validate == Some(false)), ("--energy", settings.measures_energy())];
    words.extend(flags.iter().filter(|(_, is_given)| *is_given).map(|(flag, _)| (*flag).to_owned()));
}

#[cfg(test)]
mod tests {
    use runtime_core::evaluate::{Clock, FlushCache};

    use super::*;
    use crate::row_fixture::row;
    use crate::spec::{Extent, Number};

    fn candidate() -> Candidate {
        Candidate::new("it's a spec.toml", "host:0")
    }

    fn rejected() -> Row {
        row("k", &[1.0], |row| {
            row["status"] = "wrong".into();
            row["judged"] = serde_json::json!({ "sandboxed": true, "inputs": "fresh", "input_seed": 7 });
        })
    }

    #[test]
    fn a_shell_takes_the_command_apart_as_it_was_put_together() {
        let mut candidate = candidate();
        candidate.overrides.values.push(("n".to_owned(), Number::Integer(3)));
        candidate.settings.until_percent = Some(0.5);
        candidate.settings.number = Some(10);
        candidate.settings.clock = Some(Clock::HostWall.into());
        candidate.settings.flush_cache = Some(FlushCache::PerCall);
        candidate.settings.validate = Some(false);
        candidate.options.push("threads", 2_i64);
        let mut options = PoolOptions::new("runtime");
        options.arguments.extend(["--sandbox", "required", "--input-seed", "3"].map(Into::into));
        options.launch = Some("sh -c 'cd /a; {worker}'".parse().unwrap());
        let command = command(&candidate, &options, &rejected()).unwrap();
        let words = "runtime eval|it's a spec.toml|--device host:0 --option threads=2 --set n=3 --until 0.5% --number 10 \
                     --clock host_wall --flush-cache call --no-validate --isolate --launch|sh -c 'cd /a; {worker}'|\
                     --sandbox required --input-seed 7";
        let words = words.split('|').enumerate();
        let words: Vec<String> = words
            .flat_map(|(at, part)| match at % 2 {
                0 => part.split_whitespace().map(str::to_owned).collect(),
                _ => vec![part.to_owned()],
            })
            .collect();
        assert_eq!(shlex::split(&command).unwrap(), words, "{command}");
    }

    #[test]
    fn rows_that_are_right_or_cannot_be_repeated_have_no_command() {
        let options = PoolOptions::new("runtime");
        assert!(command(&candidate(), &options, &row("k", &[1.0], |_| {})).is_none());
        assert!(command(&candidate(), &options, &rejected()).is_some());
        let mut tuned = candidate();
        tuned.overrides.options.push(("flags".to_owned(), vec!["-O1 -g".into(), 3_i64.into()]));
        let extents = vec![Extent::Number(4), Extent::Expression("n / 2".to_owned())];
        tuned.overrides.launch.insert("groups".to_owned(), extents);
        let repeated = shlex::split(&command(&tuned, &options, &rejected()).unwrap()).unwrap();
        let set =
            ["--set", "options.flags=-O1 -g", "--set", "options.flags=3", "--set", "launch.groups=4,n / 2"];
        assert!(repeated.windows(set.len()).any(|words| words == set), "{repeated:?}");
        // It would be a number.
        tuned.overrides.options.push(("name".to_owned(), vec!["3".into()]));
        assert!(command(&tuned, &options, &rejected()).is_none());
    }
}
