// Textures are tensors of rows, columns and channels; their shapes come with the scalars.

//# tex_sampled: §textureload: missing channels are 0, 0 and 1, and texels outside are zero
//= read f32: 1 2 3 4 5 6 7 8 9 10 11 12
//= write f32: 9*24 -> 1 2 0 1  7 8 0 1  11 12 0 1  0*4  0*4  0*4
//= scalar u32: 2
//= scalar u32: 3
//= scalar u32: 2
//= scalar i32: 6
//= scalar i32: 2
//= scalar i32: 1
@group(0) @binding(0) var tex_sampled_t: texture_2d<f32>;
@group(0) @binding(1) var<storage, read_write> tex_sampled_r: array<vec4<f32>>;
@compute @workgroup_size(1)
fn tex_sampled() {
    tex_sampled_r[0] = textureLoad(tex_sampled_t, vec2(0, 0), 0);
    tex_sampled_r[1] = textureLoad(tex_sampled_t, vec2u(0u, 1u), 0u);
    tex_sampled_r[2] = textureLoad(tex_sampled_t, vec2<i32>(textureDimensions(tex_sampled_t)) - 1, 0);
    tex_sampled_r[3] = textureLoad(tex_sampled_t, vec2(3, 0), 0);
    tex_sampled_r[4] = textureLoad(tex_sampled_t, vec2(-1, 1), 0);
    tex_sampled_r[5] = textureLoad(tex_sampled_t, vec2(0, 0), 1);
}

//# tex_size: §texturedimensions: width and height, also of a level
//= read i32: 1 2 3 4 5 6
//= write u32: 9*6 -> 3 2 3 2 1 6
//= scalar u32: 2
//= scalar u32: 3
//= scalar u32: 1
//= scalar i32: 3
//= scalar i32: 1
//= scalar i32: 1
@group(0) @binding(0) var tex_size_t: texture_2d<i32>;
@group(0) @binding(1) var<storage, read_write> tex_size_r: array<u32>;
fn tex_size_last(size: vec2<u32>) -> i32 { return textureLoad(tex_size_t, vec2<i32>(size) - vec2(1, 1), 0).x; }
@compute @workgroup_size(1)
fn tex_size() {
    let size = textureDimensions(tex_size_t);
    let level = textureDimensions(tex_size_t, 0);
    tex_size_r[0] = size.x;
    tex_size_r[1] = size.y;
    tex_size_r[2] = level.x;
    tex_size_r[3] = level.y;
    tex_size_r[4] = textureNumLevels(tex_size_t);
    tex_size_r[5] = u32(tex_size_last(size));
}

//# tex_store_rgba8unorm: §texel-formats: a store clamps and rounds; outside it does nothing
//= write u8: 7*8 -> 0 255 128 255  0 255 128 0
//= scalar u32: 1
//= scalar u32: 2
//= scalar u32: 4
//= scalar i32: 8
//= scalar i32: 4
//= scalar i32: 1
@group(0) @binding(0) var tex_store_rgba8unorm_t: texture_storage_2d<rgba8unorm, write>;
@compute @workgroup_size(2)
fn tex_store_rgba8unorm(@builtin(local_invocation_index) i: u32) {
    textureStore(tex_store_rgba8unorm_t, vec2(i32(i), 0), vec4(-0.5, 1.5, 0.5, 1.0 - f32(i)));
    textureStore(tex_store_rgba8unorm_t, vec2(i32(i), 1), vec4(-0.5, 1.5, 0.5, 1.0 - f32(i)));
    textureStore(tex_store_rgba8unorm_t, vec2(-1, 0), vec4(-0.5, 1.5, 0.5, 1.0 - f32(i)));
}

//# tex_store_bgra8unorm: §texel-formats: blue comes first
//= write u8: 7*8 -> 51 0 255 255  51 0 255 0
//= scalar u32: 1
//= scalar u32: 2
//= scalar u32: 4
//= scalar i32: 8
//= scalar i32: 4
//= scalar i32: 1
@group(0) @binding(0) var tex_store_bgra8unorm_t: texture_storage_2d<bgra8unorm, write>;
@compute @workgroup_size(2)
fn tex_store_bgra8unorm(@builtin(local_invocation_index) i: u32) {
    textureStore(tex_store_bgra8unorm_t, vec2(i32(i), 0), vec4(1.0, 0.0, 0.2, 1.0 - f32(i)));
    textureStore(tex_store_bgra8unorm_t, vec2(i32(i), 1), vec4(1.0, 0.0, 0.2, 1.0 - f32(i)));
    textureStore(tex_store_bgra8unorm_t, vec2(-1, 0), vec4(1.0, 0.0, 0.2, 1.0 - f32(i)));
}

//# tex_store_rgba8snorm: §texel-formats: signed bytes
//= write i8: 7*8 -> -127 127 0 127  -127 127 0 0
//= scalar u32: 1
//= scalar u32: 2
//= scalar u32: 4
//= scalar i32: 8
//= scalar i32: 4
//= scalar i32: 1
@group(0) @binding(0) var tex_store_rgba8snorm_t: texture_storage_2d<rgba8snorm, write>;
@compute @workgroup_size(2)
fn tex_store_rgba8snorm(@builtin(local_invocation_index) i: u32) {
    textureStore(tex_store_rgba8snorm_t, vec2(i32(i), 0), vec4(-1.5, 1.5, 0.0, 1.0 - f32(i)));
    textureStore(tex_store_rgba8snorm_t, vec2(i32(i), 1), vec4(-1.5, 1.5, 0.0, 1.0 - f32(i)));
    textureStore(tex_store_rgba8snorm_t, vec2(-1, 0), vec4(-1.5, 1.5, 0.0, 1.0 - f32(i)));
}

//# tex_store_rgba8uint: §texel-formats: integers are clamped
//= write u8: 7*8 -> 1 255 255 0  1 255 255 1
//= scalar u32: 1
//= scalar u32: 2
//= scalar u32: 4
//= scalar i32: 8
//= scalar i32: 4
//= scalar i32: 1
@group(0) @binding(0) var tex_store_rgba8uint_t: texture_storage_2d<rgba8uint, write>;
@compute @workgroup_size(2)
fn tex_store_rgba8uint(@builtin(local_invocation_index) i: u32) {
    textureStore(tex_store_rgba8uint_t, vec2(i32(i), 0), vec4(1u, 255u, 4096u, i));
    textureStore(tex_store_rgba8uint_t, vec2(i32(i), 1), vec4(1u, 255u, 4096u, i));
    textureStore(tex_store_rgba8uint_t, vec2(-1, 0), vec4(1u, 255u, 4096u, i));
}

//# tex_store_rgba8sint: §texel-formats: integers are clamped on both sides
//= write i8: 7*8 -> -1 127 -128 0  -1 127 -128 1
//= scalar u32: 1
//= scalar u32: 2
//= scalar u32: 4
//= scalar i32: 8
//= scalar i32: 4
//= scalar i32: 1
@group(0) @binding(0) var tex_store_rgba8sint_t: texture_storage_2d<rgba8sint, write>;
@compute @workgroup_size(2)
fn tex_store_rgba8sint(@builtin(local_invocation_index) i: u32) {
    textureStore(tex_store_rgba8sint_t, vec2(i32(i), 0), vec4(-1, 4096, -4096, i32(i)));
    textureStore(tex_store_rgba8sint_t, vec2(i32(i), 1), vec4(-1, 4096, -4096, i32(i)));
    textureStore(tex_store_rgba8sint_t, vec2(-1, 0), vec4(-1, 4096, -4096, i32(i)));
}

//# tex_store_rgba16float: §texel-formats: halves
//= write f16: 7*8 -> 1 -0.5 65504 0  1 -0.5 65504 1
//= scalar u32: 1
//= scalar u32: 2
//= scalar u32: 4
//= scalar i32: 8
//= scalar i32: 4
//= scalar i32: 1
@group(0) @binding(0) var tex_store_rgba16float_t: texture_storage_2d<rgba16float, write>;
@compute @workgroup_size(2)
fn tex_store_rgba16float(@builtin(local_invocation_index) i: u32) {
    textureStore(tex_store_rgba16float_t, vec2(i32(i), 0), vec4(1.0, -0.5, 65504.0, f32(i)));
    textureStore(tex_store_rgba16float_t, vec2(i32(i), 1), vec4(1.0, -0.5, 65504.0, f32(i)));
    textureStore(tex_store_rgba16float_t, vec2(-1, 0), vec4(1.0, -0.5, 65504.0, f32(i)));
}

//# tex_store_rgba16uint: §texel-formats: integers of 16 bits are clamped
//= write u16: 7*8 -> 1 65535 65535 0  1 65535 65535 1
//= scalar u32: 1
//= scalar u32: 2
//= scalar u32: 4
//= scalar i32: 8
//= scalar i32: 4
//= scalar i32: 1
@group(0) @binding(0) var tex_store_rgba16uint_t: texture_storage_2d<rgba16uint, write>;
@compute @workgroup_size(2)
fn tex_store_rgba16uint(@builtin(local_invocation_index) i: u32) {
    textureStore(tex_store_rgba16uint_t, vec2(i32(i), 0), vec4(1u, 65535u, 70000u, i));
    textureStore(tex_store_rgba16uint_t, vec2(i32(i), 1), vec4(1u, 65535u, 70000u, i));
    textureStore(tex_store_rgba16uint_t, vec2(-1, 0), vec4(1u, 65535u, 70000u, i));
}

//# tex_store_rg16sint: §texel-formats: two channels in a word
//= write i16: 7*4 -> -32768 0 -32768 32767
//= scalar u32: 1
//= scalar u32: 2
//= scalar u32: 2
//= scalar i32: 4
//= scalar i32: 2
//= scalar i32: 1
@group(0) @binding(0) var tex_store_rg16sint_t: texture_storage_2d<rg16sint, write>;
@compute @workgroup_size(2)
fn tex_store_rg16sint(@builtin(local_invocation_index) i: u32) {
    textureStore(tex_store_rg16sint_t, vec2(i32(i), 0), vec4(-70000, 70000 * i32(i), 1, 1));
    textureStore(tex_store_rg16sint_t, vec2(i32(i), 1), vec4(-70000, 70000 * i32(i), 1, 1));
    textureStore(tex_store_rg16sint_t, vec2(-1, 0), vec4(-70000, 70000 * i32(i), 1, 1));
}

//# tex_store_r32float: §texel-formats: one channel, rows and columns
//= write f32: 7*4 -> 7 7 0.25 1.25
//= scalar u32: 2
//= scalar u32: 2
//= scalar i32: 2
//= scalar i32: 1
@group(0) @binding(0) var tex_store_r32float_t: texture_storage_2d<r32float, write>;
@compute @workgroup_size(2)
fn tex_store_r32float(@builtin(local_invocation_index) i: u32) {
    textureStore(tex_store_r32float_t, vec2(i, 1u), vec4(f32(i) + 0.25, 2.0, 3.0, 4.0));
    textureStore(tex_store_r32float_t, vec2(i, 2u), vec4(9.0));
}

//# tex_load_rgba8unorm: §texel-formats: bytes are divided by 255
//= read u8: 0 255 51 102  255 0 1 2
//= write f32: 9*12 -> 0 1 0.2 0.4  1 0 0.00392156862745098 0.00784313725490196  0*4 within 2.5 ulp
//= scalar u32: 1
//= scalar u32: 2
//= scalar u32: 4
//= scalar i32: 8
//= scalar i32: 4
//= scalar i32: 1
@group(0) @binding(0) var tex_load_rgba8unorm_t: texture_storage_2d<rgba8unorm, read>;
@group(0) @binding(1) var<storage, read_write> tex_load_rgba8unorm_r: array<vec4<f32>>;
@compute @workgroup_size(3)
fn tex_load_rgba8unorm(@builtin(local_invocation_index) i: u32) { tex_load_rgba8unorm_r[i] = textureLoad(tex_load_rgba8unorm_t, vec2(i, 0u)); }

//# tex_load_rgba8snorm: §texel-formats: -128 is -1 too
//= read i8: -128 -127 0 127  127 0 -127 -128
//= write f32: 9*12 -> -1 -1 0 1  1 0 -1 -1  0*4
//= scalar u32: 1
//= scalar u32: 2
//= scalar u32: 4
//= scalar i32: 8
//= scalar i32: 4
//= scalar i32: 1
@group(0) @binding(0) var tex_load_rgba8snorm_t: texture_storage_2d<rgba8snorm, read>;
@group(0) @binding(1) var<storage, read_write> tex_load_rgba8snorm_r: array<vec4<f32>>;
@compute @workgroup_size(3)
fn tex_load_rgba8snorm(@builtin(local_invocation_index) i: u32) { tex_load_rgba8snorm_r[i] = textureLoad(tex_load_rgba8snorm_t, vec2(i, 0u)); }

//# tex_load_rgba8sint: §texel-formats: signed bytes are extended
//= read i8: -128 -1 0 127  1 2 3 4
//= write i32: 9*12 -> -128 -1 0 127  1 2 3 4  0*4
//= scalar u32: 1
//= scalar u32: 2
//= scalar u32: 4
//= scalar i32: 8
//= scalar i32: 4
//= scalar i32: 1
@group(0) @binding(0) var tex_load_rgba8sint_t: texture_storage_2d<rgba8sint, read>;
@group(0) @binding(1) var<storage, read_write> tex_load_rgba8sint_r: array<vec4<i32>>;
@compute @workgroup_size(3)
fn tex_load_rgba8sint(@builtin(local_invocation_index) i: u32) { tex_load_rgba8sint_r[i] = textureLoad(tex_load_rgba8sint_t, vec2(i, 0u)); }

//# tex_load_rgba16float: §texel-formats: halves are exact
//= read f16: 0.5 -2 65504 0.0999755859375  1 2 3 4
//= write f32: 9*12 -> 0.5 -2 65504 0.0999755859375  1 2 3 4  0*4
//= scalar u32: 1
//= scalar u32: 2
//= scalar u32: 4
//= scalar i32: 8
//= scalar i32: 4
//= scalar i32: 1
@group(0) @binding(0) var tex_load_rgba16float_t: texture_storage_2d<rgba16float, read>;
@group(0) @binding(1) var<storage, read_write> tex_load_rgba16float_r: array<vec4<f32>>;
@compute @workgroup_size(3)
fn tex_load_rgba16float(@builtin(local_invocation_index) i: u32) { tex_load_rgba16float_r[i] = textureLoad(tex_load_rgba16float_t, vec2(i, 0u)); }

//# tex_load_rg16uint: §texel-formats: two channels, and 0 and 1
//= read u16: 0 65535 256 3
//= write u32: 9*12 -> 0 65535 0 1  256 3 0 1  0*4
//= scalar u32: 1
//= scalar u32: 2
//= scalar u32: 2
//= scalar i32: 4
//= scalar i32: 2
//= scalar i32: 1
@group(0) @binding(0) var tex_load_rg16uint_t: texture_storage_2d<rg16uint, read>;
@group(0) @binding(1) var<storage, read_write> tex_load_rg16uint_r: array<vec4<u32>>;
@compute @workgroup_size(3)
fn tex_load_rg16uint(@builtin(local_invocation_index) i: u32) { tex_load_rg16uint_r[i] = textureLoad(tex_load_rg16uint_t, vec2(i, 0u)); }

//# tex_load_rgba16sint: §texel-formats: four signed channels
//= read i16: -32768 32767 -1 0  1 2 3 4
//= write i32: 9*12 -> -32768 32767 -1 0  1 2 3 4  0*4
//= scalar u32: 1
//= scalar u32: 2
//= scalar u32: 4
//= scalar i32: 8
//= scalar i32: 4
//= scalar i32: 1
@group(0) @binding(0) var tex_load_rgba16sint_t: texture_storage_2d<rgba16sint, read>;
@group(0) @binding(1) var<storage, read_write> tex_load_rgba16sint_r: array<vec4<i32>>;
@compute @workgroup_size(3)
fn tex_load_rgba16sint(@builtin(local_invocation_index) i: u32) { tex_load_rgba16sint_r[i] = textureLoad(tex_load_rgba16sint_t, vec2(i, 0u)); }

//# tex_load_rg32uint: §texel-formats: channels of 32 bits
//= read u32: 1 2 3 4
//= write u32: 9*12 -> 1 2 0 1  3 4 0 1  0*4
//= scalar u32: 1
//= scalar u32: 2
//= scalar u32: 2
//= scalar i32: 4
//= scalar i32: 2
//= scalar i32: 1
@group(0) @binding(0) var tex_load_rg32uint_t: texture_storage_2d<rg32uint, read>;
@group(0) @binding(1) var<storage, read_write> tex_load_rg32uint_r: array<vec4<u32>>;
@compute @workgroup_size(3)
fn tex_load_rg32uint(@builtin(local_invocation_index) i: u32) { tex_load_rg32uint_r[i] = textureLoad(tex_load_rg32uint_t, vec2(i, 0u)); }

//# tex_channels: a tensor without the channels of the format has no texels
//= read u8: 1 2 3 4 5 6
//= write u32: 9*12 -> 0*12
//= scalar u32: 1
//= scalar u32: 2
//= scalar u32: 3
//= scalar i32: 6
//= scalar i32: 3
//= scalar i32: 1
@group(0) @binding(0) var tex_channels_t: texture_storage_2d<rgba8uint, read>;
@group(0) @binding(1) var<storage, read_write> tex_channels_r: array<vec4<u32>>;
@compute @workgroup_size(3)
fn tex_channels(@builtin(local_invocation_index) i: u32) { tex_channels_r[i] = textureLoad(tex_channels_t, vec2(i, 0u)); }

//# tex_modify: §textureload: a texture is read and written, beside scalars of the kernel's own
//= write u32: 1 2 3 4 5 6 -> 11 12 13 14 15 16
//= scalar u32: 10
//= scalar u32: 2
//= scalar u32: 3
//= scalar i32: 3
//= scalar i32: 1
struct TexModify { add: u32 }
var<immediate> tex_modify_s: TexModify;
@group(0) @binding(0) var tex_modify_t: texture_storage_2d<r32uint, read_write>;
@compute @workgroup_size(4, 4)
fn tex_modify(@builtin(global_invocation_id) id: vec3u) {
    if any(id.xy >= textureDimensions(tex_modify_t)) { return; }
    let old = textureLoad(tex_modify_t, id.xy);
    textureStore(tex_modify_t, id.xy, old + vec4(tex_modify_s.add));
}

//# tex_layers: §texturenumlayers: layers come first
//= read u32: 0 1 2 3 4 5 6 7 8 9 10 11
//= write u32: 9*6 -> 2 8 3 0 2 3
//= scalar u32: 2
//= scalar u32: 2
//= scalar u32: 3
//= scalar u32: 1
//= scalar i32: 6
//= scalar i32: 3
//= scalar i32: 1
//= scalar i32: 1
@group(0) @binding(0) var tex_layers_t: texture_2d_array<u32>;
@group(0) @binding(1) var<storage, read_write> tex_layers_r: array<u32>;
@compute @workgroup_size(1)
fn tex_layers() {
    tex_layers_r[0] = textureNumLayers(tex_layers_t);
    tex_layers_r[1] = textureLoad(tex_layers_t, vec2(2, 0), 1, 0).x;
    tex_layers_r[2] = textureLoad(tex_layers_t, vec2(0, 1), 0u, 0).x;
    tex_layers_r[3] = textureLoad(tex_layers_t, vec2(0, 0), 2, 0).x;
    tex_layers_r[4] = textureDimensions(tex_layers_t).y;
    tex_layers_r[5] = textureDimensions(tex_layers_t).x;
}

//# tex_volume: §textureload: depth, rows, columns
//= read f32: 0 1 2 3 4 5 6 7 8 9 10 11
//= write f32: 9*12 -> 0 10 20 30 40 50 60 70 80 90 100 110
//= scalar u32: 2
//= scalar u32: 3
//= scalar u32: 2
//= scalar u32: 1
//= scalar i32: 6
//= scalar i32: 2
//= scalar i32: 1
//= scalar i32: 1
//= scalar u32: 2
//= scalar u32: 3
//= scalar u32: 2
//= scalar i32: 6
//= scalar i32: 2
//= scalar i32: 1
@group(0) @binding(0) var tex_volume_t: texture_3d<f32>;
@group(0) @binding(1) var tex_volume_r: texture_storage_3d<r32float, write>;
@compute @workgroup_size(2, 3, 2)
fn tex_volume(@builtin(local_invocation_id) id: vec3u) {
    textureStore(tex_volume_r, id, 10.0 * textureLoad(tex_volume_t, id, 0));
}

//# tex_line: §textureload: textures of one dimension, and depths
//= read i32: 1 2 3 4
//= read f32: 0.5 0.25
//= write f32: 9*4 -> 3 4 0.25 0
//= scalar u32: 2
//= scalar u32: 2
//= scalar i32: 2
//= scalar i32: 1
//= scalar u32: 1
//= scalar u32: 2
//= scalar i32: 2
//= scalar i32: 1
@group(0) @binding(0) var tex_line_t: texture_1d<i32>;
@group(0) @binding(1) var tex_line_d: texture_depth_2d;
@group(0) @binding(2) var<storage, read_write> tex_line_r: array<f32>;
@compute @workgroup_size(1)
fn tex_line() {
    let pair = textureLoad(tex_line_t, 1, 0);
    tex_line_r[0] = f32(pair.x);
    tex_line_r[1] = f32(pair.y);
    tex_line_r[2] = textureLoad(tex_line_d, vec2(1, 0), 0);
    tex_line_r[3] = textureLoad(tex_line_d, vec2(1, 1), 0);
}
