// b = transpose of a: a is rows × columns, b is columns × rows, both row-major.
//
// A group moves a TILE × TILE tile through work-group memory, so that memory is read along the rows of a and written along the
// rows of b. The tile's rows have one padding element: the elements of a column are then in different banks of a GPU's
// work-group memory. Each invocation moves TILE / ROWS elements; ROWS must divide TILE.

alias T = f32;

override TILE: u32 = 32;
override ROWS: u32 = 8;

struct Scalars {
    rows: u32,
    columns: u32,
}

@group(0) @binding(0) var<storage, read> a: array<T>;
@group(0) @binding(1) var<storage, read_write> b: array<T>;
var<immediate> scalars: Scalars;

var<workgroup> tile: array<T, TILE * (TILE + 1)>;

@compute @workgroup_size(TILE, ROWS)
fn transpose(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_id) local: vec3u) {
    let left = group.x * TILE;
    let top = group.y * TILE;
    for (var step = 0u; step < TILE; step += ROWS) {
        let row = top + step + local.y;
        let column = left + local.x;
        // Written even where a has no element: memory that is always written before it is read needs no zeroing.
        var value = T(0);
        if row < scalars.rows && column < scalars.columns {
            value = a[row * scalars.columns + column];
        }
        tile[(step + local.y) * (TILE + 1) + local.x] = value;
    }
    workgroupBarrier();
    for (var step = 0u; step < TILE; step += ROWS) {
        let row = left + step + local.y;
        let column = top + local.x;
        if row < scalars.columns && column < scalars.rows {
            b[row * scalars.rows + column] = tile[local.x * (TILE + 1) + step + local.y];
        }
    }
}
