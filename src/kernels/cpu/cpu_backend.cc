#include "kernels/cpu/cpu_backend.h"

#include <cstring>

#include "kernels/api/weight_quantizer.h"
#include "kernels/cpu/moe/moe.h"
#include "kernels/cpu/ops.h"
#include "kernels/cpu/packed_linear.h"
#include "platform/parallel.h"

namespace halfbyte::kernels {
namespace {

using cpu::PackedEmbedding;
using cpu::PackedLinear;

using KernelNames = std::vector<std::pair<std::string, std::string>>;

class CpuBackend : public Backend {
 public:
  CpuBackend(BackendOptions options, cpu::KernelChoice kernels, KernelNames moe, std::string quantizer)
      : options_(std::move(options)), kernels_(kernels), moe_kernels_(std::move(moe)), quantizer_(std::move(quantizer)) {}

  std::string_view name() const override { return "cpu"; }
  KernelNames Kernels() const override {
    KernelNames names = kernels_.Names();
    names.insert(names.end(), moe_kernels_.begin(), moe_kernels_.end());
    names.emplace_back("quantize", quantizer_);
    return names;
  }

  base::Result<tensor::Buffer> Allocate(size_t bytes) override { return tensor::Buffer::Host(bytes); }
  base::Status Upload(void* device, const void* host, size_t bytes) override { return Copy(device, host, bytes); }
  base::Status Download(void* host, const void* device, size_t bytes) override { return Copy(host, device, bytes); }
  base::Status Synchronize() override { return {}; }

  base::Status SupportsLinear(const Format& format) const override { return PackedLinear::Supports(format); }
  int64_t LinearBytes(const Format& format, int64_t n, int64_t k) const override { return PackedLinear::Bytes(format, n, k); }
  base::Result<std::unique_ptr<LinearWeight>> CreateLinear(const Format& format, int64_t n, int64_t k) override {
    return PackedLinear::Create(format, n, k);
  }
  base::Status PackLinear(LinearWeight& weight, int64_t row_begin, const QuantizedMatrix& part) override {
    return static_cast<PackedLinear&>(weight).Pack(row_begin, part);
  }

  base::Status SupportsExperts(const ExpertsSpec& spec) const override { return cpu::SupportsMoe(spec); }
  int64_t ExpertsBytes(const ExpertsSpec& spec) const override { return cpu::MoeBytes(spec); }
  base::Result<std::unique_ptr<ExpertsWeight>> CreateExperts(ExpertsSpec spec) override {
    return cpu::CreateMoe(std::move(spec), options_);
  }
  base::Status PackExpert(ExpertsWeight& weight, int64_t expert, ExpertPart part, const QuantizedMatrix& matrix) override {
    return cpu::PackMoe(weight, expert, part, matrix);
  }
  base::Status SetInputScale(ExpertsWeight& weight, int64_t expert, ExpertPart part, float input_scale) override {
    return cpu::SetMoeInputScale(weight, expert, part, input_scale);
  }

  base::Result<std::unique_ptr<EmbeddingWeight>> CreateEmbedding(DType dtype, int64_t vocab, int64_t d) override {
    return PackedEmbedding::Create(dtype, vocab, d);
  }
  base::Status PackEmbedding(EmbeddingWeight& weight, int64_t row_begin, const Matrix& part) override {
    return static_cast<PackedEmbedding&>(weight).Pack(row_begin, part);
  }

  void Embed(const EmbedOp& op) override { cpu::RunEmbed(op, kernels_); }
  void RmsNorm(const RmsNormOp& op) override { cpu::RunRmsNorm(op, kernels_); }
  void Linear(const LinearOp& op) override { cpu::RunLinear(op, kernels_, linear_scratch_); }
  void Qkv(const QkvOp& op) override { cpu::RunQkv(op, kernels_, ropes_); }
  void Attention(const AttentionOp& op) override { cpu::RunAttention(op, kernels_, attention_scratch_); }
  void SiluMul(const SiluMulOp& op) override { cpu::RunSiluMul(op, kernels_); }
  void Route(const RouteOp& op) override { cpu::RunRoute(op); }
  void Moe(const MoeOp& op) override { cpu::RunMoe(op); }
  void AddGated(const AddGatedOp& op) override { cpu::RunAddGated(op, kernels_); }
  void GatherRows(const GatherRowsOp& op) override { cpu::RunGatherRows(op); }

 private:
  static base::Status Copy(void* to, const void* from, size_t bytes) {
    if (bytes > 0) std::memcpy(to, from, bytes);
    return {};
  }

  const BackendOptions options_;
  const cpu::KernelChoice kernels_;
  const KernelNames moe_kernels_;
  const std::string quantizer_;  // the loader's; here for the list of names
  cpu::Scratch linear_scratch_, attention_scratch_;
  cpu::RopeCache ropes_;
};

}  // namespace

base::Result<std::unique_ptr<Backend>> CreateCpuBackend(const BackendOptions& options) {
  for (const auto& [op, name] : options.kernels)
    if (op != "linear" && op != "attention" && op != "rows" && op != "moe_gemm" && op != "quantize")
      return base::Fail(base::ErrorCode::kInvalidArgument, "no op ", op, " to choose a kernel for (", op, "=", name,
                        "); there are linear, attention, rows, moe_gemm, quantize");
  HB_ASSIGN_OR_RETURN(const WeightQuantizer* quantizer, ChooseWeightQuantizer(options.kernels));
  HB_ASSIGN_OR_RETURN(cpu::KernelChoice kernels, cpu::ChooseKernels(options, platform::Cpu()));
  HB_ASSIGN_OR_RETURN(KernelNames moe, cpu::MoeKernels(options));
  if (options.threads > 0) platform::SetThreads(options.threads);
  return std::make_unique<CpuBackend>(options, kernels, std::move(moe), quantizer->name);
}

std::vector<CpuKernel> CpuKernels() {
  std::vector<CpuKernel> all = cpu::UsableMoeKernels();
  for (CpuKernel& k : cpu::UsableDenseKernels(platform::Cpu())) all.push_back(std::move(k));
  return all;
}

}  // namespace halfbyte::kernels
