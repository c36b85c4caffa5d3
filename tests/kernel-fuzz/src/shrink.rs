//! Shrinks kernels.

use crate::generate::Kernel;
use crate::tree::{Expression, Part, Statement, Type};

/// A path in the tree: the index of a statement and of a part, for each level.
type Path = Vec<usize>;

/// All kernels that are one step smaller, the largest reductions first. They are generated lazily.
pub fn smaller(kernel: &Kernel) -> impl Iterator<Item = Kernel> + '_ {
    let declarations = &kernel.declarations;
    let with = |declarations: Vec<Statement>| Kernel { declarations, ..kernel.clone() };
    let blocks = blocks(declarations);
    // Ranges of statements: whole blocks, halves, quarters, …
    let mut runs = Vec::new();
    for (path, length) in &blocks {
        let mut run = *length;
        while run > 0 {
            let starts = (0..*length).step_by(run);
            runs.extend(starts.map(|start| (path.clone(), start..(start + run).min(*length))));
            run /= 2;
        }
    }
    runs.sort_by_key(|(_, range)| std::cmp::Reverse(range.len()));
    let singles = blocks.into_iter().flat_map(|(path, length)| (0..length).map(move |at| (path.clone(), at)));
    let removals = runs.into_iter().map(|(path, range)| removed(declarations, &path, range));
    let unwraps = singles.flat_map(|(path, at)| unwrapped(declarations, &path, at));
    removals.chain(unwraps).map(with).chain(launches(kernel)).chain(expressions(declarations).map(with))
}

/// Kernels with smaller launches.
fn launches(kernel: &Kernel) -> Vec<Kernel> {
    let mut found = Vec::new();
    let launch = &kernel.launch;
    if launch.groups != [1; 3] {
        let mut kernel = kernel.clone();
        kernel.launch.groups = [1; 3];
        found.push(kernel);
    }
    for (at, value) in launch.scalars.iter().enumerate() {
        for smaller in ["0", "1"] {
            if value != "0" && value != smaller {
                let mut kernel = kernel.clone();
                smaller.clone_into(&mut kernel.launch.scalars[at]);
                found.push(kernel);
            }
        }
    }
    for (at, length) in launch.lengths.iter().enumerate() {
        for smaller in [1, length / 2] {
            if smaller < *length {
                let mut kernel = kernel.clone();
                kernel.launch.lengths[at] = smaller;
                found.push(kernel);
            }
        }
    }
    if launch.seed != 0 {
        let mut kernel = kernel.clone();
        kernel.launch.seed = 0;
        found.push(kernel);
    }
    found
}

/// The paths and lengths of all blocks; the module's declarations come first.
fn blocks(statements: &[Statement]) -> Vec<(Path, usize)> {
    fn walk(statements: &[Statement], path: &mut Path, found: &mut Vec<(Path, usize)>) {
        found.push((path.clone(), statements.len()));
        for (at, statement) in statements.iter().enumerate() {
            for (part, inner) in statement.0.iter().enumerate() {
                if let Part::Block(block) = inner {
                    path.extend([at, part]);
                    walk(block, path, found);
                    path.truncate(path.len() - 2);
                }
            }
        }
    }
    let mut found = Vec::new();
    walk(statements, &mut Vec::new(), &mut found);
    found
}

fn block_at<'a>(statements: &'a mut Vec<Statement>, path: &[usize]) -> Option<&'a mut Vec<Statement>> {
    match path {
        [] => Some(statements),
        [at, part, rest @ ..] => match statements.get_mut(*at)?.0.get_mut(*part)? {
            Part::Block(block) => block_at(block, rest),
            _ => None,
        },
        [_] => None,
    }
}

fn removed(statements: &[Statement], path: &[usize], range: std::ops::Range<usize>) -> Vec<Statement> {
    let mut whole = statements.to_vec();
    if let Some(block) = block_at(&mut whole, path) {
        block.drain(range);
    }
    whole
}

/// Replaces a statement with each of its blocks, and with itself without the last block.
fn unwrapped(statements: &[Statement], path: &[usize], at: usize) -> Vec<Vec<Statement>> {
    let mut found = Vec::new();
    let mut copy = statements.to_vec();
    let Some(statement) = block_at(&mut copy, path).and_then(|block| block.get(at).cloned()) else {
        return found;
    };
    for part in &statement.0 {
        if let Part::Block(inner) = part {
            let mut whole = statements.to_vec();
            if let Some(block) = block_at(&mut whole, path) {
                block.splice(at..=at, inner.iter().cloned());
            }
            found.push(whole);
        }
    }
    let parts = statement.0.len();
    if parts > 3 {
        let mut whole = statements.to_vec();
        if let Some(block) = block_at(&mut whole, path) {
            block[at].0.truncate(parts - 2);
        }
        found.push(whole);
    }
    found
}

/// Replaces each expression with a part of the same type, or with a literal.
fn expressions(statements: &[Statement]) -> impl Iterator<Item = Vec<Statement>> + '_ {
    let variants = (0..count(statements)).flat_map(|at| (0..6).map(move |variant| (at, variant)));
    variants.filter_map(|(at, variant)| {
        let mut whole = statements.to_vec();
        (replace(&mut whole, &mut { at }, variant) == Some(true)).then_some(whole)
    })
}

fn count(statements: &[Statement]) -> usize {
    fn parts(pieces: &[Part]) -> usize {
        let of = |part: &Part| match part {
            Part::Text(_) => 0,
            Part::Expression(expression) => 1 + parts(&expression.parts),
            Part::Block(block) => count(block),
        };
        pieces.iter().map(of).sum()
    }
    statements.iter().map(|statement| parts(&statement.0)).sum()
}

/// Replaces the expression number `left`. `None` if it is not in here; otherwise whether the variant exists.
fn replace(statements: &mut [Statement], left: &mut usize, variant: usize) -> Option<bool> {
    statements.iter_mut().find_map(|statement| replace_in(&mut statement.0, left, variant))
}

fn replace_in(pieces: &mut [Part], left: &mut usize, variant: usize) -> Option<bool> {
    for part in pieces {
        match part {
            Part::Text(_) => {}
            Part::Block(block) => {
                if let Some(done) = replace(block, left, variant) {
                    return Some(done);
                }
            }
            Part::Expression(expression) => {
                if *left == 0 {
                    return Some(simplify(expression, variant));
                }
                *left -= 1;
                if let Some(done) = replace_in(&mut expression.parts, left, variant) {
                    return Some(done);
                }
            }
        }
    }
    None
}

fn simplify(expression: &mut Expression, variant: usize) -> bool {
    let value = |text: String, ty: &Type| Expression::new(ty.clone(), &text, Vec::new());
    let short = expression.parts.len() == 1;
    let ty = expression.ty.clone();
    if !expression.replaceable || ty == Type::Nothing {
        return false;
    }
    match (variant, &ty) {
        (0, _)
            if !(short
                && matches!(&expression.parts[0], Part::Text(text) if *text == ty.zero() || text.starts_with(|c: char| c.is_ascii_digit()))) =>
        {
            *expression = value(ty.zero(), &ty);
            true
        }
        (1, Type::Scalar(scalar)) if !short => {
            *expression = value(scalar.literal(1), &ty);
            true
        }
        (2.., _) => {
            let inner = expression.parts.iter().filter_map(|part| match part {
                Part::Expression(inner) if inner.ty == ty => Some(inner.clone()),
                _ => None,
            });
            match inner.collect::<Vec<_>>().into_iter().nth(variant - 2) {
                Some(inner) => {
                    *expression = inner;
                    true
                }
                None => false,
            }
        }
        _ => false,
    }
}
