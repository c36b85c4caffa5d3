//! The reference of a spec in a runner: its author is trusted, so it needs no sandbox, but the process that judges has no foreign code.

use std::sync::Arc;

use runtime_core::{CommonRuntime, Geometry, Result};

use super::loaded::{Loaded, Role, check_takes};
use crate::device::RunnerSetup;
use crate::job::{Due, Job, JobData, Outputs, ReferenceRunner};
use crate::platform;
use crate::spec::KernelSource;

impl ReferenceRunner for RunnerSetup {
    fn takes(&self, code: &KernelSource) -> bool {
        check_takes(code).is_ok()
    }

    /// If the reference ends its process, this one ends in the same way: its parent makes a row of that.
    fn run(
        &self,
        job: &Job,
        code: &KernelSource,
        host: &dyn CommonRuntime,
        calls: u64,
    ) -> Result<Vec<Outputs>> {
        let data = JobData::new(job.inputs.clone()?, Vec::new(), &job.tolerance());
        let launch = Geometry::single().into();
        let mut loaded = Loaded::new((job, code, launch), host, self, vec![Arc::new(data)], Role::Reference)?;
        let mut call = |_| {
            loaded.restore(0, Due::Later);
            let called = loaded.runner.window(Some(0), 1);
            if let Some(kind) = loaded.runner.end() {
                platform::end_as(kind);
            }
            called?;
            loaded.outputs(&job.spec, 0)
        };
        (0..calls).map(&mut call).collect()
    }
}
