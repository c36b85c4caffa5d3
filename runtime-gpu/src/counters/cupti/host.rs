//! The host side of the profiler: which metrics a GPU has, how they are collected, and their values.

use std::ffi::{CStr, CString, c_char, c_int};
use std::sync::Arc;

use runtime_core::Result;

use crate::context::PrimaryContext;
use crate::counter_state::Gpu;
use crate::device_state::DeviceState;

use super::layouts::{self, HostHandle, Params};
use super::{Cupti, Session, call, pointers, text};

/// `CUPTI_PROFILER_TYPE_RANGE_PROFILER`.
const RANGE_PROFILER: c_int = 0;

/// `CUpti_MetricType`.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MetricType(c_int);

impl MetricType {
    pub(crate) const COUNTER: Self = Self(0);
    pub(crate) const RATIO: Self = Self(1);
    pub(crate) const THROUGHPUT: Self = Self(2);
}

/// What CUPTI knows about a metric.
#[derive(Clone, Debug)]
pub(crate) struct MetricProperties {
    pub(crate) description: String,
    /// E.g. `bytes`.
    pub(crate) dimension: String,
    pub(crate) metric_type: MetricType,
}

/// The metrics of a GPU, and those of them that were added to be collected.
#[derive(Debug)]
pub(crate) struct MetricsHost {
    handle: HostHandle,
    session: Arc<Session>,
    /// Read by CUPTI as long as the object lives.
    _gpu: Arc<Gpu>,
}

// SAFETY: used by one thread at a time, which may be any.
unsafe impl Send for MetricsHost {}

impl MetricsHost {
    /// The metrics of a device.
    ///
    /// # Errors
    /// The library's error, e.g. without the permission to read counters.
    pub(crate) fn open(session: Arc<Session>, device: &DeviceState) -> Result<Self> {
        let _current = device.primary.make_current()?;
        let gpu = device.counters.gpu(|| describe(session.cupti, &device.primary))?;
        let mut params = layouts::HostInitialize::new();
        params.profiler_type = RANGE_PROFILER;
        params.chip_name = gpu.chip_name.as_ptr();
        params.availability = gpu.availability.as_ptr();
        call!(session.cupti, cuptiProfilerHostInitialize, params)?;
        Ok(Self { handle: params.host, session, _gpu: gpu })
    }

    pub(crate) fn session(&self) -> &Arc<Session> {
        &self.session
    }

    fn cupti(&self) -> &'static Cupti {
        self.session.cupti
    }

    /// The names of all metrics of a type, without suffixes.
    ///
    /// # Errors
    /// The library's error.
    pub(crate) fn base_names(&self, metric_type: MetricType) -> Result<Vec<String>> {
        let mut params = layouts::GetBaseMetrics::new();
        (params.host, params.metric_type) = (self.handle, metric_type.0);
        call!(self.cupti(), cuptiProfilerHostGetBaseMetrics, params)?;
        if params.names.is_null() {
            return Ok(Vec::new());
        }
        // SAFETY: the library returned so many names, which live until the next call with this object.
        let names = unsafe { std::slice::from_raw_parts(params.names, params.count) };
        Ok(names.iter().map(|name| text(*name)).collect())
    }

    /// The properties of a metric, with or without suffixes.
    ///
    /// # Errors
    /// The library's error, e.g. for an unknown name.
    pub(crate) fn properties(&self, name: &CStr) -> Result<MetricProperties> {
        let mut params = layouts::GetMetricProperties::new();
        (params.host, params.name) = (self.handle, name.as_ptr());
        call!(self.cupti(), cuptiProfilerHostGetMetricProperties, params)?;
        Ok(MetricProperties {
            description: text(params.description),
            dimension: text(params.dimension),
            metric_type: MetricType(params.metric_type),
        })
    }

    /// Adds a metric to those to be collected.
    ///
    /// # Errors
    /// The library's error, e.g. for an unknown suffix.
    pub(crate) fn add(&self, name: &CStr) -> Result<()> {
        let names = [name.as_ptr()];
        let mut params = layouts::ConfigAddMetrics::new();
        (params.host, params.names, params.count) = (self.handle, names.as_ptr(), names.len());
        call!(self.cupti(), cuptiProfilerHostConfigAddMetrics, params)
    }

    /// How to collect the added metrics, and in how many passes.
    ///
    /// # Errors
    /// The library's error.
    pub(crate) fn config(&self) -> Result<(Vec<u8>, usize)> {
        let mut size = layouts::GetConfigImageSize::new();
        size.host = self.handle;
        call!(self.cupti(), cuptiProfilerHostGetConfigImageSize, size)?;
        let mut image = vec![0; size.bytes];
        let mut params = layouts::GetConfigImage::new();
        (params.host, params.bytes, params.image) = (self.handle, image.len(), image.as_mut_ptr());
        call!(self.cupti(), cuptiProfilerHostGetConfigImage, params)?;
        let mut passes = layouts::GetNumOfPasses::new();
        (passes.bytes, passes.image) = (image.len(), image.as_ptr());
        call!(self.cupti(), cuptiProfilerHostGetNumOfPasses, passes)?;
        Ok((image, passes.passes))
    }

    /// The values of metrics in range 0 of decoded counter data.
    ///
    /// # Errors
    /// The library's error.
    pub(crate) fn values(&self, counter_data: &[u8], names: &[CString]) -> Result<Vec<f64>> {
        let pointers: Vec<*const c_char> = pointers(names);
        let mut values = vec![f64::NAN; names.len()];
        let mut params = layouts::EvaluateToGpuValues::new();
        params.host = self.handle;
        (params.image, params.image_bytes) = (counter_data.as_ptr(), counter_data.len());
        (params.names, params.count) = (pointers.as_ptr(), pointers.len());
        params.values = values.as_mut_ptr();
        call!(self.cupti(), cuptiProfilerHostEvaluateToGpuValues, params)?;
        Ok(values)
    }
}

impl Drop for MetricsHost {
    fn drop(&mut self) {
        let mut params = layouts::HostDeinitialize::new();
        params.host = self.handle;
        let _ = call!(self.cupti(), cuptiProfilerHostDeinitialize, params);
    }
}

/// What CUPTI reports about a GPU.
fn describe(cupti: &Cupti, device: &PrimaryContext) -> Result<Gpu> {
    let availability = availability(cupti, device)?;
    Ok(Gpu { chip_name: chip_name(cupti, device)?, availability })
}

fn chip_name(cupti: &Cupti, device: &PrimaryContext) -> Result<CString> {
    let mut params = layouts::GetChipName::new();
    params.device_index = usize::try_from(device.ordinal).unwrap_or_default();
    call!(cupti, cuptiDeviceGetChipName, params)?;
    Ok(CString::new(text(params.chip_name)).unwrap_or_default())
}

fn availability(cupti: &Cupti, device: &PrimaryContext) -> Result<Vec<u8>> {
    let mut params = layouts::GetCounterAvailability::new();
    params.context = device.context.0.cast();
    call!(cupti, cuptiProfilerGetCounterAvailability, params)?;
    let mut image = vec![0; params.image_bytes];
    params.image = image.as_mut_ptr();
    call!(cupti, cuptiProfilerGetCounterAvailability, params)?;
    image.truncate(params.image_bytes);
    Ok(image)
}
