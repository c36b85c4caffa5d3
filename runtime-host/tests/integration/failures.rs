//! Which failures propagate between queues of the host, whether known at submission or only later.

#![allow(unsafe_code, reason = "loads native code")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::sync::Arc;

use runtime_core::{
    Access, Arg, CommonRuntime, Error, ErrorKind, Geometry, Kernel, ModuleSource, Queue, Result, Runtime,
    Tensor,
};

/// `slow_failure` fails after a while, `bump` adds one to its tensor.
const CODE: &str = r#"
#include <unistd.h>
#include <stdint.h>
int slow_failure(void *args, int *codes, int n, void *ret, int *ret_code) { usleep(100000); return 7; }
typedef union { int64_t i; void *p; } value;
int bump(value *args, int *codes, int n, void *ret, int *ret_code) { uint32_t *x = *(uint32_t **)args[0].p; (*x)++; return 0; }
"#;

struct Scene {
    device: Arc<dyn CommonRuntime>,
    failure: Kernel,
    bump: Kernel,
    x: Tensor,
}

impl Scene {
    fn new() -> Self {
        let runtime = Runtime::builder().discover(false).register(runtime_host::backend()).build();
        let device = runtime.open("host").unwrap();
        // SAFETY: the functions touch the first element of their first argument, if anything.
        let source =
            unsafe { ModuleSource::native("c", CODE.as_bytes().to_vec()) }.option("convention", "packed");
        let module = device.load(&source).unwrap();
        let x = device.tensor([4], &[1u32, 2, 3, 4]).unwrap();
        let (failure, bump) = (module.kernel("slow_failure").unwrap(), module.kernel("bump").unwrap());
        Self { device, failure, bump, x }
    }

    fn queue(&self) -> Queue {
        self.device.queue().unwrap()
    }

    /// The results of `bump` on a second queue after a failure on the first: by launch, by call, and by a later call.
    fn after(&self, failing: Arg<'_>, next: Arg<'_>, observed: bool) -> [Result<()>; 3] {
        let (first, second, third) = (self.queue(), self.queue(), self.queue());
        let failed = first.launch(&self.failure, Geometry::single(), &[failing]).unwrap();
        if observed {
            assert_eq!(failed.wait().unwrap_err().kind(), ErrorKind::Failed);
        }
        let launched = second.launch(&self.bump, Geometry::single(), &[next]).and_then(|event| event.wait());
        let called = third.call(&self.bump, Geometry::single(), &[next]);
        let later = second.call(&self.bump, Geometry::single(), &[next]);
        [launched, called, later]
    }
}

fn names_its_origin(error: &Error) -> bool {
    error.kind() == ErrorKind::Failed && error.to_string().contains("ticket 1 of queue")
}

#[test]
fn a_failed_reader_never_fails_a_later_writer() {
    for observed in [false, true] {
        let scene = Scene::new();
        for outcome in scene.after(Arg::read(&scene.x), Arg::read_write(&scene.x), observed) {
            outcome.unwrap_or_else(|error| panic!("known before: {observed}: {error}"));
        }
        assert_eq!(scene.x.to_vec::<u32>().unwrap(), [4, 2, 3, 4]);
    }
}

#[test]
fn users_of_data_written_by_a_failed_submission_fail() {
    let uses = [Access::Read, Access::Write, Access::ReadWrite];
    for observed in [false, true] {
        for next in uses {
            let scene = Scene::new();
            let [launched, called, later] =
                scene.after(Arg::write(&scene.x), Arg::tensor(&scene.x, next), observed);
            for (what, outcome) in [("launched", launched), ("called", called), ("later", later)] {
                let error = outcome.expect_err(&format!("{what}, {next:?}, known before: {observed}"));
                assert!(names_its_origin(&error), "{what}, {next:?}, known before: {observed}: {error}");
            }
            assert!(names_its_origin(&scene.x.to_vec::<u32>().unwrap_err()));
        }
    }
}

#[test]
fn nothing_succeeds_after_a_failure_that_is_not_yet_known() {
    let scene = Scene::new();
    let (first, second) = (scene.queue(), scene.queue());
    let own = scene.device.tensor([1], &[0u32]).unwrap();
    drop(first.launch(&scene.failure, Geometry::single(), &[Arg::write(&scene.x)]).unwrap());
    drop(second.launch(&scene.bump, Geometry::single(), &[Arg::read(&scene.x)]).unwrap());
    // By then the second queue is idle again, but the first has not been polled.
    std::thread::sleep(std::time::Duration::from_millis(300));
    let error = second.call(&scene.bump, Geometry::single(), &[Arg::read_write(&own)]).unwrap_err();
    assert!(names_its_origin(&error), "{error}");
}

/// A launch of work-groups fails if the code reports a failure in its variable.
#[test]
fn work_groups_report_failures_in_a_variable() {
    const CODE: &str = "const char *volatile runtime_kernel_failure;
        void go(const unsigned long long *args, const unsigned *groups, long long begin, long long end) {
            if (groups[0] > 2) runtime_kernel_failure = \"k.wgsl:7\";
        }";
    let runtime = Runtime::builder().discover(false).register(runtime_host::backend()).build();
    let device = runtime.open("host").unwrap();
    // SAFETY: the function touches nothing but its variable.
    let source = unsafe { ModuleSource::native("c", CODE.as_bytes().to_vec()) };
    let kernel = device.kernel(source.option("convention", "groups"), "go").unwrap();
    let queue = device.queue().unwrap();
    queue.call(&kernel, Geometry::new([2, 1, 1], [1, 1, 1]), &[]).unwrap();
    let error = queue.call(&kernel, Geometry::new([3, 1, 1], [1, 1, 1]), &[]).unwrap_err();
    assert!(error.kind() == ErrorKind::Failed && error.to_string().contains("k.wgsl:7"), "{error}");
}
