// Experts in one 3-D tensor a layer: every layout gives the bytes of the per-expert form (user case T08), and what does not fit is refused.
#include <gmock/gmock.h>

#include <cstring>

#include "unit/quant/load_support.h"

namespace halfbyte::quant {
namespace {

using checkpoint::StackedLayout;
using testing::HasSubstr;

constexpr int64_t kE = 2, kH = 32, kF = 16;  // square on purpose: gate_up of an expert is 32 x 32

// BF16 bits of gate (0), up (1) or down (2) of an expert; all different, exponents around 1.
uint16_t Value(int part, int64_t e, int64_t r, int64_t c) { return static_cast<uint16_t>(0x3F00 + (part * 977 + e * 389 + r * 37 + c * 5) % 251 + ((r + c) % 3 == 0 ? 0x8000 : 0)); }

std::string Bytes(const std::vector<uint16_t>& v) { return std::string(reinterpret_cast<const char*>(v.data()), v.size() * 2); }

std::string Part(int part, int64_t e) {
  std::vector<uint16_t> v;
  const int64_t rows = part == 2 ? kH : kF, cols = part == 2 ? kF : kH;
  for (int64_t r = 0; r < rows; ++r) for (int64_t c = 0; c < cols; ++c) v.push_back(Value(part, e, r, c));
  return Bytes(v);
}

void ExpectExperts(HandMade& m) {
  for (int32_t e = 0; e < kE; ++e) {
    m.ExpectMatrix(TensorRole::kExpertGate, kF, kH, e);
    m.ExpectMatrix(TensorRole::kExpertUp, kF, kH, e);
    m.ExpectMatrix(TensorRole::kExpertDown, kH, kF, e);
  }
}

HandMade PerExpert() {
  HandMade m;
  for (int64_t e = 0; e < kE; ++e) {
    const std::string stem = base::StrCat("model.layers.0.mlp.experts.", e, ".");
    m.tensors.push_back({stem + "gate_proj.weight", "BF16", "[16,32]", Part(0, e)});
    m.tensors.push_back({stem + "up_proj.weight", "BF16", "[16,32]", Part(1, e)});
    m.tensors.push_back({stem + "down_proj.weight", "BF16", "[32,16]", Part(2, e)});
  }
  ExpectExperts(m);
  return m;
}

HandMade Stacked(StackedLayout layout) {
  const bool transposed = layout == StackedLayout::kTransposed || layout == StackedLayout::kTransposedInterleaved;
  const bool interleaved = layout == StackedLayout::kInterleavedRows || layout == StackedLayout::kTransposedInterleaved;
  std::vector<uint16_t> gate_up, down;
  for (int64_t e = 0; e < kE; ++e) {
    for (int64_t i = 0; i < 2 * kF; ++i)
      for (int64_t j = 0; j < kH; ++j) {
        const int64_t out = transposed ? j : i, in = transposed ? i : j;  // 2F == H, so the loops fit both
        gate_up.push_back(interleaved ? Value(static_cast<int>(out % 2), e, out / 2, in) : Value(out < kF ? 0 : 1, e, out % kF, in));
      }
    for (int64_t i = 0; i < (transposed ? kF : kH); ++i)
      for (int64_t j = 0; j < (transposed ? kH : kF); ++j) down.push_back(transposed ? Value(2, e, j, i) : Value(2, e, i, j));
  }
  HandMade m;
  m.tensors = {{"model.layers.0.mlp.experts.gate_up_proj", "BF16", "[2,32,32]", Bytes(gate_up)},
               {"model.layers.0.mlp.experts.down_proj", "BF16", transposed ? "[2,16,32]" : "[2,32,16]", Bytes(down)}};
  m.rules = {{"model.layers.{L}.mlp.experts.gate_up_proj", TensorRole::kExpertGateUp, layout},
             {"model.layers.{L}.mlp.experts.down_proj", TensorRole::kExpertDown, transposed ? StackedLayout::kTransposed : StackedLayout::kRows}};
  ExpectExperts(m);
  return m;
}

TEST(LoadStacked, EveryLayoutGivesTheBytesOfThePerExpertForm) {
  for (QuantMode mode : {QuantMode::kNone, QuantMode::kW4A16}) {
    HandMade plain = PerExpert();
    plain.plan.mode = mode;
    const auto want = plain.Load();
    ASSERT_TRUE(want) << want.error().ToString();
    ASSERT_EQ(want->matrices.size(), 6u);
    ASSERT_EQ(want->matrices.at(Id(TensorRole::kExpertGate)).format, mode == QuantMode::kNone ? Format::Bf16() : Format::Nvfp4());
    for (StackedLayout layout : {StackedLayout::kRows, StackedLayout::kTransposed, StackedLayout::kInterleavedRows, StackedLayout::kTransposedInterleaved})
      for (int workers : {1, 3}) {
        HandMade m = Stacked(layout);
        m.plan.mode = mode;
        const auto have = m.Load(workers);
        ASSERT_TRUE(have) << static_cast<int>(layout) << ": " << have.error().ToString();
        EXPECT_EQ(have->matrices, want->matrices) << "layout " << static_cast<int>(layout) << ", " << workers << " workers";
      }
  }
}

// What would be a silent fault if the layout were guessed from the shape.
TEST(LoadStacked, TheLayoutMatters) {
  const auto rows = Stacked(StackedLayout::kRows).Load();
  HandMade wrong = Stacked(StackedLayout::kRows);
  wrong.rules[0].layout = StackedLayout::kTransposed;
  const auto read_transposed = wrong.Load();
  ASSERT_TRUE(rows && read_transposed);
  EXPECT_NE(rows->matrices, read_transposed->matrices);
}

TEST(LoadStacked, ShapesThatDoNotFitAreRefusedByName) {
  HandMade m = Stacked(StackedLayout::kRows);
  m.tensors[0].shape = "[2,16,64]";
  EXPECT_THAT(m.Error(), testing::AllOf(HasSubstr("experts.gate_up_proj"), HasSubstr("[2, 16, 64]"), HasSubstr("[experts, 32, 32]")));
  m = Stacked(StackedLayout::kRows);
  m.tensors[1].shape = "[64,16]";
  EXPECT_THAT(m.Error(), HasSubstr("experts.down_proj"));
  m = Stacked(StackedLayout::kRows);
  m.tensors[0].shape = "[1,64,32]";
  EXPECT_THAT(m.Error(), HasSubstr("experts.gate_up_proj"));
}

// A stacked tensor with more experts than the model has: config.json is another model's.
TEST(LoadStacked, ExpertsTooManyAreNotLeftUnread) {
  HandMade m = Stacked(StackedLayout::kRows);
  std::erase_if(m.expected, [](const ExpectedTensor& t) { return t.id.expert == 1; });
  EXPECT_THAT(m.Error(), testing::AllOf(HasSubstr("experts.gate_up_proj"), HasSubstr("1 experts are expected")));
}

TEST(LoadStacked, BothFormsOfOneLayerAreRefused) {
  HandMade m = PerExpert(), s = Stacked(StackedLayout::kRows);
  m.tensors.push_back(s.tensors[0]);
  m.rules.push_back(s.rules[0]);
  EXPECT_THAT(m.Error(), testing::AllOf(HasSubstr("experts.gate_up_proj"), HasSubstr("no place")));
}

// Scales of stacked FP8 experts are stacked likewise; too few of them are refused and never read out of bounds.
TEST(LoadStacked, Fp8ScalesOfTooFewExperts) {
  HandMade m;
  m.tensors = {{"model.layers.0.mlp.experts.gate_up_proj", "F8_E4M3", "[2,32,32]", std::string(2 * 32 * 32, '\x38')},
               {"model.layers.0.mlp.experts.down_proj", "F8_E4M3", "[2,32,16]", std::string(2 * 32 * 16, '\x38')},
               {"model.layers.0.mlp.experts.gate_up_proj_weight_scale", "F32", "[2,32,1]", checkpoint::FloatBytes(std::vector<float>(64, 2.0f))},
               {"model.layers.0.mlp.experts.down_proj_weight_scale", "F32", "[2,32,1]", checkpoint::FloatBytes(std::vector<float>(64, 2.0f))}};
  m.rules = Stacked(StackedLayout::kRows).rules;
  ExpectExperts(m);
  m.plan.mode = QuantMode::kNone;
  const auto loaded = m.Load();
  ASSERT_TRUE(loaded) << loaded.error().ToString();
  EXPECT_EQ(loaded->matrices.at(Id(TensorRole::kExpertUp, 1)).outer, std::vector<float>(16, 2.0f));
  m.tensors[2].shape = "[1,32,1]";
  m.tensors[2].data.resize(32 * 4);
  EXPECT_THAT(m.Error(), HasSubstr("gate_up_proj_weight_scale"));
}

}  // namespace
}  // namespace halfbyte::quant
