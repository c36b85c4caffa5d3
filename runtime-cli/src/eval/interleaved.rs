//! `--interleave`: all kernels take turns.

use runtime_core::Result;
use runtime_harness::{Contender, DeviceUnderTest, Job, Row, Spec, evaluate_interleaved};

use super::in_process::Evaluator;

impl Evaluator<'_> {
    /// Evaluates all specs on all devices in turns. Returns `false` if no report can be written any more.
    pub(super) fn evaluate_interleaved(
        &self,
        specs: Vec<Spec>,
        devices: &mut [DeviceUnderTest],
    ) -> Result<bool> {
        let jobs: Vec<Job> = specs.into_iter().map(|spec| self.interleaved_job(spec, devices)).collect();
        let names: Vec<String> = devices.iter().map(|device| device.name.clone()).collect();
        let pairs = jobs.iter().flat_map(|job| (0..names.len()).map(move |device| (job, device)));
        let pairs: Vec<(Contender<'_>, Option<&Row>)> = pairs
            .map(|(job, device)| {
                let settings = self.arguments.settings.settings().or(&job.spec().settings);
                let known = self.resumed.row(job.spec(), &settings, &names[device]);
                (Contender { job, device, settings }, known)
            })
            .collect();
        let contenders: Vec<Contender<'_>> = pairs
            .iter()
            .filter(|(_, known)| known.is_none())
            .map(|(contender, _)| contender.clone())
            .collect();
        let mut announce = |phase, what: &str| {
            self.run.announce(what);
            self.note_wait(phase, what);
        };
        let evaluated = evaluate_interleaved(&contenders, devices, &mut announce);
        let mut measured =
            contenders.iter().zip(evaluated).map(|(contender, evaluated)| self.row(contender.job, evaluated));
        for (_, known) in pairs {
            let row = known.cloned().or_else(|| measured.next());
            if let Some(row) = row
                && !self.run.add(&row)?
            {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn interleaved_job(&self, spec: Spec, devices: &[DeviceUnderTest]) -> Job {
        let settings = self.arguments.settings.settings().or(&spec.settings);
        self.prepare(spec, &settings, devices)
    }
}
