// FP8 sources through the pipeline: user case T06 (partial 128-blocks), the shapes and dtypes that scales are found in, and what is refused.
#include <gmock/gmock.h>

#include "base/json.h"
#include "numerics/bf16.h"
#include "quant/convert.h"
#include "unit/quant/load_support.h"

namespace halfbyte::quant {
namespace {

using checkpoint::FloatBytes;
using testing::HasSubstr;

constexpr const char* kGate = "model.layers.0.mlp.experts.0.gate_proj";
constexpr const char* kUp = "model.layers.0.mlp.experts.0.up_proj";

// gate and up FP8 [200, 144], every byte 0x38 (1.0), with the same block scales.
HandMade T06(const std::string& dtype, const std::string& shape, const std::string& scales, const char* suffix = ".weight_scale_inv") {
  HandMade m;
  for (const char* stem : {kGate, kUp}) {
    m.tensors.push_back({std::string(stem) + ".weight", "F8_E4M3", "[200,144]", std::string(200 * 144, '\x38')});
    m.tensors.push_back({std::string(stem) + suffix, dtype, shape, scales});
  }
  m.ExpectMatrix(TensorRole::kExpertGate, 200, 144);
  m.ExpectMatrix(TensorRole::kExpertUp, 200, 144);
  m.source.fp8_block = {128, 128};
  return m;
}
HandMade T06() { return T06("F32", "[2,2]", FloatBytes({1, 2, 4, 8})); }

void ExpectT06(const test::RecordedMatrix& m) {
  ASSERT_EQ(m.format, Format::Nvfp4());
  uint32_t bits;
  std::memcpy(&bits, m.outer.data(), 4);
  EXPECT_EQ(bits, 0x3B430C31u);  // 8 / 2688
  for (int64_t r = 0; r < 200; ++r) {
    const std::string row = m.block_scales.substr(static_cast<size_t>(r * 9), 9);
    EXPECT_EQ(row, r < 128 ? std::string(8, '\x66') + '\x6E' : std::string(8, '\x76') + '\x7E') << "row " << r;
  }
  EXPECT_EQ(m.elements, std::string(200 * 72, '\x77'));
}

TEST(LoadFp8, PartialBlocksBecomeNvfp4) {
  const auto loaded = T06().Load();
  ASSERT_TRUE(loaded) << loaded.error().ToString();
  ExpectT06(loaded->matrices.at(Id(TensorRole::kExpertGate)));
  ExpectT06(loaded->matrices.at(Id(TensorRole::kExpertUp)));
}

TEST(LoadFp8, PartialBlocksKeepTheirValues) {
  HandMade m = T06();
  m.plan.mode = QuantMode::kNone;
  const auto loaded = m.Load();
  ASSERT_TRUE(loaded) << loaded.error().ToString();
  const test::RecordedMatrix& gate = loaded->matrices.at(Id(TensorRole::kExpertGate));
  EXPECT_EQ(loaded->actions.at(Id(TensorRole::kExpertGate)), Action::kKeep);
  ASSERT_EQ(gate.format, Format::Fp8Block(128, 128));
  std::vector<float> values(200 * 144);
  ToPlain({gate.format, 200, 144, gate.elements.data(), gate.block_scales.data(), nullptr}, tensor::DType::kF32, values.data());
  auto at = [&](int r, int c) { return values[static_cast<size_t>(r * 144 + c)]; };
  EXPECT_EQ(at(0, 0), 1);
  EXPECT_EQ(at(0, 128), 2);
  EXPECT_EQ(at(127, 127), 1);
  EXPECT_EQ(at(128, 0), 4);
  EXPECT_EQ(at(199, 143), 8);
  EXPECT_EQ(at(100, 0), 1);  // 4 is the fault of taking 200 / 2 rows as the block
}

// Scales of the same values in other clothes: BF16, under ModelOpt's name, as [ceil, 1, ceil, 1], as powers of two.
TEST(LoadFp8, ScalesInOtherDtypesNamesAndShapes) {
  std::string bf16;
  for (float v : {1.0f, 2.0f, 4.0f, 8.0f}) {
    const uint16_t bits = numerics::FloatToBf16(v);
    bf16.append(reinterpret_cast<const char*>(&bits), 2);
  }
  for (const HandMade& m : {T06("BF16", "[2,2]", bf16), T06("F32", "[2,2]", FloatBytes({1, 2, 4, 8}), ".weight_scale"), T06("F32", "[2,1,2,1]", FloatBytes({1, 2, 4, 8})),
                            T06("F8_E8M0", "[2,2]", "\x7F\x80\x81\x82")}) {
    const auto loaded = m.Load();
    ASSERT_TRUE(loaded) << m.tensors[1].dtype << m.tensors[1].shape << ": " << loaded.error().ToString();
    ExpectT06(loaded->matrices.at(Id(TensorRole::kExpertGate)));
  }
}

TEST(LoadFp8, TheBlockSizeIs128WhereTheConfigSaysNothing) {
  HandMade m = T06();
  m.source.fp8_block.reset();
  const auto loaded = m.Load();
  ASSERT_TRUE(loaded) << loaded.error().ToString();
  ExpectT06(loaded->matrices.at(Id(TensorRole::kExpertGate)));
}

// A dense matrix is read in pieces; a block height that does not divide the piece must not be cut.
TEST(LoadFp8, OddBlockHeightsOfAMatrixReadInPieces) {
  HandMade m;
  const int64_t rows = 9000, cols = 1024, block = 48, scale_rows = (rows + block - 1) / block;
  std::vector<float> scales;
  for (int64_t i = 0; i < scale_rows; ++i) scales.push_back(static_cast<float>(1 + i));
  m.rules = {{"q", TensorRole::kQ}};
  m.tensors = {{"q.weight", "F8_E4M3", base::StrCat("[", rows, ",", cols, "]"), std::string(static_cast<size_t>(rows * cols), '\x38')},
               {"q.weight_scale_inv", "F32", base::StrCat("[", scale_rows, ",1]"), FloatBytes(scales)}};
  m.expected = {{{TensorRole::kQ, -1, -1}, TensorPart::kWeight, rows, cols}};
  m.source.fp8_block = {static_cast<int32_t>(block), static_cast<int32_t>(cols)};
  const auto loaded = m.Load();
  ASSERT_TRUE(loaded) << loaded.error().ToString();
  const test::RecordedMatrix& q = loaded->matrices.at({TensorRole::kQ, -1, -1});
  EXPECT_GT(q.rows.size(), 1u);  // in pieces
  EXPECT_EQ(q.block_scales, FloatBytes(scales));
}

TEST(LoadFp8, InputScalesHaveNoEffect) {
  HandMade with = T06();
  with.tensors.push_back({std::string(kGate) + ".input_scale", "F32", "[]", FloatBytes({0.25f})});
  const auto loaded = with.Load();
  ASSERT_TRUE(loaded) << loaded.error().ToString();
  ExpectT06(loaded->matrices.at(Id(TensorRole::kExpertGate)));
}

TEST(LoadFp8, WithoutAScaleItIsRefused) {
  HandMade m = T06();
  m.tensors.erase(m.tensors.begin() + 1);
  EXPECT_THAT(m.Error(), testing::AllOf(HasSubstr("model.layers.0.mlp.experts.0.gate_proj.weight: FP8 without a weight_scale"), HasSubstr("incomplete")));
}

TEST(LoadFp8, ScalesThatFitNothingAreRefusedByName) {
  for (const char* shape : {"[2,3]", "[3,2]", "[4]", "[0]", "[2,0]", "[1,1,2,2]"}) {
    size_t n = 1;
    const base::Json dims = *base::Json::Parse(shape);
    for (const base::Json& d : dims.as_array()) n *= static_cast<size_t>(d.as_int());
    EXPECT_THAT(T06("F32", shape, FloatBytes(std::vector<float>(n, 1.0f))).Error(), HasSubstr("gate_proj.weight_scale_inv")) << shape;
  }
}

TEST(LoadFp8, NanAmongScalesOrWeightsIsRefusedByName) {
  HandMade scale = T06("F32", "[2,2]", FloatBytes({1, 2, std::nanf(""), 8}));
  EXPECT_THAT(scale.Error(), testing::AllOf(HasSubstr("layer 0, expert 0"), HasSubstr("weight_scale_inv"), HasSubstr("NaN")));
  HandMade weight = T06();
  weight.tensors[2].data[77] = '\x7F';
  weight.tensors[2].data[78] = '\xFF';
  EXPECT_THAT(weight.Error(), testing::AllOf(HasSubstr("model.layers.0.mlp.experts.0.up_proj.weight (layer 0, expert 0, experts.up)"), HasSubstr("2 NaN")));
  weight.plan.mode = QuantMode::kNone;
  EXPECT_THAT(weight.Error(), testing::AllOf(HasSubstr("up_proj.weight"), HasSubstr("2 NaN")));
}

}  // namespace
}  // namespace halfbyte::quant
