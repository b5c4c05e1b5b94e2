// The differential kit must notice faults: backends that are wrong in one thing each, all of which were seen in real engines or are one
// character away from the right code.
#include <deque>
#include <functional>
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include "kernels/reference/reference_backend.h"
#include "numerics/bf16.h"
#include "support/backend_compare.h"

namespace halfbyte::test {
namespace {

using namespace kernels;  // every class here is a Backend

class Forwarding : public Backend {
 public:
  std::string_view name() const override { return "wrong"; }
  std::vector<std::pair<std::string, std::string>> Kernels() const override { return inner_->Kernels(); }
  base::Result<tensor::Buffer> Allocate(size_t bytes) override { return inner_->Allocate(bytes); }
  base::Status Upload(void* device, const void* host, size_t bytes) override { return inner_->Upload(device, host, bytes); }
  base::Status Download(void* host, const void* device, size_t bytes) override { return inner_->Download(host, device, bytes); }
  base::Status Synchronize() override { return inner_->Synchronize(); }
  base::Status SupportsLinear(const Format& format) const override { return inner_->SupportsLinear(format); }
  base::Status SupportsExperts(const ExpertsSpec& spec) const override { return inner_->SupportsExperts(spec); }
  int64_t LinearBytes(const Format& format, int64_t n, int64_t k) const override { return inner_->LinearBytes(format, n, k); }
  int64_t ExpertsBytes(const ExpertsSpec& spec) const override { return inner_->ExpertsBytes(spec); }
  base::Result<std::unique_ptr<LinearWeight>> CreateLinear(const Format& f, int64_t n, int64_t k) override { return inner_->CreateLinear(f, n, k); }
  base::Status PackLinear(LinearWeight& w, int64_t begin, const QuantizedMatrix& part) override { return inner_->PackLinear(w, begin, part); }
  base::Result<std::unique_ptr<ExpertsWeight>> CreateExperts(ExpertsSpec spec) override { return inner_->CreateExperts(std::move(spec)); }
  base::Status PackExpert(ExpertsWeight& w, int64_t e, ExpertPart part, const QuantizedMatrix& m) override { return inner_->PackExpert(w, e, part, m); }
  base::Status SetInputScale(ExpertsWeight& w, int64_t e, ExpertPart part, float s) override { return inner_->SetInputScale(w, e, part, s); }
  base::Result<std::unique_ptr<EmbeddingWeight>> CreateEmbedding(DType t, int64_t v, int64_t d) override { return inner_->CreateEmbedding(t, v, d); }
  base::Status PackEmbedding(EmbeddingWeight& w, int64_t begin, const Matrix& part) override { return inner_->PackEmbedding(w, begin, part); }
  void Embed(const EmbedOp& op) override { inner_->Embed(op); }
  void RmsNorm(const RmsNormOp& op) override { inner_->RmsNorm(op); }
  void Linear(const LinearOp& op) override { inner_->Linear(op); }
  void Qkv(const QkvOp& op) override { inner_->Qkv(op); }
  void Attention(const AttentionOp& op) override { inner_->Attention(op); }
  void SiluMul(const SiluMulOp& op) override { inner_->SiluMul(op); }
  void Route(const RouteOp& op) override { inner_->Route(op); }
  void Moe(const MoeOp& op) override { inner_->Moe(op); }
  void AddGated(const AddGatedOp& op) override { inner_->AddGated(op); }
  void GatherRows(const GatherRowsOp& op) override { inner_->GatherRows(op); }

 private:
  std::unique_ptr<Backend> inner_ = CreateReferenceBackend({});
};

// Failures that check(backend) adds.
int Failures(const std::function<void(Backend&)>& check, Backend& backend) {
  testing::TestPartResultArray results;
  {
    testing::ScopedFakeTestPartResultReporter reporter(testing::ScopedFakeTestPartResultReporter::INTERCEPT_ALL_THREADS, &results);
    check(backend);
  }
  return results.size();
}

void QuickMoe(Backend& backend) { CompareMoe(backend, Effort::kQuick); }
void QuickMoeInvariance(Backend& backend) { CheckMoeInvariance(backend, Effort::kQuick); }

// Row 0 of an F32 matrix times 1 + 2^-22: within every bound, but not the same bits.
void Nudge(const MutableMatrix& m) {
  for (int64_t i = 0; i < m.cols && m.rows > 0; ++i) m.row<float>(0)[i] *= 1 + 0x1p-22f;
}

TEST(DifferentialKit, LinearThatDropsTheLastColumn) {
  struct Wrong : Forwarding {
    void Linear(const LinearOp& op) override {
      std::vector<float> x(static_cast<size_t>(op.x.rows * op.x.cols));
      for (int64_t i = 0; i < op.x.rows * op.x.cols; ++i) {
        const int64_t r = i / op.x.cols, c = i % op.x.cols;
        x[i] = c == op.x.cols - 1 ? 0 : op.x.dtype == DType::kF32 ? op.x.row<float>(r)[c] : numerics::Bf16ToFloat(op.x.row<uint16_t>(r)[c]);
      }
      Forwarding::Linear({.x = Matrix(x.data(), DType::kF32, op.x.rows, op.x.cols), .prompt_rows = op.prompt_rows, .parts = op.parts});
    }
  } wrong;
  EXPECT_GT(Failures(CompareLinear, wrong), 0);
}

TEST(DifferentialKit, LinearThatTreatsLoneRowsOtherwise) {
  struct Wrong : Forwarding {
    void Linear(const LinearOp& op) override {
      Forwarding::Linear(op);
      if (op.x.rows == 1)
        for (const LinearPart& part : op.parts) Nudge(part.out);
    }
  } wrong;
  EXPECT_EQ(Failures(CompareLinear, wrong), 0);
  EXPECT_GT(Failures(CheckLinearInvariance, wrong), 0);
}

TEST(DifferentialKit, MoeWithOneScaleForGateAndUp) {
  struct Wrong : Forwarding {
    float gate = 1;
    base::Status PackExpert(ExpertsWeight& w, int64_t e, ExpertPart part, const QuantizedMatrix& m) override {
      QuantizedMatrix changed = m;
      if (part == ExpertPart::kGate && m.format.is_nvfp4()) gate = *m.outer;
      if (part == ExpertPart::kUp && m.format.is_nvfp4()) {
        up.push_back(gate);
        changed.outer = &up.back();
      }
      return Forwarding::PackExpert(w, e, part, changed);
    }
    std::deque<float> up;  // addresses stay
  } wrong;
  EXPECT_GT(Failures(QuickMoe, wrong), 0);
  EXPECT_GT(Failures(CheckUnequalGateUpScales, wrong), 0);
}

TEST(DifferentialKit, MoeThatDoesNotRoundTheHiddenRow) {
  struct Wrong : Forwarding {
    base::Result<std::unique_ptr<ExpertsWeight>> CreateExperts(ExpertsSpec spec) override {
      spec.round_hidden = false;
      return Forwarding::CreateExperts(std::move(spec));
    }
  } wrong;
  EXPECT_GT(Failures(QuickMoe, wrong), 0);
  EXPECT_GT(Failures(CheckMoeGolden, wrong), 0);
}

TEST(DifferentialKit, MoeThatRoundsXFirst) {
  struct Wrong : Forwarding {
    void Moe(const MoeOp& op) override {
      std::vector<uint16_t> x;
      for (int64_t r = 0; r < op.x.rows; ++r)
        for (int64_t c = 0; c < op.x.cols; ++c) x.push_back(op.x.dtype == DType::kF32 ? numerics::FloatToBf16(op.x.row<float>(r)[c]) : op.x.row<uint16_t>(r)[c]);
      MoeOp changed = op;
      changed.x = Matrix(x.data(), DType::kBF16, op.x.rows, op.x.cols);
      Forwarding::Moe(changed);
    }
  } wrong;
  EXPECT_GT(Failures(QuickMoe, wrong), 0);
  EXPECT_GT(Failures(CheckMoeGolden, wrong), 0);
}

TEST(DifferentialKit, MoeWithoutInputScales) {
  struct Wrong : Forwarding {
    base::Status SetInputScale(ExpertsWeight&, int64_t, ExpertPart, float) override { return {}; }
  } wrong;
  EXPECT_GT(Failures(QuickMoe, wrong), 0);
  EXPECT_GT(Failures(CheckStaticScales, wrong), 0);
}

TEST(DifferentialKit, MoeThatDependsOnNeighbours) {
  struct Wrong : Forwarding {
    void Moe(const MoeOp& op) override {
      Forwarding::Moe(op);
      if (op.x.rows > 16) Nudge(op.out);
    }
  } wrong;
  EXPECT_EQ(Failures(QuickMoe, wrong), 0);
  EXPECT_GT(Failures(QuickMoeInvariance, wrong), 0);
}

TEST(DifferentialKit, AttentionFaults) {
  struct WindowOffByOne : Forwarding {
    void Attention(const AttentionOp& op) override {
      AttentionOp changed = op;
      if (op.window > 0) ++changed.window;
      Forwarding::Attention(changed);
    }
  } window;
  EXPECT_GT(Failures(CompareAttention, window), 0);
  struct NoSinks : Forwarding {
    void Attention(const AttentionOp& op) override {
      AttentionOp changed = op;
      changed.sinks = nullptr;
      Forwarding::Attention(changed);
    }
  } sinks;
  EXPECT_GT(Failures(CompareAttention, sinks), 0);
  struct NoClip : Forwarding {
    void Qkv(const QkvOp& op) override {
      QkvOp changed = op;
      changed.clip = 0;
      Forwarding::Qkv(changed);
    }
  } clip;
  EXPECT_GT(Failures(CompareAttention, clip), 0);
  struct ChunkDependent : Forwarding {
    void Attention(const AttentionOp& op) override {
      Forwarding::Attention(op);
      if (op.batch.rows == 7 && op.out.dtype == DType::kF32) Nudge(op.out);
    }
  } chunks;
  EXPECT_EQ(Failures(CompareAttention, chunks), 0);
  EXPECT_GT(Failures(CheckAttentionInvariance, chunks), 0);
}

TEST(DifferentialKit, SmallFaults) {
  struct NoEps : Forwarding {
    void RmsNorm(const RmsNormOp& op) override {
      RmsNormOp changed = op;
      changed.eps = 0;
      Forwarding::RmsNorm(changed);
    }
  } eps;
  EXPECT_GT(Failures(CompareSmallOps, eps), 0);
  struct LastOfATie : Forwarding {
    void Route(const RouteOp& op) override {
      Forwarding::Route(op);
      for (int64_t t = 0; t < op.logits.rows && op.top_k > 1; ++t)
        if (op.logits.row<float>(t)[op.ids[t * op.top_k]] == op.logits.row<float>(t)[op.ids[t * op.top_k + 1]])
          std::swap(op.ids[t * op.top_k], op.ids[t * op.top_k + 1]);
    }
  } tie;
  EXPECT_GT(Failures(CompareRoute, tie), 0);
  struct BeyondTheRow : Forwarding {
    void SiluMul(const SiluMulOp& op) override {
      Forwarding::SiluMul(op);
      if (op.out.rows > 1 && op.out.dtype == DType::kF32) op.out.row<float>(0)[op.out.cols] = 0;
    }
  } beyond;
  EXPECT_GT(Failures(CompareSmallOps, beyond), 0);
}

}  // namespace
}  // namespace halfbyte::test
