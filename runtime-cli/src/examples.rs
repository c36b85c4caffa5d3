//! Examples at the end of each command's `--help`.

pub(crate) const DEVICES: &str = "Examples:
  runtime devices
  runtime devices --json --telemetry";

pub(crate) const COUNTERS: &str = "Examples:
  runtime counters --device host:0
  runtime counters --device cuda:0 --json";

pub(crate) const DOCTOR: &str = "Examples:
  runtime doctor
  runtime doctor cuda";

pub(crate) const EVAL: &str = "Examples:
  runtime eval kernels/matmul.toml --device host:0 --set m=1000 --until 1%
  runtime eval kernels/saxpy.toml --isolate --timeout 10 --json rows.json --html rows.html
  runtime eval kernels/saxpy.toml --baseline rows.json --threshold 5%";

pub(crate) const COMPARE: &str = "Examples:
  runtime compare main.json branch.json --threshold 5%
  runtime compare monday.json tuesday.json wednesday.json";

pub(crate) const TUNE: &str = "Examples:
  runtime tune kernels/matmul.toml --device host:0 --set m=256 --log matmul.jsonl --best fastest.toml
  runtime tune kernels/matmul.toml --strategy halving --samples 64 --time-limit 600
  runtime tune kernels/matmul.toml --device cuda:0 --device cuda:1 --spread";

pub(crate) const PEAK: &str = "Examples:
  runtime peak --device cuda:0
  runtime peak --quick --json > peaks.json";

pub(crate) const REPORT: &str = "Examples:
  runtime report rows.json --html rows.html --plot rows.svg
  runtime report rows.json --markdown -";

pub(crate) const RUN: &str = "Examples:
  runtime run kernels/vector_add.toml --save c=c.npy";

pub(crate) const FUSE: &str = "Examples:
  runtime fuse kernels/bias.toml kernels/gelu.toml kernels/residual.toml --device host:0 --until 1%
  runtime fuse kernels/relu.toml kernels/scale.toml --emit spirv | spirv-dis
  runtime fuse kernels/vector_add.toml kernels/multiply_subtract.toml --set n=4096 --link multiply_subtract.a=vector_add.a";

pub(crate) const LOWER: &str = "Examples:
  runtime lower kernels/saxpy.wgsl --interface
  runtime lower kernels/saxpy.wgsl --to spirv --constant GROUP=128 | spirv-dis";

pub(crate) const COMPILE: &str = "Examples:
  runtime compile kernels/saxpy.wgsl --constant GROUP=128 --target cuda:sm_90 --target vulkan --target host:x86-64-v3 -o saxpy.rtpkg
  runtime compile a.cu b.cu --target cuda:sm_80 --target cuda:sm_90 --no-fallback -o kernels.rtpkg
  runtime compile kernels/matmul.wgsl --target host:native --constant TILE=8 --element f16 -o matmul.rtpkg";

pub(crate) const PACKAGE: &str = "Examples:
  runtime package list saxpy.rtpkg
  runtime package load saxpy.rtpkg --device cuda:0
  runtime package extract saxpy.rtpkg -C saxpy";

pub(crate) const CONFORMANCE: &str = "Examples:
  runtime conformance ./libruntime_mine.so -- --list
  runtime conformance null --faults -- queues";

pub(crate) const SERVE: &str = "Examples:
  runtime serve --stdio --timeout 10
  runtime serve --stdio --launch 'ssh host {worker}'";

pub(crate) const CACHE: &str = "Examples:
  runtime cache list
  runtime cache verify
  runtime cache prune --max-bytes 1GiB --older-than 30";

pub(crate) const COMPLETIONS: &str = "Examples:
  runtime completions bash > ~/.local/share/bash-completion/completions/runtime";
