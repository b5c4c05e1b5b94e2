// Weights: plain structs of packed tensors, immutable after the load, at fixed addresses (a reload writes in place). The load pipeline fills
// them through the WeightSink interface.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "kernels/api/backend.h"
#include "model/model.h"
#include "model/spec.h"
#include "quant/plan.h"
#include "quant/weight_sink.h"

namespace halfbyte::model {

using LinearPtr = std::unique_ptr<kernels::LinearWeight>;

// FP32 values on the device: norms, biases, frequencies.
struct Vector {
  tensor::Buffer buffer;
  const float* data() const { return buffer.as<float>(); }  // null where the model has no such vector
};

struct LayerWeights {
  Vector attention_norm, ffn_norm;
  LinearPtr q, k, v, o;
  Vector q_bias, k_bias, v_bias, o_bias, q_norm, k_norm;
  LinearPtr dense_gate, dense_up, dense_down;
  LinearPtr router;
  std::unique_ptr<kernels::ExpertsWeight> experts;
  LinearPtr shared_gate, shared_up, shared_down, shared_expert_gate;
  float k_scale = 1.0f, v_scale = 1.0f;  // of an FP8 KV cache, from the checkpoint
};

class Weights : public quant::WeightSink {
 public:
  // Allocates everything that the plan names. Nothing is readable before a load has filled it.
  static base::Result<std::unique_ptr<Weights>> Create(kernels::Backend& backend, const ModelSpec& spec, const quant::QuantPlan& plan, Arithmetic arithmetic);
  // Bytes that Create will take, computed from the plan alone.
  static int64_t PackedBytes(const kernels::Backend& backend, const ModelSpec& spec, const quant::QuantPlan& plan, Arithmetic arithmetic);

  base::Status PutMatrix(const quant::TensorId& id, int64_t row_begin, const tensor::QuantizedMatrix& part) override;
  base::Status PutVector(const quant::TensorId& id, quant::TensorPart part, std::span<const float> values) override;
  // The end-of-load proof: every row of every planned matrix and every vector has arrived, counted here independently of the pipeline.
  base::Status CheckComplete(const quant::QuantPlan& plan) const;

  // Takes all values of weights made from an equal plan (same matrices, formats and shapes) by the same backend, to its own addresses.
  void CopyFrom(const Weights& other);
  // Gives the memory of the matrices back to the system; the values are lost until CopyFrom.
  void Drop();

  std::unique_ptr<kernels::EmbeddingWeight> embedding;
  Vector final_norm;
  LinearPtr lm_head;
  std::vector<LayerWeights> layers;
  Vector inv_freq;

 private:
  explicit Weights(kernels::Backend& backend) : backend_(backend) {}
  LinearPtr* LinearOf(const quant::TensorId& id);
  Vector* VectorOf(const quant::TensorId& id, quant::TensorPart part);

  kernels::Backend& backend_;
  std::map<quant::TensorId, std::atomic<int64_t>> rows_;  // rows that arrived of each planned matrix; keys fixed by Create
  std::map<std::pair<quant::TensorId, quant::TensorPart>, std::atomic<int64_t>> vectors_;  // how often each planned vector arrived; likewise
};

}  // namespace halfbyte::model
