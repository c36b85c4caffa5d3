//! Evaluation in worker processes.

use std::process::ExitCode;
use std::sync::mpsc::{self, Receiver};

use runtime_core::{Error, ErrorKind, Result};
use runtime_harness::worker::protocol::Reply;
use runtime_harness::{Candidate, Pool, Row, Spec};

use super::{Files, Run, available_devices};
use crate::arguments::EvalArguments;
use crate::registry;

pub(super) fn evaluate(arguments: &EvalArguments, specs: &[Spec], files: Files) -> Result<ExitCode> {
    let devices = match &arguments.devices[..] {
        [] => available_devices(&registry::runtime())?,
        names => names.to_vec(),
    };
    let run = Run::begin(files, specs, &devices, &arguments.open.options());
    let measured = measure(arguments, specs, &devices, &run);
    let code = run.end();
    measured.and(code)
}

/// Evaluates one candidate at a time, because the devices may be one chip, and all share the host.
fn measure(arguments: &EvalArguments, specs: &[Spec], devices: &[String], run: &Run) -> Result<()> {
    let (sender, replies) = mpsc::channel();
    let mut pool = Pool::new(arguments.pool.options()?, sender);
    for spec in specs {
        for device in devices {
            run.announce(format!("{} on {device}", spec.name));
            pool.submit(0, candidate(arguments, spec, device)?)?;
            if !run.add(&next_row(&replies)?)? {
                return Ok(());
            }
        }
    }
    run.finish_progress();
    pool.finish();
    Ok(())
}

fn candidate(arguments: &EvalArguments, spec: &Spec, device: &str) -> Result<Candidate> {
    Ok(Candidate {
        spec: spec.path.clone(),
        device: device.to_owned(),
        overrides: arguments.overrides.overrides()?,
        settings: arguments.settings.settings(),
        options: arguments.open.options(),
    })
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
