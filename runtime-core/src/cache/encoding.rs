//! What is stored beside code, and plans of fusion, as bytes of JSON.
//!
//! Only what would be written in the same way is read, so that no two entries mean the same.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::code::CachedCode;
use crate::model::fusion::FusionPlan;
use crate::model::lowering::LoweredKernel;

/// The values that a plan relies on: it is right only for launches that have them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Relied {
    /// Scalars, by launch and argument.
    pub(crate) scalars: Vec<((usize, usize), u64)>,
    /// Numbers of groups, by launch.
    pub(crate) groups: Vec<(usize, [u32; 3])>,
}

/// Everything but the code.
pub(super) fn encode(cached: &CachedCode) -> Vec<u8> {
    to_json(cached)
}

/// Reads what [`encode`] wrote; `None` if it is anything else. `code` is added.
pub(super) fn decode(bytes: &[u8], code: Vec<u8>) -> Option<CachedCode> {
    let cached: CachedCode = from_json(bytes)?;
    cached.lowered.iter().flatten().all(is_possible).then_some(CachedCode { code, ..cached })
}

fn is_possible(kernel: &LoweredKernel) -> bool {
    kernel.coarsening.is_none_or(|coarsening| coarsening.factor >= 2)
        && kernel.params.iter().all(|param| param.alignment_bytes.is_power_of_two())
}

/// A plan, with the values that it relies on.
pub(crate) fn encode_plan(plan: &FusionPlan, relied: &Relied) -> Vec<u8> {
    to_json(&(plan, relied))
}

/// Reads what [`encode_plan`] wrote; `None` if it is anything else. Whether the plan fits a list is not checked.
pub(crate) fn decode_plan(bytes: &[u8]) -> Option<(FusionPlan, Relied)> {
    let (plan, relied): (FusionPlan, Relied) = from_json(bytes)?;
    let is_whole = plan.relies_on.iter().eq(relied.scalars.iter().map(|(scalar, _)| scalar))
        && plan.relies_on_groups.iter().eq(relied.groups.iter().map(|(launch, _)| launch));
    is_whole.then_some((plan, relied))
}

fn to_json(value: &impl Serialize) -> Vec<u8> {
    // These types have neither maps with keys that are no text, nor anything else that JSON cannot say.
    serde_json::to_vec(value).unwrap_or_default()
}

fn from_json<T: Serialize + DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    let value = serde_json::from_slice(bytes).ok()?;
    (to_json(&value) == bytes).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;
    use crate::model::fusion::{FusedArg, FusedCode, PlannedKernel, Promotion, Seam};

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
