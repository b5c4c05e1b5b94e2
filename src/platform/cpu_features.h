// What this processor can do, asked once.
#pragma once

#include <cstdint>
#include <string>

namespace halfbyte::platform {

struct CpuFeatures {
  bool avx2 = false, fma = false, f16c = false, avx_vnni = false;
  bool avx512f = false, avx512bw = false, avx512vl = false, avx512dq = false, avx512_vbmi = false, avx512_vnni = false, avx512_bf16 = false, avx512_fp16 = false;
  bool amx_tile = false, amx_bf16 = false, amx_int8 = false;  // true only where the kernel granted the tile state
  // vdpbf16ps as fast as an FMA (AMD Zen 4 and later). Intel's takes two cycles, so that FP32 FMAs of the same width are twice as fast there
  // (Emerald Rapids, measured: 0.69 ns against 0.18 ns an instruction); its fast path is AMX.
  bool full_rate_bf16_dot = false;
  // The sets that kernels are written for.
  bool HasAvx2() const { return avx2 && fma && f16c; }
  bool HasAvx512() const { return HasAvx2() && avx512f && avx512bw && avx512vl && avx512dq; }
  bool HasAvx512Vnni() const { return HasAvx512() && avx512_vnni && avx512_vbmi; }
  bool HasAvx512Bf16() const { return HasAvx512Vnni() && avx512_bf16; }
  bool HasAmxBf16() const { return HasAvx512Bf16() && amx_tile && amx_bf16; }
  std::string ToString() const;  // "avx2 fma f16c avx512f ..."
};

const CpuFeatures& Cpu();

}  // namespace halfbyte::platform
