//! `runtime fuse`: runs kernels of several specs on each other's results, one by one and fused, checks both and times both.

mod emit;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc;

use clap::Args;
use runtime_core::backend::SandboxPolicy;
use runtime_core::{Error, Result};
use runtime_harness::chain::{Chain, ChainRequest, LinkRequest};
use runtime_harness::spec::Spec;
use runtime_harness::{Candidate, Overrides, Report, describe};

use crate::arguments::{OpenArguments, OverrideArguments, PoolArguments, SettingsArguments};
use crate::eval::{Run, named_or_available};
use crate::output::Destination;
use crate::output_paths;
use crate::report::{Format, Sink};
use emit::Emit;

#[derive(Debug, Args)]
pub(crate) struct FuseArguments {
    /// The spec files, in the order in which their kernels run
    #[arg(value_name = "SPEC", required = true)]
    specs: Vec<PathBuf>,
    /// A device, e.g. `host:0`; may be repeated [default: every available device]
    #[arg(long = "device", value_name = "DEVICE")]
    devices: Vec<String>,
    #[command(flatten)]
    open: OpenArguments,
    #[command(flatten)]
    overrides: OverrideArguments,
    /// Tensor x of kernel B is tensor y of the earlier kernel A; may be repeated [default: the first tensor that a kernel reads is
    /// the first one that the kernel before it writes]
    #[arg(long = "link", value_name = "B.x=A.y")]
    links: Vec<LinkRequest>,
    /// Write the tensors that only later kernels read, too, as for a program that keeps them
    #[arg(long)]
    keep: bool,
    /// Print the code of the fused kernels instead, which needs no device
    #[arg(long, value_name = "FORMAT", value_enum, conflicts_with_all = ["devices", "json", "csv"])]
    emit: Option<Emit>,
    /// Write the full report as JSON; with `-`, to standard output, instead of the text
    #[arg(long, value_name = "FILE|-")]
    json: Option<PathBuf>,
    /// Write one line per device as CSV; with `-`, to standard output, instead of the text
    #[arg(long, value_name = "FILE|-")]
    csv: Option<PathBuf>,
    #[command(flatten)]
    settings: SettingsArguments,
    #[command(flatten)]
    pool: PoolArguments,
}

/// Evaluates the kernels one by one and fused, in worker processes, or prints their fused code.
///
/// # Errors
/// `InvalidArgument` for specs that cannot be linked, with the argument and the remedy; `Io` for a file that cannot be written.
pub(crate) fn fuse(arguments: &FuseArguments) -> Result<ExitCode> {
    let overrides = arguments.overrides.overrides()?;
    let chain = arguments.chain(&overrides)?;
    if let Some(format) = arguments.emit {
        return emit::emit(&chain, arguments.keep, format);
    }
    arguments.check(&chain)?;
    let sandbox = arguments.pool.sandbox(SandboxPolicy::BestEffort)?;
    let (sinks, devices) = (arguments.sinks(&chain, sandbox)?, named_or_available(&arguments.devices)?);
    let run = Run::of_rows(sinks, devices.len());
    let measured = arguments.evaluate(&run, (&chain, sandbox), devices, &overrides);
    let code = run.end();
    measured.and(code)
}

impl FuseArguments {
    /// The kernels, linked, without their data.
    #[allow(unsafe_code, reason = "runs the code that specs name")]
    fn chain(&self, overrides: &Overrides) -> Result<Chain> {
        let specs = self.specs.iter().map(|path| Spec::load(path, overrides));
        let specs = specs.collect::<Result<Vec<_>>>()?;
        // SAFETY: the user of the command vouches for the code that a spec names (docs/spec.md).
        unsafe { Chain::new(specs, &self.links) }
    }

    /// Checks what needs no device.
    fn check(&self, chain: &Chain) -> Result<()> {
        let settings = self.settings.settings();
        if settings.counters.is_some() || settings.energy.is_some() {
            return Err(Error::invalid("--counters and --energy are for single kernels; see `runtime eval`"));
        }
        self.pool.check(&self.devices)?;
        if settings.or(&chain.first().settings).validates() { chain.check_references() } else { Ok(()) }
    }

    /// Evaluates one device at a time, because several may be one chip, and all share the host.
    fn evaluate(
        &self,
        run: &Run,
        (chain, sandbox): (&Chain, SandboxPolicy),
        devices: Vec<String>,
        overrides: &Overrides,
    ) -> Result<()> {
        let (sender, replies) = mpsc::channel();
        let mut pool = self.pool.pool((&devices, &self.open.options()), sandbox, sender)?;
        for device in devices {
            run.announce(&format!("{} on {device}", chain.name()));
            pool.submit(0, self.candidate(device, overrides)?)?;
            if !run.add(&run.next_row(&replies)?)? {
                break;
            }
        }
        run.finish_progress();
        Ok(())
    }

    /// The reports, and a text unless one of them is standard output.
    fn sinks(&self, chain: &Chain, sandbox: SandboxPolicy) -> Result<Vec<Sink>> {
        let outputs = output_paths::given([("--json", &self.json), ("--csv", &self.csv)]);
        let inputs: Vec<PathBuf> = chain.specs().flat_map(Spec::files).collect();
        output_paths::check_against(&outputs, &inputs)?;
        let options = describe::options(&self.open.options());
        let report = Box::new(Report::begin(options, self.pool.sandbox_state(sandbox)));
        let mut sinks = Vec::new();
        let mut shows_text = true;
        for (flag, path) in outputs {
            let destination = Destination::open(path)?;
            shows_text &= !destination.is_standard();
            let format = if flag == "--json" { Format::Json } else { Format::Csv }(report.clone());
            sinks.push(Sink::new(format, destination));
        }
        if shows_text {
            sinks.insert(0, Sink::new(Format::Chains, Destination::Standard));
        }
        Ok(sinks)
    }

    fn candidate(&self, device: String, overrides: &Overrides) -> Result<Candidate> {
        let (first, more) =
            self.specs.split_first().ok_or_else(|| Error::invalid("give at least one spec"))?;
        Ok(Candidate {
            overrides: overrides.clone(),
            settings: self.settings.settings(),
            options: self.open.options(),
            chain: Some(ChainRequest { specs: more.to_vec(), links: self.links.clone(), keep: self.keep }),
            ..Candidate::new(&**first, device)
        })
    }
}
