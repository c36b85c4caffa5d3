//! `runtime tune`: finds the fastest values of what the `[tune]` table of a spec varies.

mod arguments;
mod board;
mod files;
mod json;
mod text;

use std::ops::ControlFlow;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use runtime_core::Result;
use runtime_core::backend::SandboxPolicy;
use runtime_harness::tune::Event;
use runtime_harness::{Report, Spec, Tuner, describe};

pub(crate) use arguments::TuneArguments;
use board::Board;
use files::Files;

use crate::eval::named_or_available;
use crate::progress::Progress;
use crate::{interrupt, output, output_paths};

/// How long an interrupt waits for a result that is being noted.
const NOTE_TIMEOUT: Duration = Duration::from_secs(1);

pub(crate) fn tune(arguments: &TuneArguments) -> Result<ExitCode> {
    let overrides = arguments.overrides.overrides()?;
    let spec = Spec::load(&arguments.spec, &overrides)?;
    output_paths::check(&arguments.outputs(), std::slice::from_ref(&spec))?;
    arguments.pool.check(&arguments.devices)?;
    let devices = named_or_available(&arguments.devices)?;
    arguments.check(&devices)?;
    let options = arguments.open.options();
    let sandbox = arguments.pool.sandbox(SandboxPolicy::Required)?;
    let report = Report::begin(describe::options(&options), arguments.pool.sandbox_state(sandbox));
    let files = Files::open(arguments, overrides.clone(), report)?;
    let pool = arguments.pool.options_for(&devices, &options, sandbox)?;
    let tuner = Tuner {
        strategy: arguments.strategy(),
        overrides,
        settings: arguments.settings.settings(),
        options,
        spread: arguments.spread,
        budget: arguments.time_limit,
        log: arguments.log.clone(),
        ..Tuner::new(&arguments.spec, devices, pool)
    };
    let board = Arc::new(Mutex::new(Board::new(files, arguments.threshold.options(), spec)));
    finish_on_interrupt(&board);
    let mut progress = None;
    let tunings = tuner.run(|event| {
        note(&board, &mut progress, event);
        ControlFlow::Continue(())
    });
    if let Some(progress) = progress {
        progress.finish();
    }
    let complete = tunings.as_ref().is_ok_and(|tunings| tunings.iter().all(|tuning| tuning.complete));
    let mut board = board.lock();
    // An error, such as a full disk under the log, must not take away what was measured.
    let is_shown = tunings.is_ok() || board.trials() > 0;
    let finished = if is_shown { board.finish(complete) } else { Ok(()) };
    tunings.and(finished)?;
    Ok(if board.has_best() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Shows what was measured when a signal ends the process.
fn finish_on_interrupt(board: &Arc<Mutex<Board>>) {
    let board = Arc::clone(board);
    interrupt::on_interrupt(move |signal| {
        if let Some(mut board) = board.try_lock_for(NOTE_TIMEOUT) {
            // An error cannot be handled any more: the process is about to end.
            let _ = board.finish(false);
            output::print_stderr(&format!("interrupted by {signal} after {} candidates", board.trials()));
            // The lock is never released, so nothing further is noted.
            std::mem::forget(board);
        }
    });
}

fn note(board: &Mutex<Board>, progress: &mut Option<Progress>, event: Event<'_>) {
    if let Event::Begin { evaluations, stopper, .. } = event {
        interrupt::stop_workers(stopper.clone());
        *progress = Some(Progress::new(evaluations));
    }
    let mut board = board.lock();
    if let Some(progress) = progress {
        match event {
            Event::Start { name, device } => {
                progress.set_message(&format!("{}{name} on {device}", board.summary()));
            }
            Event::Trial { .. } | Event::Repeated => progress.advance(),
            Event::Note(text) => progress.suspend(|| output::print_stderr(text)),
            Event::Begin { .. } | Event::Logged { .. } => {}
        }
    }
    board.note(event);
}
