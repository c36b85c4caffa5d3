//! The report of a run, for the vendor of a backend: passed and failed cases, what was not tested and why, and how many
//! cases each missing capability would enable.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Arc, Mutex, PoisonError};

use runtime_core::DeviceKind;
use runtime_core::device::Capabilities;
use serde_json::{Value, json};

use crate::case::{Failure, MissingRequirement};
use crate::context::Context;
use crate::plan::{Absent, Plan};
use crate::selection::Selection;
use crate::topics::TOPICS;

/// The outcome of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Passed,
    Failed(String),
    /// The device does not support this, as the case found out or an exception says.
    Unsupported(String),
    /// The device does not meet requirements of the case.
    Missing(Vec<MissingRequirement>),
    /// The reason of the exception, and the failure.
    FailedAsExpected(String, String),
}

/// Collects the outcomes of concurrent trials.
#[derive(Clone, Debug, Default)]
pub(crate) struct Records(Arc<Mutex<Vec<Record>>>);

#[derive(Clone, Debug)]
struct Record {
    device: String,
    case: String,
    outcome: Outcome,
}

impl Records {
    pub(crate) fn push(&self, device: &str, case: &str, outcome: Outcome) {
        let record = Record { device: device.to_owned(), case: case.to_owned(), outcome };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(record);
    }

    fn of(&self, device: &str) -> Vec<Record> {
        let records = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut records: Vec<_> = records.iter().filter(|record| record.device == device).cloned().collect();
        let order = |record: &Record| {
            let topic = record.case.split("::").next().unwrap_or_default();
            (TOPICS.iter().position(|(name, _)| *name == topic), record.case.clone())
        };
        records.sort_by_key(order);
        records
    }
}

/// The report on a run.
#[derive(Debug)]
pub(crate) struct Report {
    devices: Vec<DeviceReport>,
    absent: Vec<Absent>,
}

#[derive(Debug)]
struct DeviceReport {
    name: String,
    target: String,
    description: String,
    capabilities: Capabilities,
    records: Vec<Record>,
    launches: u64,
    /// Why there were no launches, although cases need them.
    no_launches: Option<NoLaunches>,
}

/// Why a device launched no kernel.
#[derive(Debug)]
struct NoLaunches {
    reason: String,
    /// A tool is not installed, and the target is not required: not a failure.
    excused: bool,
}

impl Report {
    pub(crate) fn new(plan: &Plan, records: &Records) -> Self {
        let device = |context: &Arc<Context>| DeviceReport::new(context, records.of(context.name()));
        Self { devices: plan.devices.iter().map(device).collect(), absent: plan.absent.clone() }
    }

    /// As text, a paragraph per device.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        for device in self.devices.iter().filter(|device| !device.records.is_empty()) {
            device.write(&mut text);
        }
        if !self.absent.is_empty() {
            line(&mut text, 0, "missing");
            for absent in &self.absent {
                let verdict = if absent.excused { "ignored" } else { "a failure" };
                line(&mut text, 2, &format!("{absent} ({verdict})"));
            }
        }
        text
    }

    /// Devices that launched no kernel: a failure.
    pub(crate) fn without_launches(&self, selection: &Selection) -> Vec<String> {
        let no_launches = |device: &DeviceReport| {
            let excused =
                |no_launches: &&NoLaunches| no_launches.excused && !selection.requires(&device.target);
            let no_launches = device.no_launches.as_ref().filter(|no_launches| !excused(no_launches))?;
            Some(format!("{}: {}", device.name, no_launches.text()))
        };
        self.devices.iter().filter_map(no_launches).collect()
    }

    /// As one JSON document.
    pub(crate) fn json(&self) -> Value {
        let absent = |absent: &Absent| json!({"name": absent.name, "reason": absent.reason, "excused": absent.excused});
        json!({
            "version": 1,
            "devices": self.devices.iter().map(DeviceReport::json).collect::<Vec<_>>(),
            "absent": self.absent.iter().map(absent).collect::<Vec<_>>(),
        })
    }
}

impl DeviceReport {
    fn new(context: &Context, records: Vec<Record>) -> Self {
        let info = context.info();
        let launches = context.kernel_provider().launches();
        let no_launches = (launches == 0 && records.iter().any(Record::launches))
            .then(|| NoLaunches::new(context))
            .flatten();
        Self {
            name: context.name().to_owned(),
            target: context.target().name.clone(),
            description: format!("{}, {:?}", info.name, info.kind).to_lowercase(),
            capabilities: info.capabilities,
            records,
            launches,
            no_launches,
        }
    }

    fn select<'a, T>(&'a self, choose: impl Fn(&'a Outcome) -> Option<T>) -> Vec<(&'a str, T)> {
        self.records
            .iter()
            .filter_map(|record| Some((record.case.as_str(), choose(&record.outcome)?)))
            .collect()
    }

    fn passed(&self) -> Vec<&str> {
        let passed = self.select(|outcome| (*outcome == Outcome::Passed).then_some(()));
        passed.into_iter().map(|(case, ())| case).collect()
    }

    fn failed(&self) -> Vec<(&str, &str)> {
        self.select(|outcome| match outcome {
            Outcome::Failed(text) => Some(text.as_str()),
            _ => None,
        })
    }

    fn expected(&self) -> Vec<(&str, (&str, &str))> {
        self.select(|outcome| match outcome {
            Outcome::FailedAsExpected(reason, text) => Some((reason.as_str(), text.as_str())),
            _ => None,
        })
    }

    fn unsupported(&self) -> Vec<(&str, &str)> {
        self.select(|outcome| match outcome {
            Outcome::Unsupported(reason) => Some(reason.as_str()),
            _ => None,
        })
    }

    /// The cases that the device does not qualify for.
    fn missing(&self) -> Vec<(&str, &Vec<MissingRequirement>)> {
        self.select(|outcome| match outcome {
            Outcome::Missing(missing) => Some(missing),
            _ => None,
        })
    }

    /// For each missing capability, the number of cases that require only it.
    fn enabled_cases(&self) -> Vec<(&'static str, usize)> {
        let missing = self.missing();
        let opens = |bit: u64| {
            missing
                .iter()
                .filter(|(_, missing)| missing.as_slice() == [MissingRequirement::Capability(bit)])
                .count()
        };
        let lacked = Capabilities::NAMES.iter().filter(|(bit, _)| !self.capabilities.has(*bit));
        lacked.map(|(bit, name)| (*name, opens(*bit))).collect()
    }

    /// The missing capabilities, those that would enable most cases first; the others in one line.
    fn lacks(&self) -> Vec<String> {
        let (mut opening, others): (Vec<_>, Vec<_>) =
            self.enabled_cases().into_iter().partition(|(_, cases)| *cases > 0);
        opening.sort_by_key(|(_, cases)| std::cmp::Reverse(*cases));
        let mut lines: Vec<_> = opening
            .into_iter()
            .map(|(name, cases)| {
                format!("{name}: would enable {cases} case{}", if cases == 1 { "" } else { "s" })
            })
            .collect();
        if !others.is_empty() {
            let names: Vec<_> = others.into_iter().map(|(name, _)| name).collect();
            lines.push(format!("no case requires only one of these: {}", names.join(", ")));
        }
        lines
    }

    fn write(&self, text: &mut String) {
        let (failed, expected) = (self.failed(), self.expected());
        let (missing, unsupported) = (self.missing(), self.unsupported());
        line(
            text,
            0,
            &format!(
                "{} ({}): {} passed, {} failed, {} failed as expected, {} not tested; {} launch{}",
                self.name,
                self.description,
                self.passed().len(),
                failed.len(),
                expected.len(),
                missing.len() + unsupported.len(),
                self.launches,
                if self.launches == 1 { "" } else { "es" },
            ),
        );
        if let Some(no_launches) = &self.no_launches {
            line(text, 2, &no_launches.text());
        }
        section(text, "failed", failed.iter().map(|(case, why)| format!("{case}: {}", first_line(why))));
        let expected =
            expected.iter().map(|(case, (reason, why))| format!("{case}: {reason} ({})", first_line(why)));
        section(text, "failed as expected", expected);
        section(
            text,
            "unsupported",
            unsupported.iter().map(|(case, why)| format!("{case}: {}", first_line(why))),
        );
        section(text, "not tested: the device lacks", grouped(&missing));
        section(text, "capabilities that the device does not declare", self.lacks());
        text.push('\n');
    }

    fn json(&self) -> Value {
        let pairs = |list: Vec<(&str, &str)>, what: &str| -> Vec<Value> {
            list.into_iter().map(|(case, why)| json!({"case": case, what: why})).collect()
        };
        let expected = self.expected().into_iter();
        let missing = self.missing().into_iter().map(|(case, missing)| {
            json!({"case": case, "lacks": missing.iter().map(ToString::to_string).collect::<Vec<_>>()})
        });
        let lacks =
            self.enabled_cases().into_iter().map(|(name, cases)| json!({"name": name, "opens_cases": cases}));
        json!({
            "device": self.name,
            "description": self.description,
            "launches": self.launches,
            "passed": self.passed(),
            "failed": pairs(self.failed(), "message"),
            "failed_as_expected": expected
                .map(|(case, (reason, message))| json!({"case": case, "reason": reason, "message": message}))
                .collect::<Vec<_>>(),
            "unsupported": pairs(self.unsupported(), "reason"),
            "not_tested": missing.collect::<Vec<_>>(),
            "capabilities": {"has": self.capabilities.names(), "lacks": lacks.collect::<Vec<_>>()},
        })
    }
}

impl Record {
    /// Whether the case is one that launches kernels.
    fn launches(&self) -> bool {
        let (topic, name) = self.case.split_once("::").unwrap_or_default();
        let cases = TOPICS.iter().find(|(known, _)| *known == topic).map_or(&[][..], |(_, cases)| cases);
        cases.iter().any(|case| case.name == name && case.launches())
    }
}

impl NoLaunches {
    /// Why a device launched nothing; `None` for a kind of device without launches.
    fn new(context: &Context) -> Option<Self> {
        if context.info().kind == DeviceKind::Embedded {
            return None;
        }
        let no_launches = |reason: String, excused| Some(Self { reason, excused });
        match (context.fixture().kernels(), context.fixture().module()) {
            (Err(failure), _) => no_launches(format!("{failure}; provide some with `--kernels DIR`"), false),
            // No compiler is installed.
            (_, Err(Failure::Unsupported(reason))) => no_launches(reason, true),
            (_, Err(failure)) => no_launches(failure.to_string(), false),
            _ => no_launches("no case that launches one was run".to_owned(), false),
        }
    }

    fn text(&self) -> String {
        format!("0 LAUNCHES: no kernel was tested on this device: {}", first_line(&self.reason))
    }
}

/// One line per set of missing requirements, most cases first.
fn grouped(missing: &[(&str, &Vec<MissingRequirement>)]) -> Vec<String> {
    let mut groups: BTreeMap<Vec<MissingRequirement>, usize> = BTreeMap::new();
    for (_, missing) in missing {
        // Options of simulated devices are not listed one by one.
        let simulated = missing.iter().any(|missing| matches!(missing, MissingRequirement::Option(_)));
        let group = if simulated { vec![MissingRequirement::Option("")] } else { (*missing).clone() };
        *groups.entry(group).or_default() += 1;
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(_, cases)| std::cmp::Reverse(*cases));
    groups
        .into_iter()
        .map(|(missing, cases)| {
            let plural = if cases == 1 { "" } else { "s" };
            let what = match missing.as_slice() {
                [MissingRequirement::Option("")] => {
                    "options that inject failures, as the null backend has".to_owned()
                }
                missing => missing.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
            };
            format!("{cases:4} case{plural}: {what}")
        })
        .collect()
}

fn section(text: &mut String, title: &str, lines: impl IntoIterator<Item = String>) {
    let mut lines = lines.into_iter().peekable();
    if lines.peek().is_some() {
        line(text, 2, title);
        lines.for_each(|content| line(text, 4, &content));
    }
}

fn line(text: &mut String, indent: usize, content: &str) {
    // Writing to a `String` cannot fail.
    let _ = writeln!(text, "{:indent$}{content}", "");
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use runtime_core::abi;

    use super::*;

    fn report(outcomes: &[(&str, Outcome)]) -> DeviceReport {
        let records = Records::default();
        for (case, outcome) in outcomes {
            records.push("x:0", case, outcome.clone());
        }
        records.push("y:0", "queues::other", Outcome::Passed);
        let capabilities = Capabilities(!(abi::CAP_IMPORT_HOST | abi::CAP_RANGE));
        DeviceReport {
            name: "x:0".into(),
            target: "x".into(),
            description: "a device".into(),
            capabilities,
            records: records.of("x:0"),
            launches: 0,
            no_launches: None,
        }
    }

    #[test]
    fn a_capability_enables_the_cases_that_require_nothing_else() {
        let import = MissingRequirement::Capability(abi::CAP_IMPORT_HOST);
        let report = report(&[
            ("memory::a", Outcome::Missing(vec![import.clone()])),
            ("memory::b", Outcome::Missing(vec![import, MissingRequirement::HostVisible])),
            ("queues::c", Outcome::Passed),
        ]);
        assert_eq!(report.enabled_cases(), [("import_host", 1), ("range", 0)]);
        assert_eq!(report.passed(), ["queues::c"], "not of another device");
    }

    #[test]
    fn the_text_lists_failures_and_missing_requirements() {
        let report = report(&[
            ("queues::c", Outcome::Failed("it hangs\nfor ever".into())),
            ("queues::d", Outcome::FailedAsExpected("issue 7".into(), "boom".into())),
            ("faults::a", Outcome::Missing(vec![MissingRequirement::Option("fail_call")])),
            ("lost::b", Outcome::Missing(vec![MissingRequirement::Option("lose_after")])),
        ]);
        let mut text = String::new();
        report.write(&mut text);
        for part in [
            "x:0 (a device): 0 passed, 1 failed, 1 failed as expected, 2 not tested; 0 launches\n",
            "    queues::c: it hangs\n",
            "    queues::d: issue 7 (boom)\n",
            "   2 cases: options that inject failures",
            "    no case requires only one of these: import_host, range\n",
        ] {
            assert!(text.contains(part), "{part:?} is not in {text}");
        }
        assert_eq!(report.json()["not_tested"][1]["lacks"][0], "device option \"lose_after\"");
    }
}
