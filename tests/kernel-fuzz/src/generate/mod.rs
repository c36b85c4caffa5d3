//! Random kernels.
//!
//! They are valid and have the same result on every device: each work-item writes its own elements, or those assigned
//! to it between two barriers; atomics commute; loops are short. The interpreter rejects the kernels that break these
//! rules anyway.

mod context;
mod declarations;
mod expression;
mod forms;
mod function;
mod known_loop;
mod pointer;
mod statement;
mod without;

use std::rc::Rc;

use portable::random::Random;

use crate::case::{Case, Launch};
use crate::tree::{self, Expression, Scalar, Statement, Struct, Type};
use context::{Context, SharedUse, Space, Variable};
use expression::Constraints;
use function::Function;
pub use without::Without;

const U32: Type = Type::Scalar(Scalar::U32);

/// A kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Kernel {
    /// The declarations of its module.
    pub declarations: Vec<Statement>,
    /// How it is launched.
    pub launch: Launch,
    /// Extensions to enable: `f16`.
    pub enables: Vec<String>,
}

impl Kernel {
    /// The kernel as a case: WGSL with its launch.
    #[must_use]
    pub fn case(&self) -> Case {
        let enables: String = self.enables.iter().map(|name| format!("enable {name};\n")).collect();
        Case { launches: vec![self.launch.clone()], text: enables + &tree::text(&self.declarations) }
    }
}

/// Optional features that kernels may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// `i64` and `u64`.
    pub wide: bool,
    /// `f16`.
    pub half: bool,
}

impl Features {
    /// The features for a seed: of ten modules of 32 kernels, six use none, three use 64-bit integers, and one uses
    /// `f16`.
    #[must_use]
    pub const fn of(seed: u64) -> Self {
        match seed / 32 % 10 {
            2 | 5 | 8 => Self { wide: true, half: false },
            9 => Self { wide: false, half: true },
            _ => Self { wide: false, half: false },
        }
    }
}

/// Generates the text of a kernel.
struct Generator {
    random: Random,
    /// The suffix of all module-scope names.
    tag: String,
    /// The global index of the work-item; empty in a helper function.
    item: String,
    /// The index of the work-item in its group.
    lane: String,
    lanes: usize,
    immediates: String,
    first_immediate: String,
    scope: Vec<Variable>,
    /// The start of the innermost block in `scope`.
    block_start: usize,
    forbidden: Vec<String>,
    shared_uses: Vec<SharedUse>,
    /// The current nesting of indices.
    indices: usize,
    counting: bool,
    max_depth: usize,
    wide: bool,
    half: bool,
    structs: Vec<Rc<Struct>>,
    globals: Vec<Statement>,
    functions: Vec<Function>,
    privates: Vec<(String, Type)>,
    /// Types that may get a second name.
    types: Vec<Type>,
    /// Private variables that the current function uses.
    used: Vec<String>,
    without: Without,
    fuel: usize,
    /// The number of calls that may still be generated.
    calls: usize,
    names: usize,
    result: Option<Type>,
    output: Option<String>,
    /// Output words per work-item.
    words: usize,
    own_tensor: Option<(String, Type)>,
    /// The integer tensor for row sums, in some kernels.
    rows: Option<(String, Scalar)>,
    /// All input and output tensors.
    tensors: Vec<String>,
    totals: Option<String>,
    /// The override that is the group size.
    size_override: Option<String>,
    /// Atomics in work-group memory, one per work-item.
    own_atomics: Option<String>,
    workgroup_counters: Option<String>,
    counters: usize,
    uniform_cell: Option<(String, Type)>,
    /// The function that changes the bound of a loop.
    changer: Option<String>,
}

/// Names with a meaning in C, OpenCL C, CUDA C++ or the generated code, but not in WGSL.
const RESERVED_WORDS: [&str; 52] = [
    "LANES",
    "int",
    "float4",
    "FLT_MAX",
    "M_PI",
    "main",
    "I",
    "half",
    "uint",
    "size_t",
    "printf",
    "INT_MAX",
    "linux",
    "unix",
    "errno",
    "get_global_id",
    "barrier",
    "threadIdx",
    "signed",
    "long",
    "short",
    "char",
    "double",
    "kernel",
    "global",
    "local",
    "constant",
    "complex",
    "NAN",
    "INFINITY",
    "y0",
    "j1",
    "gamma",
    "index",
    "read",
    "write",
    "uint32_t",
    "memcpy",
    "first_0_",
    "at",
    "x_",
    "item",
    "group",
    "HUGE_VAL",
    "blockDim",
    "ulong",
    "rint",
    "lane",
    "self_",
    "tid",
    "value",
    "M_E",
];

/// Work-group sizes.
const GROUP_SIZES: [[u32; 3]; 16] = [
    [1, 1, 1],
    [2, 1, 1],
    [3, 1, 1],
    [7, 1, 1],
    [16, 1, 1],
    [13, 1, 1],
    [64, 1, 1],
    [4, 4, 1],
    [5, 3, 1],
    [2, 3, 2],
    [1, 8, 1],
    [32, 1, 1],
    [33, 1, 1],
    [256, 1, 1],
    [8, 8, 4],
    [300, 1, 1],
];

/// The kernel for a seed.
#[must_use]
pub fn kernel(seed: u64, without: Without) -> Kernel {
    let features = Features::of(seed);
    let mut random = Random::new(seed.wrapping_mul(0x5851_f42d_4c95_7f2d) ^ 0x1234);
    let size = *random.one(&GROUP_SIZES);
    let lanes = size.iter().product::<u32>() as usize;
    let tag = format!("_{seed}");
    let mut generator = Generator {
        item: String::new(),
        lane: String::new(),
        lanes,
        immediates: format!("s{tag}"),
        first_immediate: String::new(),
        scope: Vec::new(),
        block_start: 0,
        forbidden: Vec::new(),
        shared_uses: Vec::new(),
        indices: 0,
        counting: true,
        max_depth: 3,
        wide: features.wide,
        half: features.half,
        structs: Vec::new(),
        globals: Vec::new(),
        functions: Vec::new(),
        privates: Vec::new(),
        types: Vec::new(),
        used: Vec::new(),
        without,
        fuel: 8 + random.below(44),
        calls: 0,
        names: 0,
        result: None,
        output: None,
        words: 3,
        own_tensor: None,
        rows: None,
        tensors: Vec::new(),
        totals: None,
        size_override: None,
        own_atomics: None,
        workgroup_counters: None,
        counters: 4,
        uniform_cell: None,
        changer: None,
        random,
        tag,
    };
    generator.kernel(size, features, seed)
}

impl Generator {
    fn kernel(&mut self, size: [u32; 3], features: Features, seed: u64) -> Kernel {
        self.declare_structs();
        let immediates = self.declare_immediates();
        let groups = *self.random.one(&[[1, 1, 1], [2, 1, 1], [3, 1, 1], [2, 2, 1]]);
        let total = self.lanes * groups.iter().product::<u32>() as usize;
        let mut lengths = self.declare_tensors(total);
        if seed % 8 == 2 {
            lengths.push(self.declare_rows(lengths.len(), total));
        }
        let scalars = immediates.into_iter().map(|scalar| self.immediate(scalar, &lengths)).collect();
        let constants = self.declare_overrides();
        self.declare_privates();
        let mut functions = Vec::new();
        let count = self.random.below(4);
        self.calls = 2;
        for at in 0..count {
            functions.push(self.function_declaration(at));
        }
        if self.random.once_in(2) {
            functions.push(self.changer_declaration());
        }
        self.calls = 4;
        let shared = self.shared_arrays();
        let entry = self.entry(size, &shared);
        let mut declarations = std::mem::take(&mut self.globals);
        declarations.extend(functions);
        declarations.push(entry);
        self.name_types(&mut declarations);
        let launch =
            Launch { entry: format!("k{}", self.tag), groups, lengths, scalars, constants, seed: seed + 1 };
        let enables = features.half.then(|| "f16".to_owned()).into_iter().collect();
        Kernel { declarations, launch, enables }
    }

    fn global(&mut self, text: &str) {
        self.globals.push(Statement::new(text, Vec::new()));
    }

    fn entry(&mut self, size: [u32; 3], shared: &[Variable]) -> Statement {
        let [x, y, z] = size;
        let lanes = self.lanes;
        let line = |text: &str| Statement::new(text, Vec::new());
        let mut body = Vec::new();
        let one_row = y * z == 1 && self.random.below(3) > 0;
        let lane = if one_row { "local.x" } else { "at_lane" };
        body.push(line(&format!("let gid = (group.y * count.x + group.x) * {lanes}u + {lane};")));
        body.push(line(&format!("let lid = {lane};")));
        let names = if one_row { ["lid", "local.x"] } else { ["lid", "at_lane"] };
        (self.item, self.lane) = ("gid".to_owned(), (*self.random.one(&names)).to_owned());
        self.declare_positions();
        self.scope.extend(shared.iter().cloned());
        if let Some((name, element)) = self.own_tensor.clone() {
            let text = format!("{name}[gid]");
            let variable = Variable::value(&text, element, false);
            self.scope.push(Variable { writable: true, ..variable });
        }
        self.block_start = self.scope.len();
        if self.without.zeros {
            body.extend(self.clear_workgroup_memory(shared));
        }
        let barriers = self.random.below(4) > 0;
        let context = Context {
            uniform: true,
            depth: self.max_depth,
            loops: 0,
            breaks: false,
            continues: false,
            returns: !barriers || self.random.once_in(8),
            barriers,
        };
        if !barriers && self.random.once_in(2) {
            self.fuel = 30;
        }
        let length = 4 + self.random.below(8);
        body.extend(self.statements(context, length));
        if barriers {
            let context = Context { uniform: false, returns: true, barriers: false, ..context };
            self.fuel = self.fuel.min(20);
            body.extend(self.statements(context, 4));
        }
        if self.random.once_in(16) {
            self.deep(context, &mut body);
        }
        body.extend(self.write_variables());
        let x = match &self.size_override {
            Some(name) if y * z == 1 => name.clone(),
            _ => x.to_string(),
        };
        let head = format!(
            "\u{1}compute \u{1}workgroup_size({x}, {y}, {z})\nfn k{}(\u{1}builtin(global_invocation_id) id: vec3u, \
             \u{1}builtin(local_invocation_id) local: vec3u, \u{1}builtin(workgroup_id) group: vec3u, \
             \u{1}builtin(num_workgroups) count: vec3u, \u{1}builtin(local_invocation_index) at_lane: u32) ",
            self.tag
        );
        line(&head).block("", body)
    }

    /// The names of positions that every entry point has.
    fn declare_positions(&mut self) {
        let three = Type::Vector(3, Scalar::U32);
        for (name, ty, is_uniform) in [
            ("gid", &U32, false),
            ("lid", &U32, false),
            ("id", &three, false),
            ("local", &three, false),
            ("group", &three, true),
            ("count", &three, true),
        ] {
            self.scope.push(Variable::value(name, ty.clone(), is_uniform));
        }
    }

    /// Clears all work-group memory.
    fn clear_workgroup_memory(&self, shared: &[Variable]) -> Vec<Statement> {
        let line = |text: &str| Statement::new(text, Vec::new());
        let mut body = Vec::new();
        for variable in shared {
            let zero = variable.ty.element().map_or(String::new(), |(element, _)| element.zero());
            body.push(line(&format!("{}[{}] = {zero};", variable.name, self.lane)));
        }
        if let Some(counters) = &self.workgroup_counters {
            let each = line(&format!("for (var i = 0u; i < {}u; i++) ", self.counters));
            let each = each.block("", vec![line(&format!("atomicStore(&{counters}[i], 0u);"))]);
            body.push(line(&format!("if {} == 0u ", self.lane)).block("", vec![each]));
        }
        if !body.is_empty() {
            body.push(line("workgroupBarrier();"));
        }
        body
    }

    /// Writes the final values of the variables to the output.
    fn write_variables(&mut self) -> Vec<Statement> {
        let Some(output) = self.output.clone() else { return Vec::new() };
        let variables: Vec<_> = self
            .scope
            .iter()
            .filter(|v| v.writable && !matches!(v.space, Space::Shared(_)) && self.is_visible(v))
            .cloned()
            .collect();
        let mut block = Vec::new();
        for name in &self.tensors {
            let (item, words) = (&self.item, self.words);
            let text = format!("{output}[{item} * {words}u] += arrayLength(&{name});");
            block.push(Statement::new(&text, Vec::new()));
        }
        for variable in variables {
            for _ in 0..2 {
                let whole = variable.expression();
                let scalars = [
                    Scalar::U32,
                    Scalar::I32,
                    Scalar::Bool,
                    Scalar::F32,
                    Scalar::I64,
                    Scalar::U64,
                    Scalar::F16,
                ];
                let scalars: Vec<_> =
                    scalars.into_iter().filter(|s| whole.ty.has(&Type::Scalar(*s))).collect();
                if scalars.is_empty() {
                    continue;
                }
                let scalar = *self.random.one(&scalars);
                let part = self.part(whole, &Type::Scalar(scalar), Constraints { depth: 0, uniform: false });
                let pattern = match scalar {
                    Scalar::F16 | Scalar::F32 => "u32(i32(@))",
                    Scalar::Bool => "select(3u, 5u, @)",
                    _ => "u32(@)",
                };
                let value = Expression::new(U32, pattern, vec![part]);
                let at = self.random.below(self.words);
                let (item, words) = (&self.item, self.words);
                let place = format!("{output}[{item} * {words}u + {at}u]");
                block.push(Statement::new(&format!("{place} = {place} * 31u + @;"), vec![value]));
            }
        }
        block
    }

    /// A random type for variables; with `depth`, arrays and structures too.
    pub(super) fn ty(&mut self, depth: usize) -> Type {
        let ty = self.any_ty(depth);
        self.types.push(ty.clone());
        ty
    }

    fn any_ty(&mut self, depth: usize) -> Type {
        match self.random.below(10) {
            0 | 1 => Type::Vector(2 + self.random.below(3), self.scalar(true)),
            2 if self.random.once_in(3) => {
                let scalar = if self.half && self.random.once_in(2) { Scalar::F16 } else { Scalar::F32 };
                Type::Matrix(2 + self.random.below(3), 2 + self.random.below(3), scalar)
            }
            3 | 4 if depth > 0 => {
                let element = self.ty(depth - 1);
                Type::Array(Box::new(element), 1 + self.random.below(5))
            }
            5 if depth > 0 && !self.structs.is_empty() => {
                Type::Struct(self.random.one(&self.structs.clone()).clone())
            }
            _ => Type::Scalar(self.scalar(true)),
        }
    }

    /// A type for tensor elements: without `bool`.
    fn ty_in_memory(&mut self) -> Type {
        loop {
            let ty = if self.random.once_in(2) { self.padded_type() } else { self.ty(2) };
            if !ty.any(|scalar| scalar == Scalar::Bool) {
                return ty;
            }
        }
    }

    /// A name that is unused in the innermost block.
    pub(super) fn name(&mut self) -> String {
        self.names += 1;
        for _ in 0..4 {
            let name = match self.random.below(3) {
                0 => (*self.random.one(&RESERVED_WORDS)).to_owned(),
                1 => format!("v{}", self.random.below(6)),
                _ => format!("v{}", self.names + 6),
            };
            let taken = self.scope[self.block_start..].iter().any(|variable| variable.name == name)
                || self.forbidden.contains(&name)
                || ["item", "group", "lane", "local"].contains(&name.as_str());
            if !taken {
                return name;
            }
        }
        format!("v{}", self.names + 6)
    }

    fn is_visible(&self, variable: &Variable) -> bool {
        self.scope.iter().rev().find(|other| other.name == variable.name).is_some_and(|last| {
            last.text == variable.text
                && last.ty == variable.ty
                && last.space == variable.space
                && last.writable == variable.writable
                && last.uniform == variable.uniform
                && last.constant == variable.constant
        })
    }

    fn may_read(&self, variable: &Variable) -> bool {
        !matches!(variable.space, Space::Shared(at) if self.shared_uses[at] == SharedUse::Leader)
    }

    fn note_use(&mut self, variable: &Variable) {
        if variable.space == Space::Private {
            self.used.push(variable.root.clone());
        }
    }

    /// Makes the variables from this one on unusable; they still hide others of the same names.
    fn hide(&mut self, from: usize) {
        for variable in &mut self.scope[from..] {
            *variable = Variable::value(&variable.name, Type::Nothing, false);
        }
    }

    fn open(&mut self) -> (usize, usize) {
        let kept = (self.scope.len(), self.block_start);
        self.block_start = kept.0;
        kept
    }

    fn close(&mut self, (length, opened): (usize, usize)) -> Vec<Variable> {
        self.block_start = opened;
        self.scope.split_off(length)
    }

    /// Protects a loop counter: nothing in the loop may shadow or write it.
    fn forbid(&mut self, name: &str) {
        self.forbidden.push(name.to_owned());
    }

    fn allow(&mut self, name: &str) {
        self.forbidden.retain(|other| other != name);
    }

    /// Begins a helper function.
    fn enter_function(&mut self) -> Vec<Variable> {
        self.used = Vec::new();
        self.block_start = self.scope.len();
        self.scope.clone()
    }

    /// Ends a helper function; returns the private variables that it uses.
    fn leave_function(&mut self, kept: Vec<Variable>) -> Vec<String> {
        self.scope = kept;
        self.result = None;
        std::mem::take(&mut self.used)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzz::check;

    /// Why a valid kernel has no result that every device must produce.
    const NO_FAULTS: [&str; 4] = [
        "two work-items race",
        "not all work-items reach a barrier",
        "a float result is not exact",
        "the kernel takes too many steps",
    ];

    /// The range has kernels that declared a name again where what followed meant the outer one.
    #[test]
    fn kernels_are_valid() {
        for seed in 7_000_000_250..7_000_000_450 {
            let case = kernel(seed, Without::default()).case();
            let fault = check(&case).err().filter(|reason| !NO_FAULTS.contains(&reason.as_str()));
            assert_eq!(fault, None, "{seed}: {case}");
        }
    }

    /// Without the nesting limit, these two seeds overflow the stack of a thread.
    #[test]
    fn indices_within_indices_come_to_an_end() {
        for seed in [118_589_935_170, 310_000_000_451] {
            let text = kernel(seed, Without::default()).case().text;
            assert!(text.contains("@compute"), "{text}");
        }
    }
}
