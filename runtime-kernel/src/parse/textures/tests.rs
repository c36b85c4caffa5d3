use super::*;

#[test]
fn a_texture_becomes_a_buffer_and_its_calls_become_calls_of_functions() {
    let code = "@group(0) @binding(3) var\n t : texture_2d<f32>;\nfn f(p: vec2u) -> f32 {\n\
                return textureLoad(t, p + vec2(1, g(2, 3)), 0).x + f32(textureDimensions(t,\n0).x + textureNumLevels(t,)); }";
    let edited = with_tensors(code);
    let (kept, added) = edited.rsplit_once('\n').unwrap();
    assert_eq!(
        kept,
        "@group(0) @binding(3) var<storage, read> t: array<f32>\n;\nfn f(p: vec2u) -> f32 {\n\
         return textureLoad_t(vec2<i32>(p + vec2(1, g(2, 3))), i32(0)).x + f32(textureDimensions_t(\n).x + 1u); }"
    );
    assert!(added.contains("struct TextureLayouts { t_layout: TextureLayout3 }"), "{added}");
}

#[test]
fn layouts_join_the_scalars_of_a_kernel() {
    for (members, expected) in
        [("n: u32", "n: u32, t_layout: TextureLayout2 }"), ("n: u32,", "n: u32, t_layout: TextureLayout2 }")]
    {
        let code = format!(
            "struct S {{ {members}}} var<immediate> s: S; var t: texture_storage_2d<r32uint, write>;"
        );
        let edited = with_tensors(&code);
        assert!(edited.contains(expected) && edited.contains("s.t_layout.shape[0]"), "{edited}");
    }
}

#[test]
fn textures_of_samplers_and_of_other_kinds_stay() {
    for code in [
        "var t: texture_2d<f32>; fn f() { let x = textureSampleLevel(t, s, p, 0.0); }",
        "var t: texture_2d<f32>; fn f() { g(t); }",
        "var t: texture_cube<f32>;",
        "var t: texture_multisampled_2d<f32>;",
        "var t: texture_storage_2d<r8unorm, write>;",
        "var t: texture_2d<f32>; fn f() { var t: texture_2d<f32>; } var t: texture_2d<f32>;",
        "fn f() { var t: texture_2d<f32>; }",
        "var t: texture_2d<f32>",
        "var t: texture_2d<",
    ] {
        assert_eq!(with_tensors(code), code);
    }
}

#[test]
fn the_elements_of_packed_formats_are_found_by_the_name_of_the_type() {
    assert_eq!(packed_dtype("Packed_u8"), Some(DType::U8));
    assert_eq!(packed_dtype("Packed_f16"), Some(DType::F16));
    assert_eq!(packed_dtype("Packed"), None);
}
