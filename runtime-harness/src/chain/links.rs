//! Which tensors of later kernels are tensors of earlier ones.

use std::fmt;
use std::str::FromStr;

use runtime_core::backend::did_you_mean;
use runtime_core::{DType, Error, Result};
use serde::{Deserialize, Serialize};

use crate::spec::{Argument, ArgumentKind, Spec, TensorSpec};

/// A tensor of a chain: the index of its kernel, and of its argument.
pub(super) type Place = (usize, usize);

/// A wanted link, such as `softmax.x=scale_mask.out`. In JSON it is this text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct LinkRequest {
    /// The kernel and the tensor that is replaced.
    pub to: (String, String),
    /// The kernel and the tensor that it is.
    pub from: (String, String),
}

impl FromStr for LinkRequest {
    type Err = String;

    /// Parses `B.x=A.y`: tensor `x` of kernel `B` is tensor `y` of the earlier kernel `A`.
    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let side = |text: &str| {
            let (kernel, tensor) = text.rsplit_once('.')?;
            (!kernel.is_empty() && !tensor.is_empty()).then(|| (kernel.to_owned(), tensor.to_owned()))
        };
        let sides = text.split_once('=').and_then(|(to, from)| Some((side(to)?, side(from)?)));
        let (to, from) = sides.ok_or("expected B.x=A.y: tensor x of kernel B is tensor y of kernel A")?;
        Ok(Self { to, from })
    }
}

impl TryFrom<String> for LinkRequest {
    type Error = String;

    fn try_from(text: String) -> std::result::Result<Self, String> {
        text.parse()
    }
}

impl From<LinkRequest> for String {
    fn from(link: LinkRequest) -> Self {
        link.to_string()
    }
}

impl fmt::Display for LinkRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}={}.{}", self.to.0, self.to.1, self.from.0, self.from.1)
    }
}

/// The names of the kernels in a chain: those in the spec files; the second of one name is `name#2`.
pub(super) fn names(specs: &[Spec]) -> Vec<String> {
    let plain = |spec: &Spec| {
        let overrides = spec.overrides.describe();
        spec.name.strip_suffix(&overrides).unwrap_or(&spec.name).to_owned()
    };
    let all: Vec<String> = specs.iter().map(plain).collect();
    let name = |(at, name): (usize, &String)| match all[..=at].iter().filter(|other| *other == name).count() {
        1 => name.clone(),
        nth => format!("{name}#{nth}"),
    };
    all.iter().enumerate().map(name).collect()
}

/// The links of a chain: those wanted, and for each other kernel, its first tensor that it reads is the first one that the kernel
/// before it writes.
pub(super) fn resolve(
    specs: &[Spec],
    names: &[String],
    wanted: &[LinkRequest],
) -> Result<Vec<(Place, Place)>> {
    let mut links: Vec<(Place, Place)> = Vec::new();
    for request in wanted {
        let flag = |error: Error| error.in_operation(&format!("--link {request}"));
        let to = find(specs, names, &request.to).map_err(flag)?;
        let from = find(specs, names, &request.from).map_err(flag)?;
        if from.0 >= to.0 {
            let message = format!("{} does not come before {}; exchange them", names[from.0], names[to.0]);
            return Err(flag(Error::invalid(message)));
        }
        if links.iter().any(|(known, _)| *known == to) {
            return Err(flag(Error::invalid(format!("{} is linked already", request.to.1))));
        }
        links.push((to, from));
    }
    for at in 1..specs.len() {
        let first_read = position(&specs[at], |tensor| tensor.access.reads());
        let written = position(&specs[at - 1], |tensor| tensor.access.writes());
        let (Some(to), Some(from)) = (first_read, written) else { continue };
        if !links.iter().any(|(known, _)| *known == (at, to)) {
            links.push(((at, to), (at - 1, from)));
        }
    }
    links.iter().try_for_each(|(to, from)| check(specs, names, *to, *from))?;
    Ok(links)
}

fn position(spec: &Spec, wanted: impl Fn(&TensorSpec) -> bool) -> Option<usize> {
    spec.args.iter().position(|arg| tensor_of(arg).is_some_and(&wanted))
}

pub(super) fn tensor_of(arg: &Argument) -> Option<&TensorSpec> {
    match &arg.kind {
        ArgumentKind::Tensor(tensor) => Some(tensor),
        _ => None,
    }
}

fn find(specs: &[Spec], names: &[String], (kernel, tensor): &(String, String)) -> Result<Place> {
    let list: Vec<&str> = names.iter().map(String::as_str).collect();
    let at = list
        .iter()
        .position(|name| name == kernel)
        .ok_or_else(|| Error::invalid(format!("no kernel \"{kernel}\"; {}", did_you_mean(kernel, &list))))?;
    let args = &specs[at].args;
    let found = args.iter().position(|arg| arg.name == *tensor && tensor_of(arg).is_some());
    let index = found.ok_or_else(|| {
        let tensors = args.iter().filter(|arg| tensor_of(arg).is_some());
        let tensors: Vec<&str> = tensors.map(|arg| arg.name.as_str()).collect();
        Error::invalid(format!("\"{kernel}\" has no tensor \"{tensor}\"; {}", did_you_mean(tensor, &tensors)))
    })?;
    Ok((at, index))
}

/// Rejects a link between tensors of different types or numbers of elements, or with gaps.
fn check(specs: &[Spec], names: &[String], to: Place, from: Place) -> Result<()> {
    let name = |(kernel, arg): Place| format!("{}.{}", names[kernel], specs[kernel].args[arg].name);
    let shape = |(kernel, arg): Place| -> Option<(DType, &[usize])> {
        let tensor = tensor_of(&specs[kernel].args[arg])?;
        (tensor.strides.is_none() && tensor.offset == 0).then_some((tensor.dtype, &*tensor.shape))
    };
    let (Some((dtype, extents)), Some((source_dtype, source))) = (shape(to), shape(from)) else {
        return Err(Error::invalid(format!(
            "{} = {}: linked tensors have neither strides nor an offset; leave them out of the specs",
            name(to),
            name(from)
        )));
    };
    if dtype == source_dtype && extents.iter().product::<usize>() == source.iter().product::<usize>() {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "{} is {dtype} {extents:?}, but {} is {source_dtype} {source:?}: change the sizes with --set, or link another tensor with \
         --link {}=A.y",
        name(to),
        name(from),
        name(to)
    )))
}
