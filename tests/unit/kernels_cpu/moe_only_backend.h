// The expert kernels alone, as a Backend for the differential kit, with the kernels that a test names.
#pragma once

#include <cstring>
#include <memory>
#include <string>

#include "base/check.h"
#include "kernels/cpu/moe/moe.h"

namespace halfbyte::test {

class MoeOnlyBackend : public kernels::Backend {
 public:
  // Each name as in --kernel moe_gemm=name.
  explicit MoeOnlyBackend(const std::vector<std::string>& names = {}) {
    for (const std::string& name : names) options_.kernels.emplace_back("moe_gemm", name);
  }

  std::string_view name() const override { return "cpu experts"; }
  std::vector<std::pair<std::string, std::string>> Kernels() const override { return *kernels::cpu::MoeKernels(options_); }
  base::Result<tensor::Buffer> Allocate(size_t bytes) override { return tensor::Buffer::Host(bytes); }
  base::Status Upload(void* device, const void* host, size_t bytes) override { return Copy(device, host, bytes); }
  base::Status Download(void* host, const void* device, size_t bytes) override { return Copy(host, device, bytes); }
  base::Status Synchronize() override { return {}; }

  base::Status SupportsExperts(const kernels::ExpertsSpec& spec) const override { return kernels::cpu::SupportsMoe(spec); }
  int64_t ExpertsBytes(const kernels::ExpertsSpec& spec) const override { return kernels::cpu::MoeBytes(spec); }
  base::Result<std::unique_ptr<kernels::ExpertsWeight>> CreateExperts(kernels::ExpertsSpec spec) override {
    return kernels::cpu::CreateMoe(std::move(spec), options_);
  }
  base::Status PackExpert(kernels::ExpertsWeight& w, int64_t expert, kernels::ExpertPart part, const tensor::QuantizedMatrix& m) override {
    return kernels::cpu::PackMoe(w, expert, part, m);
  }
  base::Status SetInputScale(kernels::ExpertsWeight& w, int64_t expert, kernels::ExpertPart part, float scale) override {
    return kernels::cpu::SetMoeInputScale(w, expert, part, scale);
  }
  void Moe(const kernels::MoeOp& op) override { kernels::cpu::RunMoe(op); }

  base::Status SupportsLinear(const tensor::Format&) const override { return No(); }
  int64_t LinearBytes(const tensor::Format&, int64_t, int64_t) const override { return 0; }
  base::Result<std::unique_ptr<kernels::LinearWeight>> CreateLinear(const tensor::Format&, int64_t, int64_t) override { return No(); }
  base::Status PackLinear(kernels::LinearWeight&, int64_t, const tensor::QuantizedMatrix&) override { return No(); }
  base::Result<std::unique_ptr<kernels::EmbeddingWeight>> CreateEmbedding(tensor::DType, int64_t, int64_t) override { return No(); }
  base::Status PackEmbedding(kernels::EmbeddingWeight&, int64_t, const tensor::Matrix&) override { return No(); }
  void Embed(const kernels::EmbedOp&) override { Unused(); }
  void RmsNorm(const kernels::RmsNormOp&) override { Unused(); }
  void Linear(const kernels::LinearOp&) override { Unused(); }
  void Qkv(const kernels::QkvOp&) override { Unused(); }
  void Attention(const kernels::AttentionOp&) override { Unused(); }
  void SiluMul(const kernels::SiluMulOp&) override { Unused(); }
  void Route(const kernels::RouteOp&) override { Unused(); }
  void AddGated(const kernels::AddGatedOp&) override { Unused(); }
  void GatherRows(const kernels::GatherRowsOp&) override { Unused(); }

 private:
  static tl::unexpected<base::Error> No() { return base::Fail(base::ErrorCode::kUnsupported, "experts only"); }
  static void Unused() { HB_CHECK(false, "experts only"); }
  static base::Status Copy(void* to, const void* from, size_t bytes) {
    if (bytes > 0) std::memcpy(to, from, bytes);
    return {};
  }

  kernels::BackendOptions options_;
};

}  // namespace halfbyte::test
