// Backend: one kind of machine that can run a model. Three peers: `reference` (the oracle), `cpu`, `cuda`.
//
// Ops are coarse because fusion (SwiGLU + quantize, gather + GEMM) is the backend's business. Ops do not fail: shapes and formats were agreed when
// the weights were created, and breaking that agreement is a programmer's error. A device's asynchronous failure is reported by Synchronize().
// One thread calls ops; Pack* may be called from many threads at once (see weights.h).
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/api/ops.h"
#include "tensor/buffer.h"

namespace halfbyte::kernels {

class Backend {
 public:
  virtual ~Backend() = default;

  virtual std::string_view name() const = 0;  // "reference", "cpu", "cuda"
  // The kernels in use, for the log and for bench: {"moe_gemm", "moe_gemm_nvfp4_bf16_avx512bf16"}, ...
  virtual std::vector<std::pair<std::string, std::string>> Kernels() const = 0;

  // Zeroed memory that ops can read and write; host memory on reference and cpu.
  virtual base::Result<tensor::Buffer> Allocate(size_t bytes) = 0;
  virtual base::Status Upload(void* device, const void* host, size_t bytes) = 0;
  virtual base::Status Download(void* host, const void* device, size_t bytes) = 0;
  virtual base::Status Synchronize() = 0;

  // Whether a LinearWeight of this format can be made (kUnsupported names what to do otherwise).
  virtual base::Status SupportsLinear(const Format& format) const = 0;
  virtual base::Status SupportsExperts(const ExpertsSpec& spec) const = 0;
  // Bytes that the object will take, for the memory check before loading.
  virtual int64_t LinearBytes(const Format& format, int64_t n, int64_t k) const = 0;
  virtual int64_t ExpertsBytes(const ExpertsSpec& spec) const = 0;

  virtual base::Result<std::unique_ptr<LinearWeight>> CreateLinear(const Format& format, int64_t n, int64_t k) = 0;
  // Rows [row_begin, row_begin + part.rows) of W. For formats with 2-D blocks row_begin is a multiple of the block's rows and part.block_scales holds the
  // part's own scale rows; per-row outer scales likewise; a per-tensor outer scale is given with every part and must be equal.
  virtual base::Status PackLinear(LinearWeight& weight, int64_t row_begin, const QuantizedMatrix& part) = 0;

  virtual base::Result<std::unique_ptr<ExpertsWeight>> CreateExperts(ExpertsSpec spec) = 0;
  // One whole matrix of one expert, in the format that the spec names for it.
  virtual base::Status PackExpert(ExpertsWeight& weight, int64_t expert, ExpertPart part, const QuantizedMatrix& matrix) = 0;
  // Static activation scale of an expert's GEMM: `input_scale` of gate and up (whichever is larger counts), or of down. Only kNvfp4Static reads it.
  // x and h are quantized with one scale a layer each: the largest that was set for any of its experts (reference-behaviour 2.1, as CUTLASS, TRTLLM
  // and CuTe DSL v2 have it), 1.0 where none was set. An expert without a scale of its own takes the layer's and so changes nothing for the others.
  virtual base::Status SetInputScale(ExpertsWeight& weight, int64_t expert, ExpertPart part, float input_scale) = 0;

  virtual base::Result<std::unique_ptr<EmbeddingWeight>> CreateEmbedding(DType dtype, int64_t vocab, int64_t d) = 0;
  virtual base::Status PackEmbedding(EmbeddingWeight& weight, int64_t row_begin, const Matrix& part) = 0;

  virtual void Embed(const EmbedOp& op) = 0;
  virtual void RmsNorm(const RmsNormOp& op) = 0;
  virtual void Linear(const LinearOp& op) = 0;
  virtual void Qkv(const QkvOp& op) = 0;
  virtual void Attention(const AttentionOp& op) = 0;
  virtual void SiluMul(const SiluMulOp& op) = 0;
  virtual void Route(const RouteOp& op) = 0;
  virtual void Moe(const MoeOp& op) = 0;
  virtual void AddGated(const AddGatedOp& op) = 0;
  virtual void GatherRows(const GatherRowsOp& op) = 0;
};

struct BackendOptions {
  int threads = 0;  // 0: all that the process may use
  std::vector<std::pair<std::string, std::string>> kernels;  // --kernel op=name
};

}  // namespace halfbyte::kernels
