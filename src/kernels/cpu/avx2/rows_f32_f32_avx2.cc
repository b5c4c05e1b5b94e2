// Norms, activations, rotations and packing of rows: bound by memory or by the fork that starts them, never by arithmetic.
#include "kernels/cpu/avx2/vec.h"
#include "kernels/cpu/common/math.h"
#include "kernels/cpu/common/rows_template.h"
#include "kernels/cpu/avx2/kernels.h"

namespace halfbyte::kernels::cpu {

const RowKernels kRowsAvx2 = {"rows_f32_f32_avx2", "avx2",      HasAvx2,      RmsNormRow,   SiluMulRow, RopeRow, ClampRow,
                              ToBf16Row,           FromBf16Row, RoundBf16Row, AddScaledRow, PackF32,    PackBf16};

}  // namespace halfbyte::kernels::cpu
