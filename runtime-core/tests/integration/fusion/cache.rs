//! Plans that are used again.

use std::sync::atomic::Ordering;

use runtime_core::fusion::FusionOptions;
use runtime_core::lowering::Promotion;
use runtime_core::{Tensor, read_write, write};

use super::{Scene, in_time};

/// Completes a list of kernels that do nothing, with these work-groups, and returns how many plans that took.
fn planned(scene: &Scene, options: &FusionOptions, launches: &[(&Tensor, u32)]) -> usize {
    let queue = scene.device.default_queue().unwrap();
    let before = scene.plans();
    let fuser = queue.fuser(options).unwrap();
    for (tensor, groups) in launches {
        fuser.queue().launch(&scene.noop, (*groups, 1), (read_write(tensor),)).unwrap();
    }
    let (event, report) = fuser.complete().unwrap();
    event.wait().unwrap();
    assert!(report.is_one_kernel(), "{report}");
    assert_eq!(report.is_cached, scene.plans() == before);
    scene.plans() - before
}

#[test]
fn jit_caching() {
    in_time(|| {
        let scene = Scene::new();
        let _queue = scene.device.default_queue().unwrap();
        let (x, y, z) = (scene.tensor(&[1.0]), scene.tensor(&[2.0]), scene.tensor(&[1.0, 2.0]));
        let usual = FusionOptions::new();
        assert_eq!(planned(&scene, &usual, &[(&x, 1), (&y, 1)]), 1);
        let compiled = scene.lowering.lowered.load(Ordering::Relaxed);
        assert_eq!(planned(&scene, &usual, &[(&x, 1), (&y, 1)]), 0);
        assert_eq!(planned(&scene, &usual, &[(&y, 1), (&x, 1)]), 0, "other tensors of the same sizes");
        assert_eq!(scene.lowering.lowered.load(Ordering::Relaxed), compiled, "no second compilation");
        assert_eq!(planned(&scene, &usual, &[(&x, 1), (&x, 1)]), 1, "another pattern of equal arguments");
        assert_eq!(planned(&scene, &usual, &[(&z, 1), (&y, 1)]), 1, "another size");
        assert_eq!(planned(&scene, &usual, &[(&y, 1), (&z, 1)]), 1, "another order");
        assert_eq!(planned(&scene, &usual, &[(&x, 1), (&y, 1), (&y, 1)]), 1, "another length");
        let promoting = usual.clone().promote(&x, Promotion::Private);
        assert_eq!(planned(&scene, &promoting, &[(&x, 1), (&y, 1)]), 1, "another promotion");
        assert_eq!(planned(&scene, &promoting, &[(&x, 1), (&y, 1)]), 0);
        // SAFETY: these kernels do nothing.
        let local = unsafe { usual.clone().assume_group_local() };
        assert_eq!(planned(&scene, &local, &[(&x, 1), (&y, 1)]), 1, "another guarantee");
    });
}

#[test]
fn scalars_count_if_they_become_constants() {
    in_time(|| {
        let scene = Scene::new();
        let queue = scene.queue();
        let x = scene.tensor(&[1.0]);
        let plans = |options: &FusionOptions, factor: f32| {
            let before = scene.plans();
            let fuser = queue.fuser(options).unwrap();
            scene.scale(fuser.queue(), &x, factor);
            scene.scale(fuser.queue(), &x, factor);
            fuser.complete().unwrap();
            scene.plans() - before
        };
        let (usual, constants) = (FusionOptions::new(), FusionOptions::new().constants(true));
        assert_eq!([plans(&usual, 2.0), plans(&usual, 3.0)], [1, 0]);
        assert_eq!([plans(&constants, 2.0), plans(&constants, 3.0), plans(&constants, 2.0)], [1, 1, 0]);
        assert_eq!(x.to_vec::<f32>().unwrap(), [(4 * 9 * 4 * 9 * 4) as f32]);
    });
}

#[test]
fn scalars_count_if_the_plan_relies_on_them() {
    in_time(|| {
        let scene = Scene::new();
        let queue = scene.queue();
        let x = scene.tensor(&[1.0]);
        scene.lowering.relies_on_scalars.store(true, Ordering::Relaxed);
        let mut known = Vec::new();
        for factor in [2.0, 0.5, 2.0, 0.5, 4.0] {
            let before = scene.plans();
            let fuser = scene.fuser(&queue);
            scene.scale(fuser.queue(), &x, factor);
            scene.scale(fuser.queue(), &x, 1.0);
            fuser.complete().unwrap();
            known.push(scene.plans() == before);
        }
        assert_eq!(known, [false, false, true, true, false]);
        assert_eq!(x.to_vec::<f32>().unwrap(), [4.0]);
    });
}

#[test]
fn cached_ndrange() {
    in_time(|| {
        let scene = Scene::new();
        let queue = scene.device.default_queue().unwrap();
        let x = scene.tensor(&[1.0]);
        let usual = FusionOptions::new();
        let plans = |groups: [u32; 2]| planned(&scene, &usual, &[(&x, groups[0]), (&x, groups[1])]);
        assert_eq!(plans([8, 8]), 1);
        assert_eq!(plans([5, 5]), 0, "equal ranges count by a bound");
        assert_eq!(plans([1, 1]), 1, "a single group is special");
        assert_eq!(plans([9, 9]), 1);
        assert_eq!(plans([8, 4]), 1, "different ones do");
        assert_eq!(plans([4, 8]), 1);
        assert_eq!(plans([4, 8]), 0);
        drop(queue);
    });
}

#[test]
fn groups_count_if_the_plan_relies_on_them() {
    in_time(|| {
        let scene = Scene::new();
        let queue = scene.device.default_queue().unwrap();
        let x = scene.tensor(&[1.0]);
        scene.lowering.relies_on_groups.store(true, Ordering::Relaxed);
        let plans = |groups: u32| planned(&scene, &FusionOptions::new(), &[(&x, groups), (&x, groups)]);
        assert_eq!([8, 5, 8, 5].map(plans), [1, 1, 0, 0]);
        drop(queue);
    });
}

#[test]
fn a_hit_uses_the_current_range_and_arguments() {
    in_time(|| {
        let scene = Scene::new();
        let queue = scene.queue();
        let ids =
            scene.device.kernel(runtime_core::ModuleSource::wgsl("ids = group_ids_u32"), "ids").unwrap();
        for groups in [4u32, 3] {
            let x = scene.device.tensor([5], &[9u32; 5]).unwrap();
            let fuser = scene.fuser(&queue);
            for _ in 0..2 {
                fuser.queue().launch(&ids, (groups, 1), (write(&x),)).unwrap();
            }
            let (_, report) = fuser.complete().unwrap();
            assert!(report.is_one_kernel());
            assert_eq!(report.is_cached, groups == 3);
            let wanted: Vec<u32> = (0..5).map(|id| if id < groups { id } else { 9 }).collect();
            assert_eq!(x.to_vec::<u32>().unwrap(), wanted);
        }
    });
}

#[test]
fn caching_off() {
    in_time(|| {
        let scene = Scene::new();
        let x = scene.tensor(&[1.0]);
        let off = FusionOptions::new().cache(false);
        assert_eq!(planned(&scene, &off, &[(&x, 1), (&x, 1)]), 1);
        assert_eq!(planned(&scene, &off, &[(&x, 1), (&x, 1)]), 1);
    });
}

#[test]
fn jit_caching_multitarget() {
    in_time(|| {
        let lowering = super::lowering::joining();
        let runtime = runtime_core::Runtime::builder().discover(false).register(runtime_null::backend());
        let runtime = runtime.with_lowering(lowering.clone()).build();
        for device in ["null:0", "null:1"] {
            let device = runtime.open(device).unwrap();
            let noop = device.kernel(runtime_core::ModuleSource::wgsl("noop = noop"), "noop").unwrap();
            let x = device.tensor([1], &[1.0f32]).unwrap();
            // The queues of a device share their plans.
            let queues = [device.queue().unwrap(), device.queue().unwrap()];
            for queue in &queues {
                let fuser = queue.fuser(&FusionOptions::new()).unwrap();
                for _ in 0..2 {
                    fuser.queue().launch(&noop, (1, 1), (read_write(&x),)).unwrap();
                }
                fuser.complete().unwrap();
            }
        }
        assert_eq!(lowering.plans.load(Ordering::Relaxed), 2);
    });
}

#[test]
fn plans_are_bounded_and_do_not_keep_the_device_open() {
    in_time(|| {
        let scene = Scene::new();
        let queue = scene.queue();
        for size in 1..=300 {
            let x = scene.device.empty::<f32>([size]).unwrap();
            let fuser = scene.fuser(&queue);
            scene.noop(fuser.queue(), &x);
            scene.noop(fuser.queue(), &x);
            fuser.complete().unwrap();
        }
        assert_eq!(scene.plans(), 300);
        let again = |size: usize| {
            let before = scene.plans();
            let x = scene.device.empty::<f32>([size]).unwrap();
            let fuser = scene.fuser(&queue);
            scene.noop(fuser.queue(), &x);
            scene.noop(fuser.queue(), &x);
            fuser.complete().unwrap();
            scene.plans() - before
        };
        assert_eq!([again(300), again(200), again(1)], [0, 0, 1], "the oldest plan was dropped");
        let event = queue.launch_noop().unwrap();
        drop(queue);
        let Scene { lowering, device, .. } = scene;
        drop(lowering);
        drop(device);
        // A device that is kept open would leave its queue open.
        event.wait().unwrap();
    });
}
