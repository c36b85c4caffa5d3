//! Chains: kernels of several specs that run one after the other on each other's results.

mod bound;
mod links;
mod plan;
mod request;
#[cfg(test)]
mod tests;
mod traffic;

use std::collections::HashMap;

use runtime_core::evaluate::Validation;
use runtime_core::{CommonRuntime, Error, HostArray, Result, Runtime};

use crate::job::{BoundKernel, Job};
use crate::spec::{Spec, TensorSpec};
pub use bound::{BoundChain, ChainLaunch};
pub use links::LinkRequest;
use links::{Operand, tensor_of};
pub use request::ChainRequest;

/// Kernels that run one after the other, with the tensors that they share.
#[derive(Debug)]
pub struct Chain {
    /// A job per kernel.
    jobs: Vec<Job>,
    names: Vec<String>,
    /// The tensors of later kernels, each with the tensor of an earlier one that it is.
    links: Vec<(Operand, Operand)>,
}

/// What a chain leaves in a tensor.
#[derive(Debug)]
struct Content {
    array: HostArray,
    /// The kernel and the argument that wrote it last.
    writer: Operand,
    rtol: f64,
    atol: f64,
}

/// The result of a chain for one of the tensors that it writes.
#[derive(Debug)]
pub struct ChainRow {
    /// The kernel that writes it last, and the name of the argument, such as `softmax.out`.
    pub tensor: String,
    /// How it compares with the reference.
    pub validation: Validation,
}

/// What the references say that a chain leaves in its tensors.
#[derive(Debug)]
pub struct Expected(HashMap<Operand, Content>);

impl Chain {
    /// Links the kernels of specs. Besides the links in `wanted`, the first tensor that a kernel reads is the first one that the
    /// kernel before it writes.
    ///
    /// # Errors
    /// `InvalidArgument` for no specs, for a link to a kernel or tensor that does not exist, or that is not earlier, and for linked
    /// tensors that differ in type or number of elements.
    ///
    /// The data of the kernels is not prepared yet; see [`Chain::prepare`].
    ///
    /// # Safety
    /// That of [`Job::new`](crate::Job::new), for each spec.
    #[allow(unsafe_code, reason = "chains run the code that their specs name")]
    pub unsafe fn new(specs: Vec<Spec>, wanted: &[LinkRequest]) -> Result<Self> {
        if specs.is_empty() {
            return Err(Error::invalid("a chain needs at least one spec"));
        }
        let names = links::names(&specs);
        if let Some(at) = specs.iter().position(Spec::restores_each_call) {
            return Err(Error::unsupported(format!(
                "{}: each_call = \"initial\" is not supported in a chain, whose kernels run without a pause; leave it out",
                names[at]
            )));
        }
        let links = links::resolve(&specs, &names, wanted)?;
        Ok(Self { jobs: specs.into_iter().map(Job::without_data).collect(), names, links })
    }

    /// Prepares the initial data of all kernels, before [`Chain::expected`] and [`Chain::bind`].
    pub fn prepare(&mut self) {
        self.jobs.iter_mut().for_each(Job::prepare_data);
    }

    /// The name of the chain: those of its kernels.
    #[must_use]
    pub fn name(&self) -> String {
        self.names.join(" → ")
    }

    /// The names of the kernels: those of the specs; the second of one name is `name#2`.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The specs, in order.
    pub fn specs(&self) -> impl Iterator<Item = &Spec> {
        self.jobs.iter().map(|job| &job.spec)
    }

    /// The spec of the first kernel, whose settings are those of the chain.
    #[must_use]
    pub fn first(&self) -> &Spec {
        &self.jobs[0].spec
    }

    /// The links, such as `softmax.x = scale_mask.out`.
    pub fn links(&self) -> impl Iterator<Item = String> {
        self.links.iter().map(|&(to, from)| format!("{} = {}", self.name_of(to), self.name_of(from)))
    }

    /// Checks that there is a reference for each kernel.
    ///
    /// # Errors
    /// `InvalidArgument` for a kernel without a reference.
    pub fn check_references(&self) -> Result<()> {
        match self.jobs.iter().position(|job| job.spec.reference.is_none()) {
            Some(kernel) => Err(Error::invalid(format!(
                "{} has no [reference]; add one to its spec, or give --no-validate",
                self.names[kernel]
            ))),
            None => Ok(()),
        }
    }

    /// Runs the references one after the other, each on the results of those before it.
    ///
    /// # Errors
    /// `InvalidArgument` for a kernel without a reference; any error of a reference.
    pub fn expected(&mut self, runtime: &Runtime) -> Result<Expected> {
        self.check_references()?;
        let mut contents: HashMap<Operand, Content> = HashMap::new();
        for kernel in 0..self.jobs.len() {
            let (rtol, atol) = self.inherit(kernel, &contents)?;
            self.jobs[kernel].find_expected_of_one_call(runtime);
            let (job, tolerance) = (&self.jobs[kernel], self.jobs[kernel].tolerance());
            for (arg, array) in job.expected.as_ref().map_err(Clone::clone)? {
                let (own_rtol, own_atol) = tolerance.bounds(array.dtype());
                let (rtol, atol, array) = (rtol + own_rtol, atol + own_atol, array.clone());
                let content = Content { array, writer: (kernel, *arg), rtol, atol };
                contents.insert(self.origin((kernel, *arg)), content);
            }
        }
        Ok(Expected(contents))
    }

    /// Gives a kernel's reference what the kernels before it leave in its tensors, or the initial data of a tensor that none of
    /// them writes. Returns the tolerances of the former, which add up.
    fn inherit(&mut self, kernel: usize, contents: &HashMap<Operand, Content>) -> Result<(f64, f64)> {
        let (mut rtol, mut atol) = (0.0f64, 0.0f64);
        for arg in 0..self.jobs[kernel].spec.args.len() {
            let origin = self.origin((kernel, arg));
            let initial = self.jobs[origin.0].inputs.as_ref().map_err(Clone::clone)?[origin.1].as_ref();
            let (array, bounds) = match (contents.get(&origin), initial) {
                (Some(content), _) => (&content.array, (content.rtol, content.atol)),
                (None, Some(array)) if origin != (kernel, arg) => (array, (0.0, 0.0)),
                _ => continue,
            };
            let reads = tensor_of(&self.jobs[kernel].spec.args[arg]).filter(|tensor| tensor.access.reads());
            let Some(tensor) = reads else { continue };
            let array = HostArray::from_bytes(tensor.dtype, &tensor.shape, array.bytes())?;
            (rtol, atol) = (rtol.max(bounds.0), atol.max(bounds.1));
            self.jobs[kernel].inputs.as_mut().map_err(|error| error.clone())?[arg] = Some(array);
        }
        Ok((rtol, atol))
    }

    /// Loads the kernels and makes the tensors, with their initial data.
    ///
    /// # Errors
    /// Those of [`BoundKernel::new`].
    pub fn bind(&self, device: &dyn CommonRuntime) -> Result<BoundChain<'_>> {
        let bind = |job: &Job| match &job.inputs {
            Ok(inputs) if inputs.len() != job.spec.args.len() => {
                Err(Error::invalid("a chain is prepared before it is bound"))
            }
            _ => BoundKernel::new(device, job),
        };
        let mut kernels = self.jobs.iter().map(bind).collect::<Result<Vec<_>>>()?;
        for &(to, _) in &self.links {
            let origin = self.origin(to);
            let shape = tensor_of(&self.jobs[to.0].spec.args[to.1]).map(|tensor| &*tensor.shape);
            let source = kernels[origin.0].tensors[origin.1].as_ref();
            let shared = source.zip(shape).map(|(tensor, shape)| tensor.reshape(shape)).transpose()?;
            kernels[to.0].tensors[to.1] = shared;
        }
        Ok(BoundChain::new(self, kernels))
    }

    /// The tensor of the earliest kernel that this one is.
    fn origin(&self, mut operand: Operand) -> Operand {
        while let Some((_, from)) = self.links.iter().find(|(to, _)| *to == operand) {
            operand = *from;
        }
        operand
    }

    /// The tensor of an argument, if it is one.
    fn tensor(&self, (kernel, arg): Operand) -> Option<&TensorSpec> {
        tensor_of(self.jobs.get(kernel)?.spec.args.get(arg)?)
    }

    fn name_of(&self, (kernel, arg): Operand) -> String {
        format!("{}.{}", self.names[kernel], self.jobs[kernel].spec.args[arg].name)
    }
}
