//! Counters of the GPU, read by CUPTI's range profiler: all work of the device's context between the begin and the end of
//! a pass is one range.

mod cupti;
mod metrics;

use std::ffi::CString;
use std::sync::Arc;

use runtime_core::backend::CounterSet;
use runtime_core::device::{CounterInfo, CounterReading};
use runtime_core::{Error, ErrorKind, Result};

use crate::device_state::DeviceState;
use cupti::{Cupti, MetricsHost, RangeProfiler, Session};

/// Whether the GPU has counters that CUPTI's range profiler reads: Turing (7.5) and newer.
pub(crate) const fn is_supported(compute_capability: (u32, u32)) -> bool {
    matches!(compute_capability, (7, 5..) | (8.., _))
}

fn open_host(device: &DeviceState) -> Result<MetricsHost> {
    device.primary.check_alive()?;
    let cupti = Cupti::load(device.primary.driver.cuda_version() / 1000)?;
    MetricsHost::open(Session::begin(cupti)?, device)
}

/// The counters of a device. Loads CUPTI.
///
/// # Errors
/// `Unavailable` with the remedy.
pub(crate) fn list(device: &DeviceState) -> Result<Vec<CounterInfo>> {
    metrics::list(&open_host(device)?)
}

/// An open set.
#[derive(Debug)]
pub(crate) struct CudaCounters {
    device: Arc<DeviceState>,
    names: Vec<CString>,
    are_ratios: Vec<bool>,
    /// How the counters are collected.
    config: Arc<[u8]>,
    passes: u32,
    /// Enabled from the begin of the first pass to the end of the last one.
    profiler: Option<RangeProfiler>,
    /// Values of the last pass; empty before it.
    values: Vec<f64>,
    host: MetricsHost,
}

impl CudaCounters {
    /// Opens the counters of these names.
    ///
    /// # Errors
    /// `NotFound` for an unknown name; `Unavailable` with the remedy.
    pub(crate) fn open(device: &Arc<DeviceState>, names: &[&str]) -> Result<Self> {
        let host = open_host(device)?;
        let (names, are_ratios) = metrics::add(&host, names)?.into_iter().unzip();
        let (config, passes) = host.config()?;
        Ok(Self {
            device: Arc::clone(device),
            names,
            are_ratios,
            config: config.into(),
            passes: u32::try_from(passes).unwrap_or(u32::MAX).max(1),
            profiler: None,
            values: Vec::new(),
            host,
        })
    }

    fn read_values(&mut self) -> Result<Vec<f64>> {
        let Some(mut profiler) = self.profiler.take() else { return Ok(Vec::new()) };
        match profiler.decode()? {
            Some(counter_data) => self.host.values(counter_data, &self.names),
            None => Ok(Vec::new()),
        }
    }
}

impl CounterSet for CudaCounters {
    fn passes(&self) -> u32 {
        self.passes
    }

    fn unavailable_reasons(&self) -> Vec<Option<String>> {
        vec![None; self.names.len()]
    }

    fn begin(&mut self, pass: u32) -> Result<()> {
        self.device.primary.check_alive()?;
        if pass == 0 {
            self.profiler = None;
            self.values.clear();
            let session = self.host.session();
            self.profiler = Some(RangeProfiler::enable(session, &self.device, &self.names, &self.config)?);
        }
        self.profiler.as_mut().map_or_else(|| Err(Error::invalid("begin with pass 0")), RangeProfiler::start)
    }

    fn end(&mut self) -> Result<()> {
        self.device.primary.check_alive()?;
        let Some(profiler) = &mut self.profiler else {
            return Err(Error::invalid("no pass has begun"));
        };
        if profiler.stop()? {
            self.values = self.read_values()?;
        }
        Ok(())
    }

    fn read(&mut self) -> Result<Vec<Option<CounterReading>>> {
        if self.profiler.is_some() {
            let message = "the profiler needs more passes than it said; update CUPTI";
            return Err(Error::new(ErrorKind::Unavailable, message));
        }
        let value = |index: usize| self.values.get(index).copied().filter(|value| value.is_finite());
        let reading =
            |(index, &is_ratio)| value(index).map(|value| CounterReading { value, counted: 1.0, is_ratio });
        Ok(self.are_ratios.iter().enumerate().map(reading).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_those_of_turing_and_newer() {
        for capability in [(7, 5), (8, 0), (9, 0), (12, 1)] {
            assert!(is_supported(capability), "{capability:?}");
        }
        for capability in [(5, 3), (7, 0), (7, 2)] {
            assert!(!is_supported(capability), "{capability:?}");
        }
    }
}
