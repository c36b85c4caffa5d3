//! An embedded device has no queues: a run blocks.

use std::convert::Infallible;
use std::time::Duration;

use runtime_core::abi::{Progress, SubmitInfo};
use runtime_core::backend::{FillPattern, HostBytes, HostBytesMut, Launch, NoGraph, Queue};
use runtime_core::{Error, Result};

use crate::memory::NoBuffer;
use crate::module::NoKernel;

/// Never constructed: embedded devices have no queues.
#[derive(Debug)]
pub struct NoQueue(Infallible);

impl Queue for NoQueue {
    type Buffer = NoBuffer;
    type Kernel = NoKernel;
    type Graph = NoGraph<NoBuffer>;

    fn launch(&self, _: SubmitInfo, _: &NoKernel, _: &Launch<'_, NoBuffer>) -> Result<()> {
        match self.0 {}
    }

    fn write(&self, _: SubmitInfo, _: &NoBuffer, _: u64, _: HostBytes) -> Result<()> {
        match self.0 {}
    }

    fn read(&self, _: SubmitInfo, _: &NoBuffer, _: u64, _: HostBytesMut) -> Result<()> {
        match self.0 {}
    }

    fn copy(&self, _: SubmitInfo, _: (&NoBuffer, u64), _: (&NoBuffer, u64), _: u64) -> Result<()> {
        match self.0 {}
    }

    fn fill(&self, _: SubmitInfo, _: (&NoBuffer, u64), _: u64, _: FillPattern) -> Result<()> {
        match self.0 {}
    }

    fn poll(&self) -> Result<Progress> {
        match self.0 {}
    }

    fn wait(&self, _: u64, _: Duration) -> Result<()> {
        match self.0 {}
    }

    fn failure(&self) -> Option<Error> {
        match self.0 {}
    }
}
