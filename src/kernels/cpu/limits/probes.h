// The loops that are timed, one file an instruction set. Nothing inline in here: the including files have flags of their own.
#pragma once

#include <cstdint>

namespace halfbyte::kernels::cpu {

// Each returns something that depends on all its work. `rounds` rounds of kOperations (2 per multiply-add) each.
using ProbeFn = float (*)(int64_t rounds);
struct Probe {
  ProbeFn run;
  int64_t operations;  // a round
};
Probe F32ProbeAvx2();
Probe Int8ProbeAvx2();
Probe F32ProbeAvx512();
Probe Int8ProbeAvx512Vnni();
Probe Bf16ProbeAvx512Bf16();
Probe Bf16ProbeAmx();

// Reads `bytes` (a multiple of 4096) and returns a checksum.
float ReadProbeAvx2(const void* data, int64_t bytes);

}  // namespace halfbyte::kernels::cpu
