typedef struct f16 { unsigned short bits; } f16;
__device__ __forceinline__ float f32_from_f16(f16 a) { float r; asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(a.bits)); return r; }
__device__ __forceinline__ f16 f16_from_f32(float a) { f16 r; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(r.bits) : "f"(a)); return r; }
__device__ __forceinline__ f16 operator+(f16 a, f16 b) { f16 r; asm("add.f16 %0, %1, %2;" : "=h"(r.bits) : "h"(a.bits), "h"(b.bits)); return r; }
__device__ __forceinline__ f16 operator-(f16 a, f16 b) { f16 r; asm("sub.f16 %0, %1, %2;" : "=h"(r.bits) : "h"(a.bits), "h"(b.bits)); return r; }
__device__ __forceinline__ f16 operator*(f16 a, f16 b) { f16 r; asm("mul.f16 %0, %1, %2;" : "=h"(r.bits) : "h"(a.bits), "h"(b.bits)); return r; }
__device__ __forceinline__ f16 operator/(f16 a, f16 b) { return f16_from_f32(f32_from_f16(a) / f32_from_f16(b)); }
__device__ __forceinline__ f16 operator-(f16 a) { return f16{(unsigned short)(a.bits ^ 0x8000)}; }
__device__ __forceinline__ bool operator==(f16 a, f16 b) { return f32_from_f16(a) == f32_from_f16(b); }
__device__ __forceinline__ bool operator!=(f16 a, f16 b) { return f32_from_f16(a) != f32_from_f16(b); }
__device__ __forceinline__ bool operator<(f16 a, f16 b) { return f32_from_f16(a) < f32_from_f16(b); }
__device__ __forceinline__ bool operator<=(f16 a, f16 b) { return f32_from_f16(a) <= f32_from_f16(b); }
__device__ __forceinline__ bool operator>(f16 a, f16 b) { return f32_from_f16(a) > f32_from_f16(b); }
__device__ __forceinline__ bool operator>=(f16 a, f16 b) { return f32_from_f16(a) >= f32_from_f16(b); }
