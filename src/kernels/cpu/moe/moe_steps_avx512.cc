// The steps around the GEMMs with AVX-512.
#include "kernels/cpu/avx512/vec.h"
#include "kernels/cpu/moe/steps_template.h"

namespace halfbyte::kernels::cpu::moe {

MoeSteps MoeStepsAvx512() { return {PrepareRowAvx512, SwiGlu, Scale, Combine}; }

}  // namespace halfbyte::kernels::cpu::moe
