//! Evaluates kernels in turns, one sample each, so that drift of clocks and other load affects all of them alike.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

use runtime_core::Result;
use runtime_core::evaluate::Turns;

use crate::crash_context::CrashContext;
use crate::device::DeviceUnderTest;
use crate::evaluate::{Evaluated, Measured, Timed, after_timing, finish, load, time};
use crate::executor::block_on;
use crate::job::{BoundKernel, Job};
use crate::physics::compared_with_peaks;
use crate::row::{Phase, Row};
use crate::settings::Settings;

/// A kernel that takes turns with others.
#[derive(Clone, Debug)]
pub struct Contender<'a> {
    /// The kernel with its data.
    pub job: &'a Job,
    /// Index of its device.
    pub device: usize,
    /// Its settings.
    pub settings: Settings,
}

/// Checks and times all kernels in turns; returns their results in the order given.
///
/// All kernels and their tensors are on their devices at the same time. `progress` is called at the beginning of each phase,
/// with what is about to run; all kernels enter [`Phase::Run`] together.
pub fn evaluate_interleaved(
    contenders: &[Contender<'_>],
    devices: &mut [DeviceUnderTest],
    progress: &mut dyn FnMut(Phase, &str),
) -> Vec<Evaluated> {
    let hashes = contenders.iter().map(|it| devices[it.device].code_sha256(&it.job.spec));
    let hashes: Vec<Option<String>> = hashes.collect();
    let bound: Vec<Result<BoundKernel>> = contenders
        .iter()
        .map(|contender| load(&devices[contender.device], contender.job, progress))
        .collect();
    let used = contenders.iter().map(|contender| &devices[contender.device]);
    let locks = DeviceUnderTest::lock_all(used, &mut |operation| progress(Phase::Wait, operation));
    progress(Phase::Run, &format!("while {} kernels took turns", contenders.len()));
    let timed = take_turns(contenders, devices, &bound);
    let all = contenders.iter().zip(&bound).zip(timed);
    let measured = all.map(|((contender, bound), timed)| contender.after_timing(devices, bound, timed));
    let measured: Vec<Measured> = measured.collect();
    drop(locks);
    let results = contenders.iter().zip(bound).zip(measured).zip(hashes);
    let finish = |(((contender, bound), measured), code_sha256): (((&Contender<'_>, _), _), _)| {
        let evaluated = contender.finish(devices, bound, measured);
        let row = compared_with_peaks(evaluated.row, &devices[contender.device], progress);
        Evaluated { row: Row { code_sha256, ..row }, ..evaluated }
    };
    results.map(finish).collect()
}

/// Measures the loaded kernels in turns.
fn take_turns(
    contenders: &[Contender<'_>],
    devices: &[DeviceUnderTest],
    bound: &[Result<BoundKernel>],
) -> Vec<Result<Timed>> {
    let turns = Turns::new();
    let members = contenders.iter().zip(bound).map(|(contender, bound)| -> Member<'_> {
        let turn = turns.join();
        Box::pin(async move {
            let bound = bound.as_ref().map_err(Clone::clone)?;
            let device = devices[contender.device].opened.as_ref().map_err(Clone::clone)?;
            let name = &devices[contender.device].name;
            let timed =
                time((&**device, None), bound, contender.job, &contender.settings, (Some(turn), None));
            in_context(contender.job.running_on(name), timed).await
        })
    });
    let members: Vec<Member<'_>> = members.collect();
    block_on(join_all(members)).unwrap_or_else(|error| vec![Err(error); contenders.len()])
}

type Member<'a, T = Result<Timed>> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// The results of all members.
pub(crate) async fn join_all<T>(mut members: Vec<Member<'_, T>>) -> Vec<T> {
    let mut results: Vec<Option<T>> = members.iter().map(|_| None).collect();
    poll_fn(|context| {
        for (member, result) in members.iter_mut().zip(&mut results) {
            if result.is_none()
                && let Poll::Ready(timed) = member.as_mut().poll(context)
            {
                *result = Some(timed);
            }
        }
        if results.iter().all(Option::is_some) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    results.into_iter().flatten().collect()
}

/// Runs a future in a crash context that it enters whenever it makes progress, since others do in between.
async fn in_context<F: Future>(operation: String, future: F) -> F::Output {
    let mut future = Box::pin(future);
    poll_fn(|context| {
        let _context = CrashContext::enter(operation.clone());
        future.as_mut().poll(context)
    })
    .await
}

impl Contender<'_> {
    /// Checks the kernel again, and measures what was asked for beside the times.
    fn after_timing(
        &self,
        devices: &[DeviceUnderTest],
        bound: &Result<BoundKernel>,
        timed: Result<Timed>,
    ) -> Measured {
        let (timed, bound) = (timed?, bound.as_ref().map_err(Clone::clone)?);
        let device = &devices[self.device];
        let opened = device.opened.as_ref().map_err(Clone::clone)?;
        let _context = CrashContext::enter(self.job.running_on(&device.name));
        after_timing((&**opened, None), bound, self.job, &self.settings, timed)
    }

    /// Releases the kernel and makes its row.
    fn finish(
        &self,
        devices: &mut [DeviceUnderTest],
        bound: Result<BoundKernel>,
        measured: Measured,
    ) -> Evaluated {
        let device = &mut devices[self.device];
        // An error of a kernel that was not loaded is one of its compilation.
        let phase = match (&device.opened, &bound) {
            (Err(_), _) => Phase::Prepare,
            (_, Err(_)) => Phase::Compile,
            _ => Phase::Run,
        };
        finish((self.job, &self.settings), device, bound.ok(), (measured, phase))
    }
}
