//! Single calls on inputs that a candidate has never seen: work that it leaves out in the calls of a batch, it must do there.

use std::sync::Arc;
use std::time::{Duration, Instant};

use runtime_core::{Result, Runtime};

use crate::job::{Job, JobData, ReferenceRunner};
use crate::row::Outcome;

/// Calls until one is as fast as it should be: at least so many,
const SINGLE_CALLS: usize = 5;
/// and at most so many, as long as they take no longer than this. Threads that wait for each other on a busy machine need some.
const MOST_CALLS: usize = 100;
const PATIENCE: Duration = Duration::from_secs(1);
/// How often this is done before single calls are believed to take longer: a busy machine may be in the way for seconds.
const ROUNDS: usize = 4;
/// No round begins after this time.
const LONGEST: Duration = Duration::from_secs(20);
/// How often the time of a call that it is compared with a single call may take,
const SLACK: f64 = 1.5;
/// and how much more; with threads, which wait for each other, more.
const COLD_NS: f64 = 20e3;
const COLD_THREADS_NS: f64 = 100e3;
/// What a call costs whose data is not in the caches and whose threads sleep, a single call on inputs that were seen before tells. It is
/// believed up to so many times what copying the tensors takes longer if they are not in the caches,
const COPIES: f64 = 3.0;
/// and so much for threads.
const WAKING_NS: f64 = 500e3;

/// Makes single calls of a candidate.
pub(crate) trait SingleCalls {
    /// Makes one on inputs that the candidate has seen: the time of the kernel, in nanoseconds.
    ///
    /// # Errors
    /// Those of calls.
    fn repeated_call(&mut self) -> Result<f64>;

    /// Makes one on these inputs.
    ///
    /// # Errors
    /// Those of calls.
    fn single_call(&mut self, data: Arc<JobData>) -> Result<SingleCall>;

    /// Compares what the last one has left; with this data, if that tells what is expected of its inputs.
    ///
    /// # Errors
    /// Those of reading it.
    fn check_single_call(&mut self, data: Option<Arc<JobData>>) -> Result<()>;

    /// Whether threads of the host make it together.
    fn is_parallel(&self) -> bool;
}

/// The time of a single call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SingleCall {
    /// That of the kernel, in nanoseconds.
    pub(crate) ns: f64,
    /// How much longer copying all its tensors takes if they are not in the caches; 0 if the call has found them there.
    pub(crate) copy_ns: f64,
}

/// Whether single calls on inputs that were never seen take much longer than those of batches, with what they cost anyway.
///
/// # Errors
/// Those of calls, and of the reference.
pub(crate) fn inconsistency(
    calls: &mut dyn SingleCalls,
    job: &Job,
    reference: (&Runtime, &dyn ReferenceRunner),
    batch_ns: f64,
) -> Result<Option<Outcome>> {
    let mut outcome = None;
    let begin = Instant::now();
    for number in 0..ROUNDS {
        outcome = round(calls, job, reference, batch_ns, number * MOST_CALLS)?;
        // Where a few calls take long, being in the way for seconds changes little.
        if outcome.is_none() || begin.elapsed() > LONGEST {
            break;
        }
    }
    Ok(outcome)
}

fn round(
    calls: &mut dyn SingleCalls,
    job: &Job,
    (runtime, reference): (&Runtime, &dyn ReferenceRunner),
    batch_ns: f64,
    first: usize,
) -> Result<Option<Outcome>> {
    // The least of each: on a busy machine, anything may take much longer.
    let (mut shortest_ns, mut repeated_ns) = (f64::INFINITY, f64::INFINITY);
    let begin = Instant::now();
    for index in first..first + MOST_CALLS {
        if index - first >= SINGLE_CALLS && begin.elapsed() > PATIENCE {
            break;
        }
        let (data, is_known) = data(job, (runtime, reference), index)?;
        // Most are as fast as those of batches, and need no other comparison.
        if index > 0 {
            repeated_ns = repeated_ns.min(calls.repeated_call()?);
        }
        let call = calls.single_call(data)?;
        shortest_ns = shortest_ns.min(call.ns);
        let is_parallel = calls.is_parallel();
        let (waking_ns, cold_ns) = if is_parallel { (WAKING_NS, COLD_THREADS_NS) } else { (0.0, COLD_NS) };
        let most_ns = SLACK * batch_ns + COPIES * call.copy_ns + waking_ns;
        let seen_ns = if repeated_ns.is_finite() { repeated_ns.min(most_ns) } else { 0.0 };
        let is_fast = call.ns <= SLACK * batch_ns.max(seen_ns) + cold_ns;
        if is_fast || is_known {
            let expected = if is_known { None } else { job.fresh_data(runtime, reference, index)? };
            calls.check_single_call(expected)?;
        }
        if is_fast {
            return Ok(None);
        }
    }
    Ok(Some(Outcome::Inconsistent { batch_ns, single_ns: shortest_ns }))
}

/// The inputs of a single call, and whether it is known what is expected of them. A reference may take long, so of all but the first it
/// is found out only for the call that shows that the candidate is as fast as it should be.
fn data(
    job: &Job,
    (runtime, reference): (&Runtime, &dyn ReferenceRunner),
    index: usize,
) -> Result<(Arc<JobData>, bool)> {
    if index == 0
        && let Some(fresh) = job.fresh_data(runtime, reference, index)?
    {
        return Ok((fresh, true));
    }
    Ok(match job.fresh_inputs(index)? {
        Some(fresh) => (Arc::new(fresh), false),
        None => (job.data()?, true),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{Overrides, Spec};

    /// A candidate whose calls take this long.
    struct Takes {
        single_ns: f64,
        repeated_ns: f64,
        is_parallel: bool,
    }

    impl SingleCalls for Takes {
        fn repeated_call(&mut self) -> Result<f64> {
            Ok(self.repeated_ns)
        }

        fn single_call(&mut self, _: Arc<JobData>) -> Result<SingleCall> {
            Ok(SingleCall { ns: self.single_ns, copy_ns: 0.0 })
        }

        fn check_single_call(&mut self, _: Option<Arc<JobData>>) -> Result<()> {
            Ok(())
        }

        fn is_parallel(&self) -> bool {
            self.is_parallel
        }
    }

    struct NoReference;

    impl ReferenceRunner for NoReference {
        fn takes(&self, _: &crate::spec::KernelSource) -> bool {
            false
        }

        fn run(
            &self,
            _: &Job,
            _: &crate::spec::KernelSource,
            _: &dyn runtime_core::CommonRuntime,
            _: u64,
        ) -> Result<Vec<crate::job::Outputs>> {
            Ok(Vec::new())
        }
    }

    /// Whether calls that take so long, in microseconds, are as fast as they should be: one of a batch, a single one on inputs that were
    /// never seen, and one on others.
    fn is_consistent([batch, single, repeated]: [f64; 3], is_parallel: bool) -> bool {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("spec.toml");
        let text = "version = 1\n[kernel]\npath = \"k.wgsl\"\nentry = \"k\"\n[[arg]]\ndtype = \"f32\"\nshape = [4]\ninit = \"random\"\n";
        std::fs::write(&file, text).unwrap();
        std::fs::write(folder.path().join("k.wgsl"), "").unwrap();
        let job = Job::without_data(Spec::load(&file, &Overrides::default()).unwrap());
        let runtime = Runtime::builder().discover(false).build();
        let mut calls = Takes { single_ns: single * 1e3, repeated_ns: repeated * 1e3, is_parallel };
        inconsistency(&mut calls, &job, (&runtime, &NoReference), batch * 1e3).unwrap().is_none()
    }

    #[test]
    fn a_single_call_may_take_half_as_long_again_and_what_seen_inputs_cost_too() {
        assert!(is_consistent([100.0, 165.0, 165.0], false));
        assert!(!is_consistent([100.0, 180.0, 100.0], false), "kept by its inputs");
        assert!(is_consistent([100.0, 240.0, 240.0], false), "slow on inputs that it has seen, too");
        assert!(!is_consistent([100.0, 300.0, 300.0], false), "slower than what is believed");
        assert!(!is_consistent([1.0, 800.0, 1.0], true), "kept by its inputs, in threads");
        assert!(is_consistent([1.0, 700.0, 700.0], true), "threads that were woken");
    }
}
