//! Converts kernels to WGSL.

use super::{
    Array, Barrier, Block, COUNTERS, Form, Kernel, LOOPS, OUTPUTS, Place, Slot, Statement, functions,
    variable, variables,
};
use crate::tree::{self, Input, Tree};

/// The number of input words.
pub(crate) const INPUTS: usize = 61;

struct Writer<'a> {
    kernel: &'a Kernel,
    variables: Vec<Input>,
    text: String,
    depth: usize,
}

/// The WGSL text of a kernel.
#[must_use]
pub fn text(kernel: &Kernel) -> String {
    let (e, n, [x, y, z]) = (&kernel.entry, kernel.lanes(), kernel.size);
    let mut writer = Writer { kernel, variables: variables(), text: String::new(), depth: 1 };
    writer.block(&kernel.body);
    let outputs: String = (0..variable::LID)
        .map(|index| {
            let name = &writer.variables[index].name;
            let word = if name.starts_with('u') { name.clone() } else { format!("bitcast<u32>({name})") };
            format!("    {e}_out[gid * {OUTPUTS}u + {index}u] = {word};\n")
        })
        .collect();
    format!(
        "struct {e}_A {{ arg: i32 }}
var<immediate> {e}_a: {e}_A;
@group(0) @binding(0) var<storage, read> {e}_in: array<i32>;
@group(0) @binding(1) var<storage, read_write> {e}_out: array<u32>;
@group(0) @binding(2) var<storage, read_write> {e}_st: array<i32>;
@group(0) @binding(3) var<storage, read_write> {e}_total: array<atomic<u32>>;
var<workgroup> {e}_sa: array<i32, {n}>;
var<workgroup> {e}_sb: array<u32, {n}>;
var<workgroup> {e}_sc: array<atomic<u32>, {COUNTERS}>;
var<workgroup> {e}_cell: i32;
{}@compute @workgroup_size({x}, {y}, {z})
fn {e}(@builtin(local_invocation_index) lid: u32, @builtin(workgroup_id) group: vec3<u32>) {{
    let wid = group.x; let gid = wid * {n}u + lid; let arg = {e}_a.arg;
    var v0 = i32(lid); var v1 = i32(gid) * 7i - 3i; var v2 = {e}_in[lid % {INPUTS}u]; var v3 = 0i; var v4 = -1i;
    var u0 = lid ^ 5u; var u1 = gid;
    var n0 = arg; var n1 = i32(wid); var n2 = 2i;
    {e}_sa[lid] = i32(lid) * 3i; {e}_sb[lid] = lid; {e}_st[gid] = i32(gid);
    if (lid < {COUNTERS}u) {{ atomicStore(&{e}_sc[lid], 0u); }}
    if ({n}u < {COUNTERS}u && lid == 0u) {{
        for (var i = 0u; i < {COUNTERS}u; i++) {{ atomicStore(&{e}_sc[i], 0u); }}
    }}
    if (lid == 0u) {{ {e}_cell = arg; atomicOr(&{e}_total[2], 0u); }}
    workgroupBarrier();
    storageBarrier();
{}{outputs}}}
",
        functions::text(kernel),
        writer.text,
    )
}

impl Writer<'_> {
    fn line(&mut self, line: &str) {
        self.text += &"    ".repeat(self.depth);
        self.text += line;
        self.text.push('\n');
    }

    fn expression(&self, tree: &Tree) -> String {
        tree::text(tree, &self.variables)
    }

    fn name(&self, index: usize) -> String {
        self.variables[index].name.clone()
    }

    fn block(&mut self, block: &Block) {
        block.iter().for_each(|statement| self.statement(statement));
    }

    fn inside(&mut self, head: &str, block: &Block) {
        self.line(&format!("{head} {{"));
        self.depth += 1;
        self.block(block);
        self.depth -= 1;
    }

    fn statement(&mut self, statement: &Statement) {
        let e = &self.kernel.entry.clone();
        let line = match statement {
            Statement::Assign(variable, tree) => {
                format!("{} = {};", self.name(*variable), self.expression(tree))
            }
            Statement::Read(variable, array, place) => {
                let value = self.array(*array, &self.place(place));
                format!("{} = {value};", self.name(*variable))
            }
            Statement::Write(array, slot, tree) => {
                format!("{} = {};", self.array(*array, &self.slot(*slot)), self.expression(tree))
            }
            Statement::Input(variable, tree) => {
                format!("{} = {e}_in[{} % {INPUTS}u];", self.name(*variable), self.expression(tree))
            }
            Statement::Output(slot, tree) => {
                format!("{e}_out[gid * {OUTPUTS}u + {}u] = {};", variable::LID + slot, self.expression(tree))
            }
            Statement::Count(global, slot, tree) => {
                let (array, name) = (if *global { "total" } else { "sc" }, COUNTING[*slot]);
                format!("{name}(&{e}_{array}[{slot}], {});", self.expression(tree))
            }
            Statement::Counter(variable, slot) => {
                format!("{} = atomicLoad(&{e}_sc[{slot}]);", self.name(*variable))
            }
            Statement::SetCell(tree) => format!("if (lid == 0u) {{ {e}_cell = {}; }}", self.expression(tree)),
            Statement::LoadCell(variable) => {
                format!("{} = workgroupUniformLoad(&{e}_cell);", self.name(*variable))
            }
            Statement::Break => "break;".to_owned(),
            Statement::Continue => "continue;".to_owned(),
            Statement::Return => "return;".to_owned(),
            Statement::Barrier(Barrier::Workgroup) => "workgroupBarrier();".to_owned(),
            Statement::Barrier(Barrier::Storage) => "storageBarrier();".to_owned(),
            Statement::Barrier(Barrier::Both) => "workgroupBarrier(); storageBarrier();".to_owned(),
            Statement::Call(function, variable, first, second) => {
                let (first, second) = (self.expression(first), self.expression(second));
                functions::call(e, *function, &self.name(*variable), &first, &second)
            }
            Statement::If(..) | Statement::Loop(..) | Statement::Switch(..) => return self.nested(statement),
        };
        self.line(&line);
    }

    fn nested(&mut self, statement: &Statement) {
        match statement {
            Statement::If(condition, yes, no) => {
                self.inside(&format!("if ({})", self.expression(condition)), yes);
                if !no.is_empty() {
                    self.inside("} else", no);
                }
                self.line("}");
            }
            Statement::Switch(selector, [first, second, rest]) => {
                self.line(&format!("switch ({} % 4u) {{", self.expression(selector)));
                self.inside("case 0u:", first);
                self.inside("} case 1u, 2u:", second);
                self.inside("} default:", rest);
                self.line("} }");
            }
            Statement::Loop(form, depth, limit, bound, body, continuing) => {
                self.repeat((*form, *depth), *limit, bound, [body, continuing]);
            }
            _ => {}
        }
    }

    fn repeat(
        &mut self,
        (form, depth): (Form, usize),
        limit: i32,
        bound: &Tree,
        [body, continuing]: [&Block; 2],
    ) {
        assert!(depth < LOOPS, "too many loops");
        let end = format!("min({limit}i, {})", self.expression(bound));
        let k = format!("k{depth}");
        match form {
            Form::For => {
                self.inside(&format!("for (var {k} = 0i; {k} < {end}; {k} += 1i)"), body);
                self.line("}");
            }
            Form::While => {
                self.inside(&format!("{{ var {k} = 0i; while ({k} < {end})"), &Vec::new());
                self.depth += 1;
                self.line(&format!("{k} += 1i;"));
                self.block(body);
                self.depth -= 1;
                self.line("} }");
            }
            Form::Continuing => {
                self.inside(&format!("{{ var {k} = 0i; loop"), body);
                self.depth += 1;
                self.inside("continuing", continuing);
                self.line(&format!("    {k} += 1i; break if {k} >= {end};"));
                self.line("}");
                self.depth -= 1;
                self.line("} }");
            }
        }
    }

    fn array(&self, array: Array, index: &str) -> String {
        let (e, n) = (&self.kernel.entry, self.kernel.lanes());
        match array {
            Array::Signed => format!("{e}_sa[{index}]"),
            Array::Unsigned => format!("{e}_sb[{index}]"),
            Array::Storage => format!("{e}_st[wid * {n}u + {index}]"),
        }
    }

    fn slot(&self, slot: Slot) -> String {
        let n = self.kernel.lanes();
        match slot {
            Slot::Rotated(0) => "lid".to_owned(),
            Slot::Rotated(by) => format!("(lid + {by}u) % {n}u"),
            Slot::Reversed => format!("{}u - lid", n - 1),
        }
    }

    fn place(&self, place: &Place) -> String {
        match place {
            Place::Own(slot) => self.slot(*slot),
            Place::Any(tree) => format!("{} % {}u", self.expression(tree), self.kernel.lanes()),
        }
    }
}

/// The operation of each counter; all of them commute.
const COUNTING: [&str; COUNTERS] = ["atomicAdd", "atomicMax", "atomicOr", "atomicXor"];
