//! Uploads and downloads that do not block: the queue keeps the program's memory until the device has released it.

#![allow(unsafe_code, reason = "calls the functions of a backend's table")]

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use crate::model::counted::counted;
use crate::queue::copy::check_placed_on;
use crate::queue::submit::{AccessSet, SubmitFlags};
use crate::timeline::Timeline;
use crate::timeline::deferred_free::{ExternalOwner, Resource};
use crate::timeline::event::Event;
use crate::timeline::open_device::OpenDevice;
use crate::{Access, Element, Error, Placement, Queue, Result, Tensor};

const TRANSFER: SubmitFlags = SubmitFlags { transfer: true, watched: true, inline: false, after: 0 };

impl Queue {
    /// Copies row-major elements into a contiguous tensor, in order with the queue's work, without waiting for it. A `Vec` is
    /// kept until the copy has ended; a slice is copied first ([`Queue::write`] borrows it, and blocks).
    ///
    /// ```
    /// # use runtime_core::{QueueOptions, Runtime};
    /// # let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
    /// # let device = runtime.open("null")?;
    /// let (x, queue) = (device.empty::<f32>([3])?, device.queue()?);
    /// queue.upload(&x, vec![1.0f32, 2.0, 3.0])?; // returns at once
    /// assert_eq!(queue.download::<f32>(&x)?.wait()?, [1.0, 2.0, 3.0]); // or `.await?`
    /// # Ok::<(), runtime_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` for another element type, number of elements or device; `Unsupported` for a tensor with gaps; the
    /// failure of the queue.
    pub fn upload<T: Element>(&self, tensor: &Tensor, data: impl Into<Vec<T>>) -> Result<Event> {
        if let Some(real) = self.real_queue() {
            return real.upload(tensor, data);
        }
        let data = data.into();
        if let Some(record) = self.recorder() {
            check::<T>(self, tensor, data.len()).map_err(|error| self.annotate(error, "upload"))?;
            // The data are taken now; a replay copies them again.
            let staged = Tensor::allocate(&self.device, T::DTYPE, tensor.shape(), &Placement::default())?;
            staged.write(&data)?;
            return record.copy(tensor, &staged);
        }
        let submit = || {
            check::<T>(self, tensor, data.len())?;
            let (buffer, offset) = (tensor.buffer("upload")?, tensor.byte_offset() as u64);
            let mut uses = AccessSet::default();
            uses.add(buffer, Access::Write)?;
            let bytes = bytemuck::cast_slice::<T, u8>(&data);
            self.submit(&uses, TRANSFER, |calls, queue, submit| {
                let (source, len) = (bytes.as_ptr(), bytes.len() as u64);
                // SAFETY: the queue is open, and `data` is kept until the ticket has ended.
                unsafe { (calls.write)(queue, submit, buffer.handle, offset, source, len) }
            })
        };
        if data.is_empty() && tensor.is_empty() {
            return Ok(Event::new(&self.timeline, 0));
        }
        let ticket = submit().map_err(|error| self.annotate(error, "upload"))?.ticket();
        retain(Some(self.device.clone()), &self.timeline, ticket, data);
        Ok(Event::new(&self.timeline, ticket))
    }

    /// Copies a contiguous tensor into memory of the program, in order with the queue's work, without waiting for it.
    ///
    /// # Errors
    /// `InvalidArgument` for another element type or device; `Unsupported` for a tensor with gaps; the failure of the queue, or
    /// of the work that wrote the tensor.
    pub fn download<T: Element>(&self, tensor: &Tensor) -> Result<Download<T>> {
        self.check_not_recording("download")?;
        if let Some(real) = self.real_queue() {
            return real.download(tensor);
        }
        let mut data = vec![T::zeroed(); tensor.len()];
        let mut submit = || {
            check::<T>(self, tensor, data.len())?;
            let (buffer, offset) = (tensor.buffer("download")?, tensor.byte_offset() as u64);
            let mut uses = AccessSet::default();
            uses.add(buffer, Access::Read)?;
            let bytes = bytemuck::cast_slice_mut::<T, u8>(&mut data);
            self.submit(&uses, TRANSFER, |calls, queue, submit| {
                let (destination, len) = (bytes.as_mut_ptr(), bytes.len() as u64);
                // SAFETY: the queue is open, and `data` is kept until the ticket has ended.
                unsafe { (calls.read)(queue, submit, buffer.handle, offset, destination, len) }
            })
        };
        let ticket = match tensor.is_empty() {
            true => 0,
            false => submit().map_err(|error| self.annotate(error, "download"))?.ticket(),
        };
        Ok(Download { event: Event::new(&self.timeline, ticket), device: self.device.weak(), data })
    }
}

/// Data on their way to the program: see [`Queue::download`]. Wait for them or `.await` them; dropping this cancels nothing.
///
/// ```
/// # use runtime_core::Runtime;
/// # let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
/// # let device = runtime.open("null")?;
/// # let (x, y) = (device.tensor([2], &[1.0f32, 2.0])?, device.tensor([1], &[3.0f32])?);
/// # let queue = device.queue()?;
/// let (first, second) = (queue.download::<f32>(&x)?, queue.download::<f32>(&y)?); // both are under way
/// assert_eq!(first.wait()?, [1.0, 2.0]);
/// assert_eq!(second.wait()?, [3.0]); // or `second.await?`
/// # Ok::<(), runtime_core::Error>(())
/// ```
#[derive(Debug)]
pub struct Download<T: Element> {
    event: Event,
    device: Weak<OpenDevice>,
    data: Vec<T>,
}

impl<T: Element> Download<T> {
    /// Blocks until the data are here.
    ///
    /// # Errors
    /// The failure of the copy, or of work that it depends on; `DeviceLost`.
    pub fn wait(mut self) -> Result<Vec<T>> {
        self.event.wait()?;
        Ok(std::mem::take(&mut self.data))
    }

    /// Whether the data are here. Never blocks.
    ///
    /// # Errors
    /// As [`Download::wait`].
    pub fn is_done(&self) -> Result<bool> {
        self.event.is_done()
    }
}

impl<T: Element> Unpin for Download<T> {}

impl<T: Element> Future for Download<T> {
    type Output = Result<Vec<T>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.event).poll(context).map(|ended| ended.map(|()| std::mem::take(&mut self.data)))
    }
}

impl<T: Element> Drop for Download<T> {
    fn drop(&mut self) {
        let data = std::mem::take(&mut self.data);
        if !data.is_empty()
            && let Some(timeline) = self.event.timeline()
        {
            retain(self.device.upgrade(), timeline, self.event.ticket(), data);
        }
    }
}

/// Retains `data` until `ticket` has ended. The memory is leaked with its device.
fn retain<T: Element>(device: Option<Arc<OpenDevice>>, timeline: &Arc<Timeline>, ticket: u64, data: Vec<T>) {
    if timeline.has_ended(ticket) {
        return;
    }
    match device {
        Some(device) => {
            let resource = Resource::HostMemory(ExternalOwner::new(data));
            device.defer(resource, vec![(timeline.clone(), ticket)]);
        }
        None if timeline.maybe_running(ticket) => std::mem::forget(data),
        None => {}
    }
}

fn check<T: Element>(queue: &Queue, tensor: &Tensor, elements: usize) -> Result<()> {
    check_placed_on(&queue.device, tensor)?;
    if tensor.dtype() != T::DTYPE || tensor.len() != elements {
        let (ty, count) = (T::DTYPE, counted(tensor.len(), "element"));
        let message =
            format!("the tensor has {count} of {}, but the slice has {elements} of {ty}", tensor.dtype());
        return Err(Error::invalid(message));
    }
    if !tensor.is_contiguous() {
        return Err(Error::unsupported(
            "upload and download need a tensor without gaps; use Tensor::write, or Queue::contiguous",
        ));
    }
    Ok(())
}
