"""The launch rate of Triton and PyTorch for small kernels, to compare with the bench `cuda`, part `dispatch`.

Needs a CUDA GPU, and Python with PyTorch and Triton: python3 tests/bench/launch_rate.py
"""

import statistics
import time

import torch
import triton
import triton.language as tl

LAUNCHES = 10_000
ROUNDS = 30


@triton.jit
def touch(a, b, c, s, n: tl.constexpr):
    at = tl.arange(0, n)
    tl.store(c + at, tl.load(a + at) + tl.load(b + at) * s)


def microseconds(launch):
    """The median time of a launch, without waiting in between, and until all have ended."""
    submitted, ended = [], []
    for round in range(ROUNDS + 3):
        torch.cuda.synchronize()
        begin = time.perf_counter_ns()
        for _ in range(LAUNCHES):
            launch()
        after = time.perf_counter_ns()
        torch.cuda.synchronize()
        end = time.perf_counter_ns()
        if round >= 3:
            submitted.append((after - begin) / LAUNCHES / 1e3)
            ended.append((end - begin) / LAUNCHES / 1e3)
    return statistics.median(submitted), statistics.median(ended)


def main():
    a, b, c = (torch.ones(1024, device="cuda") for _ in range(3))
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, triton {triton.__version__}")
    for name, launch in [
        ("triton", lambda: touch[(1,)](a, b, c, 3.0, 1024)),
        ("torch.add", lambda: torch.add(a, b, out=c)),
    ]:
        launch()
        submitted, ended = microseconds(launch)
        print(f"{name}: {submitted:.3f} us per launch, {ended:.3f} us until all have ended")


if __name__ == "__main__":
    main()
