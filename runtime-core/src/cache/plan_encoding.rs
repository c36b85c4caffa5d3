//! Plans of fusion as bytes, for the notes beside the code cache.

use std::ops::Range;

use super::encoding::{Input, options, put_list, put_option, put_options, put_text, put_u32, put_u64};
use crate::{FusedArg, FusedCode, FusionPlan, PlannedKernel, Promotion, Seam};

/// The values that a plan relies on: it is right only for launches that have them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Relied {
    /// Scalars, by launch and argument.
    pub(crate) scalars: Vec<((usize, usize), u64)>,
    /// Numbers of groups, by launch.
    pub(crate) groups: Vec<(usize, [u32; 3])>,
}

/// A plan, with the values that it relies on.
pub(crate) fn encode_plan(plan: &FusionPlan, relied: &Relied) -> Vec<u8> {
    let FusionPlan { kernels, seams, relies_on, relies_on_groups } = plan;
    let mut out = Vec::new();
    put_list(&mut out, kernels, |out, PlannedKernel { launches, code }| {
        put_usize(out, launches.start);
        put_usize(out, launches.end);
        put_option(out, code.as_ref(), put_code);
    });
    put_list(&mut out, seams, |out, Seam { fused, reason }| {
        out.push(u8::from(*fused));
        put_text(out, reason);
    });
    put_list(&mut out, relies_on, |out, (launch, arg)| {
        put_usize(out, *launch);
        put_usize(out, *arg);
    });
    put_list(&mut out, relies_on_groups, |out, launch| put_usize(out, *launch));
    put_list(&mut out, &relied.scalars, |out, (_, bits)| put_u64(out, *bits));
    put_list(&mut out, &relied.groups, |out, (_, groups)| {
        groups.iter().for_each(|number| put_u32(out, *number));
    });
    out
}

/// Reads what [`encode_plan`] wrote; `None` if it is anything else. Whether the plan fits a list is not checked.
pub(crate) fn decode_plan(bytes: &[u8]) -> Option<(FusionPlan, Relied)> {
    let mut input = Input(bytes);
    let kernels = input.list(|input| {
        let launches = Range { start: number(input)?, end: number(input)? };
        Some(PlannedKernel { launches, code: input.option(code)? })
    })?;
    let seams = input.list(|input| Some(Seam { fused: input.flag()?, reason: input.text()? }))?;
    let relies_on = input.list(|input| Some((number(input)?, number(input)?)))?;
    let relies_on_groups = input.list(number)?;
    let scalars = input.list(Input::u64)?;
    let groups = input.list(|input| Some([input.u32()?, input.u32()?, input.u32()?]))?;
    let is_whole =
        input.0.is_empty() && scalars.len() == relies_on.len() && groups.len() == relies_on_groups.len();
    let relied = Relied {
        scalars: relies_on.iter().copied().zip(scalars).collect(),
        groups: relies_on_groups.iter().copied().zip(groups).collect(),
    };
    is_whole.then_some((FusionPlan { kernels, seams, relies_on, relies_on_groups }, relied))
}

fn put_usize(out: &mut Vec<u8>, number: usize) {
    put_u64(out, number as u64);
}

fn number(input: &mut Input<'_>) -> Option<usize> {
    usize::try_from(input.u64()?).ok()
}

fn put_code(out: &mut Vec<u8>, code: &FusedCode) {
    let FusedCode { text, entry, options, groups_of, args, promoted, barriers } = code;
    put_text(out, text);
    put_text(out, entry);
    put_options(out, options);
    put_usize(out, *groups_of);
    put_list(out, args, |out, arg| {
        let (kind, first, second) = match *arg {
            FusedArg::Of { launch, arg } => (0, launch, arg),
            FusedArg::Groups { launch, axis } => (1, launch, axis),
            FusedArg::Length { tensor, stride } => (2, tensor, stride as usize),
        };
        put_u32(out, kind);
        put_usize(out, first);
        put_usize(out, second);
    });
    put_list(out, promoted, |out, (tensor, promotion)| {
        put_usize(out, *tensor);
        out.push(match promotion {
            Promotion::None => 0,
            Promotion::Auto => 1,
            Promotion::Private => 2,
            Promotion::Workgroup => 3,
        });
    });
    put_usize(out, *barriers);
}

fn code(input: &mut Input<'_>) -> Option<FusedCode> {
    Some(FusedCode {
        text: input.text()?,
        entry: input.text()?,
        options: options(input)?,
        groups_of: number(input)?,
        args: input.list(|input| {
            let (kind, first, second) = (input.u32()?, number(input)?, number(input)?);
            Some(match kind {
                0 => FusedArg::Of { launch: first, arg: second },
                1 => FusedArg::Groups { launch: first, axis: second },
                2 => FusedArg::Length { tensor: first, stride: u32::try_from(second).ok()? },
                _ => return None,
            })
        })?,
        promoted: input.list(|input| {
            let tensor = number(input)?;
            let promotion = match input.array()? {
                [0] => Promotion::None,
                [1] => Promotion::Auto,
                [2] => Promotion::Private,
                [3] => Promotion::Workgroup,
                _ => return None,
            };
            Some((tensor, promotion))
        })?,
        barriers: number(input)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;

    fn plan() -> FusionPlan {
        let args = vec![
            FusedArg::Of { launch: 1, arg: 2 },
            FusedArg::Groups { launch: 0, axis: 1 },
            FusedArg::Length { tensor: 3, stride: 8 },
        ];
        let promoted = vec![
            (0, Promotion::None),
            (1, Promotion::Auto),
            (2, Promotion::Private),
            (3, Promotion::Workgroup),
        ];
        let options = Options::new().with("a", "b").with("n", 3);
        let (text, entry) = ("fn a() {}".to_owned(), "a_b".to_owned());
        let code = FusedCode { text, entry, options, groups_of: 1, args, promoted, barriers: 4 };
        FusionPlan {
            kernels: vec![
                PlannedKernel { launches: 0..2, code: Some(code) },
                PlannedKernel { launches: 2..3, code: None },
            ],
            seams: vec![
                Seam { fused: true, reason: String::new() },
                Seam { fused: false, reason: "no".to_owned() },
            ],
            relies_on: vec![(0, 1)],
            relies_on_groups: vec![1, 0],
        }
    }

    fn relied() -> Relied {
        Relied { scalars: vec![((0, 1), 7)], groups: vec![(1, [1, 2, 3]), (0, [4, 5, 6])] }
    }

    #[test]
    fn a_plan_is_read_as_it_was_written() {
        let bytes = encode_plan(&plan(), &relied());
        assert_eq!(decode_plan(&bytes), Some((plan(), relied())));
    }

    #[test]
    fn anything_else_is_no_plan() {
        let bytes = encode_plan(&plan(), &relied());
        for end in 0..bytes.len() {
            assert_eq!(decode_plan(&bytes[..end]), None, "cut at {end}");
        }
        assert_eq!(decode_plan(&[&bytes[..], &[0]].concat()), None, "with more behind it");
        let without = |relied| decode_plan(&encode_plan(&plan(), &relied));
        assert_eq!(
            without(Relied { scalars: Vec::new(), ..relied() }),
            None,
            "without the scalars that it relies on"
        );
        assert_eq!(
            without(Relied { groups: Vec::new(), ..relied() }),
            None,
            "without the groups that it relies on"
        );
        assert_eq!(decode_plan(&[0xff; 64]), None, "a length beyond the end");
    }
}
