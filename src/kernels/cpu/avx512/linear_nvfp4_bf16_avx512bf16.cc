// NVFP4 weights, BF16 rows, vdpbf16ps. Bytes: 0.5625 a weight.
// Generated rows: a block of 16 codes is summed alone, then scaled: 8 lookups, 6 shifts and 8 dot products a row for 256 weights.
// Prompt rows: panels are decoded once to BF16 with their block scales (exact: 6 significant bits) for all tiles.
#include "kernels/cpu/avx512/vec.h"
#include "kernels/cpu/common/math.h"
#include "kernels/cpu/common/linear_template.h"
#include "kernels/cpu/avx512/weights.h"
#include "kernels/cpu/avx512/dot_weights.h"
#include "kernels/cpu/avx512/kernels.h"

namespace halfbyte::kernels::cpu {

namespace {

// E2M1 * E4M3 in FP32, then the upper halves of two columns side by side.
struct DecodeNvfp4ToBf16 {
  static void Decode(const LinearView& v, int64_t panel, std::byte* out) {
    const std::byte* w = v.data + panel * v.panel_bytes;
    for (int64_t b = 0; b < v.k_padded / 16; ++b) {
      const V16 scale = Mul(Nvfp4Scale(w, b), Set1(256.0f));
      for (int half = 0; half < 2; ++half) {
        auto raw = Nvfp4Raw::Load(Nvfp4Codes(w, b) + half * kRawBytes);
        HB_UNROLL
        for (int j = 0; j < 4; ++j, out += kRawBytes) {
          __m512i even = _mm512_castps_si512(Mul(Nvfp4Raw::Get(raw, 2 * j), scale).v),
                  odd = _mm512_castps_si512(Mul(Nvfp4Raw::Get(raw, 2 * j + 1), scale).v);
          _mm512_store_si512(out, _mm512_mask_blend_epi16(0xAAAAAAAA, _mm512_srli_epi32(even, 16), odd));
        }
      }
    }
  }
};

}  // namespace

const LinearKernel kLinearNvfp4Bf16Avx512Bf16 = {"linear_nvfp4_bf16_avx512bf16",
                                                 "avx512bf16",
                                                 HasAvx512Bf16,
                                                 LinearKind::kNvfp4,
                                                 RowType::kBf16,
                                                 kDotRowsAtOnce,
                                                 &DecodedRange<DecodeNvfp4ToBf16, DotDecoded>,
                                                 &LinearRange<DotNvfp4>,
                                                 &DecodedBytes<DotDecoded>,
                                                 true};

}  // namespace halfbyte::kernels::cpu
