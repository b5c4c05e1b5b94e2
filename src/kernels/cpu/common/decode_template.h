// Whole panels written out as F32 [k][16], for products of many rows. Include after a machine's weights.h.
#pragma once

namespace halfbyte::kernels::cpu {
namespace {

struct DecodeBf16 {
  static void Decode(const LinearView& v, int64_t panel, std::byte* out) {
    const std::byte* w = v.data + panel * v.panel_bytes;
    auto* f = reinterpret_cast<float*>(out);
    for (int64_t k = 0; k < v.k_padded; k += 2) {
      auto raw = Bf16Weights::Load(w + k / 2 * kRawBytes);
      HB_UNROLL
      for (int j = 0; j < 2; ++j) Store(f + (k + j) * kPanelRows, Bf16Weights::Get(raw, j));
    }
  }
};

// fp32(code) * fp32(scale), rounded once: the value that the contract gives an FP8 weight.
struct DecodeFp8 {
  static void Decode(const LinearView& v, int64_t panel, std::byte* out) {
    const std::byte* w = v.data + panel * v.panel_bytes;
    auto* f = reinterpret_cast<float*>(out);
    for (int64_t b = 0; b < v.scale_blocks; ++b) {
      const V16 scale = Fp8Weights::ScaleOf(v, panel, b);
      const int64_t begin = b * v.scale_k, end = begin + v.scale_k < v.k_padded ? begin + v.scale_k : v.k_padded;
      for (int64_t k = begin; k < end; k += 4) {
        auto raw = Fp8Slow::Load(w + k * kPanelRows);
        HB_UNROLL
        for (int j = 0; j < 4; ++j) Store(f + (k + j) * kPanelRows, Mul(Mul(Fp8Slow::Get(raw, j), Set1(256.0f)), scale));
      }
    }
  }
};

// E2M1 * E4M3, exact.
struct DecodeNvfp4 {
  static void Decode(const LinearView& v, int64_t panel, std::byte* out) {
    const std::byte* w = v.data + panel * v.panel_bytes;
    auto* f = reinterpret_cast<float*>(out);
    for (int64_t b = 0; b < v.k_padded / 16; ++b) {
      const V16 scale = Mul(Nvfp4Scale(w, b), Set1(256.0f));
      for (int half = 0; half < 2; ++half) {
        auto raw = Nvfp4Raw::Load(Nvfp4Codes(w, b) + half * kRawBytes);
        HB_UNROLL
        for (int j = 0; j < 8; ++j) Store(f + (b * 16 + half * 8 + j) * kPanelRows, Mul(Nvfp4Raw::Get(raw, j), scale));
      }
    }
  }
};

}  // namespace
}  // namespace halfbyte::kernels::cpu
