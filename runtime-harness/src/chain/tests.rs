use std::path::Path;

use runtime_core::ErrorKind;

use super::*;
use crate::spec::{Number, Overrides};

fn load(name: &str, element: &str) -> Spec {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kernels");
    let by_rows = ["bias", "gelu", "residual", "scale_mask", "softmax", "layer_norm"].contains(&name);
    let sizes: &[(&str, i128)] = if by_rows { &[("rows", 2), ("columns", 3)] } else { &[("n", 5)] };
    let values = sizes.iter().map(|(name, value)| ((*name).to_owned(), Number::Integer(*value)));
    let element = Some(element.parse().unwrap());
    let overrides = Overrides { values: values.collect(), element, ..Overrides::default() };
    Spec::load(&folder.join(name).with_extension("toml"), &overrides).unwrap()
}

fn chain(kernels: &[&str], links: &[&str]) -> Result<Chain> {
    let wanted: Vec<_> = links.iter().map(|text| text.parse().unwrap()).collect();
    linked(kernels.iter().map(|name| load(name, "f32")).collect(), &wanted)
}

#[allow(unsafe_code, reason = "the specs name C code as references")]
fn linked(specs: Vec<Spec>, wanted: &[LinkRequest]) -> Result<Chain> {
    // SAFETY: the kernels of this repository have the interfaces that their specs give.
    unsafe { Chain::new(specs, wanted) }
}

fn links(kernels: &[&str], wanted: &[&str]) -> Vec<String> {
    chain(kernels, wanted).unwrap().links().collect()
}

fn refused(kernels: &[&str], wanted: &[&str]) -> String {
    let error = chain(kernels, wanted).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    error.to_string()
}

#[test]
fn a_kernel_reads_what_the_one_before_it_writes() {
    assert_eq!(links(&["relu"], &[]), [""; 0]);
    assert_eq!(
        links(&["scale_mask", "softmax", "saxpy"][..2], &[]),
        ["softmax.x = scale_mask.out"],
        "the mask is read, too, but it is not the first"
    );
    assert_eq!(
        links(&["bias", "gelu", "residual", "layer_norm"], &[]),
        ["gelu.x = bias.out", "residual.x = gelu.out", "layer_norm.x = residual.out"]
    );
    assert_eq!(links(&["relu", "relu", "relu"], &[]), ["relu#2.x = relu.out", "relu#3.x = relu#2.out"]);
}

#[test]
fn wanted_links_come_first() {
    assert_eq!(
        links(
            &["vector_add", "relu", "scale", "multiply_subtract"],
            &["scale.x=vector_add.c", "multiply_subtract.a=relu.out"]
        ),
        [
            "scale.x = vector_add.c",
            "multiply_subtract.a = relu.out",
            "relu.x = vector_add.c",
            "multiply_subtract.x = scale.out"
        ],
        "a diamond"
    );
    let chain = chain(&["relu", "relu"], &["relu#2.out=relu.x"]).unwrap();
    assert_eq!(chain.origin((1, 1)), (0, 0));
}

#[test]
fn a_wrong_link_names_the_argument_and_the_remedy() {
    for text in ["relu.x", "relu=scale", "=relu.x", "relu.=scale.out", "relu.x=.out"] {
        assert!(text.parse::<LinkRequest>().unwrap_err().contains("expected B.x=A.y"), "{text}");
    }
    let pair = ["relu", "scale"];
    assert!(refused(&pair, &["scal.x=relu.out"]).contains("no kernel \"scal\"; did you mean \"scale\"?"));
    assert!(refused(&pair, &["scale.n=relu.out"]).contains("no tensor \"n\""));
    assert!(refused(&pair, &["relu.x=scale.out"]).contains("scale does not come before relu"));
    assert!(refused(&pair, &["scale.x=scale.out"]).contains("--link scale.x=scale.out"));
    assert!(refused(&pair, &["scale.x=relu.x", "scale.x=relu.out"]).contains("linked already"));
    let sizes = refused(&["relu", "softmax"], &[]);
    assert!(sizes.contains("softmax.x is f32") && sizes.contains("relu.out is f32"), "{sizes}");
    assert!(sizes.contains("--set") && sizes.contains("--link softmax.x=A.y"), "{sizes}");
    assert!(refused(&[], &[]).contains("at least one"));
    let types = linked(vec![load("relu", "f32"), load("scale", "f16")], &[]).unwrap_err();
    assert!(types.to_string().contains("scale.x is"), "{types}");
}

/// The bytes of 5 elements.
const FIVE: f64 = 20.0;

#[test]
fn what_only_later_kernels_read_is_temporary_and_need_not_move() {
    let chain = chain(
        &["vector_add", "relu", "scale", "multiply_subtract"],
        &["scale.x=vector_add.c", "multiply_subtract.a=relu.out"],
    );
    let chain = chain.unwrap();
    let temporaries = chain.temporaries();
    let names: Vec<_> = temporaries.iter().map(|operand| chain.name_of(*operand)).collect();
    assert_eq!(names, ["vector_add.c", "relu.out", "scale.out"]);
    // a, b, c; c and out; c and out; a, x, b and out.
    assert_eq!(chain.bytes(&[0..1, 1..2, 2..3, 3..4], &[]), (3.0 + 2.0 + 2.0 + 4.0) * FIVE);
    // Fused, a kernel reads nothing that it has written itself: three inputs, and four outputs, or the last one alone.
    let fused = |unwritten: &[Operand]| chain.bytes(std::slice::from_ref(&(0..4)), unwritten);
    assert_eq!((fused(&[]), fused(&temporaries)), ((3.0 + 4.0) * FIVE, (3.0 + 1.0) * FIVE));
    assert_eq!(chain.working_set_bytes(), 140);
}

#[test]
fn what_is_overwritten_last_is_no_temporary() {
    let chain = chain(&["scale", "saxpy"], &["saxpy.y=scale.x"]).unwrap();
    let names: Vec<_> = chain.temporaries().iter().map(|operand| chain.name_of(*operand)).collect();
    assert_eq!(names, ["scale.out"], "saxpy overwrites the input of scale, which is not read afterwards");
    // `saxpy` reads and writes y, and reads what `scale` has written.
    assert_eq!(chain.bytes(std::slice::from_ref(&(0..2)), &[]), (1.0 + 2.0) * FIVE);
}
