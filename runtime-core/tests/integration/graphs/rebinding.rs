//! Other tensors and arguments for an executable graph.

use runtime_core::{Arg, ErrorKind, Graph, Options, read, read_write, write};

use super::{Scene, refused, values};

const ONE: (u32, u32) = (1, 1);

#[test]
fn every_kind_of_node_is_rebound_with_its_views() {
    for scene in Scene::all() {
        let (x, y) = (scene.tensor(&[1.0, 2.0, 3.0, 4.0]), scene.tensor(&[0.0, 0.0]));
        let halves = [x.slice(0, 0..2).unwrap(), x.slice(0, 2..4).unwrap()];
        let graph = scene
            .queue
            .record(|recorder| {
                recorder.launch(&scene.scale, ONE, (read_write(&halves[0]), 10f32))?;
                recorder.fill(&x.slice(0, 3..4)?, &9f32.to_le_bytes())?;
                recorder.copy(&y, &halves[1])
            })
            .unwrap();
        let mut work = scene.queue.instantiate(&graph).unwrap();
        let native = work.is_native();
        let (other_x, other_y) = (scene.tensor(&[5.0, 6.0, 7.0, 8.0]), scene.tensor(&[0.0, 0.0]));
        work.rebind(&[(&x, &other_x), (&y, &other_y)]).unwrap();
        assert_eq!(work.is_native(), native);
        drop(graph);
        scene.queue.replay(&work).unwrap().wait().unwrap();
        assert_eq!((values(&x), values(&y)), (vec![1.0, 2.0, 3.0, 4.0], vec![0.0, 0.0]));
        assert_eq!((values(&other_x), values(&other_y)), (vec![50.0, 60.0, 7.0, 9.0], vec![7.0, 9.0]));
        // The hazards are those of the new tensors.
        drop(scene.queue.replay(&work).unwrap());
        assert_eq!(values(&other_x), [500.0, 600.0, 7.0, 9.0]);
    }
}

#[test]
fn tensors_are_exchanged() {
    for scene in Scene::all() {
        let (x, y) = (scene.tensor(&[1.0]), scene.tensor(&[100.0]));
        let graph = scene
            .queue
            .record(|recorder| {
                recorder.launch(&scene.scale, ONE, (read_write(&x), 2f32))?;
                recorder.launch(&scene.saxpy, ONE, (read(&x), read_write(&y), 1f32))
            })
            .unwrap();
        let mut work = scene.queue.instantiate(&graph).unwrap();
        for _ in 0..2 {
            drop(scene.queue.replay(&work).unwrap());
            work.rebind(&[(&x, &y), (&y, &x)]).unwrap();
        }
        // x = 2, y = 102; then y = 204, x = 206.
        assert_eq!((values(&x), values(&y)), (vec![206.0], vec![204.0]));
    }
}

#[test]
fn a_wrong_pair_is_refused_and_changes_nothing() {
    for scene in Scene::all() {
        let (x, y, unused) =
            (scene.tensor(&[1.0, 2.0]), scene.tensor(&[0.0, 0.0]), scene.tensor(&[0.0, 0.0]));
        let graph =
            scene.queue.record(|recorder| recorder.launch(&scene.copy, ONE, (read(&x), write(&y)))).unwrap();
        let mut work = scene.queue.instantiate(&graph).unwrap();
        let (short, fresh) = (scene.tensor(&[7.0]), scene.tensor(&[7.0, 8.0]));
        let frozen = scene.tensor(&[0.0, 0.0]);
        frozen.freeze().unwrap();
        let foreign = Scene::new("null:0", &Options::new()).tensor(&[0.0, 0.0]);
        let shape = refused(work.rebind(&[(&x, &fresh), (&y, &short)]));
        assert!(shape.contains("rebind") && shape.contains("pair 1"), "{shape}");
        assert!(refused(work.rebind(&[(&x, &fresh), (&unused, &fresh)])).contains("pair 1: no node uses"));
        assert!(refused(work.rebind(&[(&x, &fresh), (&y, &frozen)])).contains("frozen"));
        assert!(refused(work.rebind(&[(&x, &foreign)])).contains("argument 0"));
        let part = refused(work.rebind(&[(&x.slice(0, 0..1).unwrap(), &short)]));
        assert!(part.contains("node 0") && part.contains("only a part"), "{part}");
        scene.queue.replay(&work).unwrap();
        assert_eq!(values(&y), [1.0, 2.0]);
    }
}

#[test]
fn tensors_that_need_more_edges_are_refused() {
    for scene in Scene::all() {
        let [x, y] = [1f32, 2.0].map(|value| scene.tensor(&[value]));
        let mut graph = Graph::new(&scene.queue);
        for tensor in [&x, &y] {
            graph.add_launch(&scene.scale, ONE, (read_write(tensor), 3f32), &[]).unwrap();
        }
        let mut work = scene.queue.instantiate(&graph).unwrap();
        assert!(refused(work.rebind(&[(&y, &x)])).contains("record the graph again"));
        scene.queue.replay(&work).unwrap();
        assert_eq!((values(&x), values(&y)), (vec![3.0], vec![6.0]));
        // With an edge, also through another node, it is allowed.
        let mut graph = Graph::new(&scene.queue);
        graph.add_launch(&scene.scale, ONE, (read_write(&x), 3f32), &[]).unwrap();
        graph.add_launch(&scene.spin, ONE, (1i64,), &[0]).unwrap();
        graph.add_launch(&scene.scale, ONE, (read_write(&y), 3f32), &[1]).unwrap();
        let mut work = scene.queue.instantiate(&graph).unwrap();
        work.rebind(&[(&y, &x)]).unwrap();
        scene.queue.replay(&work).unwrap();
        assert_eq!((values(&x), values(&y)), (vec![27.0], vec![6.0]));
    }
}

/// One after the other, the first update would need another order.
#[test]
fn several_nodes_are_updated_at_once() {
    for scene in Scene::all() {
        let [x, y, out] = [1f32, 2.0, 0.0].map(|value| scene.tensor(&[value]));
        let graph = scene
            .queue
            .record(|recorder| {
                recorder.launch(&scene.scale, ONE, (read_write(&x), 10f32))?;
                recorder.launch(&scene.scale, ONE, (read_write(&y), 10f32))?;
                recorder.launch(&scene.copy, ONE, (read(&x), write(&out)))
            })
            .unwrap();
        let mut work = scene.queue.instantiate(&graph).unwrap();
        let scale = |tensor, factor: f32| [Arg::read_write(tensor), Arg::scalar(factor)];
        let copy = [Arg::read(&y), Arg::write(&out)];
        assert!(refused(work.update_nodes(&[(2, &copy)])).contains("record the graph again"));
        let wrong = refused(work.update_nodes(&[(0, &scale(&y, 2.0)), (1, &copy[..1])]));
        assert!(wrong.contains("update_nodes") && wrong.contains("node 1"), "{wrong}");
        assert!(refused(work.update_nodes(&[(3, &copy)])).contains("node 3 is not a launch"));
        work.update_nodes(&[(0, &scale(&y, 2.0)), (1, &scale(&x, 3.0)), (2, &copy)]).unwrap();
        scene.queue.replay(&work).unwrap();
        assert_eq!((values(&x), values(&y), values(&out)), (vec![3.0], vec![4.0], vec![4.0]));
    }
}

#[test]
fn a_driver_that_refuses_an_update_leaves_the_graph_as_it_was() {
    let scene = Scene::new("null:1", &Options::new().with("fail_call", "update:2:driver"));
    let [x, y] = [1f32, 1.0].map(|value| scene.tensor(&[value]));
    let graph = scene
        .queue
        .record(|recorder| {
            recorder.launch(&scene.scale, ONE, (read_write(&x), 2f32))?;
            recorder.launch(&scene.scale, ONE, (read_write(&x), 3f32))
        })
        .unwrap();
    let mut work = scene.queue.instantiate(&graph).unwrap();
    // The driver has updated the first node.
    assert_eq!(work.rebind(&[(&x, &y)]).unwrap_err().kind(), ErrorKind::Driver);
    assert!(work.is_native());
    drop(scene.queue.replay(&work).unwrap());
    assert_eq!((values(&x), values(&y)), (vec![6.0], vec![1.0]));
    work.rebind(&[(&x, &y)]).unwrap();
    drop(scene.queue.replay(&work).unwrap());
    assert_eq!((values(&x), values(&y)), (vec![6.0], vec![6.0]));
}

#[test]
fn a_driver_that_cannot_update_gets_another_graph() {
    let scene = Scene::new("null:1", &Options::new().with("fail_call", "update:1:unsupported"));
    let [x, y] = [1f32, 1.0].map(|value| scene.tensor(&[value]));
    let graph =
        scene.queue.record(|recorder| recorder.launch(&scene.scale, ONE, (read_write(&x), 2f32))).unwrap();
    let mut work = scene.queue.instantiate(&graph).unwrap();
    drop(scene.queue.replay(&work).unwrap());
    work.update(0, (read_write(&y), 5f32)).unwrap();
    assert!(work.is_native());
    drop(scene.queue.replay(&work).unwrap());
    assert_eq!((values(&x), values(&y)), (vec![2.0], vec![5.0]));
}
