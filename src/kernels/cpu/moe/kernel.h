// What an expert GEMM kernel is: plain functions over tiles of 16 output columns and records of activation rows.
//
// This header is included by files that are compiled for newer instruction sets than the program's, so it must hold nothing that the
// compiler could emit as a shared inline function: plain structs, constants, constexpr functions of integers (always folded or static).
#pragma once

#include <cstddef>
#include <cstdint>

namespace halfbyte::platform {
struct CpuFeatures;
}

namespace halfbyte::kernels::cpu::moe {

inline constexpr int64_t kTile = 16;  // output columns (rows of W) of a tile: one 512-bit vector of FP32 sums
inline constexpr int64_t kPair = 32;  // a kernel call makes two tiles: gate and up, or two neighbours of down
inline constexpr int64_t kG = 16;     // inner values under one NVFP4 scale
inline constexpr int64_t kGroup = 64; // inner values of one group of an NVFP4 tile

enum class WeightKind : uint8_t { kNvfp4, kFp8, kBf16, kF32 };
inline constexpr int kWeightKinds = 4;

// How a row of x or h lies in memory when a kernel reads it; kp = K rounded up to 16, the padding is zero.
//   kF32    kp floats
//   kBf16   kp BF16
//   kInt8   kp INT8 codes, each 8 of them in the order 0 4 1 5 2 6 3 7 (the order in which an NVFP4 tile's nibbles come out as bytes);
//           kp/16 INT32: kMagic - 12 * (sum of the block's codes), where a block's integer sum starts; kp/32 (rounded up) F32 scales
//   kNvfp4  kp INT8 values 2 x E2M1 in the order of kInt8; kp/16 INT32 as above; kp/16 F32 block scales, halved twice (the product of
//           two doubled codes is four times too large)
//
// Where sums start: weights are taken as 2 x E2M1 + 12 (unsigned), so 12 times the sum of the codes is too much; and kMagic is the bit pattern of
// 1.5 * 2^23, so that after the integer sum d (|d| < 2^22) the same bits read as FP32 are exactly kMagicValue + d, without a conversion.
inline constexpr int32_t kMagic = 0x4B400000;
inline constexpr float kMagicValue = 12582912.0f;
enum class RowFormat : uint8_t { kF32, kBf16, kInt8, kNvfp4 };

constexpr int64_t RoundUp(int64_t n, int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }

// What is done to a row before a GEMM, as the contract has it (ActivationForm of kernels/api). A plain row format takes quantized forms as decoded
// values: kBf16 holds NVFP4 values exactly, kF32 holds NVFP4 values exactly and INT8 values with one rounding.
enum class Form : uint8_t { kPlain, kInt8, kNvfp4PerToken, kNvfp4Static };

// Offsets inside a record of kInt8 or kNvfp4.
constexpr int64_t BiasOffset(int64_t kp) { return kp; }
constexpr int64_t ScaleOffset(int64_t kp) { return kp + kp / kG * 4; }
constexpr int64_t RecordBytes(RowFormat f, int64_t kp) {
  const int64_t bytes = f == RowFormat::kF32 ? kp * 4 : f == RowFormat::kBf16 ? kp * 2 : ScaleOffset(kp) + kp / kG * 4;
  // Records 4096 bytes apart would fall into the same cache sets (12 rows are read side by side): an odd number of lines instead.
  return RoundUp(bytes, 128) + 64;
}

// Packed tiles; one tile is one contiguous run. lane = output column within the tile.
//   NVFP4  groups of 64 inner values, 576 bytes each: 4 blocks x 2 vectors of 64 bytes of codes, then 4 x 16 scales (block, lane).
//          A vector holds a dword of 8 codes for each lane, k = 8v .. 8v+7: low half k0 k2 k4 k6, high half k1 k3 k5 k7 (lowest nibble
//          first), so that "shift right by 4s" leaves the codes of the pair (2s, 2s+1) at the bottom of the two words, which is what
//          vpermw and vdpbf16ps want; "and 0x0F" leaves four bytes for pshufb and vpdpbusd. The last group is padded with zeros.
//   FP8    F32 scales [blocks of block_cols][lane] (per-row and per-tensor scales: one block), then bytes [kp][lane]
//   BF16   [kp/2][lane][2]
//   F32    [kp][lane]
constexpr int64_t Nvfp4GroupBytes() { return kGroup / kG * (128 + kTile); }
constexpr int64_t Nvfp4TileBytes(int64_t k) { return (k + kGroup - 1) / kGroup * Nvfp4GroupBytes(); }

// A panel is a piece of a tile decoded for a kernel that reads plain numbers: inner values [k_begin, k_end) as F32 [k][lane] or BF16 [k/2][lane][2],
// the layouts above. Pieces are small enough to stay in L1 while all rows of the call meet them, and begin at multiples of 64.
struct DecodeCall {
  const std::byte* tile;
  int64_t k, k_begin, k_end;
  int64_t block_cols;  // FP8
  bool e5m2;           // FP8
  std::byte* panel;
};
using DecodeFn = void (*)(const DecodeCall&);

// A packed tile and how to decode it; decode is null where the GEMM reads it as it is.
struct TileRef {
  const std::byte* data;
  DecodeFn decode;
  int64_t block_cols;
  bool e5m2;
};

// sums F32 [m][32], with room for m rounded up to 32: sums[r][0..15] = rows[r] . w[0], sums[r][16..31] = rows[r] . w[1], without the FP32 scales of the tensors and of the row.
struct GemmCall {
  TileRef w[2];
  int64_t k;
  const std::byte* const* rows;
  int64_t m;
  float* sums;
};
using GemmFn = void (*)(const GemmCall&);

// In the order of age.
enum class Isa : uint8_t { kAvx2, kAvx512, kAvx512Vnni, kAvx512Bf16, kAmx };

// A kernel reads one weight format with one row format.
struct MoeKernel {
  const char* name;
  Isa isa;
  WeightKind weight;
  RowFormat rows;
  DecodeFn decode;
  GemmFn gemm;
  // Which kernel a row class gets where several could serve it: the highest number. They follow measured speed, for many rows (prompt)
  // and for one or a few (generated); bf16_dot kernels lose 3 where vdpbf16ps takes two cycles (CpuFeatures::full_rate_bf16_dot).
  int8_t prompt, generated;
  bool bf16_dot;
  // The rows of a call must lie one stride apart, and reads go on for up to 31 records behind the last.
  bool contiguous_rows = false;
};

// One list a file (and instruction set).
struct MoeKernelList {
  const MoeKernel* kernels;
  int64_t count;
};
MoeKernelList MoeKernelsAvx2();
MoeKernelList MoeKernelsInt8Avx2();
MoeKernelList MoeKernelsAvx512();
MoeKernelList MoeKernelsAvx512Vnni();
MoeKernelList MoeKernelsAvx512Bf16();
MoeKernelList MoeKernelsAmx();

// The steps around the GEMMs.

// Writes one record of RecordBytes(format, kp) bytes and returns the factor of the row's sums: the per-token scale, the static scale, or 1.
struct PrepareCall {
  Form form;
  RowFormat format;
  bool round;         // to BF16 first
  float input_scale;  // kNvfp4Static
  bool bf16;          // x is BF16, else F32
  const void* x;      // [k]
  int64_t k;
  std::byte* record;
};
struct SwiGluCall {
  const float* sums;       // [m][32]: gate, up
  int64_t m;
  float gate_scale, up_scale;
  const float* row_scale;  // [m]
  float* h;                // [m][ld]: 16 values a row
  int64_t ld;
};
struct ScaleCall {
  const float* sums;  // [m][32]
  int64_t m, columns;  // columns to store: 32, or fewer at the edge
  float scale;
  const float* row_scale;
  float* y;  // [m][ld]
  int64_t ld;
};
struct CombineCall {
  const float* const* y;  // k rows
  const float* weights;   // [k]
  int64_t k, d;
  float* out;             // += sum over s in order
};
struct MoeSteps {
  float (*prepare)(const PrepareCall&);
  void (*swiglu)(const SwiGluCall&);
  void (*scale)(const ScaleCall&);
  void (*combine)(const CombineCall&);
};
float PrepareRowAvx2(const PrepareCall&);
float PrepareRowAvx512(const PrepareCall&);
MoeSteps MoeStepsAvx2();
MoeSteps MoeStepsAvx512();

}  // namespace halfbyte::kernels::cpu::moe
