//! Evaluation in worker processes.

use std::process::ExitCode;
use std::sync::mpsc::{self, Receiver};

use runtime_core::{Error, ErrorKind, Result};
use runtime_harness::worker::protocol::Reply;
use runtime_harness::{Candidate, Pool, Row, Spec};

use super::{Files, Resumed, Run, available_devices};
use crate::arguments::EvalArguments;
use crate::registry;

pub(super) fn evaluate(
    arguments: &EvalArguments,
    specs: &[Spec],
    files: Files,
    resumed: &Resumed,
) -> Result<ExitCode> {
    let devices = match &arguments.devices[..] {
        [] => available_devices(&registry::runtime())?,
        names => names.to_vec(),
    };
    let run = Run::begin(files, specs, &devices, &arguments.open.options());
    let measured = measure(arguments, (specs, &devices), &run, resumed);
    let code = run.end();
    measured.and(code)
}

/// Evaluates one candidate at a time, because the devices may be one chip, and all share the host.
fn measure(
    arguments: &EvalArguments,
    (specs, devices): (&[Spec], &[String]),
    run: &Run,
    resumed: &Resumed,
) -> Result<()> {
    let (sender, replies) = mpsc::channel();
    let mut pool = Pool::new(arguments.pool.options()?, sender);
    for spec in specs {
        for device in devices {
            let settings = arguments.settings.settings().or(spec.settings);
            let row = match resumed.row(spec, &settings, device) {
                Some(row) => row.clone(),
                None => {
                    run.announce(format!("{} on {device}", spec.name));
                    pool.submit(0, candidate(arguments, spec, device))?;
                    next_row(&replies)?
                }
            };
            if !run.add(&row)? {
                return Ok(());
            }
        }
    }
    run.finish_progress();
    pool.finish();
    Ok(())
}

fn candidate(arguments: &EvalArguments, spec: &Spec, device: &str) -> Candidate {
    Candidate {
        spec: spec.path.clone(),
        device: device.to_owned(),
        overrides: spec.overrides.clone(),
        settings: arguments.settings.settings(),
        options: arguments.open.options(),
    }
}

fn next_row(replies: &Receiver<Reply>) -> Result<Row> {
    for reply in replies {
        match reply {
            Reply::Row { row, .. } => return Ok(*row),
            Reply::Error { error, .. } => return Err(Error::invalid(error)),
            _ => {}
        }
    }
    Err(Error::new(ErrorKind::Internal, "the pool of workers has ended"))
}
