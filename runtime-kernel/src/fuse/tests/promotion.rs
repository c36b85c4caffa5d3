//! Tensors that need no memory.

use runtime_core::lowering::{FusedArg, Promotion};

use super::List;

const SCALE: &str = "if i < s.n { y[i] = 2.0 * x[i]; }";

fn list(first: &str, second: &str) -> List {
    let mut list = List::new().then("first", first, [0, 1]).then("second", second, [1, 2]);
    list.tensors[1].promotion = Promotion::Auto;
    list
}

#[track_caller]
fn promoted(first: &str, second: &str) -> String {
    let plan = list(first, second).fuses(0);
    let code = plan.kernels[0].code.as_ref().unwrap();
    assert_eq!(code.promoted, [(1, Promotion::Private)], "{}", code.text);
    assert!(
        !code.args.iter().any(|arg| matches!(
            arg,
            FusedArg::Of { launch: 1, arg: 0 } | FusedArg::Of { launch: 0, arg: 1 }
        ))
    );
    code.text.clone()
}

#[track_caller]
fn kept(first: &str, second: &str) {
    let plan = list(first, second).plan();
    for kernel in plan.kernels {
        assert_eq!(kernel.code.map(|code| code.promoted).unwrap_or_default(), []);
    }
}

#[test]
fn a_value_that_the_item_has_written_stays_with_it() {
    let text = promoted(SCALE, SCALE);
    assert!(!text.contains("select"), "{text}");
    promoted(SCALE, "if i < s.n { y[i] = x[i]; y[i] += x[i]; }");
    promoted(SCALE, "if i < s.n { if x[i] > 1.0 { y[i] = x[i]; } }");
    promoted(SCALE, "for (var k = 0u; k < 5u; k++) { if i < s.n { y[i] += x[i]; } }");
    promoted("if i < s.n { y[i] = x[i]; y[i] *= y[i]; }", SCALE);
    promoted("for (var k = 0u; k < s.w; k++) { y[i] = x[i]; }", SCALE);
}

#[test]
fn out_of_range_it_reads_zero() {
    let checked = |second: &str| {
        let mut list = list("y[i] = x[i];", second);
        list.tensors[1].bytes = 4000;
        list.fuses(0).kernels[0].code.clone().unwrap()
    };
    let code = checked("y[i] = x[i] + 1.0;");
    assert_eq!(code.promoted, [(1, Promotion::Private)]);
    assert!(code.text.contains("select"), "{}", code.text);
    let code = checked("y[i] = x[i] + f32(arrayLength(&x));");
    assert!(code.args.contains(&FusedArg::Length { tensor: 1, stride: 4 }), "{:?}", code.args);
}

#[test]
fn what_is_not_written_first_stays_in_memory() {
    kept("if i < s.n - 1 { y[i] = x[i]; }", SCALE);
    kept("if x[i] > 0.0 { y[i] = x[i]; }", SCALE);
    kept("y[i] += x[i];", SCALE);
    kept("for (var k = i; k < s.w; k++) { y[i] = x[i]; }", SCALE);
    kept("for (var k = 0u; k < s.w; k++) { if x[k] > 0.0 { break; } y[i] = x[i]; }", SCALE);
    kept("if x[i] > 0.0 { return; } y[i] = x[i];", SCALE);
    kept("if 3u < 2u { y[i] = x[i]; }", SCALE);
    kept("if s.n < s.w { y[i] = x[i]; }", SCALE);
}

#[test]
fn what_other_items_use_stays_in_memory() {
    kept("y[i + 1] = x[i];", SCALE);
    kept("y[g.x] = x[i];", "y[i] = x[g.x];");
    let mut list = list(SCALE, SCALE).then("third", "y[i] = x[s.n - i];", [1, 3]);
    let plan = list.plan();
    assert_eq!(plan.kernels[0].code.as_ref().unwrap().promoted, []);
    list.launches.pop();
    list.tensors[1].overlaps = vec![5];
    assert_eq!(list.fuses(0).kernels[0].code.as_ref().unwrap().promoted, []);
}
