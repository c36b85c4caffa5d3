//! Signatures of kernels whose element types are open, and layouts of strided tensors.

use std::fmt::Write as _;

use runtime_core::lowering::{ElementType, PortableSource, SignatureKind};
use runtime_core::{Access, DType, ErrorKind, Options};
use runtime_kernel::{Dialect, Program, Specialisation};

/// The parameters as one line of text each.
fn signature(code: &str, entry: &str, options: &Options) -> runtime_core::Result<String> {
    let source = PortableSource { code, path: "k.wgsl", options };
    let list = runtime_kernel::wgsl().signature(&source, entry)?.expect("wgsl has signatures");
    let mut text = String::new();
    for param in &list {
        let kind = match &param.kind {
            SignatureKind::Tensor { access, element } => format!("{access:?} {}", shown(element)),
            SignatureKind::Scalar(element) => shown(element),
            SignatureKind::Layout { tensor, rank } => {
                format!("layout of {}, rank {rank}", list[*tensor].name)
            }
            SignatureKind::Bytes | SignatureKind::Local => "not of WGSL".to_owned(),
        };
        writeln!(text, "{}: {kind}", param.name).expect("text takes everything");
    }
    Ok(text)
}

fn shown(element: &ElementType) -> String {
    match element {
        ElementType::Fixed(dtype) => dtype.to_string(),
        ElementType::Parameter(name) => format!("<{name}>"),
        ElementType::Any => "any".to_owned(),
    }
}

const KERNEL: &str = "
alias T = f32;
alias U = i32;
alias W = T;
alias Row = vec4<W>;
override GROUP: u32; // no default
override LENGTH: u32;
struct Pair { a: u32, b: f32 }
struct Args { alpha: W, n: u32, shift: U }
var<immediate> args: Args;
@group(0) @binding(3) var<storage, read_write> counts: array<atomic<U>>;
@group(0) @binding(0) var<storage, read> x: array<T>;
@group(0) @binding(1) var<storage, read_write> rows: array<Row>;
@group(0) @binding(2) var<storage, read> pairs: array<Pair>;
@group(0) @binding(4) var<storage, read> fixed: array<f32>;
@group(0) @binding(0) var<storage, read_write> other: array<i32>;
var<workgroup> tile: array<T, LENGTH>;
@compute @workgroup_size(GROUP) fn main(@builtin(global_invocation_id) id: vec3u) {
    tile[id.x] = args.alpha * x[id.x];
    if id.x < args.n { rows[id.x] += Row(T(fixed[id.x])) + Row(T(pairs[id.x].b)) + Row(tile[id.x]); }
    atomicAdd(&counts[id.x], U(args.shift));
}
@compute @workgroup_size(1) fn second() { other[0] = 1; }
";

const MAIN: &str = "\
x: Read <T>
rows: ReadWrite <T>
pairs: Read any
counts: ReadWrite <U>
fixed: Read f32
alpha: <T>
n: u32
shift: <U>
";

#[test]
fn a_signature_names_the_type_parameters_of_an_entry_point() {
    assert_eq!(signature(KERNEL, "main", &Options::new()).unwrap(), MAIN);
    assert_eq!(signature(KERNEL, "second", &Options::new()).unwrap(), "other: Write i32\n");
}

#[test]
fn a_type_that_the_source_sets_is_fixed() {
    let options = Options::new().with("element", "f16").with("constant", "GROUP=8");
    let expected = MAIN.replace("<T>", "f16");
    assert_eq!(signature(KERNEL, "main", &options).unwrap(), expected);
    let options = Options::new().with("element", "U=u32").with("element", "T=f32");
    assert_eq!(
        signature(KERNEL, "main", &options).unwrap(),
        MAIN.replace("<T>", "f32").replace("<U>", "u32")
    );
}

#[test]
fn a_signature_agrees_with_the_interface_for_every_choice() {
    let constants = Specialisation::default().constant("GROUP", 8).constant("LENGTH", 8);
    for (t, u) in [(DType::F32, DType::U32), (DType::F16, DType::I32), (DType::F64, DType::U32)] {
        let program =
            Program::parse(KERNEL, "", &constants.clone().element(t).element_named("U", u)).unwrap();
        let interface = &program.interfaces()[0];
        let dtypes = interface.tensors.iter().map(|tensor| tensor.dtype);
        let dtypes = dtypes.chain(interface.scalars.iter().map(|scalar| Some(scalar.dtype)));
        let signature = MAIN.lines().map(|line| match line.rsplit(' ').next() {
            Some("<T>") => Some(t),
            Some("<U>") => Some(u),
            Some("any") => None,
            other => Some(other.unwrap().parse().unwrap()),
        });
        assert!(dtypes.eq(signature), "{t} {u}");
    }
}

#[test]
fn errors_of_a_signature_are_those_of_lowering() {
    let kind = |code: &str, entry: &str, options: Options| {
        let error = signature(code, entry, &options).unwrap_err();
        (error.kind(), error.message().to_owned())
    };
    let (kinds, message) = kind(KERNEL, "mian", Options::new());
    assert!(
        kinds == ErrorKind::NotFound && message.contains("\"mian\"") && message.contains("main"),
        "{message}"
    );
    let (kinds, message) = kind("fn f( {", "f", Options::new());
    assert!(kinds == ErrorKind::CompileFailed && message.contains("k.wgsl:1"), "{message}");
    let (kinds, message) = kind(KERNEL, "main", Options::new().with("element", "V=f16"));
    assert!(kinds == ErrorKind::InvalidArgument && message.contains("alias V = f32;"), "{message}");
    let (kinds, message) = kind(KERNEL, "main", Options::new().with("element", "=f16"));
    assert!(kinds == ErrorKind::InvalidArgument && message.contains("NAME=TYPE"), "{message}");
}

fn strided(layout: &str, member: &str) -> String {
    format!(
        "{layout}
         struct Args {{ a: f32, {member}: Layout, n: u32 }} var<immediate> args: Args;
         @group(0) @binding(0) var<storage, read> x: array<f32>;
         @group(0) @binding(1) var<storage, read_write> y: array<f32>;
         fn offset(l: Layout, index: u32) -> u32 {{
             var rest = index; var sum = 0u;
             for (var d = 4u; d > 0; d--) {{
                 sum += rest % u32(l.shape[d - 1]) * u32(l.strides[d - 1]);
                 rest /= u32(l.shape[d - 1]);
             }}
             return sum;
         }}
         @compute @workgroup_size(64) fn copy(@builtin(global_invocation_id) id: vec3u) {{
             if id.x < args.n {{ y[id.x] = args.a * x[offset(args.{member}, id.x)]; }}
         }}"
    )
}

const LAYOUT: &str = "struct Layout { shape: array<u32, 4>, strides: array<i32, 4> }";

#[test]
fn a_layout_is_one_parameter_and_two_scalars_per_dimension() {
    let code = strided(LAYOUT, "x_layout");
    assert_eq!(
        signature(&code, "copy", &Options::new()).unwrap(),
        "x: Read f32\ny: Write f32\na: f32\nx_layout: layout of x, rank 4\nn: u32\n"
    );
    let program = Program::parse(&code, "", &Specialisation::default()).unwrap();
    let interface = &program.interfaces()[0];
    let names: Vec<_> = interface.scalars.iter().map(|scalar| scalar.name.as_str()).collect();
    assert_eq!(names[..3], ["a", "x_layout.shape[0]", "x_layout.shape[1]"]);
    assert_eq!(
        names[5..],
        ["x_layout.strides[0]", "x_layout.strides[1]", "x_layout.strides[2]", "x_layout.strides[3]", "n"]
    );
    assert!(interface.scalars.iter().zip(0..).all(|(scalar, at)| scalar.offset_bytes == 4 * at));
    assert_eq!(interface.tensors[0].access, Access::Read);
    for dialect in [Dialect::Cuda, Dialect::OpenCl, Dialect::Host] {
        program.c(dialect, runtime_kernel::Checks::Bounded).unwrap();
    }
    program.spirv(runtime_kernel::Checks::Bounded).unwrap();
}

#[test]
fn a_layout_of_another_form_is_an_error_that_says_the_convention() {
    let refused = |layout: &str, member: &str, what: &str| {
        let error =
            Program::parse(&strided(layout, member), "k.wgsl", &Specialisation::default()).unwrap_err();
        let message = error.message().to_owned();
        assert_eq!(error.kind(), ErrorKind::CompileFailed, "{message}");
        assert!(message.starts_with("k.wgsl:2: \"args\" ") && message.contains(what), "{message}");
        assert!(
            message.contains("struct Layout { shape: array<u32, R>, strides: array<i32, R> }"),
            "{message}"
        );
    };
    refused(LAYOUT, "z_layout", "names no tensor");
    refused(LAYOUT, "x", "names no tensor");
    for layout in [
        "struct Layout { shape: array<u32, 4>, strides: array<i32, 3> }",
        "struct Layout { shape: array<u32, 9>, strides: array<i32, 9> }",
        "struct Layout { shape: array<i32, 4>, strides: array<i32, 4> }",
        "struct Layout { strides: array<i32, 4>, shape: array<u32, 4> }",
        "struct Layout { shape: array<u32, 4>, strides: array<i32, 4>, offset: u32 }",
    ] {
        refused(layout, "x_layout", "of another form");
    }
}
