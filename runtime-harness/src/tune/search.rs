//! A running search: assigns candidates to devices, and records their results.

use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Instant;

use runtime_core::{Error, ErrorKind, Result};
use serde_json::Value;

use super::contest::{Contest, Entry};
use super::device_group::{difference, may_share_chip};
use super::event::Event;
use super::fingerprint::Contents;
use super::log::Log;
use super::trial::Trial;
use super::tuner::Tuner;
use crate::candidate::Candidate;
use crate::pool::Pool;
use crate::row::{Outcome, Phase, Row};
use crate::spec::{Overrides, Spec};
use crate::worker::protocol::Reply;

/// A running search.
pub(super) struct Search<'a> {
    pub(super) tuner: &'a Tuner,
    pub(super) spec: Spec,
    pub(super) contents: Contents,
    pub(super) default_fingerprint: String,
    pub(super) contests: Vec<Contest>,
    /// The description of each device of each contest, once it is known.
    pub(super) infos: Vec<Vec<Option<Value>>>,
    pub(super) pool: Pool,
    pub(super) replies: Receiver<Reply>,
    pub(super) log: Option<Log>,
    pub(super) deadline: Instant,
    pub(super) requests: u64,
    pub(super) on_event: &'a mut dyn FnMut(Event<'_>) -> ControlFlow<()>,
}

impl Search<'_> {
    /// Evaluates everything. Breaks if the time is over or the caller says so.
    pub(super) fn run(&mut self) -> Result<ControlFlow<()>> {
        // The spec's own values first, one device at a time, because it is not known yet which devices share a chip.
        for contest in 0..self.contests.len() {
            for device in 0..self.contests[contest].devices.len() {
                if self.evaluate(&[(contest, device)])?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
        if self.tuner.spread {
            self.check_spread()?;
        }
        for batch in self.batches() {
            while self.begin_rounds(&batch) {
                let pairs = batch.iter().flat_map(|&contest| {
                    (0..self.contests[contest].devices.len()).map(move |device| (contest, device))
                });
                let pairs: Vec<(usize, usize)> = pairs.collect();
                if self.evaluate(&pairs)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Begins the next round of each contest; returns `false` if all are over.
    fn begin_rounds(&mut self, batch: &[usize]) -> bool {
        let mut has_begun = false;
        for &contest in batch {
            has_begun |= self.contests[contest].begin_round();
        }
        has_begun
    }

    /// Contests whose devices share no chip, so that they can run at the same time.
    fn batches(&self) -> Vec<Vec<usize>> {
        let mut batches: Vec<Vec<usize>> = Vec::new();
        for contest in 0..self.contests.len() {
            let is_apart =
                |batch: &&mut Vec<usize>| batch.iter().all(|&other| !self.conflict(contest, other));
            match batches.iter_mut().find(is_apart) {
                Some(batch) => batch.push(contest),
                None => batches.push(vec![contest]),
            }
        }
        batches
    }

    fn conflict(&self, one: usize, other: usize) -> bool {
        let infos =
            |contest: usize| self.infos[contest].iter().map(|info| info.as_ref().unwrap_or(&Value::Null));
        infos(one).any(|one| infos(other).any(|other| may_share_chip(one, other)))
    }

    /// Rejects devices of unlike models, and devices that share a chip: candidates cannot be spread over them.
    fn check_spread(&self) -> Result<()> {
        let names = &self.contests[0].devices;
        let infos: Vec<&Value> =
            self.infos[0].iter().map(|info| info.as_ref().unwrap_or(&Value::Null)).collect();
        for (at, info) in infos.iter().enumerate() {
            for (other, name) in infos[..at].iter().zip(names) {
                let refused = |why: &str| {
                    Err(Error::invalid(format!(
                        "candidates cannot be spread over {name} and {}: {why}",
                        names[at]
                    )))
                };
                if let Some(difference) = difference(other, info) {
                    return refused(&difference);
                }
                if may_share_chip(other, info) {
                    return refused("they may be one chip, and would disturb each other");
                }
            }
        }
        Ok(())
    }

    /// Evaluates what is pending on these devices, all at the same time.
    fn evaluate(&mut self, pairs: &[(usize, usize)]) -> Result<ControlFlow<()>> {
        loop {
            for &(contest, device) in pairs {
                while self.contests[contest].running[device].len() < self.tuner.pool.workers.max(1) {
                    let Some(entry) = self.contests[contest].next(device) else { break };
                    if self.start(contest, device, entry)?.is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                }
            }
            if pairs.iter().all(|&(contest, device)| self.contests[contest].running[device].is_empty()) {
                return Ok(ControlFlow::Continue(()));
            }
            let left = self.deadline.saturating_duration_since(Instant::now());
            let reply = match self.replies.recv_timeout(left) {
                Ok(reply) => reply,
                Err(RecvTimeoutError::Timeout) => return Ok(ControlFlow::Break(())),
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Error::new(ErrorKind::Internal, "the pool of workers has ended"));
                }
            };
            if self.receive(reply)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
    }

    /// Submits a candidate, unless its result is known.
    fn start(&mut self, contest: usize, device: usize, entry: Entry) -> Result<ControlFlow<()>> {
        if Instant::now() >= self.deadline {
            return Ok(ControlFlow::Break(()));
        }
        let name = self.contests[contest].devices[device].clone();
        let overrides = self.tuner.overrides.with(&entry.overrides);
        let spec = match Spec::load(&self.tuner.spec, &overrides) {
            Ok(spec) => spec,
            Err(error) => {
                let row = self.refused(&entry, &overrides, &name, error.to_string());
                return Ok(self.record(contest, device, entry, row, false));
            }
        };
        let fingerprint = self.contents.fingerprint(&spec);
        if !entry.is_default && fingerprint == self.default_fingerprint {
            return Ok((self.on_event)(Event::Repeated));
        }
        let settings = entry.settings.effective();
        // Devices that candidates are spread over are equal, so that it does not matter which of them measured it.
        let measured_on = match entry.device {
            Some(_) => std::slice::from_ref(&name),
            None => &self.contests[contest].devices[..],
        };
        let log = self.log.as_mut();
        let logged =
            log.and_then(|log| measured_on.iter().find_map(|name| log.take(&fingerprint, &settings, name)));
        if let Some(row) = logged {
            let info = &mut self.infos[contest][device];
            *info = info.take().or_else(|| row.device_info.clone());
            return Ok(self.record(contest, device, entry, row, true));
        }
        let started = (self.on_event)(Event::Start { name: &spec.name, device: &name });
        self.requests += 1;
        let candidate = Candidate {
            overrides,
            settings: entry.settings.clone(),
            options: self.tuner.options.clone(),
            ..Candidate::new(&*self.tuner.spec, name)
        };
        self.pool.submit(self.requests, candidate)?;
        let entry = Entry { fingerprint: Some(fingerprint), ..entry };
        self.contests[contest].running[device].push((self.requests, entry));
        Ok(started)
    }

    /// The row of a candidate that is no valid spec, for example because its geometry is not whole.
    fn refused(&self, entry: &Entry, overrides: &Overrides, device: &str, reason: String) -> Row {
        let mut row = Row::unmeasured(&self.spec, &entry.settings, device, Outcome::Skipped { reason });
        row.kernel.name += &entry.overrides.describe();
        row.parameters = overrides.parameters();
        row
    }

    fn receive(&mut self, reply: Reply) -> Result<ControlFlow<()>> {
        if let Some(note) = reply.note() {
            return Ok((self.on_event)(Event::Note(&note)));
        }
        let Some((contest, device)) = reply.id().and_then(|id| self.find_running(id)) else {
            return Ok(ControlFlow::Continue(()));
        };
        match reply {
            Reply::Row { id, row, .. } => {
                let Some(entry) = self.contests[contest].take(device, id) else {
                    return Ok(ControlFlow::Continue(()));
                };
                self.note_device(contest, device, row.device_info.as_ref())?;
                if let (Some(log), Some(fingerprint)) = (&mut self.log, &entry.fingerprint)
                    && is_verdict(&row.outcome)
                {
                    log.add(fingerprint, &row)?;
                }
                Ok(self.record(contest, device, entry, *row, false))
            }
            Reply::Device { device_info, .. } => {
                self.note_device(contest, device, device_info.as_ref())?;
                Ok(ControlFlow::Continue(()))
            }
            Reply::Error { error, .. } => Err(Error::invalid(error)),
            _ => Ok(ControlFlow::Continue(())),
        }
    }

    fn find_running(&self, request: u64) -> Option<(usize, usize)> {
        let is_it = |running: &Vec<(u64, Entry)>| running.iter().any(|(id, _)| *id == request);
        let find = |(at, contest): (usize, &Contest)| Some((at, contest.running.iter().position(is_it)?));
        self.contests.iter().enumerate().find_map(find)
    }

    /// Notes the description of a device, and refuses to mix its results with those of another one in the log.
    fn note_device(&mut self, contest: usize, device: usize, info: Option<&Value>) -> Result<()> {
        let Some(info) = info else { return Ok(()) };
        let name = &self.contests[contest].devices[device];
        if let Some(log) = &self.log
            && let Some(logged) = log.device_info(name)
            && let Some(difference) = difference(logged, info)
        {
            return Err(Error::invalid(format!(
                "{}: {name} was another device: {difference}; give another file",
                log.path().display()
            )));
        }
        if let Some(known) = &self.infos[contest][device]
            && let Some(difference) = difference(known, info)
        {
            return Err(Error::invalid(format!(
                "the workers have different devices called {name}: {difference}; tune one kind of device at a time"
            )));
        }
        self.infos[contest][device] = Some(info.clone());
        Ok(())
    }

    fn record(
        &mut self,
        contest: usize,
        device: usize,
        entry: Entry,
        row: Row,
        is_logged: bool,
    ) -> ControlFlow<()> {
        let trial = Trial {
            overrides: entry.overrides,
            is_default: entry.is_default,
            rung: entry.rung,
            is_logged,
            row,
        };
        let event = (self.on_event)(Event::Trial { tuning: contest, trial: &trial });
        // The spec's own values are measured on every device, but compared with on the first.
        if !trial.is_default || device == 0 {
            self.contests[contest].trials.push(trial);
        }
        event
    }
}

/// Whether an outcome says something about the candidate, not about its device or its worker.
const fn is_verdict(outcome: &Outcome) -> bool {
    !matches!(
        outcome,
        Outcome::Skipped { .. }
            | Outcome::DeviceLost
            | Outcome::LaunchFailed { .. }
            | Outcome::Timeout { phase: Phase::Prepare }
            | Outcome::OutOfMemory
    )
}
