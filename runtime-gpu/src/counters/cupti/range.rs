//! The device side of the profiler: collects metrics over one range of work, which is submitted again for each pass.

use std::ffi::{CString, c_int};
use std::sync::Arc;

use runtime_core::{Error, ErrorKind, Result};

use crate::device_state::DeviceState;

use super::layouts::{self, Params, RangeHandle};
use super::{Cupti, Session, call, pointers};

/// `CUPTI_UserRange`: a range is what the host pushes and pops, not each kernel.
const USER_RANGE: c_int = 2;
/// `CUPTI_UserReplay`: the host submits the work again.
const USER_REPLAY: c_int = 3;

/// The profiler, enabled in the context of a device. A context has at most one.
#[derive(Debug)]
pub(crate) struct RangeProfiler {
    handle: RangeHandle,
    device: Arc<DeviceState>,
    session: Arc<Session>,
    /// Read by CUPTI as long as the profiler is enabled.
    _config: Arc<[u8]>,
    /// Where CUPTI writes counts.
    counter_data: Vec<u8>,
    counting: bool,
}

// SAFETY: used by one thread at a time, which may be any.
unsafe impl Send for RangeProfiler {}

impl RangeProfiler {
    /// Enables the profiler for metrics that are collected as `config` says.
    ///
    /// # Errors
    /// The library's error, e.g. while another profiler uses the device.
    pub(crate) fn enable(
        session: &Arc<Session>,
        device: &Arc<DeviceState>,
        names: &[CString],
        config: &Arc<[u8]>,
    ) -> Result<Self> {
        let _current = device.primary.make_current()?;
        device.counters.begin()?;
        let mut params = layouts::Enable::new();
        params.context = device.primary.context.0.cast();
        if let Err(error) = call!(session.cupti, cuptiRangeProfilerEnable, params) {
            device.counters.end();
            return Err(error);
        }
        // From here on the drop disables it.
        let mut profiler = Self {
            handle: params.profiler,
            device: Arc::clone(device),
            session: Arc::clone(session),
            _config: Arc::clone(config),
            counter_data: Vec::new(),
            counting: false,
        };
        profiler.create_counter_data(names)?;
        profiler.set_config(config)?;
        Ok(profiler)
    }

    fn cupti(&self) -> &'static Cupti {
        self.session.cupti
    }

    fn create_counter_data(&mut self, names: &[CString]) -> Result<()> {
        let names = pointers(names);
        let mut size = layouts::GetCounterDataSize::new();
        (size.profiler, size.max_ranges, size.max_nodes) = (self.handle, 1, 1);
        (size.names, size.count) = (names.as_ptr(), names.len());
        call!(self.cupti(), cuptiRangeProfilerGetCounterDataSize, size)?;
        self.counter_data = vec![0; size.bytes];
        let mut params = layouts::InitializeCounterData::new();
        params.profiler = self.handle;
        (params.bytes, params.image) = (self.counter_data.len(), self.counter_data.as_mut_ptr());
        call!(self.cupti(), cuptiRangeProfilerCounterDataImageInitialize, params)
    }

    fn set_config(&mut self, config: &[u8]) -> Result<()> {
        let mut params = layouts::SetConfig::new();
        params.profiler = self.handle;
        (params.config_bytes, params.config) = (config.len(), config.as_ptr());
        (params.image_bytes, params.image) = (self.counter_data.len(), self.counter_data.as_mut_ptr());
        (params.range_mode, params.replay_mode) = (USER_RANGE, USER_REPLAY);
        (params.max_ranges_per_pass, params.nesting_levels, params.min_nesting_level) = (1, 1, 1);
        params.target_nesting_level = 1;
        call!(self.cupti(), cuptiRangeProfilerSetConfig, params)
    }

    /// Begins a pass.
    ///
    /// # Errors
    /// The library's error.
    pub(crate) fn start(&mut self) -> Result<()> {
        let _current = self.device.primary.make_current()?;
        let mut start = layouts::OfProfiler::new();
        start.profiler = self.handle;
        call!(self.cupti(), cuptiRangeProfilerStart, start)?;
        self.counting = true;
        let mut push = layouts::PushRange::new();
        (push.profiler, push.name) = (self.handle, c"calls".as_ptr());
        call!(self.cupti(), cuptiRangeProfilerPushRange, push)
    }

    /// Ends the pass. Returns whether it was the last one.
    ///
    /// # Errors
    /// The library's error.
    pub(crate) fn stop(&mut self) -> Result<bool> {
        let _current = self.device.primary.make_current()?;
        self.counting = false;
        let mut pop = layouts::OfProfiler::new();
        pop.profiler = self.handle;
        let popped = call!(self.cupti(), cuptiRangeProfilerPopRange, pop);
        let mut stop = layouts::Stop::new();
        stop.profiler = self.handle;
        let stopped = call!(self.cupti(), cuptiRangeProfilerStop, stop);
        popped.and(stopped).map(|()| stop.is_all_submitted != 0)
    }

    /// The counter data after the last pass; `None` if it has no range, because nothing ran.
    ///
    /// # Errors
    /// The library's error.
    pub(crate) fn decode(&mut self) -> Result<Option<&[u8]>> {
        let _current = self.device.primary.make_current()?;
        let mut decode = layouts::DecodeData::new();
        decode.profiler = self.handle;
        call!(self.cupti(), cuptiRangeProfilerDecodeData, decode)?;
        if decode.dropped > 0 {
            let message = "the profiler dropped the counts of the calls; measure fewer calls at once";
            return Err(Error::new(ErrorKind::Unavailable, message));
        }
        let mut info = layouts::GetCounterDataInfo::new();
        (info.image, info.bytes) = (self.counter_data.as_ptr(), self.counter_data.len());
        call!(self.cupti(), cuptiRangeProfilerGetCounterDataInfo, info)?;
        Ok((info.ranges > 0).then_some(self.counter_data.as_slice()))
    }
}

impl Drop for RangeProfiler {
    fn drop(&mut self) {
        // A lost device may not answer any more.
        let is_alive = self.device.primary.check_alive().is_ok();
        if is_alive && self.counting {
            let _ = self.stop();
        }
        if is_alive && let Ok(_current) = self.device.primary.make_current() {
            let mut params = layouts::OfProfiler::new();
            params.profiler = self.handle;
            let _ = call!(self.session.cupti, cuptiRangeProfilerDisable, params);
        }
        self.device.counters.end();
    }
}
