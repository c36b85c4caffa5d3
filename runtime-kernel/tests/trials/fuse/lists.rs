//! Lists of launches, also random ones.
#![allow(clippy::cast_possible_truncation, reason = "small numbers")]

use runtime_core::lowering::FusionArg::Tensor;
use runtime_core::lowering::{
    FusedArg, FusionArg, FusionLaunch, FusionPlan, FusionRequest, FusionTensor, PlannedKernel,
    PortableSource, Promotion,
};
use runtime_core::{DType, DeviceInfo, Options};

/// A launch: its code, entry point, groups and arguments.
#[derive(Clone, Debug)]
pub(crate) struct Launch {
    pub(crate) code: String,
    pub(crate) entry: String,
    pub(crate) groups: [u32; 3],
    pub(crate) args: Vec<FusionArg>,
}

/// Launches, the initial elements of their tensors, and the tensors that nobody reads afterwards.
#[derive(Clone, Debug, Default)]
pub(crate) struct Case {
    pub(crate) launches: Vec<Launch>,
    pub(crate) tensors: Vec<Vec<u32>>,
    pub(crate) temporary: Vec<usize>,
    /// Where those are kept.
    pub(crate) promotion: Option<Promotion>,
    pub(crate) constants: bool,
}

impl Case {
    pub(crate) fn plan(&self, device: &DeviceInfo) -> FusionPlan {
        let options = Options::new();
        let launches = self.launches.iter().map(|launch| FusionLaunch {
            source: PortableSource { code: &launch.code, path: "", options: &options },
            entry: &launch.entry,
            groups: launch.groups,
            args: &launch.args,
        });
        let launches = launches.collect::<Vec<_>>();
        let tensors = self.tensors.iter().enumerate().map(|(index, data)| FusionTensor {
            bytes: data.len() as u64 * 4,
            overlaps: Vec::new(),
            promotion: match self.temporary.contains(&index) {
                true => self.promotion.unwrap_or(Promotion::Auto),
                false => Promotion::None,
            },
        });
        let tensors: Vec<_> = tensors.collect();
        let request = FusionRequest {
            launches: &launches,
            tensors: &tensors,
            constants: self.constants,
            assume_group_local: false,
        };
        runtime_kernel::wgsl().fuse(&request, device).expect("a plan")
    }

    /// The text, entry point, groups and arguments of a kernel of a plan.
    pub(crate) fn resolved<'a>(
        &'a self,
        planned: &'a PlannedKernel,
    ) -> (&'a str, &'a str, [u32; 3], Vec<FusionArg>) {
        match &planned.code {
            Some(code) => {
                let args = code.args.iter().map(|arg| self.fused_arg(*arg)).collect();
                (&code.text, &code.entry, self.launches[code.groups_of].groups, args)
            }
            None => {
                let launch = &self.launches[planned.launches.start];
                (&launch.code, &launch.entry, launch.groups, launch.args.clone())
            }
        }
    }

    fn fused_arg(&self, arg: FusedArg) -> FusionArg {
        let number = |value: u64| FusionArg::Scalar { dtype: DType::U32, bits: value };
        match arg {
            FusedArg::Of { launch, arg } => self.launches[launch].args[arg],
            FusedArg::Groups { launch, axis } => number(self.launches[launch].groups[axis].into()),
            FusedArg::Length { tensor, stride } => {
                number(self.tensors[tensor].len() as u64 * 4 / u64::from(stride))
            }
        }
    }
}

pub(crate) const fn number(value: u32) -> FusionArg {
    FusionArg::Scalar { dtype: DType::U32, bits: value as u64 }
}

/// Tensors of `len` different elements each.
pub(crate) fn tensors(count: usize, len: u32) -> Vec<Vec<u32>> {
    (0..count as u32)
        .map(|tensor| (0..len).map(|i| (i + 7 * tensor).wrapping_mul(0x9e37_79b1) >> 7).collect())
        .collect()
}

/// Random numbers.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % u64::from(bound)) as u32
    }

    fn one<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len() as u32) as usize]
    }
}

/// What most kernels of a list loop over.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Loop {
    None,
    /// Elements, in steps of all items.
    Grid,
    /// The elements of rows, in steps of a group.
    Rows,
    /// The elements of an item.
    Own,
}

/// The shape that most kernels of a list have.
#[derive(Clone, Copy)]
struct Style {
    size: [u32; 3],
    groups: [u32; 3],
    element: &'static str,
    repeated: Loop,
    width: u32,
    n: u32,
}

const TENSORS: usize = 6;

fn style(random: &mut Random) -> Style {
    let (size, groups) = random.one(&[
        ([64, 1, 1], [16, 1, 1]),
        ([64, 1, 1], [5, 1, 1]),
        ([32, 1, 1], [20, 1, 1]),
        ([8, 4, 1], [3, 8, 1]),
        ([16, 1, 1], [5, 3, 1]),
        ([64, 1, 1], [1, 1, 1]),
    ]);
    let is_line = groups[1] == 1 && size[1] == 1;
    let repeated =
        random.one(&[Loop::None, Loop::None, Loop::None, Loop::None, Loop::Grid, Loop::Rows, Loop::Own]);
    Style {
        size,
        groups,
        element: random.one(&["u32", "u32", "f32", "vec4u"]),
        repeated: if is_line { repeated } else { Loop::None },
        width: random.one(&[16, 20, 31, 40]),
        n: random.one(&[1000, 700, 64, 3]),
    }
}

/// The index of an access; the first ones are those of most kernels.
fn index(random: &mut Random, style: Style) -> &'static str {
    let two = style.groups[1] > 1 || style.size[1] > 1;
    let usual: &[&str] = match style.repeated {
        Loop::Grid => &["k"],
        Loop::Rows => &["row * s.w + k"],
        Loop::Own => &["4u * id.x + k"],
        Loop::None if two => &["id.y * s.w + id.x"],
        Loop::None => &["id.x"],
    };
    let linear =
        &["id.x", "id.y * s.w + id.x", "4u * id.x + 2u", "3u * id.x", "id.x + 5u", "g.x * 64u + l.x"][..];
    let same = &[
        "(id.x / 24u) * 24u + id.x % 24u",
        "(id.x >> 2u) * 4u + (id.x & 3u)",
        "(id.x / s.w) * s.w + id.x % s.w",
        "id.x % 2000u",
        "min(id.x, s.n - 1u)",
        "select(0u, id.x, id.x < s.n)",
        "clamp(id.x, 0u, 1023u)",
        "g.x * 64u + 63u - l.x",
        "g.x * 64u + (l.x + 1u) % 64u",
        "g.x * 64u + l.x / 2u",
        "g.x * 64u + max(l.x, 1u) - 1u",
    ][..];
    let other = &[
        "s.n - 1u - id.x",
        "id.x ^ 1u",
        "g.x",
        "l.x",
        "0u",
        "id.x / 2u",
        "id.x % 64u",
        "(id.x / s.w) * 40u + id.x % s.w",
        "(id.x + 1u) % s.n",
        "max(id.x, 1u) - 1u",
        "id.x + k",
        "4u * id.x + k",
        "id.x * s.w + k",
        "k * 64u + id.x",
    ][..];
    let list = match random.below(20) {
        0..13 => usual,
        13..15 => linear,
        15..18 => same,
        _ => other,
    };
    random.one(list)
}

fn value(random: &mut Random, style: Style, tensor: &str) -> String {
    let element = format!("{tensor}[{}]", index(random, style));
    let literal = |number: u32| match style.element {
        "f32" => format!("{number}.0"),
        "vec4u" => format!("vec4u({number}u)"),
        _ => format!("{number}u"),
    };
    match random.below(6) {
        0 => format!("({element} * {})", literal(3)),
        1 => format!("({element} {} ({element} * {element}))", exclusive(style)),
        2 => format!("max({element}, {})", literal(77)),
        3 if style.element == "f32" => format!("({element} + f32(id.x))"),
        3 => format!("({element} + id.x)"),
        _ => element,
    }
}

/// An operation that floating-point numbers do not have, or another one for them.
fn exclusive(style: Style) -> &'static str {
    if style.element == "f32" { "-" } else { "^" }
}

fn statement(random: &mut Random, style: Style) -> String {
    let operator = random.one(&["=", "=", "=", "+=", if style.element == "f32" { "*=" } else { "^=" }]);
    let join = format!(" {} ", random.one(&["+", exclusive(style), "-"]));
    let values = [value(random, style, "x"), value(random, style, "z")].join(&join);
    let store = format!("y[{}] {operator} {values};", index(random, style));
    let guard = random.one(&[
        "id.x < s.n",
        "id.x < s.w",
        "id.x < s.w && id.y < s.n",
        "l.x == 0u",
        "id.x + 1u < s.n",
        "id.x % 3u != 0u",
    ]);
    let text = match random.below(9) {
        0 | 1 => store,
        2..=4 => format!("if {guard} {{ {store} }}"),
        5 => format!("if !({guard}) {{ return; }} {store}"),
        6 if style.repeated == Loop::None => format!(
            "for (var k = {}; k < {}; k += {}) {{ {store} }}",
            random.one(&["0u", "1u", "l.x"]),
            random.one(&["4u", "s.w", "5u"]),
            random.one(&["1u", "2u", "64u"])
        ),
        7 => format!("if {guard} {{ {store} }} else {{ y[{}] = x[0]; }}", index(random, style)),
        _ => format!("{store} {store}"),
    }
    .replace("[id.x + k]", "[id.x + kk]");
    repeated(random, style, &text)
}

/// A statement in the loop of a style.
fn repeated(random: &mut Random, style: Style, text: &str) -> String {
    let size = style.size[0];
    match style.repeated {
        Loop::None => text.to_owned(),
        Loop::Grid => {
            let start = random.one(&["id.x", "id.x", "id.x", "id.x", "id.x + 1u", "l.x"]);
            let step = random.one(&[size, size, size, size, size, 2 * size, size / 2]);
            format!("for (var k = {start}; k < s.n; k += groups.x * {step}u) {{ {text} }}")
        }
        Loop::Rows => {
            let bound = random.one(&["s.w", "s.w", "s.w", "s.w", "s.w + 1u"]);
            format!(
                "for (var row = g.x; row < 20u; row += groups.x) {{
                     for (var k = l.x; k < {bound}; k += {size}u) {{ {text} }}
                 }}"
            )
        }
        Loop::Own => {
            let bound = random.one(&["4u", "4u", "4u", "4u", "5u", "3u"]);
            format!("for (var k = 0u; k < {bound}; k++) {{ {text} }}")
        }
    }
}

fn kernel(random: &mut Random, style: Style) -> String {
    let [a, b, c] = style.size;
    let element = style.element;
    let mut body = statement(random, style);
    if !body.contains("for (") {
        body = format!("const k = 1u; {body}");
    }
    let body = body.replace("kk", "k");
    let reduction = "tile[li] = x[id.x]; workgroupBarrier(); if li == 0u { for (var j = 0u; j < 16u; j++) { y[g.x] += tile[j]; } }";
    let body = if random.below(12) == 0 { reduction.to_owned() } else { body };
    format!(
        "struct Scalars {{ n: u32, w: u32 }}
         var<immediate> s: Scalars;
         var<workgroup> tile: array<{element}, {}>;
         @group(0) @binding(0) var<storage, read> x: array<{element}>;
         @group(0) @binding(1) var<storage, read_write> y: array<{element}>;
         @group(0) @binding(2) var<storage, read> z: array<{element}>;
         @compute @workgroup_size({a}, {b}, {c}) fn main(
             @builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_id) l: vec3u,
             @builtin(workgroup_id) g: vec3u, @builtin(local_invocation_index) li: u32,
             @builtin(num_workgroups) groups: vec3u) {{
             _ = arrayLength(&x) + arrayLength(&y) + arrayLength(&z) + s.n; {body}
         }}",
        a * b * c
    )
}

/// A random list of launches.
pub(crate) fn list(random: &mut Random) -> Case {
    let style = style(random);
    let mut launches = Vec::new();
    let mut last = 0;
    let mut wanted = vec![last];
    for step in 0..2 + random.below(7) as usize {
        let x = if random.below(4) > 0 { last } else { random.below(TENSORS as u32) as usize };
        let y = (x + 1 + random.below(TENSORS as u32 - 1) as usize) % TENSORS;
        let z = random.one(&[x, x, (y + 1) % TENSORS]);
        let mut own = style;
        if random.below(12) == 0 {
            own.groups[0] = 1 + random.below(own.groups[0]);
        }
        let args = vec![Tensor(x), Tensor(y), Tensor(z), number(own.n), number(own.width)];
        launches.push(Launch {
            code: kernel(random, own),
            entry: "main".to_owned(),
            groups: own.groups,
            args,
        });
        last = y;
        wanted.push(if step % 2 == 0 { y } else { wanted[0] });
    }
    let temporary = (0..TENSORS).filter(|_| random.below(3) == 0).collect();
    let mut data = tensors(TENSORS, 1000);
    for tensor in &mut data {
        tensor.truncate(random.one(&[1000, 1000, 1000, 100]));
    }
    Case { launches, tensors: data, temporary, promotion: None, constants: random.below(3) == 0 }
}
