//! What all open handles of a device and its sub-devices share.

use std::sync::Arc;

use runtime_core::backend::StagingOptions;

use crate::builtin::BuiltinKernels;
use crate::context::SharedContext;
use crate::deferred_release::DeferredRelease;

/// The state of an open device.
#[derive(Debug)]
pub(crate) struct DeviceState {
    pub(crate) context: Arc<SharedContext>,
    pub(crate) builtins: BuiltinKernels,
    pub(crate) deferred: DeferredRelease,
    pub(crate) staging: StagingOptions,
}

impl DeviceState {
    pub(crate) fn new(context: SharedContext, staging: StagingOptions) -> Self {
        let context = Arc::new(context);
        let (builtins, deferred) = (BuiltinKernels::default(), DeferredRelease::new(Arc::clone(&context)));
        Self { context, builtins, deferred, staging }
    }
}
