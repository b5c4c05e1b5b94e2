// What vdpbf16ps policies share: x as pairs of BF16, two products a lane and unit. Include after linear_template.h; for files with AVX512_BF16.
#pragma once

namespace halfbyte::kernels::cpu {
namespace {

struct Bf16Unit {
  using Unit = uint32_t;
  using Wide = __m512i;
  using Factor = __m512i;
  static constexpr int kUnitDepth = 2;
  static Wide Broadcast(const uint32_t* x) { return _mm512_set1_epi32(static_cast<int>(*x)); }
  static V16 Mac(V16 acc, Wide x, Factor w) { return {_mm512_dpbf16_ps(acc.v, (__m512bh)x, (__m512bh)w)}; }
};

}  // namespace
}  // namespace halfbyte::kernels::cpu
