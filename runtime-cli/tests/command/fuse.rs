//! `runtime fuse`: the kernels of `kernels/` on each other's results.

use std::path::Path;

use crate::fixture::{Finished, runtime};

/// Runs `runtime fuse` on the host with these kernels, and further arguments.
fn fuse(kernels: &[&str], more: &[&str]) -> Finished {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kernels");
    let specs: Vec<_> =
        kernels.iter().map(|name| folder.join(name).with_extension("toml").display().to_string()).collect();
    let arguments = ["fuse", "--device", "host"].into_iter().chain(specs.iter().map(String::as_str));
    runtime(&arguments.chain(more.iter().copied()).collect::<Vec<_>>())
}

const ROWS: [&str; 4] = ["--set", "rows=5", "--set", "columns=301"];

#[test]
fn chains_are_right_as_the_references_say() {
    let chains: [(&[&str], &[&str], &str); 5] = [
        (&["bias", "gelu", "residual", "layer_norm"], &ROWS, "layer_norm.out right (1505 elements"),
        (&["scale_mask", "softmax"], &ROWS, "softmax.out right (1505 elements"),
        (&["blur", "sharpen"], &["--set", "n=1003"], "sharpen.out right (1003 elements"),
        (
            &["vector_add", "multiply_subtract", "relu", "scale"],
            &["--set", "n=1003", "--link", "multiply_subtract.b=vector_add.b"],
            "scale.out right (1003 elements",
        ),
        (
            &["vector_add", "relu", "scale", "multiply_subtract"],
            &["--set", "n=1003", "--link", "scale.x=vector_add.c", "--link", "multiply_subtract.a=relu.out"],
            "multiply_subtract.a = relu.out\n",
        ),
    ];
    for (kernels, more, expected) in chains {
        let run = fuse(kernels, more);
        assert!(run.code == 0 && run.stdout.contains(expected), "{kernels:?}: {run:?}");
        let results = run.stdout.lines().filter(|line| line.contains("one by one on host:0: "));
        assert_eq!(results.clone().count(), kernels.len(), "{run:?}");
        assert!(results.clone().all(|line| line.contains(" right (")), "{run:?}");
    }
}

#[test]
fn a_tensor_that_a_later_kernel_overwrites_is_compared_once() {
    let run = fuse(&["scale", "saxpy"], &["--set", "n=1003", "--link", "saxpy.y=scale.x"]);
    // saxpy.x is scale.out, and saxpy adds it to the input of scale.
    assert!(run.code == 0 && run.stdout.contains("saxpy.y = scale.x\nsaxpy.x = scale.out\n"), "{run:?}");
    assert!(run.stdout.contains("scale.out right") && run.stdout.contains("saxpy.y right"), "{run:?}");
}

#[test]
fn specs_that_cannot_be_linked_are_refused_with_the_remedy() {
    let rows = |kernels: &[&str], more: &[&str]| {
        let run = fuse(kernels, more);
        assert!(run.code == 2 && run.stdout.is_empty(), "{run:?}");
        run.stderr
    };
    assert!(rows(&["relu", "softmax"], &[]).contains("change the sizes with --set"));
    let unknown = rows(&["relu", "scale"], &["--link", "scale.y=relu.out"]);
    assert!(
        unknown.contains("--link scale.y=relu.out: ") && unknown.contains("no tensor \"y\""),
        "{unknown}"
    );
    assert!(rows(&["relu", "scale"], &["--link", "scale"]).contains("expected B.x=A.y"));
    assert!(rows(&["relu", "scale"], &["--set", "m=3"]).contains('m'));
}
