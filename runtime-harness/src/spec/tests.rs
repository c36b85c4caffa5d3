//! Valid specs, and one spec for each kind of error.

use std::path::Path;

use runtime_core::code::Record;
use runtime_core::evaluate::{DataLocation, EachCall, Tolerance};
use runtime_core::{Access, DType, OptionValue};

use super::init::Init;
use super::{Argument, ArgumentKind, Expected, Interval, Number, Overrides, Spec, TensorSpec};

const FULL: &str = r#"
version = 1
name = "everything"

[kernel]
path = "k.c"
entry = "k"
options = { flags = ["-O2", "-g"], fast = true }

[[arg]]
name = "A"
dtype = "f32"
shape = [4, 6]
strides = [8, 1]
offset = 2
init = "random"
seed = 9
range = [-1, 1.5]
on = "pinned"

[[arg]]
name = "C"
dtype = "i32"
shape = [4]
init = "arange"
use = "readwrite"
each_call = "initial"

[[arg]]
name = "n"
scalar = "u64"
value = 18446744073709551615

[[arg]]
bytes = [1, 0xff]

[[arg]]
local_bytes = 64

[[arg]]
struct = [["element", 0.5], ["u8", 3], ["i64", -1]]

[specialise]
element = "f32"
constants = { TILE = 8 }

[launch]
groups = [4, 2]
group_size = 32
cluster = [2]
cooperative = true

[cost]
flops = "2 * A[0] * A[1] * TILE"
bytes = "bytes(A) + len(C)"

[reference]
path = "k.c"
entry = "naive"
rtol = 1e-3
reduction = "A[1]"

[eval]
repeat = 3
validate = false
clock = "host_submit"
budget_s = 2
"#;

fn parse(text: &str) -> Result<Spec, String> {
    parse_with(text, &Overrides::default())
}

fn parse_with(text: &str, overrides: &Overrides) -> Result<Spec, String> {
    let folder = tempfile::tempdir().unwrap();
    for file in ["k.c", "data.npy", "k"] {
        std::fs::write(folder.path().join(file), [1, 2, 3]).unwrap();
    }
    let path = folder.path().join("spec.toml");
    std::fs::write(&path, text).unwrap();
    let text_of = |message: &str| message.replace(&format!("{}/", folder.path().display()), "");
    Spec::load(&path, overrides).map_err(|error| text_of(error.message()))
}

fn tensor(arg: &Argument) -> &TensorSpec {
    let ArgumentKind::Tensor(tensor) = &arg.kind else { panic!("{arg:?} is not a tensor") };
    tensor
}

#[test]
fn every_key_is_read() {
    let spec = parse(FULL).unwrap();
    assert_eq!(
        (spec.name.as_str(), spec.kernel.entry.as_str(), spec.kernel.format.as_str()),
        ("everything", "k", "c")
    );
    assert_eq!(spec.kernel.options.texts("flags").collect::<Vec<_>>(), ["-O2", "-g"]);
    assert!(spec.kernel.options.flag("fast"));
    let a = tensor(&spec.args[0]);
    assert_eq!((a.dtype, a.offset, a.access, a.on), (DType::F32, 2, Access::Read, DataLocation::Pinned));
    assert_eq!(a.init, Init::Random { seed: 9, range: Interval::Float(-1.0, 1.5) });
    assert_eq!(a.base_elements(), Some(2 + 3 * 8 + 5 + 1));
    let c = tensor(&spec.args[1]);
    assert_eq!((c.access, c.each_call, a.each_call), (Access::ReadWrite, EachCall::Initial, EachCall::Keep));
    assert!(matches!(spec.args[2].kind, ArgumentKind::Scalar(DType::U64, u64::MAX)));
    assert!(matches!(&spec.args[3].kind, ArgumentKind::Bytes(bytes) if bytes == &[1, 0xff]));
    assert!(matches!(spec.args[4].kind, ArgumentKind::Local(64)));
    assert_eq!(spec.args[4].name, "arg4");
    let record = Record::new().with(0.5f32).with(3u8).with(-1i64);
    assert!(matches!(&spec.args[5].kind, ArgumentKind::Record(given) if *given == record));
    assert_eq!(spec.specialise.constants, [("TILE".to_owned(), OptionValue::Integer(8))]);
    assert_eq!(spec.config.geometry().unwrap().groups, [4, 2, 1]);
    assert_eq!(
        (spec.config.geometry().unwrap().group_size, spec.config.geometry().unwrap().cluster),
        ([32, 1, 1], [2, 1, 1])
    );
    assert_eq!((spec.cost.flops, spec.cost.bytes), (Some(384.0), Some(100.0)));
    let reference = spec.reference.as_ref().unwrap();
    assert!(matches!(&reference.expected, Expected::Kernel(code) if code.entry == "naive"));
    assert_eq!(reference.tolerance, Tolerance { rtol: Some(1e-3), atol: None, reduction_length: Some(6) });
    assert_eq!(
        (spec.settings.repeat, spec.settings.validate, spec.settings.number),
        (Some(3), Some(false), None)
    );
    assert_eq!(spec.outputs().map(|(index, _)| index).collect::<Vec<_>>(), [1]);
}

const HEAD: &str = "version = 1\n[kernel]\npath = \"k.c\"\nentry = \"k\"\n";

#[test]
fn omitted_keys_have_defaults() {
    let spec = parse(&format!("{HEAD}[[arg]]\ndtype = \"i8\"\nshape = [2]\n")).unwrap();
    assert_eq!(spec.name, "spec");
    assert!(spec.config.geometry().unwrap().is_single());
    let arg = tensor(&spec.args[0]);
    assert_eq!(arg.init, Init::Random { seed: 1, range: Interval::Integer(-8, 8) });
    assert_eq!((arg.access, arg.on), (Access::Read, DataLocation::Device));
    assert!(parse(HEAD).unwrap().args.is_empty());
}

#[test]
fn the_specs_of_this_repository_are_valid() {
    let kernels = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kernels");
    for folder in [kernels.clone(), kernels.join("native")] {
        let specs = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let specs: Vec<_> =
            specs.filter(|path| path.extension().is_some_and(|extension| extension == "toml")).collect();
        assert!(!specs.is_empty());
        for path in specs {
            Spec::load(&path, &Overrides::default()).unwrap();
        }
    }
}

/// Checks that `head` followed by each tail is rejected with the given message.
fn check(head: &str, cases: &[(&str, &str)]) {
    for (tail, message) in cases {
        let error = parse(&format!("{head}{tail}\n")).unwrap_err();
        assert!(error.contains(message), "{tail}\n  {error}\n  {message}");
    }
}

#[test]
fn fields_of_a_structure_are_checked() {
    check(
        HEAD,
        &[
            ("[[arg]]\nstruct = []", "spec.toml:6: struct in [[arg]]: a structure needs at least one field"),
            ("[[arg]]\nstruct = [\"f32\"]", "spec.toml:6: struct in [[arg]]: expected a list"),
            (
                "[[arg]]\nstruct = [[\"f32\"]]",
                "spec.toml:6: struct in [[arg]]: a field is a list of its dtype",
            ),
            ("[[arg]]\nstruct = [[\"i8\", 300]]", "spec.toml:6: struct in [[arg]]: 300 does not fit i8"),
            ("[[arg]]\nstruct = [[\"f3\", 1]]", "spec.toml:6: struct in [[arg]]: unknown value \"f3\""),
        ],
    );
}

#[test]
fn keys_and_values_are_checked_with_their_line() {
    check(
        HEAD,
        &[
            (
                "[[arg]]\ndtype = \"f32\"\nshpe = [2]",
                "spec.toml:7: unknown key \"shpe\" in [[arg]]; did you mean \"shape\"? (valid: name, dtype, ",
            ),
            ("[lunch]", "spec.toml:5: unknown key \"lunch\" in the spec; did you mean \"launch\"?"),
            (
                "[eval]\nrepeats = 3",
                "spec.toml:6: unknown key \"repeats\" in [eval]; did you mean \"repeat\"?",
            ),
            ("[[arg]]\ndtype = \"f32\"", "spec.toml:5: missing key \"shape\" in [[arg]]"),
            (
                "[[arg]]\nname = \"x\"",
                "spec.toml:5: missing key in [[arg]]: expected one of dtype, scalar, struct, bytes, local_bytes",
            ),
            (
                "[[arg]]\nscalar = \"f32\"\nbytes = [1]",
                "spec.toml:5: [[arg]] takes only one of scalar, bytes",
            ),
            (
                "[[arg]]\nscalar = \"f32\"\nvalue = 1\nshape = [2]",
                "spec.toml:8: unknown key \"shape\" in [[arg]]; ",
            ),
            (
                "[[arg]]\ndtype = 4\nshape = [2]",
                "spec.toml:6: dtype in [[arg]]: expected text, got an integer",
            ),
            (
                "[[arg]]\ndtype = \"f23\"\nshape = [2]",
                "spec.toml:6: dtype in [[arg]]: unknown value \"f23\"; did you mean \"f",
            ),
            (
                "[[arg]]\ndtype = \"f32\"\nshape = 2",
                "spec.toml:7: shape in [[arg]]: expected a list, got an integer",
            ),
            (
                "[[arg]]\ndtype = \"f32\"\nshape = [\n2,\n-1]",
                "spec.toml:9: shape in [[arg]]: must be at least 0, got -1",
            ),
            (
                "[[arg]]\ndtype = \"f32\"\nshape = [4611686018427387904, 4]",
                "spec.toml:7: shape in [[arg]]: the tensor is too large",
            ),
            (
                "[[arg]]\nscalar = \"i8\"\nvalue = 300",
                "spec.toml:7: value in [[arg]]: 300 does not fit i8 (-128 to 127)",
            ),
            (
                "[[arg]]\nname = \"a b\"\nlocal_bytes = 1",
                "spec.toml:6: name in [[arg]]: \"a b\" is not a valid name",
            ),
            ("[[arg]]\nbytes = [256]", "spec.toml:6: bytes in [[arg]]: 256 is too large"),
            (
                "[[arg]]\nname = \"x\"\nlocal_bytes = 1\n[[arg]]\nname = \"x\"\nlocal_bytes = 1",
                "the name \"x\" is used by two arguments",
            ),
        ],
    );
}

#[test]
fn names_are_checked_with_their_line() {
    check(
        HEAD,
        &[
            (
                "[[arg]]\nname = \"x\"\ndtype = \"i8\"\nshape = []\n[[arg]]\nname = \"x\"\nscalar = \"i8\"\nvalue = 1",
                "the name \"x\" is used by two arguments",
            ),
            (
                "[[arg]]\nname = \"x\"\nlocal_bytes = 1\n[specialise]\nconstants = { x = 1 }",
                "or by an argument and a constant",
            ),
            (
                "[[arg]]\ndtype = \"element\"\nshape = []",
                "spec.toml:6: dtype in [[arg]]: [specialise] has no `element`",
            ),
            (
                "[[arg]]\ndtype = \"i8\"\nshape = [\"n\"]",
                "spec.toml:7: shape in [[arg]]: unknown name \"n\"; there are none at column 1 of \"n\"",
            ),
        ],
    );
}

#[test]
fn tables_are_checked_with_their_line() {
    check(
        HEAD,
        &[
            (
                "[launch]\ngroups = [1, 1, 1, 1]",
                "spec.toml:6: groups in [launch]: expected 1 to 3 dimensions, got 4",
            ),
            ("[launch]\ngroups = -1", "spec.toml:6: groups in [launch]: must be at least 0, got -1"),
            ("[launch]\ngroup_size = 0", "spec.toml:6: group_size in [launch]: must be at least 1, got 0"),
            ("[launch]\ngrain = 4", "spec.toml:6: grain in [launch]: is only valid with `range`"),
            ("[launch]\nrange = [4, 0]", "spec.toml:6: range in [launch]: the end precedes the beginning"),
            (
                "[launch]\ncooperative = 1",
                "spec.toml:6: cooperative in [launch]: expected true or false, got an integer",
            ),
            (
                "[cost]\nflops = \"B[0]\"",
                "spec.toml:6: flops in [cost]: unknown name \"B\"; there are none at column 1 of \"B[0]\"",
            ),
            (
                "[cost]\nflops = -1",
                "spec.toml:6: flops in [cost]: must be a finite number of at least 0, got -1",
            ),
            (
                "[cost]\nflops = \"1 / 0\"",
                "spec.toml:6: flops in [cost]: must be a finite number of at least 0, but the expression's value is \
                 inf",
            ),
            ("[eval]\nclock = \"host_wal\"", "spec.toml:6: clock in [eval]: "),
            ("[eval]\nrepeat = 0", "spec.toml:6: repeat in [eval]: must be at least 1, got 0"),
            (
                "[eval]\nrepeat = 1000000001",
                "spec.toml:6: repeat in [eval]: must be a number from 1 to 1000000000",
            ),
            ("[eval]\nbudget_s = 1e308", "spec.toml:6: budget_s in [eval]: must be a number from 0 to 86400"),
            (
                "[specialise]\nconstants = { \"A-B\" = 1 }",
                "spec.toml:6: A-B in [specialise.constants]: a constant's name",
            ),
            ("[reference]\npath = \"k.c\"\nentry = \"k\"", "spec.toml:5: nothing can be compared"),
            ("]", "spec.toml:5: "),
        ],
    );
}

#[test]
fn tensors_are_checked_with_their_line() {
    check(
        &format!("{HEAD}[[arg]]\ndtype = \"f32\"\nshape = [2]\n"),
        &[
            (
                "init = \"rnadom\"",
                "spec.toml:8: init in [[arg]]: unknown value \"rnadom\"; did you mean \"random\"?",
            ),
            ("init = \"file:missing.npy\"", "spec.toml:8: init in [[arg]]: there is no file \"missing.npy\""),
            (
                "init = \"ones\"\nseed = 2",
                "spec.toml:9: seed in [[arg]]: is only valid with init = \"random\"",
            ),
            ("range = [1, 1]", "spec.toml:8: range in [[arg]]: [1, 1) is empty"),
            (
                "range = [0, 1e39]",
                "spec.toml:8: range in [[arg]]: 1e39 does not fit f32, whose largest number is 3.4",
            ),
            (
                "range = [-inf, 0]",
                "spec.toml:8: range in [[arg]]: expected finite numbers of at most 1.8e308",
            ),
            (
                &format!("range = [0, 1{}]", "0".repeat(308)),
                "spec.toml:8: range in [[arg]]: 1e308 does not fit f32",
            ),
            (
                &format!("range = [0, 1{}]", "0".repeat(309)),
                "range in [[arg]]: expected finite numbers of at most 1.8e308",
            ),
            ("init = \"file:.\"", "spec.toml:8: init in [[arg]]: \".\" is not a regular file"),
            ("range = [1]", "spec.toml:8: range in [[arg]]: expected [lo, hi]"),
            ("strides = [1, 1]", "spec.toml:8: strides in [[arg]]: the shape has 1 dimension, got 2 strides"),
            ("use = \"write\"\nstrides = [0]", "spec.toml:9: strides in [[arg]]: elements overlap"),
            ("use = \"in\"", "spec.toml:8: use in [[arg]]: unknown value \"in\""),
            (
                "use = \"write\"\neach_call = \"initial\"",
                "spec.toml:9: each_call in [[arg]]: is only valid with use = \"readwrite\"",
            ),
            (
                "use = \"readwrite\"\neach_call = \"initials\"",
                "spec.toml:9: each_call in [[arg]]: unknown value \"initials\"; did you mean \"initial\"?",
            ),
            ("on = \"gpu\"", "spec.toml:8: on in [[arg]]: unknown value \"gpu\""),
        ],
    );
}

#[test]
fn references_are_checked_with_their_line() {
    check(
        &format!("{HEAD}[[arg]]\ndtype = \"f32\"\nshape = [2]\nuse = \"write\"\n[reference]\n"),
        &[
            ("rtol = 1", "spec.toml:9: missing key in [reference]: path and entry, or outputs"),
            ("path = \"k.c\"", "spec.toml:9: missing key \"entry\" in [reference]"),
            (
                "outputs = []",
                "spec.toml:10: outputs in [reference]: expected one file per written argument: 1, got 0",
            ),
            ("outputs = [\"data.npy\"]", "spec.toml:10: outputs in [reference]: expected \"file:PATH.npy\""),
            (
                "path = \"k.c\"\nentry = \"k\"\noutputs = [\"file:data.npy\"]",
                "spec.toml:12: outputs in [reference]: cannot be combined with",
            ),
            (
                "outputs = [\"file:data.npy\"]\nrtol = -1",
                "spec.toml:11: rtol in [reference]: must be a finite number of at least 0",
            ),
        ],
    );
}

#[test]
fn whole_specs_are_checked_with_their_line() {
    check(
        "",
        &[
            ("[kernel]\n", "spec.toml:1: missing key \"version\" in the spec"),
            (
                "version = 2\n",
                "spec.toml:1: version in the spec: unsupported version; this program reads version 1",
            ),
            ("version = 1\n", "missing key \"kernel\" in the spec"),
            (
                "version = 1\n[kernel]\npath = \"x.c\"\nentry = \"k\"\n",
                "spec.toml:3: path in [kernel]: there is no file \"x.c\"",
            ),
            (
                "version = 1\n[kernel]\npath = \"k\"\nentry = \"k\"\n",
                "spec.toml:3: path in [kernel]: the extension of \"k\" does not imply a code format",
            ),
        ],
    );
}

#[test]
fn input_files_are_listed() {
    let spec = parse(HEAD).unwrap();
    let names: Vec<_> = spec.files().iter().map(|path| path.file_name().unwrap().to_owned()).collect();
    assert_eq!(names, ["spec.toml", "k.c"]);
}

#[test]
fn a_byte_order_mark_is_skipped() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("k.c"), "").unwrap();
    let path = folder.path().join("spec.toml");
    std::fs::write(&path, format!("\u{feff}{HEAD}")).unwrap();
    Spec::load(&path, &Overrides::default()).unwrap();
    let error = Spec::load(folder.path(), &Overrides::default()).unwrap_err();
    assert!(error.message().contains("is a directory, not a regular file"), "{error}");
    let error = Spec::load(Path::new("/dev/zero"), &Overrides::default()).unwrap_err();
    assert!(error.message().contains("not a regular file"), "{error}");
    std::fs::File::create(&path).unwrap().set_len((64 << 20) + 1).unwrap();
    let error = Spec::load(&path, &Overrides::default()).unwrap_err();
    assert!(error.message().contains("larger than"), "{error}");
}

#[test]
fn a_missing_spec_is_named() {
    let error = Spec::load(Path::new("missing.toml"), &Overrides::default()).unwrap_err();
    assert!(error.to_string().contains("missing.toml"));
}

/// A spec whose sizes are expressions over scalars and constants.
const SIZED: &str = r#"
version = 1
[kernel]
path = "k.c"
entry = "k"
[[arg]]
name = "x"
dtype = "element"
shape = ["n", 2]
strides = ["2 * TILE", 1]
[[arg]]
local_bytes = "4 * TILE"
[[arg]]
name = "n"
scalar = "u32"
value = 100
[[arg]]
name = "alpha"
scalar = "element"
value = 1.5
[specialise]
element = "f32"
constants = { TILE = 8, FAST = true }
[launch]
groups = ["ceil(n / TILE)", "FAST"]
group_size = "TILE"
[cost]
flops = "len(x) * n"
"#;

#[test]
fn sizes_are_expressions() {
    let spec = parse(SIZED).unwrap();
    let x = tensor(&spec.args[0]);
    assert_eq!(
        (x.dtype, &x.shape[..], x.strides.as_deref()),
        (DType::F32, &[100, 2][..], Some(&[16, 1][..]))
    );
    assert!(matches!(spec.args[1].kind, ArgumentKind::Local(32)));
    assert_eq!(
        (spec.config.geometry().unwrap().groups, spec.config.geometry().unwrap().group_size),
        ([13, 1, 1], [8, 1, 1])
    );
    assert_eq!((spec.cost.flops, spec.name.as_str()), (Some(20000.0), "spec"));
    for (from, to, message) in [
        (
            "\"ceil(n / TILE)\"",
            "\"n / TILE\"",
            "groups in [launch]: the expression's value is 12.5, not a whole",
        ),
        ("\"n\", 2", "\"n - 101\", 2", "must be at least 0, the expression's value is -1"),
        ("\"ceil(n / TILE)\"", "\"1e15\"", "the expression's value, 1000000000000000, is too large"),
        ("\"ceil(n / TILE)\"", "\"1e300\"", ", not a whole number"),
        ("\"n\", 2", "\"x[0]\", 2", "unknown name \"x\""),
    ] {
        let error = parse(&SIZED.replacen(from, to, 1)).unwrap_err();
        assert!(error.contains(message), "{to}: {error}");
    }
}

#[test]
fn overrides_change_sizes_constants_and_types() {
    let values = [("n", Number::Integer(17)), ("TILE", Number::Integer(4)), ("FAST", Number::Bool(true))];
    let values = values.map(|(name, value)| (name.to_owned(), value)).to_vec();
    let spec =
        parse_with(SIZED, &Overrides { values, element: Some(DType::F64), ..Overrides::default() }).unwrap();
    let x = tensor(&spec.args[0]);
    assert_eq!(
        (x.dtype, &x.shape[..], spec.config.geometry().unwrap().groups),
        (DType::F64, &[17, 2][..], [5, 1, 1])
    );
    assert_eq!(
        (spec.specialise.element, &spec.specialise.constants[1].1),
        (Some(DType::F64), &OptionValue::Integer(4))
    );
    assert_eq!(spec.name, "spec n=17 TILE=4 FAST=true f64");
    let change =
        |name: &str, value| Overrides { values: vec![(name.to_owned(), value)], ..Overrides::default() };
    for (overrides, message) in [
        (
            change("m", Number::Integer(1)),
            "spec.toml has no scalar argument or constant of that name; did you mean \"n\"?",
        ),
        (change("x", Number::Integer(1)), "--set x: "),
        (change("n", Number::Float(1.5)), "value in [[arg]]: u32 requires an integer"),
        (
            change("TILE", Number::Integer(1 << 70)),
            "TILE in [specialise.constants]: the integer is too large",
        ),
    ] {
        let error = parse_with(SIZED, &overrides).unwrap_err();
        assert!(error.contains(message), "{overrides:?}: {error}");
    }
    let element = Overrides { element: Some(DType::F16), ..Overrides::default() };
    let error = parse_with(HEAD, &element).unwrap_err();
    assert!(error.contains("--element f16: ") && error.contains("has no element type"), "{error}");
}
