//! Evaluation in worker processes.

use std::process::ExitCode;
use std::sync::mpsc::{self, Receiver};

use runtime_core::Result;
use runtime_core::backend::SandboxPolicy;
use runtime_harness::worker::protocol::Reply;
use runtime_harness::{Candidate, Pool, Row, Spec};

use super::{EvalArguments, Files, Resumed, Run, named_or_available};

pub(super) fn evaluate(
    arguments: &EvalArguments,
    specs: &[Spec],
    files: Files,
    sandbox: SandboxPolicy,
    resumed: &Resumed,
) -> Result<ExitCode> {
    let devices = named_or_available(&arguments.devices)?;
    let options = arguments.open.options();
    let run = Run::begin(files, specs, &devices);
    let (sender, replies) = mpsc::channel();
    let pool = arguments.pool.pool((&devices, &options), sandbox, sender)?;
    let evaluator = Evaluator { arguments, run: &run, resumed, replies };
    let candidates = specs.iter().flat_map(|spec| devices.iter().map(move |device| (spec, device.as_str())));
    let measured = match arguments.pool.workers() {
        1 => evaluator.one_at_a_time(pool, candidates),
        _ => evaluator.all_at_once(pool, candidates),
    };
    let code = run.end();
    measured.and(code)
}

/// What all candidates have in common.
struct Evaluator<'a> {
    arguments: &'a EvalArguments,
    run: &'a Run,
    resumed: &'a Resumed,
    replies: Receiver<Reply>,
}

impl<'a> Evaluator<'a> {
    /// One candidate at a time, because the devices may be one chip, and all share the host.
    fn one_at_a_time(
        &self,
        mut pool: Pool,
        candidates: impl Iterator<Item = (&'a Spec, &'a str)>,
    ) -> Result<()> {
        for (spec, device) in candidates {
            let is_wanted = match self.known(spec, device) {
                Some(row) => self.run.add(row)?,
                None => {
                    self.run.announce(&format!("{} on {device}", spec.name));
                    pool.submit(0, self.candidate(spec, device))?;
                    self.run.add(&self.run.next_row(&self.replies)?)?
                }
            };
            if !is_wanted {
                return Ok(());
            }
        }
        self.run.finish_progress();
        pool.finish();
        Ok(())
    }

    /// All candidates at once, for workers that share them; rows are written as they come, so that none is lost.
    fn all_at_once(
        &self,
        mut pool: Pool,
        candidates: impl Iterator<Item = (&'a Spec, &'a str)>,
    ) -> Result<()> {
        let (known, new): (Vec<_>, Vec<_>) =
            candidates.partition(|(spec, device)| self.known(spec, device).is_some());
        for row in known.iter().filter_map(|(spec, device)| self.known(spec, device)) {
            if !self.run.add(row)? {
                return Ok(());
            }
        }
        for (spec, device) in &new {
            pool.submit(0, self.candidate(spec, device))?;
        }
        for left in (1..=new.len()).rev() {
            self.run.announce(&format!("{} in flight", left.min(self.arguments.pool.workers())));
            if !self.run.add(&self.run.next_row(&self.replies)?)? {
                return Ok(());
            }
        }
        self.run.finish_progress();
        pool.finish();
        Ok(())
    }

    /// The row that an earlier run has measured.
    fn known(&self, spec: &Spec, device: &str) -> Option<&Row> {
        self.resumed.row(spec, &self.arguments.settings.settings().or(&spec.settings), device)
    }

    fn candidate(&self, spec: &Spec, device: &str) -> Candidate {
        Candidate {
            overrides: spec.overrides.clone(),
            settings: self.arguments.settings.settings(),
            options: self.arguments.open.options(),
            ..Candidate::new(&*spec.path, device)
        }
    }
}
