//! Recordings, nodes with explicit edges, and graphs in graphs.

use runtime_core::{Graph, Options, Result, Tensor, read, read_write, write};

use super::{Scene, refused, values};

const ONE: (u32, u32) = (1, 1);

fn dependencies(graph: &Graph) -> Vec<Vec<u32>> {
    (0..graph.len()).map(|node| graph.dependencies(node).unwrap().to_vec()).collect()
}

#[test]
fn a_recording_is_finished_or_dropped() {
    for scene in Scene::all() {
        let x = scene.tensor(&[1.0]);
        let dropped = scene.queue.recording().unwrap();
        dropped.launch(&scene.scale, ONE, (read_write(&x), 3f32)).unwrap();
        drop(dropped);
        let fallible = || -> Result<Graph> {
            let recording = scene.queue.recording()?;
            recording.launch(&scene.scale, ONE, (read_write(&x), 5f32))?;
            recording.fill(&x, &[1; 3])?;
            Ok(recording.finish())
        };
        assert!(refused(fallible()).contains("pattern of 3 bytes"));
        assert_eq!((scene.queue.submitted(), values(&x)), (0, vec![1.0]));

        let recording = scene.queue.recording().unwrap();
        assert_eq!(recording.launch(&scene.scale, ONE, (read_write(&x), 2f32)).unwrap(), 0);
        let mut graph = recording.finish();
        // It goes on after the recording.
        graph.add_launch(&scene.scale, ONE, (read_write(&x), 7f32), &[]).unwrap();
        scene.queue.replay(&scene.queue.instantiate(&graph).unwrap()).unwrap().wait().unwrap();
        assert_eq!((dependencies(&graph), values(&x)), (vec![vec![], vec![0]], vec![14.0]));
    }
}

#[test]
fn recordings_of_one_queue_know_nothing_of_each_other() {
    let scene = Scene::new("null:0", &Options::new());
    let x = scene.tensor(&[1.0]);
    let (outer, inner) = (scene.queue.recording().unwrap(), scene.queue.recording().unwrap());
    for factor in [2f32, 3.0] {
        outer.launch(&scene.scale, ONE, (read_write(&x), factor)).unwrap();
        inner.launch(&scene.scale, ONE, (read_write(&x), 5f32)).unwrap();
    }
    let inner = inner.finish();
    assert_eq!(outer.add_graph(&inner).unwrap(), 2..4);
    let outer = outer.finish();
    assert_eq!((inner.len(), dependencies(&outer)), (2, vec![vec![], vec![0], vec![1], vec![2]]));
    scene.queue.replay(&scene.queue.instantiate(&outer).unwrap()).unwrap();
    assert_eq!(values(&x), [150.0]);
}

#[test]
fn explicit_edges_are_added_to_those_of_the_tensors() {
    let scene = Scene::new("null:0", &Options::new());
    let [x, y, z] = [1f32, 2.0, 3.0].map(|value| scene.tensor(&[value]));
    let mut graph = Graph::new(&scene.queue);
    graph.add_launch(&scene.scale, ONE, (read_write(&x), 2f32), &[]).unwrap();
    graph.add_fill(&y, &[0; 4], &[]).unwrap();
    graph.add_launch(&scene.copy, ONE, (read(&x), write(&z)), &[1, 1]).unwrap();
    graph.add_copy(&y, &z, &[0]).unwrap();
    assert_eq!(dependencies(&graph), [vec![], vec![], vec![0, 1], vec![0, 1, 2]]);
}

/// Core cannot know that `seen` is in the memory of `written`, so only the explicit edge orders the two nodes.
#[test]
fn an_explicit_edge_orders_nodes_that_share_no_tensor() {
    for name in super::DEVICES {
        let scene = Scene::new(name, &Options::new().with("reorders", true));
        let (written, y) = (scene.tensor(&[1.0]), scene.tensor(&[0.0]));
        let seen = scene.alias(&written);
        type Add = fn(&mut Graph, &Scene, &Tensor, &Tensor) -> Result<usize>;
        let readers: [Add; 2] = [
            |graph, scene, seen, y| graph.add_launch(&scene.copy, ONE, (read(seen), write(y)), &[0]),
            |graph, _, seen, y| graph.add_copy(y, seen, &[0]),
        ];
        for (value, add_reader) in [5f32, 6.0].into_iter().zip(readers) {
            let mut graph = Graph::new(&scene.queue);
            graph.add_fill(&written, &value.to_le_bytes(), &[]).unwrap();
            add_reader(&mut graph, &scene, &seen, &y).unwrap();
            let executable = scene.queue.instantiate(&graph).unwrap();
            scene.queue.replay(&executable).unwrap().wait().unwrap();
            assert_eq!(values(&y), [value], "{name}");
        }
        let mut graph = Graph::new(&scene.queue);
        graph.add_launch(&scene.scale, ONE, (read_write(&seen), 2f32), &[]).unwrap();
        graph.add_fill(&written, &7f32.to_le_bytes(), &[0]).unwrap();
        scene.queue.replay(&scene.queue.instantiate(&graph).unwrap()).unwrap().wait().unwrap();
        assert_eq!(values(&written), [7.0], "{name}");
    }
}

#[test]
fn an_edge_to_a_node_that_does_not_exist_is_refused() {
    let scene = Scene::new("null:0", &Options::new());
    let (x, y) = (scene.tensor(&[1.0]), scene.tensor(&[1.0]));
    let mut graph = Graph::new(&scene.queue);
    graph.add_fill(&x, &[0; 4], &[]).unwrap();
    let args = || (read_write(&x), 2f32);
    let itself = refused(graph.add_launch(&scene.scale, ONE, args(), &[0, 1]));
    assert!(itself.contains("node 1 cannot depend on node 1"), "{itself}");
    assert!(itself.contains("add_launch") && itself.contains("earlier"), "{itself}");
    assert!(refused(graph.add_copy(&y, &x, &[7])).contains("node 7"));
    assert!(refused(graph.add_fill(&x, &[0; 4], &[usize::MAX])).contains("add_fill"));
    let other = scene.queue.record(|recorder| recorder.fill(&y, &[0; 4])).unwrap();
    assert!(refused(graph.add_graph(&other, &[1])).contains("node 1"));
    // A refused node is no reader or writer of its tensors.
    graph.add_fill(&x, &[0; 4], &[]).unwrap();
    assert_eq!(dependencies(&graph), [vec![], vec![0]]);
}

#[test]
fn a_graph_in_a_graph_keeps_its_dependencies() {
    for scene in Scene::all() {
        let [x, y, z] = [1f32, 0.0, 0.0].map(|value| scene.tensor(&[value]));
        let step = scene
            .queue
            .record(|recorder| {
                recorder.launch(&scene.scale, ONE, (read_write(&x), 2f32))?;
                recorder.launch(&scene.saxpy, ONE, (read(&x), read_write(&y), 1f32))
            })
            .unwrap();
        let mut steps = Graph::new(&scene.queue);
        steps.add_fill(&z, &[0; 4], &[]).unwrap();
        assert_eq!(steps.add_graph(&step, &[0]).unwrap(), 1..3);
        assert_eq!(steps.add_graph(&step, &[]).unwrap(), 3..5);
        let mut nested = Graph::new(&scene.queue);
        assert_eq!(nested.add_graph(&steps, &[]).unwrap(), 0..5);
        assert_eq!(nested.add_graph(&Graph::new(&scene.queue), &[4]).unwrap(), 5..5);
        let expected = [vec![], vec![0], vec![1], vec![1, 2], vec![2, 3]];
        assert_eq!((dependencies(&steps), dependencies(&nested)), (expected.to_vec(), expected.to_vec()));
        drop((step, steps));
        scene.queue.replay(&scene.queue.instantiate(&nested).unwrap()).unwrap();
        assert_eq!((values(&x), values(&y)), (vec![4.0], vec![6.0]));
    }
}

#[test]
fn a_refused_graph_in_a_graph_leaves_no_trace() {
    let scene = Scene::new("null:0", &Options::new());
    let (x, frozen) = (scene.tensor(&[1.0]), scene.tensor(&[1.0]));
    let inner = scene
        .queue
        .record(|recorder| {
            recorder.fill(&x, &[0; 4])?;
            recorder.fill(&frozen, &[0; 4])
        })
        .unwrap();
    frozen.freeze().unwrap();
    let mut graph = Graph::new(&scene.queue);
    assert!(refused(graph.add_graph(&inner, &[])).contains("frozen"));
    let other = Scene::new("null:0", &Options::new());
    let theirs = Graph::new(&other.queue);
    assert!(refused(graph.add_graph(&theirs, &[])).contains("recorded on null:0"));
    let recording = scene.queue.recording().unwrap();
    assert!(refused(recording.add_graph(&theirs)).contains("add_graph"));
    graph.add_fill(&x, &[0; 4], &[]).unwrap();
    assert_eq!(dependencies(&graph), [Vec::<u32>::new()]);
}

#[test]
fn tensors_and_kernels_of_another_opening_are_refused() {
    let (scene, other) = (Scene::new("null:0", &Options::new()), Scene::new("null:0", &Options::new()));
    let (x, theirs) = (scene.tensor(&[1.0]), other.tensor(&[1.0]));
    let mut graph = Graph::new(&scene.queue);
    refused(graph.add_launch(&scene.scale, ONE, (read_write(&theirs), 2f32), &[]));
    refused(graph.add_launch(&other.scale, ONE, (read_write(&x), 2f32), &[]));
    refused(graph.add_copy(&x, &theirs, &[]));
    refused(graph.add_fill(&theirs, &[0; 4], &[]));
    assert!(graph.is_empty());
}
