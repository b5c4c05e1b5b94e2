// 64 bytes of a panel in two registers: 16 lanes of 32 bits. Include after vec.h.
#pragma once

namespace halfbyte::kernels::cpu {
namespace {

struct Raw16 { __m256i a, b; };

inline Raw16 LoadRaw(const std::byte* p) {
  auto* q = reinterpret_cast<const __m256i*>(p);
  return {_mm256_loadu_si256(q), _mm256_loadu_si256(q + 1)};
}

}  // namespace
}  // namespace halfbyte::kernels::cpu
