// The steps around the GEMMs with AVX2.
#include "kernels/cpu/avx2/vec.h"
#include "kernels/cpu/moe/steps_template.h"

namespace halfbyte::kernels::cpu::moe {

MoeSteps MoeStepsAvx2() { return {PrepareRowAvx2, SwiGlu, Scale, Combine}; }

}  // namespace halfbyte::kernels::cpu::moe
