//! Tensors that nobody reads any more.

use runtime_core::fusion::FusionOptions;
use runtime_core::lowering::Promotion;
use runtime_core::{DType, ErrorKind, read, read_write, write};

use super::{Scene, in_time};

fn promotions(scene: &Scene) -> Vec<Promotion> {
    scene.lowering.promotions.lock().unwrap().clone()
}

#[test]
fn sync_buffer_destruction_promotes_instead_of_cancelling() {
    in_time(|| {
        let scene = Scene::new();
        let queue = scene.queue();
        let (a, out) = (scene.tensor(&[1.0, 2.0]), scene.empty());
        let fuser = scene.fuser(&queue);
        let between = scene.empty();
        let view = between.reshape(&[1, 2]).unwrap();
        scene.copy(fuser.queue(), &a, &between);
        scene.copy(fuser.queue(), &view.reshape(&[2]).unwrap(), &out);
        drop((between, view));
        assert_eq!(fuser.len(), 2);
        let (_, report) = fuser.complete().unwrap();
        assert_eq!(report.to_string(), "copy → copy fused, 1 promotion");
        assert_eq!(promotions(&scene), [Promotion::None, Promotion::Auto, Promotion::None]);
        assert_eq!(out.to_vec::<f32>().unwrap(), [1.0, 2.0]);
    });
}

/// The promotion of the tensor between two copies, which `keep` keeps, or not.
fn between<T>(keep: impl FnOnce(&Scene, runtime_core::Tensor) -> T) -> (Promotion, Vec<f32>, Vec<f32>, T) {
    let scene = Scene::new();
    let queue = scene.queue();
    let (a, out) = (scene.tensor(&[1.0, 2.0]), scene.empty());
    let fuser = scene.fuser(&queue);
    let between = scene.empty();
    scene.copy_through(fuser.queue(), [&a, &between, &out]);
    let written = between.slice(0, 0..0).unwrap();
    drop(written);
    let kept = keep(&scene, between);
    fuser.complete().unwrap();
    (promotions(&scene)[1], a.to_vec().unwrap(), out.to_vec().unwrap(), kept)
}

#[test]
fn a_tensor_with_an_owner_is_written() {
    in_time(|| {
        let (promotion, _, out, kept) = between(|_, tensor| tensor);
        assert_eq!((promotion, &out), (Promotion::None, &vec![1.0, 2.0]));
        assert_eq!(kept.to_vec::<f32>().unwrap(), [1.0, 2.0]);
        let (promotion, _, _, view) = between(|_, tensor| tensor.slice(0, 1..2).unwrap());
        assert_eq!((promotion, view.to_vec::<f32>().unwrap()), (Promotion::None, vec![2.0]));
        let (promotion, ..) = between(|_, tensor| drop(tensor));
        assert_eq!(promotion, Promotion::Auto);
    });
}

#[test]
fn a_tensor_that_a_launch_outside_the_run_uses_is_written() {
    in_time(|| {
        let scene = Scene::new();
        let queue = scene.queue();
        let (a, out) = (scene.tensor(&[1.0, 2.0]), scene.empty());
        let fuser = scene.fuser(&queue);
        let between = scene.empty();
        scene.copy_through(fuser.queue(), [&a, &between, &out]);
        fuser.queue().launch(&scene.native, (1, 1), (read_write(&between), 5.0f32)).unwrap();
        drop(between);
        let (_, report) = fuser.complete().unwrap();
        assert_eq!(promotions(&scene), [Promotion::None; 3]);
        assert!(report.to_string().contains("argument 1 of copy is read elsewhere"), "{report}");
    });
}

#[test]
fn a_claim_for_a_tensor_that_a_launch_outside_the_run_uses_is_not_used() {
    in_time(|| {
        let scene = Scene::new();
        let queue = scene.queue();
        let (a, between, out) = (scene.tensor(&[1.0, 2.0]), scene.empty(), scene.empty());
        let fuser = queue.fuser(&FusionOptions::new().promote(&between, Promotion::Private)).unwrap();
        scene.copy_through(fuser.queue(), [&a, &between, &out]);
        fuser.queue().launch(&scene.native, (1, 1), (read_write(&between), 5.0f32)).unwrap();
        fuser.complete().unwrap();
        assert_eq!(promotions(&scene), [Promotion::None; 3]);
        assert_eq!(between.to_vec::<f32>().unwrap(), [5.0, 10.0]);
    });
}

#[test]
fn a_tensor_that_a_graph_uses_is_written() {
    in_time(|| {
        let (promotion, .., graph) = between(|scene, tensor| {
            let queue = scene.queue();
            let graph =
                queue.record(|recorder| recorder.launch(&scene.scale, (1, 1), (read_write(&tensor), 2.0f32)));
            queue.instantiate(&graph.unwrap()).unwrap()
        });
        assert_eq!(promotion, Promotion::None);
        drop(graph);
    });
}

#[test]
fn internalize_explicit() {
    in_time(|| {
        let scene = Scene::new();
        let queue = scene.queue();
        let (a, out) = (scene.tensor(&[1.0, 2.0]), scene.empty());
        let between = scene.tensor(&[7.0, 7.0]);
        let options = FusionOptions::new().promote(&between, Promotion::Private);
        for _ in 0..3 {
            let fuser = queue.fuser(&options).unwrap();
            scene.copy_through(fuser.queue(), [&a, &between, &out]);
            let (_, report) = fuser.complete().unwrap();
            assert_eq!(report.to_string(), "copy → copy fused, 1 promotion");
        }
        assert_eq!(out.to_vec::<f32>().unwrap(), [1.0, 2.0]);

        let unread = between.to_vec::<f32>().unwrap_err();
        assert!(unread.message().contains("promoted by fusion"), "{unread}");
        let refused = queue.launch(&scene.scale, (1, 1), (read_write(&between), 2.0f32)).unwrap_err();
        assert!(refused.message().contains("promoted by fusion"), "{refused}");
        let fuser = scene.fuser(&queue);
        fuser.queue().launch(&scene.scale, (1, 1), (read_write(&between), 2.0f32)).unwrap_err();
        let fuser = queue.fuser(&options).unwrap();
        let refused = fuser.queue().launch(&scene.copy, (1, 1), (read(&between), write(&out))).unwrap_err();
        assert!(refused.message().contains("promoted by fusion"), "a claim is no content: {refused}");
        between.slice(0, 0..1).unwrap().write(&[1.0f32]).unwrap_err();
        between.write(&[3.0f32, 4.0]).unwrap();
        scene.scale(&queue, &between, 2.0);
        assert_eq!(between.to_vec::<f32>().unwrap(), [6.0, 8.0]);
    });
}

#[test]
fn a_claim_that_is_not_used_leaves_the_tensor_as_it_is() {
    in_time(|| {
        let scene = Scene::new();
        let queue = scene.queue();
        let x = scene.tensor(&[1.0]);
        let fuser = queue.fuser(&FusionOptions::new().promote(&x, Promotion::Auto)).unwrap();
        scene.scale(fuser.queue(), &x, 2.0);
        scene.scale(fuser.queue(), &x, 3.0);
        fuser.complete().unwrap();
        assert_eq!(promotions(&scene), [Promotion::Auto]);
        assert_eq!(x.to_vec::<f32>().unwrap(), [6.0]);
    });
}

#[test]
fn a_cancelled_claim_is_written() {
    in_time(|| {
        let scene = Scene::new();
        let queue = scene.queue();
        let (a, out, between) = (scene.tensor(&[1.0, 2.0]), scene.empty(), scene.empty());
        let fuser = queue.fuser(&FusionOptions::new().promote(&between, Promotion::Private)).unwrap();
        scene.copy_through(fuser.queue(), [&a, &between, &out]);
        fuser.cancel().unwrap();
        assert_eq!(between.to_vec::<f32>().unwrap(), [1.0, 2.0]);
    });
}

#[test]
fn abort_internalization_by_contradictions() {
    in_time(|| {
        let scene = Scene::new();
        let queue = scene.queue();
        let tensor = scene.empty();
        let options = FusionOptions::new;
        let both =
            options().promote(&tensor, Promotion::Private).promote(&tensor.clone(), Promotion::Workgroup);
        let fuser = queue.fuser(&both).unwrap();
        scene.noop(fuser.queue(), &tensor);
        scene.noop(fuser.queue(), &tensor);
        fuser.complete().unwrap();
        assert_eq!(promotions(&scene), [Promotion::Workgroup], "work-group memory wins");

        let view = tensor.slice(0, 0..1).unwrap();
        let elsewhere = Scene::new().empty();
        let frozen = scene.tensor(&[1.0]);
        frozen.freeze().unwrap();
        let refusals = [
            (
                options().promote(&tensor, Promotion::Private).promote(&view, Promotion::Workgroup),
                "shares memory",
            ),
            (options().promote(&view, Promotion::Private), "a part of its memory"),
            (options().promote(&elsewhere, Promotion::Auto), "but the queue is on"),
            (options().promote(&frozen, Promotion::Auto), "frozen"),
        ];
        for (options, reason) in refusals {
            let error = queue.fuser(&options).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument);
            assert!(error.message().contains(reason), "{error}");
        }
        assert_eq!(tensor.dtype(), DType::F32);
    });
}
