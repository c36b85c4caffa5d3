// The Mandelbrot set: for every pixel of a width × height image, the number of steps z = z² + c until z leaves the circle of
// radius 256, at most `most`. Pixel (0, 0) is at (left, top), and pixels are `step` apart.
//
// The count is smooth: a fraction of a step is subtracted for how far the last step went beyond the circle. This makes it
// continuous in c, so that devices that round differently agree. Each invocation computes one pixel, and runs as long as that
// pixel needs.

alias T = f32;

override GROUP_WIDTH: u32 = 16;
override GROUP_HEIGHT: u32 = 16;

struct Scalars {
    width: u32,
    height: u32,
    left: T,
    top: T,
    step: T,
    most: u32,
}

@group(0) @binding(0) var<storage, read_write> counts: array<f32>;
var<immediate> scalars: Scalars;

@compute @workgroup_size(GROUP_WIDTH, GROUP_HEIGHT)
fn mandelbrot(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= scalars.width || id.y >= scalars.height {
        return;
    }
    let real = scalars.left + T(id.x) * scalars.step;
    let imaginary = scalars.top + T(id.y) * scalars.step;
    var x = T(0);
    var y = T(0);
    var count = 0u;
    while count < scalars.most && f32(x * x + y * y) <= 65536.0 {
        let next = x * x - y * y + real;
        y = T(2) * x * y + imaginary;
        x = next;
        count++;
    }
    var smooth_count = f32(count);
    let square = f32(x * x + y * y);
    if square > 65536.0 {
        // 0 on the circle, 1 after one more step.
        smooth_count -= log2(log2(square) / 16.0);
    }
    counts[id.y * scalars.width + id.x] = smooth_count;
}
