"""Exchange with PyTorch on a GPU: run.py LIBRARY torch_cuda_cases, on a machine that has one."""

import gc
import struct

import torch
from bridge import UNVERSIONED, VERSIONED, Device

COUNT = 100_000


class Lent:
    """A tensor of ours with PyTorch's protocol."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack_device__(self):
        return (2, 0)

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        # The export has waited for all work on the tensor, so there is no stream to synchronise with.
        return self.tensor.capsule(VERSIONED if max_version and max_version[0] >= 1 else UNVERSIONED)


def take(device, source):
    # The contract of an import: the producer's work has ended.
    torch.cuda.current_stream().synchronize()
    return device.take(source, stream=-1)


def case_a_tensor_of_torch_is_worked_on_in_place(library):
    device = Device(library, "cuda")
    source = torch.arange(COUNT, device="cuda", dtype=torch.float32)
    pointer = source.data_ptr()
    taken = take(device, source)
    assert (taken.dtype, taken.shape, taken.strides) == ((2, 32), (COUNT,), (1,))
    device.scale(taken, 3.0)
    device.wait()
    assert source.data_ptr() == pointer
    assert torch.equal(source, torch.arange(COUNT, device="cuda", dtype=torch.float32) * 3)
    again = torch.from_dlpack(Lent(taken))
    assert again.data_ptr() == pointer and again.is_cuda


def case_a_tensor_of_ours_is_worked_on_in_place(library):
    device = Device(library, "cuda")
    tensor = device.tensor(2, 32, (2, 3), struct.pack("6f", *range(6)))
    device.scale(tensor, 2.0, pause_ms=20)
    theirs = torch.from_dlpack(Lent(tensor))
    assert theirs.is_cuda and theirs.tolist() == [[0.0, 2.0, 4.0], [6.0, 8.0, 10.0]]
    theirs += 1
    torch.cuda.synchronize()
    assert struct.unpack("6f", tensor.read()) == (1.0, 3.0, 5.0, 7.0, 9.0, 11.0)


def case_strides_and_offsets(library):
    device = Device(library, "cuda")
    source = torch.arange(60, device="cuda", dtype=torch.int64).reshape(3, 4, 5)
    for view in [source, source.permute(2, 0, 1), source[1:, ::2, 3:], source[2, 1], source[0, 0, 4]]:
        taken = take(device, view)
        again = torch.from_dlpack(Lent(taken))
        assert again.shape == view.shape and again.data_ptr() == view.data_ptr() and torch.equal(again, view)


def case_memory_that_torch_drops_is_not_reused_early(library):
    device = Device(library, "cuda")
    source = torch.full((COUNT,), 2.0, device="cuda")
    taken, pointer = take(device, source), source.data_ptr()
    del source
    gc.collect()
    device.scale(taken, 4.0, pause_ms=50)
    taken.drop()
    # If this memory were reused now, the kernel would overwrite it.
    others = [torch.full((COUNT,), 1.0, device="cuda") for _ in range(8)]
    assert all(other.data_ptr() != pointer for other in others)
    device.wait()
    assert all((other == 1.0).all() for other in others)


def case_deleters_run_once(library):
    device = Device(library, "cuda")
    before = library.deletions()
    theirs = torch.from_dlpack(Lent(device.tensor(2, 32, (4,), b"\0" * 16)))
    part = theirs[1:]
    del theirs
    gc.collect()
    assert library.deletions() == before and part.sum().item() == 0
    del part
    gc.collect()
    assert library.deletions() == before + 1


def case_kernels_run_in_order_on_a_stream_of_torch(library):
    for stream in [torch.cuda.Stream(), torch.cuda.default_stream()]:
        device = Device(library, "cuda")
        device.use_stream(stream.cuda_stream)
        with torch.cuda.stream(stream):
            source = torch.ones(COUNT, device="cuda")
            taken = device.take(source, stream=-1)
            for _ in range(100):
                torch.cuda._sleep(100_000)
                source += 1
                device.scale(taken, 0.5)
            total = source.sum()
            # Only the stream orders all this: (1 + 1) / 2 is 1 again.
            assert total.item() == COUNT
        device.wait()


def case_work_of_torch_runs_between_kernels(library):
    device = Device(library, "cuda")
    source = torch.ones(COUNT, device="cuda")
    taken = take(device, source)

    def add(stream):
        with torch.cuda.stream(torch.cuda.ExternalStream(stream)):
            torch.cuda._sleep(100_000)
            source.add_(1)

    for _ in range(100):
        device.native(taken, add)
        device.scale(taken, 0.5, pause_ms=1)
    device.native(taken, add)
    device.wait()
    assert (source == 2).all()
