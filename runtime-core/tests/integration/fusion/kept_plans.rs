//! Plans that are kept on disk for later processes.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use runtime_core::cache::{CacheAccess, CacheOptions, CodeCache};
use runtime_core::fusion::FusionOptions;
use runtime_core::{CommonRuntime, ModuleSource, Runtime, read, read_write, write};

use super::lowering::{Fault, Joining, joining};
use super::{KERNELS, in_time};

/// What a process has: a runtime of its own, with the code cache in a folder that it shares with others.
struct Process {
    lowering: Arc<Joining>,
    device: Arc<dyn CommonRuntime>,
}

impl Process {
    #[allow(unsafe_code, reason = "names the folder of a code cache")]
    fn new(folder: &Path, access: CacheAccess, version: usize) -> Self {
        let lowering = joining();
        lowering.version.store(version, Ordering::Relaxed);
        // SAFETY: only this test writes to the folder.
        let mut options = unsafe { CacheOptions::default().with_folder(folder) };
        options.access = access;
        let cache = CodeCache::with_options(options);
        let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).code_cache(cache);
        let device = runtime.with_lowering(lowering.clone()).build().open("null").unwrap();
        Self { lowering, device }
    }

    /// Copies a tensor through another one, then scales it; returns how many plans were made for both lists.
    fn run(&self, options: &FusionOptions, factor: f32) -> usize {
        let before = self.lowering.plans.load(Ordering::Relaxed);
        let module = self.device.load(&ModuleSource::wgsl(KERNELS)).unwrap();
        let (copy, scale) = (module.kernel("copy").unwrap(), module.kernel("scale").unwrap());
        let (x, out) =
            (self.device.tensor([2], &[1.0f32, 2.0]).unwrap(), self.device.empty::<f32>([2]).unwrap());
        let queue = self.device.queue().unwrap();
        let fuser = queue.fuser(options).unwrap();
        let between = self.device.empty::<f32>([2]).unwrap();
        fuser.queue().launch(&copy, (1, 1), (read(&x), write(&between))).unwrap();
        fuser.queue().launch(&copy, (1, 1), (read(&between), write(&out))).unwrap();
        drop(between);
        let (_, report) = fuser.complete().unwrap();
        assert!(report.is_one_kernel() && report.kernels[0].promoted == 1, "{report}");
        let fuser = queue.fuser(options).unwrap();
        fuser.queue().launch(&scale, (1, 1), (read_write(&out), factor)).unwrap();
        fuser.queue().launch(&scale, (1, 1), (read_write(&out), 1.0f32)).unwrap();
        let (_, report) = fuser.complete().unwrap();
        assert_eq!(report.seams[0].reason, "these kernels do not join");
        assert_eq!(out.to_vec::<f32>().unwrap(), [factor, 2.0 * factor]);
        self.lowering.plans.load(Ordering::Relaxed) - before
    }
}

#[test]
fn a_later_process_makes_no_plan_again() {
    in_time(|| {
        let folder = tempfile::tempdir().unwrap();
        let usual = FusionOptions::new();
        let process = |version| Process::new(folder.path(), CacheAccess::ReadWrite, version);
        assert_eq!(process(1).run(&usual, 2.0), 2);
        assert_eq!(process(1).run(&usual, 3.0), 0);
        assert_eq!(process(2).run(&usual, 2.0), 2, "another version of the lowering");
        assert_eq!(process(1).run(&FusionOptions::new().cache(false), 2.0), 2, "caching is off");
        assert_eq!(process(0).run(&usual, 2.0), 2, "a lowering without an identity");
        assert_eq!(Process::new(folder.path(), CacheAccess::Off, 1).run(&usual, 2.0), 2);
        assert_eq!(Process::new(folder.path(), CacheAccess::ReadOnly, 1).run(&usual, 2.0), 0);
    });
}

#[test]
fn a_plan_is_kept_for_the_scalars_that_it_relies_on() {
    in_time(|| {
        let folder = tempfile::tempdir().unwrap();
        let plans = |factor| {
            let process = Process::new(folder.path(), CacheAccess::ReadWrite, 1);
            process.lowering.relies_on_scalars.store(true, Ordering::Relaxed);
            process.run(&FusionOptions::new(), factor)
        };
        assert_eq!([plans(2.0), plans(2.0), plans(3.0), plans(3.0)], [2, 0, 1, 0]);
    });
}

#[test]
fn a_plan_that_is_damaged_or_does_not_fit_is_made_again() {
    in_time(|| {
        let folder = tempfile::tempdir().unwrap();
        let usual = FusionOptions::new();
        let process = || Process::new(folder.path(), CacheAccess::ReadWrite, 1);
        assert_eq!(process().run(&usual, 2.0), 2);
        let notes: Vec<_> =
            fs::read_dir(folder.path().join("notes")).unwrap().map(|file| file.unwrap().path()).collect();
        assert_eq!(notes.len(), 2);
        for note in &notes {
            let mut bytes = fs::read(note).unwrap();
            *bytes.last_mut().unwrap() ^= 1;
            fs::write(note, bytes).unwrap();
        }
        assert_eq!(process().run(&usual, 2.0), 2);
        assert_eq!(process().run(&usual, 2.0), 0);
        // One that leaves a launch out, as if another version had written it.
        let impossible = process();
        *impossible.lowering.fault.lock().unwrap() = Fault::Plan;
        impossible.lowering.version.store(7, Ordering::Relaxed);
        let x = impossible.device.tensor([1], &[1.0f32]).unwrap();
        let noop = impossible.device.kernel(ModuleSource::wgsl(KERNELS), "noop").unwrap();
        let queue = impossible.device.queue().unwrap();
        for _ in 0..2 {
            let fuser = queue.fuser(&usual).unwrap();
            fuser.queue().launch(&noop, (1, 1), (read_write(&x),)).unwrap();
            fuser.queue().launch(&noop, (1, 1), (read_write(&x),)).unwrap();
            assert!(fuser.complete().unwrap().1.fallback.is_some());
        }
        let notes = fs::read_dir(folder.path().join("notes")).unwrap().count();
        assert_eq!(notes, 2, "an impossible plan is not kept");
    });
}
