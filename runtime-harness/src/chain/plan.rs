//! Chains as a lowering sees them, without a device.

use std::collections::BTreeMap;

use runtime_core::lowering::{
    FusionArg, FusionLaunch, FusionRequest, FusionTensor, PortableSource, Promotion,
};
use runtime_core::{CodeFormat, Error, LaunchConfig, Options, Result};

use super::{Chain, Operand};
use crate::spec::{ArgumentKind, Spec};

/// The code of a kernel, and what it is launched with.
struct Planned<'c> {
    spec: &'c Spec,
    code: String,
    path: String,
    options: Options,
    groups: [u32; 3],
    args: Vec<FusionArg>,
}

impl Chain {
    /// Calls `ask` with the chain as a fusion request, which needs no device. Unless `keep`, temporaries are dead after the chain.
    ///
    /// # Errors
    /// `InvalidArgument` for code that is not portable, and for arguments that fused code cannot have; `Io`; the error of `ask`.
    pub fn with_request<T>(
        &self,
        keep: bool,
        ask: impl FnOnce(&FusionRequest<'_>) -> Result<T>,
    ) -> Result<T> {
        let mut tensors: BTreeMap<Operand, usize> = BTreeMap::new();
        let planned = self.specs().enumerate().map(|(kernel, spec)| self.planned(kernel, spec, &mut tensors));
        let planned = planned.collect::<Result<Vec<_>>>()?;
        let temporaries = if keep { Vec::new() } else { self.temporaries() };
        let mut described =
            vec![FusionTensor { bytes: 0, overlaps: Vec::new(), promotion: Promotion::None }; tensors.len()];
        for (operand, index) in tensors {
            described[index].bytes = self.size(operand);
            if temporaries.contains(&operand) {
                described[index].promotion = Promotion::Auto;
            }
        }
        let launches = planned.iter().map(|planned| FusionLaunch {
            source: PortableSource { code: &planned.code, path: &planned.path, options: &planned.options },
            entry: &planned.spec.kernel.entry,
            groups: planned.groups,
            args: &planned.args,
        });
        let launches: Vec<_> = launches.collect();
        ask(&FusionRequest {
            launches: &launches,
            tensors: &described,
            constants: false,
            assume_group_local: false,
        })
    }

    fn planned<'c>(
        &self,
        kernel: usize,
        spec: &'c Spec,
        tensors: &mut BTreeMap<Operand, usize>,
    ) -> Result<Planned<'c>> {
        let name = &self.names[kernel];
        let refused = |why: &str| Error::invalid(format!("{name} cannot be fused without a device: {why}"));
        if spec.kernel.format != CodeFormat::WGSL {
            return Err(refused("its code is not portable; write it in WGSL"));
        }
        if spec.kernel.options.flag("unchecked") {
            return Err(refused("its checks are left out; remove \"unchecked\" from its options"));
        }
        let LaunchConfig::Groups(geometry) = spec.config else {
            return Err(refused("it is launched over a range"));
        };
        let mut args = Vec::new();
        for (index, arg) in spec.args.iter().enumerate() {
            args.push(match &arg.kind {
                ArgumentKind::Tensor(_) => {
                    let next = tensors.len();
                    FusionArg::Tensor(*tensors.entry(self.origin((kernel, index))).or_insert(next))
                }
                ArgumentKind::Scalar(dtype, bits) => FusionArg::Scalar { dtype: *dtype, bits: *bits },
                _ => {
                    return Err(refused(&format!(
                        "its argument \"{}\" is neither a tensor nor a scalar",
                        arg.name
                    )));
                }
            });
        }
        Ok(Planned {
            spec,
            code: spec.kernel.text()?.into_owned(),
            path: spec.kernel.path.display().to_string(),
            options: load_options(spec),
            groups: geometry.groups,
            args,
        })
    }
}

/// The load options of portable code, with its constants and element type.
fn load_options(spec: &Spec) -> Options {
    let mut options = spec.kernel.options.clone();
    for (name, value) in &spec.specialise.constants {
        options.push("constant", format!("{name}={value}"));
    }
    if let Some(dtype) = spec.specialise.element {
        options.push("element", dtype.to_string());
    }
    options
}
