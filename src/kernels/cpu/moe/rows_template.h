// Rows into records, written once in the compiler's vector types and compiled for each instruction set. The including file defines, before it
// includes this: kLanes (FP32 numbers in a vector), LargestLane(F), and StoreCodes(const I*, int8_t*).
//
// The bytes are those of src/numerics/activation_quantizer.h (a test compares them): the same IEEE operations in the same order, on
// many blocks at once. Divisions are true divisions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/moe/kernel.h"

namespace halfbyte::kernels::cpu::moe {
namespace {

constexpr int kVectors = kG / kLanes;  // of a block of 16 values
constexpr int kBlocks = 16;            // blocks whose scales are made at once

inline F Max(F a, F b) { return a > b ? a : b; }
inline F Min(F a, F b) { return a < b ? a : b; }
inline F Magnitude(F v) { return reinterpret_cast<F>(reinterpret_cast<U>(v) & 0x7FFFFFFFu); }

inline F RoundToBf16(F v) {
  const U bits = reinterpret_cast<U>(v);
  const U rounded = (bits + 0x7FFFu + ((bits >> 16) & 1u)) & 0xFFFF0000u;
  return v != v ? v : reinterpret_cast<F>(rounded);
}

// Values [i, i + 16) of a row as FP32, rounded to BF16 where asked; zeros from k on.
inline void LoadBlock(const PrepareCall& c, int64_t i, F* out) {
  if (i + kG > c.k) {
    alignas(64) float tail[kG] = {};
    for (int64_t j = i; j < c.k; ++j) {
      uint32_t bits = 0;
      if (c.bf16) bits = static_cast<uint32_t>(static_cast<const uint16_t*>(c.x)[j]) << 16;
      else __builtin_memcpy(&bits, static_cast<const float*>(c.x) + j, 4);
      __builtin_memcpy(tail + (j - i), &bits, 4);
    }
    __builtin_memcpy(out, tail, sizeof tail);
  } else if (c.bf16) {
    for (int v = 0; v < kVectors; ++v) {
      H half;
      __builtin_memcpy(&half, static_cast<const uint16_t*>(c.x) + i + v * kLanes, sizeof half);
      out[v] = reinterpret_cast<F>(__builtin_convertvector(half, U) << 16);
    }
    return;
  } else {
    __builtin_memcpy(out, static_cast<const float*>(c.x) + i, kG * 4);
  }
  if (c.round) for (int v = 0; v < kVectors; ++v) out[v] = RoundToBf16(out[v]);
}

inline float BlockMax(const F* block) {
  F m = Magnitude(block[0]);
  for (int v = 1; v < kVectors; ++v) m = Max(Magnitude(block[v]), m);
  return LargestLane(m);
}

// Exact: the values are BF16 already.
inline void StoreBf16(const F* block, std::byte* to) {
  for (int v = 0; v < kVectors; ++v) {
    const H half = __builtin_convertvector(reinterpret_cast<U>(block[v]) >> 16, H);
    __builtin_memcpy(to + v * sizeof half, &half, sizeof half);
  }
}

inline void StoreValues(const F* block, RowFormat format, int64_t i, std::byte* record) {
  if (format == RowFormat::kF32) __builtin_memcpy(record + i * 4, block, kG * 4);
  else StoreBf16(block, record + i * 2);
}

void PreparePlain(const PrepareCall& c) {
  for (int64_t i = 0; i < c.k; i += kG) {
    F block[kVectors];
    LoadBlock(c, i, block);
    StoreValues(block, c.format, i, c.record);
  }
}

// --- INT8, one scale for each 32 --------------------------------------------------------------------------------------------

void PrepareInt8(const PrepareCall& c) {
  const int64_t kp = RoundUp(c.k, kG);
  auto* codes = reinterpret_cast<int8_t*>(c.record);
  auto* bias = reinterpret_cast<int32_t*>(c.record + BiasOffset(kp));
  auto* scales = reinterpret_cast<float*>(c.record + ScaleOffset(kp));
  for (int64_t i = 0; i < kp; i += 2 * kG) {
    const int blocks = i + kG < kp ? 2 : 1;
    F x[2][kVectors];
    float amax = 0;
    for (int b = 0; b < blocks; ++b) {
      LoadBlock(c, i + b * kG, x[b]);
      const float m = BlockMax(x[b]);
      amax = m > amax ? m : amax;
    }
    const float scale = amax / 127.0f;
    for (int b = 0; b < blocks; ++b) {
      I q[kVectors];
      for (int v = 0; v < kVectors; ++v) {
        F code = Min(Max(x[b][v] / scale, F{} - 127.0f), F{} + 127.0f);
        code = (code + 0x1.8p23f) - 0x1.8p23f;  // to an integer, ties to even
        if (scale == 0) code = F{};
        q[v] = __builtin_convertvector(code, I);
        if (c.format != RowFormat::kInt8) x[b][v] = code * scale;
      }
      if (c.format == RowFormat::kInt8) bias[i / kG + b] = kMagic - 12 * StoreCodes(q, codes + i + b * kG);
      else StoreValues(x[b], c.format, i + b * kG, c.record);
    }
    if (c.format == RowFormat::kInt8) scales[i / (2 * kG)] = scale * 0.5f;  // the weights' codes are doubled
  }
}

// --- NVFP4, plain exact form ------------------------------------------------------------------------------------------------

// E4M3 of numbers that are not negative: nearest even, saturating, as numerics::FloatToE4m3.
inline U E4m3Code(F v) {
  const U bits = reinterpret_cast<U>(v);
  const U normal = (bits + 0x7FFFFu + ((bits >> 20) & 1u) - (120u << 23)) >> 20;
  const U subnormal = reinterpret_cast<U>(v + 0x1p14f) & 0xFu;
  const U code = bits < 0x3C800000u ? subnormal : normal;
  return bits >= 0x43E00000u ? U{} + 0x7Eu : code;
}

inline F E4m3Value(U code) {
  const F subnormal = __builtin_convertvector(reinterpret_cast<I>(code), F) * 0x1p-9f;
  return code < 8u ? subnormal : reinterpret_cast<F>((code << 20) + (120u << 23));
}

// 2 x E2M1 of v: nearest, ties to the even code, saturating at 12. Each comparison is one step of the value; see numerics::E2m1Magnitude
// for the directions of the ties.
inline I DoubledE2m1(F v) {
  const F m = Magnitude(v);
  I code = I{};  // a true comparison is -1
  code -= !(m <= 0.25f);
  code -= !(m < 0.75f);
  code -= !(m <= 1.25f);
  code -= !(m < 1.75f);
  code -= !(m <= 2.5f) * 2;
  code -= !(m < 3.5f) * 2;
  code -= !(m <= 5.0f) * 4;
  return reinterpret_cast<I>(v) < 0 ? -code : code;
}

float RowMax(const PrepareCall& c) {
  F m = F{};
  for (int64_t i = 0; i < c.k; i += kG) {
    F block[kVectors];
    LoadBlock(c, i, block);
    for (int v = 0; v < kVectors; ++v) m = Max(Magnitude(block[v]), m);
  }
  return LargestLane(m);
}

// The scales of the blocks whose largest magnitudes are given: decoded, and the factor that takes a value to its code.
void BlockScales(const float* amax, float encode, float* scale, float* inverse) {
  constexpr float kFloatMax = 0x1.fffffep127f;
  const float sixth = encode * 0x1.555556p-3f, decode = 1.0f / encode;  // fl(1/6)
  for (int i = 0; i < kBlocks; i += kLanes) {
    F m;
    __builtin_memcpy(&m, amax + i, sizeof m);
    const F s = E4m3Value(E4m3Code(m * sixth));
    const F inv = m == 0.0f ? F{} : Min(1.0f / (s * decode), F{} + kFloatMax);
    __builtin_memcpy(scale + i, &s, sizeof s);
    __builtin_memcpy(inverse + i, &inv, sizeof inv);
  }
}

void PrepareNvfp4(const PrepareCall& c, float encode) {
  const int64_t kp = RoundUp(c.k, kG);
  auto* codes = reinterpret_cast<int8_t*>(c.record);
  auto* bias = reinterpret_cast<int32_t*>(c.record + BiasOffset(kp));
  auto* scales = reinterpret_cast<float*>(c.record + ScaleOffset(kp));
  for (int64_t first = 0; first < kp / kG; first += kBlocks) {
    const int64_t n = kp / kG - first < kBlocks ? kp / kG - first : kBlocks;
    F x[kBlocks][kVectors];
    float amax[kBlocks] = {}, scale[kBlocks], inverse[kBlocks];
    for (int64_t b = 0; b < n; ++b) {
      LoadBlock(c, (first + b) * kG, x[b]);
      amax[b] = BlockMax(x[b]);
    }
    BlockScales(amax, encode, scale, inverse);
    for (int64_t b = 0; b < n; ++b) {
      I q[kVectors];
      for (int v = 0; v < kVectors; ++v) q[v] = DoubledE2m1(x[b][v] * inverse[b]);
      if (c.format == RowFormat::kNvfp4) {
        bias[first + b] = kMagic - 12 * StoreCodes(q, codes + (first + b) * kG);
        scales[first + b] = scale[b] * 0.25f;  // both codes are doubled
      } else {
        for (int v = 0; v < kVectors; ++v) x[b][v] = __builtin_convertvector(q[v], F) * (scale[b] * 0.5f);
        StoreValues(x[b], c.format, (first + b) * kG, c.record);
      }
    }
  }
}

// Per token: encode = rn(2688 / amax), kept finite and above zero (numerics::RowScaleFor; 1 / fl(1/2688) is 2688 in FP32).
float PrepareNvfp4PerToken(const PrepareCall& c) {
  constexpr float kFloatMax = 0x1.fffffep127f;
  const float amax = RowMax(c);
  float encode = kFloatMax;
  if (amax != 0) {
    encode = 2688.0f / amax;
    encode = encode < kFloatMax ? encode : kFloatMax;
    if (encode == 0) encode = 1;
  }
  PrepareNvfp4(c, encode);
  return amax == 0 ? 0.0f : 1.0f / encode;
}

float Prepare(const PrepareCall& c) {
  switch (c.form) {
    case Form::kPlain: PreparePlain(c); return 1.0f;
    case Form::kInt8: PrepareInt8(c); return 1.0f;
    case Form::kNvfp4PerToken: return PrepareNvfp4PerToken(c);
    case Form::kNvfp4Static: PrepareNvfp4(c, 1.0f / c.input_scale); return c.input_scale;
  }
  return 1.0f;
}

}  // namespace
}  // namespace halfbyte::kernels::cpu::moe
