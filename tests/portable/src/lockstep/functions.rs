//! The helper functions of random kernels: their text, and their results for all invocations of a group.

use super::{Function, Kernel};

/// The text of the functions of a kernel, with their work-group memory.
#[must_use]
pub(crate) fn text(kernel: &Kernel) -> String {
    let (e, n) = (&kernel.entry, kernel.lanes());
    format!(
        "var<workgroup> {e}_f: array<i32, {n}>;
fn {e}_rotate(lid: u32, x: i32) -> i32 {{
    {e}_f[lid] = x;
    workgroupBarrier();
    let r = {e}_f[(lid + 1u) % {n}u];
    workgroupBarrier();
    return r;
}}
fn {e}_scan(lid: u32, x: i32) -> i32 {{
    var sum = x;
    for (var d = 1u; d < {n}u; d *= 2u) {{
        {e}_f[lid] = sum;
        workgroupBarrier();
        if (lid >= d) {{ sum += {e}_f[lid - d]; }}
        workgroupBarrier();
    }}
    return sum;
}}
fn {e}_pick(lid: u32, uniform_: i32, x: i32) -> i32 {{
    if (uniform_ > 1i) {{ return x; }}
    let r = {e}_rotate(lid, x * 3i);
    if (lid == 2u) {{ return uniform_; }}
    return r - 1i;
}}
fn {e}_search(x: i32, y: i32) -> i32 {{
    var found = y;
    for (var i = 0i; i < 5i; i++) {{
        if ((x >> u32(i)) % 3i == 1i) {{ continue; }}
        var j = i;
        while (true) {{
            j += 2i;
            if (j > 6i) {{ break; }}
            if ((y ^ j) % 5i == 0i) {{ return i * 10i + j; }}
        }}
        found += j;
        if (found > 100i) {{ return found; }}
    }}
    return -found;
}}
fn {e}_bump(p: ptr<function, i32>, x: i32) {{
    if (x > 3i) {{ *p += x; return; }}
    *p ^= x;
}}
"
    )
}

/// The text of a call.
#[must_use]
pub(crate) fn call(entry: &str, function: Function, variable: &str, first: &str, second: &str) -> String {
    match function {
        Function::Rotate => format!("{variable} = {entry}_rotate(lid, {second});"),
        Function::Scan => format!("{variable} = {entry}_scan(lid, {second});"),
        Function::Pick => format!("{variable} = {entry}_pick(lid, {first}, {second});"),
        Function::Search => format!("{variable} = {entry}_search({first}, {second});"),
        Function::Bump => format!("{entry}_bump(&{variable}, {second});"),
    }
}

/// The results for all invocations; the arguments are the old value of the target variable and both operands.
#[must_use]
pub(crate) fn results(function: Function, arguments: &[(i32, i32, i32)]) -> Vec<i32> {
    let n = arguments.len();
    let neighbour = |lane: usize| arguments[(lane + 1) % n].2;
    let result = |(lane, &(old, first, second)): (usize, &(i32, i32, i32))| match function {
        Function::Rotate => neighbour(lane),
        Function::Scan => arguments[..=lane].iter().fold(0i32, |sum, (.., x)| sum.wrapping_add(*x)),
        Function::Pick if first > 1 => second,
        Function::Pick if lane == 2 => first,
        Function::Pick => neighbour(lane).wrapping_mul(3).wrapping_sub(1),
        Function::Search => search(first, second),
        Function::Bump if second > 3 => old.wrapping_add(second),
        Function::Bump => old ^ second,
    };
    arguments.iter().enumerate().map(result).collect()
}

/// Whether all invocations must call it together.
#[must_use]
pub(crate) const fn has_barrier(function: Function) -> bool {
    matches!(function, Function::Rotate | Function::Scan | Function::Pick)
}

fn search(x: i32, y: i32) -> i32 {
    let mut found = y;
    for i in 0..5 {
        if (x >> i) % 3 == 1 {
            continue;
        }
        let mut j = i;
        loop {
            j += 2;
            if j > 6 {
                break;
            }
            if (y ^ j) % 5 == 0 {
                return i * 10 + j;
            }
        }
        found = found.wrapping_add(j);
        if found > 100 {
            return found;
        }
    }
    found.wrapping_neg()
}
