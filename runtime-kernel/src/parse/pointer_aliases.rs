//! Rejects calls whose pointers lead to memory that the function also reaches in another way, if it may write it: WGSL's alias
//! analysis (§alias-analysis), which naga lacks (gfx-rs/wgpu#7650). Parts of a variable count as the variable.

use naga::{Block, Expression, FastHashMap, Function, Handle, Module, Span, Statement};

use super::diagnostics::location;
use crate::ir::operands::used_by;
use crate::ir::variables::{self, Root};
use crate::ir::{Global, Value, blocks};

/// What a function may do with memory, itself or through calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Access {
    reads: bool,
    writes: bool,
}

impl Access {
    const READ: Self = Self { reads: true, writes: false };
    const WRITE: Self = Self { reads: false, writes: true };

    const fn and(self, other: Self) -> Self {
        Self { reads: self.reads || other.reads, writes: self.writes || other.writes }
    }

    /// Whether the same memory must not be accessed in both ways.
    const fn conflicts(self, other: Self) -> bool {
        self.writes && (other.reads || other.writes) || self.reads && other.writes
    }
}

/// The accesses of a function to memory that its caller may know by another name.
#[derive(Debug, Default)]
struct Accesses {
    arguments: Vec<Access>,
    variables: FastHashMap<Global, Access>,
}

/// The messages for the calls of a module that break the rule, one per call.
pub(super) fn errors(module: &Module, code: &str, path: &str) -> Vec<String> {
    let takes_pointer = |function: &Function| {
        let mut arguments = function.arguments.iter();
        arguments.any(|argument| module.types[argument.ty].inner.pointer_space().is_some())
    };
    if !module.functions.iter().any(|(_, function)| takes_pointer(function)) {
        return Vec::new();
    }
    let mut analysis = Analysis { module, code, path, functions: Vec::new(), errors: Vec::new() };
    // A function precedes its callers.
    for function in blocks::functions(module) {
        let accesses = analysis.accesses(function);
        analysis.functions.push(accesses);
    }
    analysis.errors
}

struct Analysis<'a> {
    module: &'a Module,
    code: &'a str,
    path: &'a str,
    /// By function.
    functions: Vec<Accesses>,
    errors: Vec<String>,
}

impl Analysis<'_> {
    fn accesses(&mut self, function: &Function) -> Accesses {
        let arguments = vec![Access::default(); function.arguments.len()];
        let mut accesses = Accesses { arguments, ..Accesses::default() };
        for (_, expression) in function.expressions.iter() {
            match expression {
                Expression::Load { pointer } => accesses.note(function, *pointer, Access::READ),
                Expression::CooperativeLoad { data, .. } => {
                    accesses.note(function, data.pointer, Access::READ);
                }
                _ => {}
            }
        }
        self.block(function, &function.body, &mut accesses);
        accesses
    }

    fn block(&mut self, function: &Function, block: &Block, accesses: &mut Accesses) {
        for (statement, span) in block.span_iter() {
            match statement {
                Statement::Store { pointer, .. } => accesses.note(function, *pointer, Access::WRITE),
                Statement::Atomic { pointer, .. } => {
                    accesses.note(function, *pointer, Access { reads: true, writes: true });
                }
                Statement::WorkGroupUniformLoad { pointer, .. } => {
                    accesses.note(function, *pointer, Access::READ);
                }
                Statement::CooperativeStore { data, .. } => {
                    accesses.note(function, data.pointer, Access::WRITE);
                }
                Statement::Call { function: called, .. } => {
                    self.call(function, *called, &used_by(statement).0, *span, accesses);
                }
                _ => {}
            }
            blocks::inner(statement).for_each(|block| self.block(function, block, accesses));
        }
    }

    fn call(
        &mut self,
        function: &Function,
        called: Handle<Function>,
        arguments: &[Value],
        span: Span,
        accesses: &mut Accesses,
    ) {
        let Some(own) = self.functions.get(called.index()) else { return };
        let passed = arguments.iter().zip(&own.arguments).enumerate();
        let passed = passed.filter(|(_, (_, access))| **access != Access::default());
        let passed: Vec<_> = passed.map(|(at, (argument, access))| (at, *argument, *access)).collect();
        let error = self.conflict(function, called, &passed);
        self.errors.extend(error.map(|what| format!("{}: {what}", location(self.code, self.path, span))));
        for (_, argument, access) in passed {
            accesses.note(function, argument, access);
        }
        for (variable, access) in &own.variables {
            accesses.note_variable(*variable, *access);
        }
    }

    /// What is wrong with a call, whose accesses through its arguments are `passed`.
    fn conflict(
        &self,
        function: &Function,
        called: Handle<Function>,
        passed: &[(usize, Value, Access)],
    ) -> Option<String> {
        let own = &self.functions[called.index()];
        let called = &self.module.functions[called];
        let name = called.name.as_deref().unwrap_or_default();
        let named = |at: usize| called.arguments[at].name.as_deref().unwrap_or_default();
        for (nth, (at, argument, access)) in passed.iter().enumerate() {
            let memory = Memory::of(function, *argument);
            let what = memory.description(self.module, function);
            let other = passed[..nth].iter().find(|(_, earlier, earlier_access)| {
                access.conflicts(*earlier_access) && Memory::of(function, *earlier) == memory
            });
            if let Some((other, _, earlier_access)) = other {
                let (one, two) = (named(*other), named(*at));
                let written = if earlier_access.writes { one } else { two };
                return Some(format!(
                    "arguments \"{one}\" and \"{two}\" of function '{name}' both point into {what}, and it writes through \
                     \"{written}\"; pass a pointer to a copy for one of them"
                ));
            }
            let direct = memory.root.global().and_then(|variable| own.variables.get(&variable));
            if let Some(direct) = direct.filter(|direct| access.conflicts(**direct)) {
                let [own, passed] =
                    [direct.writes, access.writes].map(|is| if is { "writes" } else { "reads" });
                return Some(format!(
                    "function '{name}' {passed} {what} through its argument \"{}\", and also {own} {what} itself; pass a pointer \
                     to a copy, or let it use the argument alone",
                    named(*at)
                ));
            }
        }
        None
    }
}

impl Accesses {
    /// Notes an access through a pointer.
    fn note(&mut self, function: &Function, pointer: Value, access: Access) {
        let memory = Memory::of(function, pointer);
        if let Some(known) = memory.argument.and_then(|argument| self.arguments.get_mut(argument)) {
            *known = known.and(access);
        }
        if let Some(variable) = memory.root.global() {
            self.note_variable(variable, access);
        }
    }

    fn note_variable(&mut self, variable: Global, access: Access) {
        let known = self.variables.entry(variable).or_default();
        *known = known.and(access);
    }
}

/// The variable that a pointer leads into, or the argument that it comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Memory {
    root: Root,
    argument: Option<usize>,
}

impl Memory {
    fn of(function: &Function, pointer: Value) -> Self {
        Self { root: variables::root(function, pointer), argument: variables::argument(function, pointer) }
    }

    fn description(self, module: &Module, function: &Function) -> String {
        let (name, is_argument) = match (self.root, self.argument) {
            (Root::Local(variable), _) => (&function.local_variables[variable].name, false),
            (Root::Global(variable), _) => (&module.global_variables[variable].name, false),
            (Root::Argument, argument) => match argument.and_then(|at| function.arguments.get(at)) {
                Some(argument) => (&argument.name, true),
                None => (&None, false),
            },
        };
        let name = name.as_deref().unwrap_or_default();
        if is_argument { format!("what \"{name}\" points to") } else { format!("\"{name}\"") }
    }
}

#[cfg(test)]
mod tests {
    use naga::front::wgsl;

    /// The errors of a module whose function `main` has some statements.
    fn errors(statements: &str) -> Vec<String> {
        let code = format!(
            "enable wgpu_cooperative_matrix; struct S {{ n: atomic<u32>, m: u32 }}
             var<workgroup> w: S; var<private> p: array<u32, 4>; var<private> q: u32; var<private> z: u32;
             @group(0) @binding(0) var<storage, read_write> y: array<f32>;
             fn read(a: ptr<private, u32>, b: ptr<private, u32>) -> u32 {{ return *a + *b; }}
             fn write(a: ptr<private, u32>, b: ptr<private, u32>) {{ if *a > 1u {{ loop {{ *b = 1u; break; }} }} }}
             fn unused(a: ptr<private, u32>, b: ptr<private, u32>) {{ *a = 1u; }}
             fn swap(a: ptr<private, u32>, b: ptr<private, u32>) {{ write(b, a); }}
             fn reads_p() -> u32 {{ return p[1]; }}
             fn writes_q() {{ q = 1u; }}
             fn one(a: ptr<private, u32>) {{ *a = reads_p(); writes_q(); }}
             fn other(a: ptr<private, u32>) -> u32 {{ let before = *a; writes_q(); return before + reads_p(); }}
             fn add(a: ptr<workgroup, atomic<u32>>, b: ptr<workgroup, u32>) {{ atomicAdd(a, workgroupUniformLoad(b)); }}
             fn load(a: ptr<workgroup, atomic<u32>>, b: ptr<workgroup, u32>) -> u32 {{ return atomicLoad(a) + *b; }}
             fn matrix(a: ptr<storage, array<f32>, read_write>) {{
                 let m = coopLoad<coop_mat8x8<f32, A>>(&y[0], 8u); coopStore(m, &(*a)[0], 8u);
             }}
             fn loads(a: ptr<storage, array<f32>, read_write>) {{
                 let m = coopLoad<coop_mat8x8<f32, A>>(&(*a)[0], 8u); y[0] = 1.0;
             }}
             @compute @workgroup_size(8, 8) fn main() {{ var v = 1u; {statements} }}"
        );
        super::errors(&wgsl::parse_str(&code).expect(&code), &code, "k.wgsl")
    }

    #[test]
    fn memory_that_is_written_has_one_name() {
        for statements in [
            "_ = read(&p[0], &p[1]);",
            "write(&p[0], &q); write(&q, &p[0]);",
            "unused(&q, &q);",
            "one(&z);",
            "_ = other(&p[1]);",
            "load(&w.n, &w.m);",
        ] {
            assert_eq!(errors(statements), [""; 0], "{statements}");
        }
        for (statements, expected) in [
            ("write(&p[0], &p[1]);", "\"a\" and \"b\" of function 'write' both point into \"p\""),
            ("if v > 0u { write(&q, &q); }", "writes through \"b\""),
            ("swap(&q, &q);", "writes through \"a\""),
            ("one(&p[3]);", "'one' writes \"p\" through its argument \"a\", and also reads \"p\" itself"),
            (
                "_ = other(&q);",
                "'other' reads \"q\" through its argument \"a\", and also writes \"q\" itself",
            ),
            ("add(&w.n, &w.m);", "both point into \"w\", and it writes through \"a\""),
            ("matrix(&y);", "'matrix' writes \"y\" through its argument \"a\", and also reads \"y\" itself"),
            ("loads(&y);", "'loads' reads \"y\" through its argument \"a\", and also writes \"y\" itself"),
        ] {
            let errors = errors(statements);
            assert!(errors.len() == 1 && errors[0].contains(expected), "{statements}: {errors:?}");
            assert!(errors[0].starts_with("k.wgsl:20: "), "{errors:?}");
        }
    }
}
