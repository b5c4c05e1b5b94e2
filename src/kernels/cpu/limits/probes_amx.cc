#include <immintrin.h>

#include "kernels/cpu/limits/probes.h"

namespace halfbyte::kernels::cpu {
namespace {

struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t column_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
constexpr TileConfig kConfig;

// Six tiles of sums, registers only.
float Bf16(int64_t rounds) {
  alignas(64) float out[256];
  _tile_loadconfig(&kConfig);
  _tile_zero(0); _tile_zero(1); _tile_zero(2); _tile_zero(3); _tile_zero(4); _tile_zero(5); _tile_zero(6); _tile_zero(7);
  for (int64_t i = 0; i < rounds; ++i) {
    _tile_dpbf16ps(0, 6, 7);
    _tile_dpbf16ps(1, 6, 7);
    _tile_dpbf16ps(2, 6, 7);
    _tile_dpbf16ps(3, 6, 7);
    _tile_dpbf16ps(4, 6, 7);
    _tile_dpbf16ps(5, 6, 7);
  }
  _tile_stored(0, out, 64);
  _tile_release();
  return out[0];
}

}  // namespace

Probe Bf16ProbeAmx() { return {Bf16, int64_t{6} * 16 * 16 * 32 * 2}; }

}  // namespace halfbyte::kernels::cpu
