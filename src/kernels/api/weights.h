// Weights in a backend's private layout, made once at load time and read by the ops.
//
// The load pipeline creates every object from headers before a byte is read (so that memory is known first), then fills it part
// by part from many threads: parts are disjoint row ranges, and no two threads write the same one. A reload fills the same
// objects again; addresses never change. The canonical on-disk layout is never a kernel's layout.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "tensor/format.h"
#include "tensor/matrix.h"

namespace halfbyte::kernels {

using tensor::DType;
using tensor::Format;
using tensor::Matrix;
using tensor::MutableMatrix;
using tensor::QuantizedMatrix;

// A weight matrix W [N out, K in] for y = x W^T. Plain (F32, BF16), FP8 (block, per row, per tensor) or NVFP4 (ws2 per tensor).
class LinearWeight {
 public:
  virtual ~LinearWeight() = default;
  virtual Format format() const = 0;
  virtual int64_t n() const = 0;
  virtual int64_t k() const = 0;
  virtual int64_t bytes() const = 0;  // as packed, padding included
  // Takes the values of a weight of the same backend, format and shape, to its own addresses (a reload: model/reload.h). HB_CHECK otherwise.
  virtual void CopyFrom(const LinearWeight& other) = 0;
  // Gives the memory back to the system and keeps the addresses; the values are lost until CopyFrom or Pack.
  virtual void Drop() = 0;

  // What enters the product. 0: x as it is. Above 0, for NVFP4 weights: x as NVFP4 with this one static FP32 scale (dense W4A4, modelopt_fp4), as
  // ActivationForm::kNvfp4Static has it. Set by the load, copied by CopyFrom.
  float input_scale() const { return input_scale_; }
  void SetInputScale(float scale) { input_scale_ = scale; }

 private:
  float input_scale_ = 0;
};

// The three matrices of a routed expert. gate and up: [F, D]; down: [D, F].
enum class ExpertPart : uint8_t { kGate, kUp, kDown };

// What enters an expert GEMM (design: run modes). Each names its contract, not a mode.
enum class ActivationForm : uint8_t {
  kPlain,          // as it is: BF16 or F32 rows
  kInt8Groups,     // INT8, one FP32 scale for each 32 columns of a row, made at run time (w4a8)
  kNvfp4PerToken,  // NVFP4, one FP32 scale a row, made at run time (nvfp4_online)
  kNvfp4Static,    // NVFP4, one static FP32 scale: input_scale (modelopt_fp4)
};

enum class ExpertActivation : uint8_t { kSwiGlu };  // later: clamped SwiGLU (gpt-oss), relu^2 (Nemotron)

// One layer's routed experts.
struct ExpertsSpec {
  int64_t experts = 0;  // E
  int64_t d = 0;        // D: width of x and of the result
  int64_t f = 0;        // F: expert width
  ExpertActivation activation = ExpertActivation::kSwiGlu;
  // formats[e][part]: experts of one layer may differ (a source may mix FP8 and BF16; --ignore-layers keeps some as they are).
  std::vector<std::array<Format, 3>> formats;
  // Applies to the NVFP4 matrices only; x and h of an expert whose matrices are plain or FP8 stay as they are (kPlain).
  ActivationForm activations = ActivationForm::kPlain;
  // The SwiGLU result h is rounded to BF16 before it enters the down matrix (design section 5: rounding points).
  bool round_hidden = false;
};

class ExpertsWeight {
 public:
  virtual ~ExpertsWeight() = default;
  virtual const ExpertsSpec& spec() const = 0;
  virtual int64_t bytes() const = 0;
  // Takes the values of a weight of the same backend, format and shape, to its own addresses (a reload: model/reload.h). HB_CHECK otherwise.
  virtual void CopyFrom(const ExpertsWeight& other) = 0;
  // Gives the memory back to the system and keeps the addresses; the values are lost until CopyFrom or Pack.
  virtual void Drop() = 0;
};

// The token embedding [V, D], rows read one at a time. BF16 or F32.
class EmbeddingWeight {
 public:
  virtual ~EmbeddingWeight() = default;
  virtual int64_t bytes() const = 0;
  // Takes the values of a weight of the same backend, format and shape, to its own addresses (a reload: model/reload.h). HB_CHECK otherwise.
  virtual void CopyFrom(const EmbeddingWeight& other) = 0;
  // Gives the memory back to the system and keeps the addresses; the values are lost until CopyFrom or Pack.
  virtual void Drop() = 0;
};

}  // namespace halfbyte::kernels
