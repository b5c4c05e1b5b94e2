// The weight objects of this backend: the canonical bytes as they came.
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "kernels/api/weights.h"
#include "kernels/reference/stored_matrix.h"

namespace halfbyte::kernels::reference {

class ReferenceLinear : public LinearWeight {
 public:
  explicit ReferenceLinear(std::unique_ptr<StoredMatrix> matrix) : matrix_(std::move(matrix)) {}
  Format format() const override { return matrix_->format(); }
  int64_t n() const override { return matrix_->n(); }
  int64_t k() const override { return matrix_->k(); }
  int64_t bytes() const override { return matrix_->bytes(); }
  void CopyFrom(const LinearWeight& other) override {
    matrix_->CopyFrom(*static_cast<const ReferenceLinear&>(other).matrix_);
    SetInputScale(other.input_scale());
  }
  void Drop() override { matrix_->Drop(); }
  StoredMatrix& matrix() { return *matrix_; }
  const StoredMatrix& matrix() const { return *matrix_; }

 private:
  std::unique_ptr<StoredMatrix> matrix_;
};

class ReferenceEmbedding : public EmbeddingWeight {
 public:
  explicit ReferenceEmbedding(std::unique_ptr<StoredMatrix> matrix) : matrix_(std::move(matrix)) {}
  int64_t bytes() const override { return matrix_->bytes(); }
  void CopyFrom(const EmbeddingWeight& other) override { matrix_->CopyFrom(*static_cast<const ReferenceEmbedding&>(other).matrix_); }
  void Drop() override { matrix_->Drop(); }
  StoredMatrix& matrix() { return *matrix_; }
  const StoredMatrix& matrix() const { return *matrix_; }

 private:
  std::unique_ptr<StoredMatrix> matrix_;
};

class ReferenceExperts : public ExpertsWeight {
 public:
  static base::Status Supports(const ExpertsSpec& spec);
  static int64_t Bytes(const ExpertsSpec& spec);
  static base::Result<std::unique_ptr<ReferenceExperts>> Create(ExpertsSpec spec);

  const ExpertsSpec& spec() const override { return spec_; }
  int64_t bytes() const override { return Bytes(spec_); }
  void CopyFrom(const ExpertsWeight& other) override;
  void Drop() override;

  StoredMatrix& matrix(int64_t expert, ExpertPart part) { return *matrices_[static_cast<size_t>(expert)][static_cast<size_t>(part)]; }
  const StoredMatrix& matrix(int64_t expert, ExpertPart part) const {
    return *matrices_[static_cast<size_t>(expert)][static_cast<size_t>(part)];
  }

  void SetInputScale(int64_t expert, ExpertPart part, float input_scale);
  // The layer's static scale for x (part kGate or kUp) or h (kDown): the largest that was set for any expert, 1.0 where none was.
  // One scale a layer, as CUTLASS, TRTLLM and CuTe DSL v2 have it (reference-behaviour 2.1): x is quantized once for all its experts.
  float LayerInputScale(ExpertPart part) const;

 private:
  explicit ReferenceExperts(ExpertsSpec spec) : spec_(std::move(spec)) {}

  ExpertsSpec spec_;
  std::vector<std::array<std::unique_ptr<StoredMatrix>, 3>> matrices_;
  mutable std::mutex mutex_;  // SetInputScale comes from loader threads
  std::vector<std::array<std::optional<float>, 3>> input_scales_;
};

}  // namespace halfbyte::kernels::reference
