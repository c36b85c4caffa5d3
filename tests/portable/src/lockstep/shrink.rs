//! Shrinks kernels.

use super::{Block, Kernel, Statement};

/// Kernels with one statement removed, or replaced by its contents; the largest reductions first.
#[must_use]
pub fn smaller(kernel: &Kernel) -> Vec<Kernel> {
    let mut kernels: Vec<_> =
        blocks(&kernel.body).into_iter().map(|body| Kernel { body, ..kernel.clone() }).collect();
    if kernel.groups > 1 {
        kernels.push(Kernel { groups: 1, ..kernel.clone() });
    }
    for size in [[1, 1, 1], [2, 1, 1], [3, 1, 1], [8, 1, 1]] {
        if size.iter().product::<u32>() < kernel.size.iter().product() {
            kernels.push(Kernel { size, ..kernel.clone() });
        }
    }
    kernels
}

fn blocks(block: &Block) -> Vec<Block> {
    let mut all = Vec::new();
    for at in 0..block.len() {
        let with = |inside: Vec<Statement>| {
            let (front, back) = (&block[..at], &block[at + 1..]);
            [front, &inside, back].concat()
        };
        all.push(with(Vec::new()));
        match &block[at] {
            Statement::If(condition, yes, no) => {
                all.extend([with(yes.clone()), with(no.clone())]);
                let with_if = |yes, no| with(vec![Statement::If(condition.clone(), yes, no)]);
                all.extend(blocks(yes).into_iter().map(|yes| with_if(yes, no.clone())));
                all.extend(blocks(no).into_iter().map(|no| with_if(yes.clone(), no)));
            }
            Statement::Switch(selector, cases) => {
                for case in 0..cases.len() {
                    all.push(with(cases[case].clone()));
                    all.extend(blocks(&cases[case]).into_iter().map(|block| {
                        let mut cases = cases.clone();
                        cases[case] = block;
                        with(vec![Statement::Switch(selector.clone(), cases)])
                    }));
                }
            }
            Statement::Loop(form, depth, limit, bound, body, continuing) => {
                all.push(with(body.clone()));
                let with_loop = |body, continuing| {
                    with(vec![Statement::Loop(*form, *depth, *limit, bound.clone(), body, continuing)])
                };
                all.extend(blocks(body).into_iter().map(|body| with_loop(body, continuing.clone())));
                all.extend(blocks(continuing).into_iter().map(|block| with_loop(body.clone(), block)));
            }
            _ => {}
        }
    }
    all
}
