// What this machine can do at most, measured in this process: the divisors of every share that bench prints.
//
// Clocks and memory move by the minute on shared machines (35 or 45-61 GB/s within a day on one of them), so measure right before and
// after what is judged, and drop samples whose probes disagree.
#pragma once

namespace halfbyte::kernels::cpu {

struct MachineLimits {
  double read_gb_per_second = 0;  // a plain read loop of all threads over a buffer far larger than the caches
  double f32_gflops = 0;          // FMA, a multiply and an add counted as two, all threads, registers only
  double bf16_gflops = 0;         // BF16 products with FP32 sums, the fastest of AMX tiles, vdpbf16ps and FP32 FMA (BF16 rows can run on each)
  double int8_gops = 0;           // u8 x s8 dot products (vpdpbusd); with AVX2 alone, vpmaddubsw and vpmaddwd
  double bf16_dot_gflops = 0;     // vdpbf16ps alone, 0 where there is none
};

// Each of the four probes runs for about `seconds` / 4.
MachineLimits MeasureLimits(double seconds);
// Of two measurements around a piece of work, field by field: a neighbour only ever slows a probe down.
MachineLimits Higher(const MachineLimits& a, const MachineLimits& b);
double MeasureRead(double seconds);
double MeasureInt8(double seconds);

}  // namespace halfbyte::kernels::cpu
