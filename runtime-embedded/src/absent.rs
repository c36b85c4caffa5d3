//! What an embedded device does not have: its tensors are described and live in its own memory, an image is flashed with its
//! arguments, and a run blocks.

use std::convert::Infallible;
use std::time::Duration;

use runtime_core::abi::{Progress, SubmitInfo};
use runtime_core::backend::{
    Buffer, FillPattern, HostBytes, HostBytesMut, Kernel, Launch, Module, NoGraph, Queue,
};
use runtime_core::{Error, Result};

/// Stands in for the buffers, modules, kernels and queues that these devices do not have; it has no values.
#[derive(Debug)]
pub struct Absent(Infallible);

impl Buffer for Absent {
    fn kernel_address(&self) -> u64 {
        match self.0 {}
    }
}

impl Module for Absent {
    type Kernel = Self;

    fn symbols(&self) -> &[String] {
        match self.0 {}
    }

    fn kernel(&self, _: &str) -> Result<Self> {
        match self.0 {}
    }
}

impl Kernel for Absent {}

impl Queue for Absent {
    type Buffer = Self;
    type Kernel = Self;
    type Graph = NoGraph<Self>;

    fn launch(&self, _: SubmitInfo, _: &Self, _: &Launch<'_, Self>) -> Result<()> {
        match self.0 {}
    }

    fn write(&self, _: SubmitInfo, _: &Self, _: u64, _: HostBytes) -> Result<()> {
        match self.0 {}
    }

    fn read(&self, _: SubmitInfo, _: &Self, _: u64, _: HostBytesMut) -> Result<()> {
        match self.0 {}
    }

    fn copy(&self, _: SubmitInfo, _: (&Self, u64), _: (&Self, u64), _: u64) -> Result<()> {
        match self.0 {}
    }

    fn fill(&self, _: SubmitInfo, _: (&Self, u64), _: u64, _: FillPattern) -> Result<()> {
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
