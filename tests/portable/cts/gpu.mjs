// The part of WebGPU that the compute tests of the suite use, in front of the server (server.rs) that started this process.
//
// Everything is synchronous: a request goes to standard output, its answer is read from standard input. So an error is known when
// its call returns, and goes to the innermost error scope of its kind, or to `state.uncaptured`, which fails the test case.
// What is missing here is `undefined`: its use throws. Textures, samplers and everything graphical set `state.outside`.

import fs from 'node:fs';

/** What happened in the current test case; the runner resets it. */
export const state = { outside: null, uncaptured: [] };

function outside(what) {
  state.outside ??= what;
  throw new Error(`outside of the scope: ${what}`);
}

// ------------------------------------------------------------------------------------------------------------ the server

/** A driver has crashed: this case fails, and the next ones need a new process. */
function serverEnded() {
  console.error('the server ended');
  process.exit(1);
}

function readExactly(bytes) {
  for (let at = 0; at < bytes.length; ) {
    const count = fs.readSync(0, bytes, at, bytes.length - at, null);
    if (count === 0) serverEnded();
    at += count;
  }
  return bytes;
}

function writeAll(bytes) {
  try {
    for (let at = 0; at < bytes.length; ) at += fs.writeSync(1, bytes, at, bytes.length - at);
  } catch (error) {
    if (error.code !== 'EPIPE') throw error;
    serverEnded();
  }
}

/** Sends a request; a frame is the sizes of its two parts, then JSON, then bytes. */
function request(head, parts = []) {
  const json = Buffer.from(JSON.stringify(head));
  const sizes = Buffer.alloc(8);
  sizes.writeUInt32LE(json.length, 0);
  sizes.writeUInt32LE(parts.reduce((sum, part) => sum + part.length, 0), 4);
  writeAll(Buffer.concat([sizes, json, ...parts]));
  const answered = readExactly(Buffer.alloc(8));
  const answer = JSON.parse(readExactly(Buffer.alloc(answered.readUInt32LE(0))).toString());
  answer.bytes = readExactly(Buffer.alloc(answered.readUInt32LE(4)));
  return answer;
}

// ------------------------------------------------------------------------------------------------------------ constants

export const constants = {
  GPUBufferUsage: {
    MAP_READ: 1, MAP_WRITE: 2, COPY_SRC: 4, COPY_DST: 8, INDEX: 16, VERTEX: 32, UNIFORM: 64, STORAGE: 128, INDIRECT: 256,
    QUERY_RESOLVE: 512,
  },
  GPUMapMode: { READ: 1, WRITE: 2 },
  GPUShaderStage: { VERTEX: 1, FRAGMENT: 2, COMPUTE: 4 },
  GPUTextureUsage: { COPY_SRC: 1, COPY_DST: 2, TEXTURE_BINDING: 4, STORAGE_BINDING: 8, RENDER_ATTACHMENT: 16 },
  GPUColorWrite: { RED: 1, GREEN: 2, BLUE: 4, ALPHA: 8, ALL: 15 },
};
const { GPUBufferUsage: Usage, GPUMapMode: MapMode } = constants;

// ---------------------------------------------------------------------------------------------------------------- errors

class GPUError {
  constructor(message) {
    this.message = message;
  }
}
class GPUValidationError extends GPUError {}
class GPUInternalError extends GPUError {}
class GPUOutOfMemoryError extends GPUError {}
class GPUPipelineError extends Error {
  constructor(message, { reason }) {
    super(message);
    this.name = 'GPUPipelineError';
    this.reason = reason;
  }
}
const errorClasses = {
  validation: GPUValidationError,
  internal: GPUInternalError,
  'out-of-memory': GPUOutOfMemoryError,
};

// --------------------------------------------------------------------------------------------------------------- buffers

class GPUBuffer {
  constructor(device, { size, usage, mappedAtCreation = false, label = '' }) {
    Object.assign(this, { device, size, usage, label, destroyed: false });
    this.contents = new Uint8Array(size);
    this.mapped = mappedAtCreation ? { mode: MapMode.WRITE, ranges: [] } : null;
  }
  get mapState() {
    return this.mapped ? 'mapped' : 'unmapped';
  }
  async mapAsync(mode, offset = 0, size = this.size - offset) {
    const needed = mode === MapMode.READ ? Usage.MAP_READ : Usage.MAP_WRITE;
    if (this.mapped || this.destroyed || !(this.usage & needed) || offset + size > this.size) {
      this.device.report('validation', 'this buffer cannot be mapped so');
      throw new DOMException('this buffer cannot be mapped so', 'OperationError');
    }
    this.mapped = { mode, ranges: [] };
  }
  getMappedRange(offset = 0, size = this.size - offset) {
    if (!this.mapped) throw new DOMException('this buffer is not mapped', 'OperationError');
    const bytes = this.contents.slice(offset, offset + size);
    if (bytes.length !== size) throw new DOMException('beyond the end of the buffer', 'OperationError');
    this.mapped.ranges.push({ offset, bytes });
    return bytes.buffer;
  }
  unmap() {
    if (this.mapped?.mode === MapMode.WRITE) {
      for (const { offset, bytes } of this.mapped.ranges) this.contents.set(bytes, offset);
    }
    this.mapped = null;
  }
  destroy() {
    this.mapped = null;
    this.destroyed = true;
  }
  /** Why commands cannot use a range of it, if they cannot. */
  unusable(usage, offset, size) {
    if (this.destroyed) return 'a destroyed buffer is used';
    if (this.mapped) return 'a mapped buffer is used';
    if (!(this.usage & usage)) return 'a buffer lacks the usage';
    if (offset + size > this.size) return 'a range ends behind its buffer';
    return null;
  }
}

// ------------------------------------------------------------------------------------------------- modules and pipelines

class GPUShaderModule {
  constructor(device, { code }) {
    this.code = code;
    // A text of the language that kernels lack by design.
    if (/@(\s|\/\*.*?\*\/)*(vertex|fragment)|\btexture_|\btexture[A-Z]|\bsampler/.test(code)) state.outside ??= 'a graphics shader';
    this.error = request({ op: 'module', code }).error;
    if (this.error) device.report('validation', this.error);
  }
  async getCompilationInfo() {
    const message = this.error && { type: 'error', message: this.error, lineNum: 0, linePos: 0, offset: 0, length: 0 };
    return { messages: message ? [message] : [] };
  }
}

/** The place of each resource of a text. The server numbers those that an entry point uses, by name. */
function places(code) {
  const text = code.replace(/\/\/[^\n]*/g, '').replace(/\/\*[^]*?\*\//g, '');
  const found = new Map();
  for (const [, attributes, name] of text.matchAll(/((?:@(?:group|binding)\s*\([^)]*\)\s*){2})var\s*(?:<[^>]*>)?\s*(\w+)/g)) {
    const number = word => Number.parseInt(attributes.match(new RegExp(`@${word}\\s*\\(\\s*(\\w+)`))[1]);
    found.set(name, { group: number('group'), binding: number('binding') });
  }
  return found;
}

class GPUComputePipeline {
  /** Throws a GPUPipelineError if it is invalid. */
  constructor({ layout, compute: { module, entryPoint, constants = {} } }) {
    if (module.error) throw new GPUPipelineError(`invalid module: ${module.error}`, { reason: 'validation' });
    // As text, which keeps every digit and the sign of zero.
    const texts = Object.entries(constants).map(([name, value]) => [name, Object.is(value, -0) ? '-0' : String(Number(value))]);
    const head = { op: 'pipeline', code: module.code, entry: entryPoint ?? null, constants: Object.fromEntries(texts) };
    const answer = request(head);
    if (answer.error) throw new GPUPipelineError(answer.error, { reason: answer.reason });
    const known = places(module.code);
    this.id = answer.id;
    this.layouts = layout.bindGroupLayouts;
    this.places = answer.tensors.map(name => {
      const place = known.get(name);
      if (!place) throw new Error(`the shim does not find the place of "${name}"`);
      return place;
    });
  }
  getBindGroupLayout(index) {
    return this.layouts?.[index] ?? { index };
  }
}

// -------------------------------------------------------------------------------------------------------------- commands

class GPUComputePassEncoder {
  constructor(encoder) {
    Object.assign(this, { encoder, pipeline: null, groups: new Map() });
  }
  setPipeline(pipeline) {
    this.pipeline = pipeline;
  }
  setBindGroup(index, group, offsets = []) {
    const moved = new Map(group);
    for (const [at, binding] of group.dynamic.entries()) {
      const range = group.get(binding);
      moved.set(binding, { ...range, offset: range.offset + offsets[at] });
    }
    this.groups.set(index, moved);
  }
  dispatchWorkgroups(x, y = 1, z = 1) {
    const { pipeline, groups } = this;
    const bound = new Map(groups);
    this.encoder.commands.push(device => device.dispatch(pipeline, bound, [x, y, z]));
  }
  dispatchWorkgroupsIndirect(buffer, offset) {
    const { pipeline, groups } = this;
    const bound = new Map(groups);
    this.encoder.commands.push(device => {
      const why = buffer.unusable(Usage.INDIRECT, offset, 12);
      if (why) return device.report('validation', why);
      return device.dispatch(pipeline, bound, [...new Uint32Array(buffer.contents.slice(offset, offset + 12).buffer)]);
    });
  }
  end() {}
  pushDebugGroup() {}
  popDebugGroup() {}
}

class GPUCommandEncoder {
  commands = [];
  beginComputePass() {
    return new GPUComputePassEncoder(this);
  }
  beginRenderPass() {
    outside('beginRenderPass');
  }
  copyBufferToBuffer(source, ...rest) {
    const [from, target, to, size = source.size - from] = rest[0] instanceof GPUBuffer ? [0, rest[0], 0, rest[1]] : rest;
    this.commands.push(device => {
      const why = source.unusable(Usage.COPY_SRC, from, size) ?? target.unusable(Usage.COPY_DST, to, size);
      if (why) return device.report('validation', why);
      target.contents.set(source.contents.slice(from, from + size), to);
    });
  }
  clearBuffer(buffer, offset = 0, size = buffer.size - offset) {
    this.commands.push(device => {
      const why = buffer.unusable(Usage.COPY_DST, offset, size);
      if (why) return device.report('validation', why);
      buffer.contents.fill(0, offset, offset + size);
    });
  }
  finish() {
    return { commands: this.commands };
  }
}

class GPUQueue {
  constructor(device) {
    this.device = device;
  }
  submit(buffers) {
    for (const { commands } of buffers) commands.splice(0).forEach(command => command(this.device));
  }
  async onSubmittedWorkDone() {}
  writeBuffer(buffer, offset, data, dataOffset = 0, size = undefined) {
    const unit = data.BYTES_PER_ELEMENT ?? 1;
    const all = new Uint8Array(data.buffer ?? data, data.byteOffset ?? 0, data.byteLength);
    const bytes = all.slice(dataOffset * unit, size === undefined ? undefined : (dataOffset + size) * unit);
    const why = buffer.unusable(Usage.COPY_DST, offset, bytes.length);
    if (why) this.device.report('validation', why);
    else buffer.contents.set(bytes, offset);
  }
  writeTexture() {
    outside('writeTexture');
  }
  copyExternalImageToTexture() {
    outside('copyExternalImageToTexture');
  }
}

// ---------------------------------------------------------------------------------------------------------------- device

class GPUDevice extends EventTarget {
  scopes = [];
  constructor(adapter) {
    super();
    Object.assign(this, { adapterInfo: adapter.info, features: adapter.features, limits: adapter.limits });
    this.queue = new GPUQueue(this);
    this.lost = new Promise(resolve => (this.destroy = () => resolve({ reason: 'destroyed', message: '' })));
  }
  report(kind, message) {
    const scope = this.scopes.findLast(({ filter }) => filter === kind);
    if (scope) scope.error ??= new errorClasses[kind](message);
    else state.uncaptured.push(`${kind}: ${message}`);
  }
  pushErrorScope(filter) {
    this.scopes.push({ filter, error: null });
  }
  async popErrorScope() {
    if (!this.scopes.length) throw new DOMException('there is no error scope', 'OperationError');
    return this.scopes.pop().error;
  }
  createBuffer(descriptor) {
    return new GPUBuffer(this, descriptor);
  }
  createShaderModule(descriptor) {
    return new GPUShaderModule(this, descriptor);
  }
  createComputePipeline(descriptor) {
    try {
      return new GPUComputePipeline(descriptor);
    } catch (error) {
      if (!(error instanceof GPUPipelineError)) throw error;
      this.report(error.reason, error.message);
      return { invalid: true, getBindGroupLayout: index => ({ index }) };
    }
  }
  async createComputePipelineAsync(descriptor) {
    return new GPUComputePipeline(descriptor);
  }
  createBindGroupLayout({ entries }) {
    return { entries };
  }
  createPipelineLayout({ bindGroupLayouts }) {
    return { bindGroupLayouts };
  }
  createBindGroup({ layout, entries }) {
    const range = resource => {
      const { buffer, offset = 0, size = buffer.size - offset } = resource instanceof GPUBuffer ? { buffer: resource } : resource;
      return { buffer, offset, size };
    };
    const group = new Map(entries.map(({ binding, resource }) => [binding, range(resource)]));
    const dynamic = (layout.entries ?? []).filter(entry => entry.buffer?.hasDynamicOffset).map(entry => entry.binding);
    // In the order of the offsets.
    group.dynamic = dynamic.sort((a, b) => a - b);
    return group;
  }
  createCommandEncoder() {
    return new GPUCommandEncoder();
  }
  /** Runs a pipeline on what is bound, and takes over what it wrote. */
  dispatch(pipeline, groups, workgroups) {
    if (!pipeline || pipeline.invalid) return this.report('validation', 'an invalid pipeline is dispatched');
    const bound = pipeline.places.map(({ group, binding }) => groups.get(group)?.get(binding));
    if (bound.includes(undefined)) return this.report('validation', 'a binding of the pipeline is missing');
    for (const { buffer, offset, size } of bound) {
      const why = buffer.unusable(Usage.STORAGE | Usage.UNIFORM, offset, size);
      if (why) return this.report('validation', why);
    }
    if (workgroups.includes(0)) return;
    const parts = bound.map(({ buffer, offset, size }) => buffer.contents.subarray(offset, offset + size));
    const sizes = parts.map(part => part.length);
    const answer = request({ op: 'dispatch', pipeline: pipeline.id, groups: workgroups, sizes }, parts);
    if (answer.error) return this.report('internal', answer.error);
    let at = 0;
    bound.forEach(({ buffer, offset, size }, index) => {
      // What is only read may be bound twice, beside a range that is written.
      if (answer.written[index]) buffer.contents.set(answer.bytes.subarray(at, at + size), offset);
      at += size;
    });
  }
}
for (const name of [
  'createTexture', 'createSampler', 'createRenderPipeline', 'createRenderPipelineAsync', 'createRenderBundleEncoder',
  'createQuerySet', 'importExternalTexture',
]) {
  GPUDevice.prototype[name] = () => outside(name);
}

class GPUAdapter {
  constructor(hello, limits) {
    this.info = { vendor: 'runtime', architecture: hello.device, device: hello.device, description: '', ...hello.info };
    this.features = new Set(hello.features);
    this.limits = limits;
  }
  async requestDevice() {
    return new GPUDevice(this);
  }
}

/** The `navigator.gpu` of a device with the given limits; defines the globals that the suite uses. */
export function makeGpu(limits) {
  const hello = request({ op: 'hello' });
  Object.assign(globalThis, constants, {
    GPUAdapter, GPUBuffer, GPUDevice, GPUError, GPUInternalError, GPUOutOfMemoryError, GPUPipelineError, GPUShaderModule,
    GPUValidationError,
  });
  for (const name of ['GPUTexture', 'GPUTextureView', 'GPUSampler', 'GPUExternalTexture', 'GPURenderPipeline', 'GPUQuerySet']) {
    globalThis[name] = class {};
  }
  const adapter = new GPUAdapter(hello, limits);
  return {
    wgslLanguageFeatures: new Set(hello.languageFeatures),
    getPreferredCanvasFormat: () => 'bgra8unorm',
    requestAdapter: async () => adapter,
  };
}
