#include "kernels/reference/reference_backend.h"

#include <cstring>

#include "base/check.h"
#include "kernels/reference/ops.h"
#include "kernels/reference/weights.h"
#include "platform/parallel.h"

namespace halfbyte::kernels {
namespace {

using reference::ReferenceEmbedding;
using reference::ReferenceExperts;
using reference::ReferenceLinear;
using reference::StoredMatrix;

class ReferenceBackend : public Backend {
 public:
  std::string_view name() const override { return "reference"; }
  std::vector<std::pair<std::string, std::string>> Kernels() const override {
    return {{"linear", "linear_any_f64_reference"}, {"moe_gemm", "moe_gemm_any_f64_reference"}, {"attention", "attention_any_f64_reference"}};
  }

  base::Result<tensor::Buffer> Allocate(size_t bytes) override { return tensor::Buffer::Host(bytes); }
  base::Status Upload(void* device, const void* host, size_t bytes) override { return Copy(device, host, bytes); }
  base::Status Download(void* host, const void* device, size_t bytes) override { return Copy(host, device, bytes); }
  base::Status Synchronize() override { return {}; }

  base::Status SupportsLinear(const Format& format) const override { return StoredMatrix::Supports(format); }
  base::Status SupportsExperts(const ExpertsSpec& spec) const override { return ReferenceExperts::Supports(spec); }
  int64_t LinearBytes(const Format& format, int64_t n, int64_t k) const override { return format.Bytes(n, k); }
  int64_t ExpertsBytes(const ExpertsSpec& spec) const override { return ReferenceExperts::Bytes(spec); }

  base::Result<std::unique_ptr<LinearWeight>> CreateLinear(const Format& format, int64_t n, int64_t k) override {
    HB_ASSIGN_OR_RETURN(auto matrix, StoredMatrix::Create(format, n, k));
    return std::make_unique<ReferenceLinear>(std::move(matrix));
  }
  base::Status PackLinear(LinearWeight& weight, int64_t row_begin, const QuantizedMatrix& part) override {
    return static_cast<ReferenceLinear&>(weight).matrix().Pack(row_begin, part);
  }

  base::Result<std::unique_ptr<ExpertsWeight>> CreateExperts(ExpertsSpec spec) override { return ReferenceExperts::Create(std::move(spec)); }
  base::Status PackExpert(ExpertsWeight& weight, int64_t expert, ExpertPart part, const QuantizedMatrix& matrix) override {
    HB_CHECK(0 <= expert && expert < weight.spec().experts);
    StoredMatrix& stored = static_cast<ReferenceExperts&>(weight).matrix(expert, part);
    if (matrix.rows != stored.n())
      return base::Fail(base::ErrorCode::kInvalidArgument, "expert ", expert, ": ", matrix.rows, " rows for ", stored.n());
    return stored.Pack(0, matrix);
  }
  base::Status SetInputScale(ExpertsWeight& weight, int64_t expert, ExpertPart part, float input_scale) override {
    if (!(input_scale > 0) || input_scale > std::numeric_limits<float>::max())
      return base::Fail(base::ErrorCode::kBadFile, "expert ", expert, ": input_scale ", input_scale, " is not a positive number");
    static_cast<ReferenceExperts&>(weight).SetInputScale(expert, part, input_scale);
    return {};
  }

  base::Result<std::unique_ptr<EmbeddingWeight>> CreateEmbedding(DType dtype, int64_t vocab, int64_t d) override {
    HB_ASSIGN_OR_RETURN(auto matrix, StoredMatrix::Create(Format::Plain(dtype), vocab, d));
    return std::make_unique<ReferenceEmbedding>(std::move(matrix));
  }
  base::Status PackEmbedding(EmbeddingWeight& weight, int64_t row_begin, const Matrix& part) override {
    HB_CHECK(part.ld == part.cols, "embedding rows come dense");
    const QuantizedMatrix rows{.format = Format::Plain(part.dtype), .rows = part.rows, .cols = part.cols, .elements = part.data};
    return static_cast<ReferenceEmbedding&>(weight).matrix().Pack(row_begin, rows);
  }

  void Embed(const EmbedOp& op) override { reference::RunEmbed(op); }
  void RmsNorm(const RmsNormOp& op) override { reference::RunRmsNorm(op); }
  void Linear(const LinearOp& op) override { reference::RunLinear(op); }
  void Qkv(const QkvOp& op) override { reference::RunQkv(op); }
  void Attention(const AttentionOp& op) override { reference::RunAttention(op); }
  void SiluMul(const SiluMulOp& op) override { reference::RunSiluMul(op); }
  void Route(const RouteOp& op) override { reference::RunRoute(op); }
  void Moe(const MoeOp& op) override { reference::RunMoe(op); }
  void AddGated(const AddGatedOp& op) override { reference::RunAddGated(op); }
  void GatherRows(const GatherRowsOp& op) override { reference::RunGatherRows(op); }

 private:
  static base::Status Copy(void* to, const void* from, size_t bytes) {
    if (bytes > 0) std::memcpy(to, from, bytes);
    return {};
  }
};

}  // namespace

std::unique_ptr<Backend> CreateReferenceBackend(const BackendOptions& options) {
  if (options.threads > 0) platform::SetThreads(options.threads);
  return std::make_unique<ReferenceBackend>();
}

}  // namespace halfbyte::kernels
