use super::*;
use crate::Element;

fn array<T: Element>(shape: &[usize], data: &[T]) -> HostArray {
    HostArray::from_slice(shape, data).unwrap()
}

fn check<T: Element>(actual: &[T], expected: &[T]) -> Result<Agreement, Box<Mismatch>> {
    compare(
        0,
        &array(&[actual.len()], actual),
        &array(&[expected.len()], expected),
        Some(0xFF),
        &Tolerance::default(),
    )
}

#[test]
fn correct_outputs_pass_and_report_their_error() {
    let agreement = check(&[1.0f32, 2.000_001], &[1.0, 2.0]).unwrap();
    assert_eq!(agreement.elements, 2);
    assert!((5e-7..2e-6).contains(&agreement.max_absolute_error));
    assert_eq!(check::<f32>(&[], &[]).unwrap().elements, 0);
}

#[test]
fn errors_are_found_in_every_piece() {
    let expected = vec![1u16; 3 * PIECE + 5];
    for position in [0, PIECE - 1, PIECE, 2 * PIECE, 3 * PIECE + 4] {
        let mut actual = expected.clone();
        actual[position] = 2;
        let mismatch = check(&actual, &expected).unwrap_err();
        assert_eq!((mismatch.wrong, mismatch.index), (1, vec![position]));
    }
}

#[test]
fn the_fast_path_agrees_with_single_elements() {
    let values = [0.0, -0.0, 1.0, 1.001, 1.1, -1.0, 6e-5, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
    let pairs = || values.iter().flat_map(|a| values.iter().map(move |b| (*a, *b)));
    let bounds = [(0.0, 0.0), (1e-3, 1e-6), (0.0, f64::INFINITY), (f64::INFINITY, 0.0)];
    for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
        for ((a, b), bounds) in pairs().flat_map(|pair| bounds.map(|bounds| (pair, bounds))) {
            let of = |value: f64| HostArray::full(dtype, &[1], crate::Number::Float(value)).unwrap();
            let (a, b) = (of(a), of(b));
            let (a, b) = (a.bytes(), b.bytes());
            let error = ElementValue::read(dtype, a).error(ElementValue::read(dtype, b), bounds);
            if let Some((absolute, ulp)) = close_errors(dtype, (a, b), bounds).filter(|_| a != b) {
                assert!(error.excess <= 1.0, "{a:?} {b:?} {bounds:?}");
                assert_eq!((absolute, ulp), (error.absolute_error, ulp_distance(dtype, a, b)));
            }
        }
    }
}

#[test]
fn defaults_follow_the_dtype() {
    assert!(check(&[1.0f32 + 9e-6], &[1.0]).is_ok() && check(&[1.0f32 + 2e-5], &[1.0]).is_err());
    assert!(check(&[1.0f64 + 9e-8], &[1.0]).is_ok() && check(&[1.0f64 + 2e-7], &[1.0]).is_err());
    let half = f16::from_f32;
    assert!(check(&[half(1.001)], &[half(1.0)]).is_ok() && check(&[half(1.01)], &[half(1.0)]).is_err());
    let brain = bf16::from_f32;
    assert!(check(&[brain(1.008)], &[brain(1.0)]).is_ok() && check(&[brain(1.05)], &[brain(1.0)]).is_err());
    assert!(check(&[7i64], &[7]).is_ok() && check(&[i64::MAX], &[i64::MAX - 1]).is_err());
    assert!(check(&[1e-9f32], &[0.0]).is_ok() && check(&[1e-7f32], &[0.0]).is_err());
}

#[test]
fn an_explicit_tolerance_is_taken_as_it_is() {
    let tolerance = Tolerance { rtol: Some(0.1), atol: Some(0.0), reduction_length: Some(1 << 20) };
    let check =
        |actual: f32| compare(0, &array(&[1], &[actual]), &array(&[1], &[1f32]), Some(0xFF), &tolerance);
    assert!(check(1.09).is_ok() && check(1.11).is_err());
}

#[test]
fn a_reduction_widens_the_defaults() {
    let tolerance = Tolerance { reduction_length: Some(10_000), ..Tolerance::default() };
    let (rtol, atol) = tolerance.bounds(DType::F32);
    assert!((rtol / 1e-3 - 1.0).abs() < 1e-12 && (atol / 1e-2 - 1.0).abs() < 1e-12);
    assert_eq!(tolerance.bounds(DType::I32), (0.0, 0.0));
    // A matmul of 1024 ones that omits one term must not pass.
    let tolerance = Tolerance { reduction_length: Some(1024), ..Tolerance::default() };
    assert!(compare(0, &array(&[1], &[1023f32]), &array(&[1], &[1024f32]), Some(0xFF), &tolerance).is_err());
}

#[test]
#[expect(clippy::cast_possible_truncation, reason = "the test is about rounding")]
fn real_rounding_of_a_cancelling_sum_passes() {
    // Sums of 1024 terms in [-1, 1), in f32 against f64, as in a matmul with random signs.
    let mut state = 1u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1u32 << 23) as f32 - 1.0
    };
    let (mut narrow, mut wide) = (Vec::new(), Vec::new());
    for _ in 0..2000 {
        let terms: Vec<f32> = (0..1024).map(|_| random() * random()).collect();
        narrow.push(terms.iter().sum::<f32>());
        wide.push(terms.iter().map(|&term| f64::from(term)).sum::<f64>() as f32);
    }
    let tolerance = Tolerance { reduction_length: Some(1024), ..Tolerance::default() };
    let (narrow, wide) = (array(&[2000], &narrow), array(&[2000], &wide));
    assert!(compare(0, &narrow, &wide, Some(0xFF), &tolerance).is_ok());
    assert!(
        compare(0, &narrow, &wide, Some(0xFF), &Tolerance::default()).is_err(),
        "the test does not need the wider tolerance"
    );
}

#[test]
fn a_failure_names_the_worst_element() {
    let expected = array(&[2, 3], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let actual = array(&[2, 3], &[1.0f32, 2.5, 3.0, 4.0, 5.0, 9.0]);
    let mismatch = compare(3, &actual, &expected, Some(0xFF), &Tolerance::default()).unwrap_err();
    assert_eq!((mismatch.arg, &mismatch.index[..]), (3, &[1, 2][..]));
    assert_eq!((mismatch.actual.as_str(), mismatch.expected.as_str()), ("9.0", "6.0"));
    assert_eq!((mismatch.absolute_error, mismatch.relative_error), (3.0, 0.5));
    assert_eq!((mismatch.wrong, mismatch.elements, mismatch.unwritten), (2, 6, 0));
    assert_eq!(
        mismatch.to_string(),
        "argument 3: 2 of 6 elements are wrong, worst at [1, 2]: 9.0 should be 6.0 (absolute error 3.000e0, relative 5.000e-1)"
    );
}

#[test]
fn the_worst_element_exceeds_its_tolerance_most() {
    // An error of 1 at 0.5 is worse than one of 10 at 1e9, which rtol allows.
    let mismatch = check(&[1.5f64, 1e9 + 10.0, 2.5], &[0.5, 1e9, 2.0]).unwrap_err();
    assert_eq!((mismatch.index, mismatch.wrong), (vec![0], 2));
    let mismatch = check(&[1i32, 200, 7], &[1, 100, 9]).unwrap_err();
    assert_eq!((mismatch.index, mismatch.wrong, mismatch.absolute_error), (vec![1], 2, 100.0));
    let mismatch = check(&[u64::MAX], &[0]).unwrap_err();
    assert_eq!((mismatch.actual.as_str(), mismatch.relative_error), ("18446744073709551615", f64::INFINITY));
}

#[test]
fn nan_passes_only_where_the_reference_is_nan() {
    let nan = f32::NAN;
    assert!(check(&[nan, 1.0], &[-nan, 1.0]).is_ok());
    for (actual, expected) in [([nan], [1.0]), ([1.0], [nan])] {
        let mismatch = check(&actual, &expected).unwrap_err();
        assert_eq!((mismatch.absolute_error, mismatch.relative_error), (f64::INFINITY, f64::INFINITY));
    }
    assert_eq!(check(&[nan], &[1.0]).unwrap_err().actual, "NaN");
}

#[test]
fn infinity_equals_only_itself() {
    let inf = f64::INFINITY;
    assert!(check(&[inf, -inf], &[inf, -inf]).is_ok());
    for (actual, expected) in [(1e308, inf), (inf, 1e308), (-inf, inf), (f64::NAN, inf)] {
        assert!(check(&[actual], &[expected]).is_err(), "{actual} for {expected}");
    }
}

#[test]
fn complex_numbers_compare_by_distance() {
    let complex =
        |parts: [f32; 2]| HostArray::from_bytes(DType::COMPLEX64, &[1], bytemuck::bytes_of(&parts)).unwrap();
    let check = |a, b| compare(0, &complex(a), &complex(b), Some(0xFF), &Tolerance::default());
    assert!(check([3.0, 4.00003], [3.0, 4.0]).is_ok());
    let mismatch = check([3.0, 5.0], [3.0, 4.0]).unwrap_err();
    assert_eq!((mismatch.actual.as_str(), mismatch.expected.as_str()), ("3.0+5.0i", "3.0+4.0i"));
    assert_eq!((mismatch.absolute_error, mismatch.relative_error), (1.0, 0.2));
    assert!(check([f32::NAN, 4.0], [3.0, 4.0]).is_err());
    let infinite = f32::INFINITY;
    assert!(
        check([infinite, 4.0], [infinite, 4.0]).is_ok() && check([infinite, 5.0], [infinite, 4.0]).is_err()
    );
}

#[test]
fn the_poison_is_always_detected() {
    let nan = f32::NAN;
    let references = [
        array(&[3], &[1.0f32, 2.0, 3.0]),
        array(&[2], &[nan, 1.0]),
        array(&[2], &[f64::NAN, -1.0]),
        array(&[2], &[f16::NAN, f16::from_f32(0.0)]),
        array(&[2], &[bf16::NAN, bf16::from_f32(0.0)]),
        array(&[3], &[-1i32, 0, 7]),
        array(&[2], &[u64::MAX, 0]),
        array(&[4], &[255u8, 254, 253, 0]),
        HostArray::from_bytes(DType::BOOL, &[2], &[0, 1]).unwrap(),
        HostArray::from_bytes(DType::COMPLEX64, &[1], bytemuck::bytes_of(&[nan, nan])).unwrap(),
    ];
    for expected in references {
        let poison = poison(&expected, &Tolerance::default());
        let mut unwritten = expected.clone();
        unwritten.bytes_mut().fill(poison);
        let mismatch = compare(0, &unwritten, &expected, Some(poison), &Tolerance::default()).unwrap_err();
        let count = expected.len();
        assert_eq!((mismatch.wrong, mismatch.unwritten), (count, count), "{expected:?} with {poison:#x}");
    }
    assert_eq!(poison(&array(&[1], &[1f32]), &Tolerance::default()), 0xFF);
}

#[test]
fn the_poison_is_what_is_expected_least_often() {
    // All bytes, all but one of them more than once.
    let most = (0..=255u8).cycle().take(1000).filter(|byte| *byte != 7).chain([7]);
    let bytes: Vec<u8> = most.collect();
    // Elements of two bytes that are alike, and others.
    let words: Vec<u16> = bytes.iter().map(|byte| u16::from(*byte) * 257).chain(1..100).collect();
    for expected in [array(&[bytes.len()], &bytes), array(&[words.len()], &words)] {
        assert_eq!(poison(&expected, &Tolerance::default()), 7);
    }
    // Each float is right for some element: a NaN, and everything else within a tolerance without an end.
    let tolerance = Tolerance { atol: Some(f64::INFINITY), ..Tolerance::default() };
    assert_eq!(poison(&array(&[3], &[f32::NAN, 1.0, 2.0]), &tolerance), 0xFF);
    assert_eq!(poison(&array(&[3], &[f32::NAN, f32::NAN, 2.0]), &tolerance), 0xFE);
}

#[test]
fn a_kernel_that_writes_nothing_is_wrong_whatever_the_type() {
    let vectors = [DType::from_dlpack(2, 32, 4), DType::from_dlpack(2, 64, 4), DType::from_dlpack(0, 8, 3)];
    for dtype in DType::all().chain(vectors) {
        for content in [vec![0xFF; 512], vec![0; 512], (0..=255).rev().chain(0..=255).collect::<Vec<u8>>()] {
            let elements = content.len() / dtype.bytes();
            let content = &content[..elements * dtype.bytes()];
            let expected = [(0, HostArray::from_bytes(dtype, &[elements], content).unwrap())];
            let mut unwritten = expected[0].1.clone();
            unwritten.bytes_mut().fill(Tolerance::default().poison(&expected, 0));
            let compared = Tolerance::default()
                .compare_outputs(&expected, |_| Ok(Some((unwritten.clone(), Access::Write))))
                .unwrap();
            let Validation::Failed(mismatch) = compared else { panic!("{dtype}: {compared:?}") };
            assert_eq!(mismatch.unwritten, mismatch.wrong, "{dtype}");
        }
    }
}

#[test]
fn vectors_are_compared_in_every_byte() {
    for lanes in [4, 8] {
        let dtype = DType::from_dlpack(2, 32, lanes);
        let of = |content: &[u8]| HostArray::from_bytes(dtype, &[1], content).unwrap();
        let right = vec![0; dtype.bytes()];
        for byte in 0..dtype.bytes() {
            let mut wrong = right.clone();
            wrong[byte] = 1;
            let compared = Tolerance::default().compare(0, &of(&wrong), &of(&right)).unwrap();
            assert!(compared.is_failed(), "{lanes} lanes, byte {byte}: {compared:?}");
        }
    }
}

#[test]
fn errors_are_told_in_units_in_the_last_place() {
    let ulp = |actual: f32, expected: f32| check(&[actual, 1.0], &[expected, 1.0]).unwrap().max_ulp;
    let next = |value: f32, by: i32| f32::from_bits(value.to_bits().wrapping_add_signed(by));
    assert_eq!((ulp(1.0, 1.0), ulp(next(1.0, 1), 1.0), ulp(next(1.0, -3), 1.0)), (Some(0), Some(1), Some(3)));
    // Across a power of two, and across zero.
    assert_eq!((ulp(next(-2.0, -2), next(-2.0, 2)), ulp(0.0, -0.0)), (Some(4), Some(0)));
    assert_eq!(ulp(f32::from_bits(3), -f32::from_bits(2)), Some(5));
    assert_eq!(ulp(f32::NAN, -f32::NAN), Some(0));
    let rounded = f16::from_f32(1.2345).to_f32();
    let tolerance = Tolerance { rtol: Some(1e-3), ..Tolerance::default() };
    let half = compare(0, &array(&[1], &[rounded]), &array(&[1], &[1.2345f32]), None, &tolerance).unwrap();
    assert!(half.max_ulp.is_some_and(|ulp| (1000..=4096).contains(&ulp)), "{half:?}");
    assert_eq!(check(&[f64::MIN_POSITIVE], &[0.0]).unwrap().max_ulp, Some(1 << 52));
    assert_eq!(check(&[bf16::from_f32(1.008)], &[bf16::ONE]).unwrap().max_ulp, Some(1));
    assert_eq!(check(&[7i64], &[7]).unwrap().max_ulp, Some(0));
    let parts = |parts: [f32; 2]| num_complex::Complex::new(parts[0], parts[1]);
    let complex = check(&[parts([next(1.0, 2), next(-1.0, 5)])], &[parts([1.0, -1.0])]).unwrap();
    assert_eq!(complex.max_ulp, Some(5));
}

#[test]
fn an_output_of_another_shape_is_not_compared() {
    let tolerance = Tolerance::default();
    let expected = array(&[2], &[1f32, 2.0]);
    let others = [
        (array(&[1], &[1f32]), "f32 [1]"),
        (array(&[1, 2], &[1f32, 2.0]), "f32 [1, 2]"),
        (array(&[2], &[1i32, 2]), "i32 [2]"),
    ];
    for (wrong, is) in others {
        let error = tolerance.compare(3, &wrong, &expected).unwrap_err();
        assert_eq!(error.message(), format!("argument 3 is {is}, but its reference is f32 [2]"));
    }
}

#[test]
fn a_comparison_names_its_argument() {
    let (tolerance, expected) = (Tolerance::default(), array(&[2], &[1f32, 2.0]));
    assert!(!tolerance.compare(3, &expected, &expected).unwrap().is_failed());
    match tolerance.compare(3, &array(&[2], &[1f32, 9.0]), &expected).unwrap() {
        Validation::Failed(wrong) => {
            assert_eq!((wrong.arg, &*wrong.actual, &*wrong.expected), (3, "9.0", "2.0"));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn outputs_are_compared_together() {
    let expected =
        [(0, array(&[2], &[1f32, 2.0])), (1, array(&[1], &[5i32])), (4, array(&[3], &[1i32, 2, 3]))];
    let compare = |third: &[i32], access| {
        Tolerance::default().compare_outputs(&expected, |arg| {
            Ok(match arg {
                0 => Some((array(&[2], &[1.000_001_f32, 2.0]), Access::Write)),
                4 => Some((array(&[third.len()], third), access)),
                _ => None,
            })
        })
    };
    let Validation::Passed(agreement) = compare(&[1, 2, 3], Access::Write).unwrap() else { panic!("failed") };
    assert_eq!(agreement.elements, 5);
    assert!((5e-7..2e-6).contains(&agreement.max_absolute_error));
    for (access, unwritten) in [(Access::Write, 2), (Access::ReadWrite, 0)] {
        match compare(&[1, -1, -1], access).unwrap() {
            Validation::Failed(wrong) => {
                assert_eq!((wrong.arg, wrong.wrong, wrong.unwritten), (4, 2, unwritten));
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(compare(&[1], Access::Write).unwrap_err().kind(), crate::ErrorKind::InvalidArgument);
}

#[test]
fn indices_are_unravelled_row_major() {
    assert_eq!(unravel(23, &[2, 3, 4]), [1, 2, 3]);
    assert_eq!(unravel(5, &[2, 3, 4]), [0, 1, 1]);
    assert_eq!(unravel(0, &[]), [0; 0]);
}

#[test]
fn a_tolerance_is_not_negative_or_nan() {
    for bad in [f64::NAN, -1e-9] {
        assert!(
            Tolerance { rtol: Some(bad), ..Tolerance::default() }
                .check()
                .unwrap_err()
                .message()
                .contains("rtol")
        );
        assert!(
            Tolerance { atol: Some(bad), ..Tolerance::default() }
                .check()
                .unwrap_err()
                .message()
                .contains("atol")
        );
    }
    assert!(Tolerance { rtol: Some(0.0), atol: Some(1.0), reduction_length: Some(0) }.check().is_ok());
}
