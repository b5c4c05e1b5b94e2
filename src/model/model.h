// Model: a loaded model that turns a batch of tokens into logits. One thread at a time calls Forward.
#pragma once

#include <memory>
#include <span>

#include "kernels/api/backend.h"
#include "model/spec.h"
#include "model/state_pool.h"

namespace halfbyte::model {

class Weights;
struct StepScratch;

// The two forms of the arithmetic (design section 5): kRounded keeps activations in BF16 between ops, kExact in FP32.
enum class Arithmetic : uint8_t { kRounded, kExact };

// The rows of one step; prompt sequences first (kernels::Batch).
struct Step {
  std::span<const int32_t> tokens;                         // [T]
  std::span<const kernels::SequenceRows> sequences;
  int64_t prompt_rows = 0;
  std::span<const int64_t> logit_rows;                     // rows whose logits are wanted, ascending
};

// Sees what enters the experts of every layer; see kernels::MoeObserver.
class ExpertObserver : public kernels::MoeObserver {
 public:
  // x BF16 or F32 [T, D]; every row goes to top_k experts. The calls of Hidden that follow belong to this layer.
  virtual void Layer(int layer, const kernels::Matrix& x) = 0;
};

// What the model needs around a forward pass, known before loading.
// kv_dtype: F32 for kExact, else BF16 or F8_E4M3.
std::vector<LayerState> LayerStates(const ModelSpec& spec, int64_t block_tokens, tensor::DType kv_dtype);

class Model {
 public:
  Model(ModelSpec spec, std::unique_ptr<Weights> weights, std::unique_ptr<kernels::Backend> backend, Arithmetic arithmetic);
  ~Model();

  const ModelSpec& spec() const { return spec_; }
  kernels::Backend& backend() { return *backend_; }
  Weights& weights() { return *weights_; }
  Arithmetic arithmetic() const { return arithmetic_; }
  // A reload's numbers (norm_eps, RoPE, router scaling); the shapes are those of the weights (model/reload.h).
  void SetSpec(ModelSpec spec) { spec_ = std::move(spec); }

  // null: nobody looks. Borrowed.
  void SetExpertObserver(ExpertObserver* observer) { observer_ = observer; }

  // Logits F32 [logit_rows.size(), V] in host memory, valid until the next call. Tokens must be in [0, vocab) (HB_CHECK: callers
  // validate requests). K and V of the rows are appended to the sequences' blocks in `state`.
  base::Result<kernels::Matrix> Forward(const Step& step, StatePool& state);

 private:
  ModelSpec spec_;
  std::unique_ptr<kernels::Backend> backend_;   // outlives the weights
  std::unique_ptr<Weights> weights_;
  Arithmetic arithmetic_;
  ExpertObserver* observer_ = nullptr;
  std::unique_ptr<StepScratch> scratch_;
};

}  // namespace halfbyte::model
