#include "platform/cpu_features.h"

#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace halfbyte::platform {
namespace {

#if defined(__x86_64__)
uint64_t EnabledStates() {
  unsigned eax, edx;
  __asm__("xgetbv" : "=a"(eax), "=d"(edx) : "c"(0));
  return (static_cast<uint64_t>(edx) << 32) | eax;
}

// Linux hands out the 8 KiB tile state on request only (arch_prctl ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA = 18).
bool RequestTileState() {
#ifdef SYS_arch_prctl
  return syscall(SYS_arch_prctl, 0x1023, 18) == 0;
#else
  return false;
#endif
}

CpuFeatures Detect() {
  CpuFeatures f;
  unsigned a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE)) return f;
  uint64_t states = EnabledStates();
  bool ymm = (states & 6) == 6, zmm = (states & 0xE6) == 0xE6, tiles = (states & 0x60000) == 0x60000;
  f.fma = ymm && (c & bit_FMA);
  f.f16c = ymm && (c & bit_F16C);
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return f;
  f.avx2 = ymm && (b & bit_AVX2);
  f.avx512f = zmm && (b & bit_AVX512F);
  f.avx512dq = zmm && (b & bit_AVX512DQ);
  f.avx512bw = zmm && (b & bit_AVX512BW);
  f.avx512vl = zmm && (b & bit_AVX512VL);
  f.avx512_vbmi = zmm && (c & bit_AVX512VBMI);
  f.avx512_vnni = zmm && (c & bit_AVX512VNNI);
  f.avx512_fp16 = zmm && (d & (1u << 23));
  bool tile = tiles && (d & (1u << 24)) && RequestTileState();
  f.amx_tile = tile;
  f.amx_bf16 = tile && (d & (1u << 22));
  f.amx_int8 = tile && (d & (1u << 25));
  if (__get_cpuid_count(7, 1, &a, &b, &c, &d)) {
    f.avx_vnni = ymm && (a & (1u << 4));
    f.avx512_bf16 = zmm && (a & (1u << 5));
  }
  unsigned vendor[3];
  f.full_rate_bf16_dot = f.avx512_bf16 && __get_cpuid(0, &a, &vendor[0], &vendor[2], &vendor[1]) && std::memcmp(vendor, "AuthenticAMD", 12) == 0;
  return f;
}
#else
CpuFeatures Detect() { return {}; }
#endif

}  // namespace

std::string CpuFeatures::ToString() const {
  std::string out;
  auto add = [&](bool has, const char* name) { if (has) out += (out.empty() ? "" : " ") + std::string(name); };
  add(avx2, "avx2"); add(fma, "fma"); add(f16c, "f16c"); add(avx_vnni, "avx_vnni"); add(avx512f, "avx512f"); add(avx512bw, "avx512bw");
  add(avx512vl, "avx512vl"); add(avx512dq, "avx512dq"); add(avx512_vbmi, "avx512_vbmi"); add(avx512_vnni, "avx512_vnni");
  add(avx512_bf16, "avx512_bf16"); add(avx512_fp16, "avx512_fp16"); add(amx_tile, "amx_tile"); add(amx_bf16, "amx_bf16"); add(amx_int8, "amx_int8");
  return out.empty() ? "baseline" : out;
}

const CpuFeatures& Cpu() {
  static const CpuFeatures features = Detect();
  return features;
}

}  // namespace halfbyte::platform
