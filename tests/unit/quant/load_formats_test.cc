// Rarer forms of weights and scales: MXFP8 and E5M2, UE8M0 in int32 words, MXFP4 in both spellings and its lossless cast, NVFP4 in every stacked layout,
// AWQ factors. Each is compared with a plainer form of the same values, or with arithmetic written out here.
#include <gmock/gmock.h>

#include <cmath>

#include "numerics/bf16.h"
#include "numerics/e2m1.h"
#include "numerics/e4m3.h"
#include "quant/convert.h"
#include "unit/quant/load_support.h"

namespace halfbyte::quant {
namespace {

using checkpoint::FloatBytes;
using checkpoint::StackedLayout;
using testing::HasSubstr;

constexpr const char* kGate = "model.layers.0.mlp.experts.0.gate_proj";

struct Random {
  uint64_t state = 1;
  uint8_t Byte() { return static_cast<uint8_t>((state = state * 6364136223846793005ull + 1442695040888963407ull) >> 56); }
  std::string Bytes(int64_t n, int limit = 256, int from = 0) {
    std::string out;
    for (int64_t i = 0; i < n; ++i) out += static_cast<char>(from + Byte() % limit);
    return out;
  }
};
uint8_t At(const std::string& s, int64_t i) { return static_cast<uint8_t>(s[static_cast<size_t>(i)]); }

// Values of a recorded matrix.
std::vector<float> Values(const test::RecordedMatrix& m) {
  const int64_t rows = static_cast<int64_t>(m.elements.size()) * 8 / tensor::DTypeBits(m.format.elem) / m.cols;
  std::vector<float> out(static_cast<size_t>(rows * m.cols));
  ToPlain({m.format, rows, m.cols, m.elements.data(), m.block_scales.empty() ? nullptr : m.block_scales.data(), m.outer.empty() ? nullptr : m.outer.data()}, tensor::DType::kF32, out.data());
  return out;
}

HandMade One(const std::string& dtype, const std::string& shape, const std::string& data, int64_t rows, int64_t cols) {
  HandMade m;
  m.tensors = {{std::string(kGate) + ".weight", dtype, shape, data}};
  m.ExpectMatrix(TensorRole::kExpertGate, rows, cols);
  return m;
}
test::RecordedMatrix Loaded(HandMade m, QuantMode mode, TensorId id = Id(TensorRole::kExpertGate)) {
  m.plan.mode = mode;
  const auto loaded = m.Load();
  EXPECT_TRUE(loaded) << loaded.error().ToString();
  return loaded ? loaded->matrices.at(id) : test::RecordedMatrix();
}

// MXFP8: one power of two for 32 columns, U8 or F8_E8M0.
TEST(LoadFormats, Mxfp8) {
  Random random;
  const std::string codes = random.Bytes(8 * 64, 120), scales = random.Bytes(8 * 2, 20, 118);
  for (const char* dtype : {"U8", "F8_E8M0"}) {
    HandMade m = One("F8_E4M3", "[8,64]", codes, 8, 64);
    m.tensors.push_back({std::string(kGate) + ".weight_scale", dtype, "[8,2]", scales});
    const test::RecordedMatrix kept = Loaded(m, QuantMode::kNone);
    const std::vector<float> values = Values(kept);
    std::vector<uint16_t> bf16;
    for (int64_t i = 0; i < 8 * 64; ++i) {
      const float want = numerics::E4m3ToFloat(At(codes, i)) * std::ldexp(1.0f, At(scales, i / 64 * 2 + i % 64 / 32) - 127);
      ASSERT_EQ(values[static_cast<size_t>(i)], want) << i;
      bf16.push_back(numerics::FloatToBf16(want));
    }
    // Converted, not refused: as if the checkpoint had been BF16.
    const std::string plain(reinterpret_cast<const char*>(bf16.data()), bf16.size() * 2);
    EXPECT_EQ(Loaded(m, QuantMode::kW4A16), Loaded(One("BF16", "[8,64]", plain, 8, 64), QuantMode::kW4A16));
  }
}

TEST(LoadFormats, E5m2) {
  Random random;
  std::string codes = random.Bytes(16 * 32, 0x78);
  HandMade m = One("F8_E5M2", "[16,32]", codes, 16, 32);
  m.tensors.push_back({std::string(kGate) + ".weight_scale", "F32", "[]", FloatBytes({0.03125f})});
  const std::vector<float> values = Values(Loaded(m, QuantMode::kNone));
  for (int64_t i = 0; i < 16 * 32; ++i) {
    const int e = At(codes, i) >> 2 & 31, f = At(codes, i) & 3;
    EXPECT_EQ(values[static_cast<size_t>(i)], std::ldexp(e ? 1.0f + 0.25f * static_cast<float>(f) : 0.25f * static_cast<float>(f), e ? e - 15 : -14) * 0.03125f);
  }
  EXPECT_EQ(Loaded(m, QuantMode::kW4A16).format, Format::Nvfp4());
}
// No dense kernel of the CPU reads E5M2: decoded to BF16, but kept where everything is FP32.
TEST(LoadFormats, DenseE5m2IsDecoded) {
  HandMade m;
  m.rules = {{"q", TensorRole::kQ}};
  m.tensors = {{"q.weight", "F8_E5M2", "[16,32]", std::string(16 * 32, '\x3C')}, {"q.weight_scale", "F32", "[]", FloatBytes({2.0f})}};
  m.expected = {{{TensorRole::kQ, -1, -1}, TensorPart::kWeight, 16, 32}};
  const TensorId q{TensorRole::kQ, -1, -1};
  EXPECT_EQ(Loaded(m, QuantMode::kNone, q).format, Format::Bf16());
  EXPECT_EQ(Values(Loaded(m, QuantMode::kNone, q)), std::vector<float>(16 * 32, 2.0f));
  m.plan.plain = tensor::DType::kF32;
  EXPECT_EQ(Loaded(m, QuantMode::kNone, q).format.elem, tensor::DType::kF8E5M2);
}

// [1,1,1,1] is how some exports write one scale for the tensor.
TEST(LoadFormats, FourExtentsOfOne) {
  HandMade m = One("F8_E4M3", "[16,32]", std::string(16 * 32, '\x38'), 16, 32);
  m.tensors.push_back({std::string(kGate) + ".weight_scale", "F32", "[1,1,1,1]", FloatBytes({3.0f})});
  EXPECT_EQ(Values(Loaded(m, QuantMode::kNone)), std::vector<float>(16 * 32, 3.0f));
}

// UE8M0 exponents of 128 x 128 blocks, four in an int32 word; a row of words for every row of W, or for every block.
class PackedUe8m0 : public testing::Test {
 protected:
  static constexpr int64_t kRows = 200, kCols = 640;  // 2 x 5 blocks, the last of each direction partial; 2 words a row
  static uint8_t Exponent(int64_t block_row, int64_t block_col) { return static_cast<uint8_t>(120 + block_row * 5 + block_col); }
  static std::string Words(int64_t rows, int64_t rows_a_block) {
    std::string out;
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < 8; ++c) out += static_cast<char>(c < 5 ? Exponent(r / rows_a_block, c) : 0);
    return out;
  }
  static HandMade Model(const std::string& shape, const std::string& words) {
    Random random;
    HandMade m = One("F8_E4M3", "[200,640]", random.Bytes(kRows * kCols, 0x7F), kRows, kCols);
    m.tensors.push_back({std::string(kGate) + ".weight_scale_inv", "I32", shape, words});
    m.source.fp8_block = {128, 128};
    return m;
  }
};
TEST_F(PackedUe8m0, AreTheScalesOfTheirBlocks) {
  std::vector<float> plain;
  for (int64_t r = 0; r < 2; ++r) for (int64_t c = 0; c < 5; ++c) plain.push_back(std::ldexp(1.0f, Exponent(r, c) - 127));
  HandMade want = Model("[200,2]", "");
  want.tensors[1] = {std::string(kGate) + ".weight_scale_inv", "F32", "[2,5]", FloatBytes(plain)};
  for (QuantMode mode : {QuantMode::kNone, QuantMode::kW4A16}) {
    EXPECT_EQ(Loaded(Model("[200,2]", Words(200, 128)), mode), Loaded(want, mode));
    EXPECT_EQ(Loaded(Model("[2,2]", Words(2, 1)), mode), Loaded(want, mode));
  }
}
TEST_F(PackedUe8m0, CopiesMustAgree) {
  std::string words = Words(200, 128);
  words[8 * 77 + 1] ^= 1;
  EXPECT_THAT(Model("[200,2]", words).Error(), HasSubstr("gate_proj.weight_scale_inv: row 77 differs from row 0"));
  EXPECT_THAT(Model("[200,3]", Words(300, 128)).Error(), HasSubstr("int32 words of four UE8M0 exponents, [200, 2]"));
  words = Words(200, 128);
  for (int r = 0; r < 128; ++r) words[static_cast<size_t>(8 * r)] = '\xFF';
  EXPECT_THAT(Model("[200,2]", words).Error(), HasSubstr("NaN"));
}

// MXFP4 values, one expert's gate and up of 16 x 64.
struct Mx {
  std::string codes[2], scales[2];
  Mx() {
    Random random;
    for (int p : {0, 1}) { codes[p] = random.Bytes(16 * 32); scales[p] = random.Bytes(16 * 2, 12, 110 + 3 * p); }
  }
  float Value(int p, int64_t r, int64_t c) const {
    const uint8_t byte = At(codes[p], r * 32 + c / 2);
    return numerics::E2m1ToFloat(c % 2 ? byte >> 4 : byte & 15) * std::ldexp(1.0f, At(scales[p], r * 2 + c / 32) - 127);
  }
};
void ExpectMxCast(const test::RecordedMatrix& got, const Mx& mx, int p) {
  ASSERT_EQ(got.format, Format::Nvfp4());
  const std::vector<float> values = Values(got);
  for (int64_t r = 0; r < 16; ++r)
    for (int64_t c = 0; c < 64; ++c) ASSERT_EQ(values[static_cast<size_t>(r * 64 + c)], mx.Value(p, r, c)) << r << " " << c;
}

// compressed-tensors' mxfp4-pack-quantized; DeepSeek-V4 calls the codes I8 and the scales F8_E8M0.
TEST(LoadFormats, Mxfp4IsCastWithoutLoss) {
  const Mx mx;
  for (const auto& [dtype, scale_dtype, ending] : {std::tuple{"U8", "U8", ".weight_packed"}, std::tuple{"I8", "F8_E8M0", ".weight"}}) {
    HandMade m;
    for (int p : {0, 1}) {
      const std::string stem = base::StrCat("model.layers.0.mlp.experts.0.", p ? "up" : "gate", "_proj");
      m.tensors.push_back({stem + ending, dtype, "[16,32]", mx.codes[p]});
      m.tensors.push_back({stem + (std::string_view(dtype) == "I8" ? ".scale" : ".weight_scale"), scale_dtype, "[16,2]", mx.scales[p]});
    }
    m.ExpectMatrix(TensorRole::kExpertGate, 16, 64);
    m.ExpectMatrix(TensorRole::kExpertUp, 16, 64);
    const auto loaded = m.Load();
    ASSERT_TRUE(loaded) << loaded.error().ToString();
    const test::RecordedMatrix &gate = loaded->matrices.at(Id(TensorRole::kExpertGate)), &up = loaded->matrices.at(Id(TensorRole::kExpertUp));
    ExpectMxCast(gate, mx, 0);
    ExpectMxCast(up, mx, 1);
    EXPECT_EQ(gate.outer, up.outer) << "one k_max for the pair";
    EXPECT_EQ(loaded->stats.mx_blocks_requantized, 0);
    const std::vector<float> decoded = Values(Loaded(m, QuantMode::kNone));
    EXPECT_EQ(decoded, Values(gate)) << "without a 4-bit mode: decoded, exactly";
  }
}
// A block more than 2^17 below the largest of the pair is out of E4M3's reach: quantized anew, and counted.
TEST(LoadFormats, Mxfp4BlocksOutOfReachAreCounted) {
  Mx mx;
  mx.scales[1][5] = '\x20';
  HandMade m;
  for (int p : {0, 1}) {
    const std::string stem = base::StrCat("model.layers.0.mlp.experts.0.", p ? "up" : "gate", "_proj");
    m.tensors.push_back({stem + ".weight_packed", "U8", "[16,32]", mx.codes[p]});
    m.tensors.push_back({stem + ".weight_scale", "U8", "[16,2]", mx.scales[p]});
  }
  m.ExpectMatrix(TensorRole::kExpertGate, 16, 64);
  m.ExpectMatrix(TensorRole::kExpertUp, 16, 64);
  const auto loaded = m.Load();
  ASSERT_TRUE(loaded) << loaded.error().ToString();
  EXPECT_EQ(loaded->stats.mx_blocks_requantized, 1);
  ExpectMxCast(loaded->matrices.at(Id(TensorRole::kExpertGate)), mx, 0);
}
// gpt-oss: blocks [E, 2I, H/32, 16] with alternating gate and up rows, scales [E, 2I, H/32].
TEST(LoadFormats, Mxfp4OfGptOss) {
  const Mx mx;
  std::string blocks, scales;
  for (int64_t r = 0; r < 16; ++r)
    for (int p : {0, 1}) { blocks += mx.codes[p].substr(static_cast<size_t>(r * 32), 32); scales += mx.scales[p].substr(static_cast<size_t>(r * 2), 2); }
  HandMade m;
  m.rules = {{"model.layers.{L}.mlp.experts.gate_up_proj", TensorRole::kExpertGateUp, StackedLayout::kInterleavedRows}};
  m.tensors = {{"model.layers.0.mlp.experts.gate_up_proj_blocks", "U8", "[2,32,2,16]", blocks + blocks}, {"model.layers.0.mlp.experts.gate_up_proj_scales", "U8", "[2,32,2]", scales + scales}};
  for (int e : {0, 1}) { m.ExpectMatrix(TensorRole::kExpertGate, 16, 64, e); m.ExpectMatrix(TensorRole::kExpertUp, 16, 64, e); }
  const auto loaded = m.Load();
  ASSERT_TRUE(loaded) << loaded.error().ToString();
  for (int e : {0, 1}) {
    ExpectMxCast(loaded->matrices.at(Id(TensorRole::kExpertGate, e)), mx, 0);
    ExpectMxCast(loaded->matrices.at(Id(TensorRole::kExpertUp, e)), mx, 1);
  }
  m.tensors[0].shape = "[2,32,4,8]";
  EXPECT_THAT(m.Error(), HasSubstr("gate_up_proj_blocks"));
}

// NVFP4 experts of one layer in a 3-D tensor, in every layout; the FP32 scales as [E], [E,1] or [E,2], the input scales likewise.
TEST(LoadFormats, StackedNvfp4) {
  constexpr int64_t kE = 2, kF = 16, kH = 32;
  Random random;
  std::string codes[kE][2], scales[kE][2];
  for (auto& e : codes) for (std::string& c : e) c = random.Bytes(kF * kH / 2);
  for (auto& e : scales) for (std::string& s : e) s = random.Bytes(kF * kH / 16, 0x7F);
  for (StackedLayout layout : {StackedLayout::kRows, StackedLayout::kTransposed, StackedLayout::kInterleavedRows, StackedLayout::kTransposedInterleaved})
    for (const char* outer_shape : {"[2]", "[2,1]", "[2,2]"}) {
      const bool transposed = layout == StackedLayout::kTransposed || layout == StackedLayout::kTransposedInterleaved;
      const bool interleaved = layout == StackedLayout::kInterleavedRows || layout == StackedLayout::kTransposedInterleaved;
      const bool apart = std::string_view(outer_shape) == "[2,2]";
      auto stack = [&](const std::string (&parts)[kE][2], int64_t cols) {
        std::string out;
        for (int64_t e = 0; e < kE; ++e)
          for (int64_t i = 0; i < (transposed ? cols : 2 * kF); ++i)
            for (int64_t j = 0; j < (transposed ? 2 * kF : cols); ++j) {
              const int64_t row = transposed ? j : i, col = transposed ? i : j;
              out += interleaved ? parts[e][row % 2][static_cast<size_t>(row / 2 * cols + col)] : parts[e][row / kF][static_cast<size_t>(row % kF * cols + col)];
            }
        return out;
      };
      HandMade m;
      const std::string stem = "model.layers.0.mlp.experts.gate_up_proj";
      m.rules = {{"model.layers.{L}.mlp.experts.gate_up_proj", TensorRole::kExpertGateUp, layout}};
      m.tensors = {{stem, "U8", transposed ? "[2,16,32]" : "[2,32,16]", stack(codes, kH / 2)},
                   {stem + "_weight_scale", "F8_E4M3", transposed ? "[2,2,32]" : "[2,32,2]", stack(scales, kH / 16)},
                   {stem + "_weight_scale_2", "F32", outer_shape, FloatBytes(apart ? std::vector<float>{1, 2, 3, 4} : std::vector<float>{1, 3})},
                   {stem + "_input_scale", "F32", "[]", FloatBytes({0.5f})}};
      for (int e : {0, 1}) { m.ExpectMatrix(TensorRole::kExpertGate, kF, kH, e); m.ExpectMatrix(TensorRole::kExpertUp, kF, kH, e); }
      const auto loaded = m.Load();
      ASSERT_TRUE(loaded) << loaded.error().ToString();
      for (int e : {0, 1})
        for (int p : {0, 1}) {
          const test::RecordedMatrix& got = loaded->matrices.at(Id(p ? TensorRole::kExpertUp : TensorRole::kExpertGate, e));
          EXPECT_EQ(loaded->actions.at(Id(p ? TensorRole::kExpertUp : TensorRole::kExpertGate, e)), Action::kReuse);
          EXPECT_EQ(got.elements, codes[e][p]) << "layout " << static_cast<int>(layout);
          EXPECT_EQ(got.block_scales, scales[e][p]) << "layout " << static_cast<int>(layout);
          EXPECT_EQ(got.outer, std::vector<float>{apart ? static_cast<float>(1 + 2 * e + p) : static_cast<float>(1 + 2 * e)}) << "unequal gate and up keep both scales";
        }
    }
}

// Row scales of FP8 experts in alternating rows belong to their rows.
TEST(LoadFormats, Fp8RowScalesOfInterleavedExperts) {
  HandMade m;
  std::vector<float> scales;
  for (int i = 0; i < 32; ++i) scales.push_back(static_cast<float>(1 + i));
  m.rules = {{"model.layers.{L}.mlp.experts.gate_up_proj", TensorRole::kExpertGateUp, StackedLayout::kInterleavedRows}};
  m.tensors = {{"model.layers.0.mlp.experts.gate_up_proj", "F8_E4M3", "[1,32,32]", std::string(32 * 32, '\x38')}, {"model.layers.0.mlp.experts.gate_up_proj_weight_scale", "F32", "[1,32]", FloatBytes(scales)}};
  m.ExpectMatrix(TensorRole::kExpertGate, 16, 32);
  m.ExpectMatrix(TensorRole::kExpertUp, 16, 32);
  m.plan.mode = QuantMode::kNone;
  const auto loaded = m.Load();
  ASSERT_TRUE(loaded) << loaded.error().ToString();
  for (int r = 0; r < 16; ++r) {
    EXPECT_EQ(loaded->matrices.at(Id(TensorRole::kExpertGate)).outer[static_cast<size_t>(r)], static_cast<float>(1 + 2 * r));
    EXPECT_EQ(loaded->matrices.at(Id(TensorRole::kExpertUp)).outer[static_cast<size_t>(r)], static_cast<float>(2 + 2 * r));
  }
}

// NVFP4_AWQ: W (x * s) is (W diag(s)) x. Such a matrix is decoded with its factors, in every mode.
TEST(LoadFormats, AwqFactorsAreFoldedIntoDecodedWeights) {
  Random random;
  const std::string codes = random.Bytes(16 * 16), scales = random.Bytes(16 * 2, 0x7F);
  std::vector<float> factors;
  for (int c = 0; c < 32; ++c) factors.push_back(0.75f + 0.03125f * static_cast<float>(c));
  HandMade m = One("U8", "[16,16]", codes, 16, 32);
  m.tensors.push_back({std::string(kGate) + ".weight_scale", "F8_E4M3", "[16,2]", scales});
  m.tensors.push_back({std::string(kGate) + ".weight_scale_2", "F32", "[]", FloatBytes({0.0078125f})});
  const std::vector<float> plain = Values(Loaded(m, QuantMode::kW4A16));
  m.tensors.push_back({std::string(kGate) + ".pre_quant_scale", "F32", "[32]", FloatBytes(factors)});
  for (QuantMode mode : {QuantMode::kNone, QuantMode::kW4A16, QuantMode::kModeloptFp4}) {
    const test::RecordedMatrix got = Loaded(m, mode);
    ASSERT_EQ(got.format, Format::Bf16());
    const std::vector<float> values = Values(got);
    for (size_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], numerics::RoundToBf16(plain[i] * factors[i % 32]));
  }
  m.plan.plain = tensor::DType::kF32;
  const std::vector<float> exact = Values(Loaded(m, QuantMode::kW4A16));
  for (size_t i = 0; i < exact.size(); ++i) ASSERT_EQ(exact[i], plain[i] * factors[i % 32]);
  m.tensors.back() = {std::string(kGate) + ".pre_quant_scale", "F32", "[16]", FloatBytes(std::vector<float>(16, 1.0f))};
  EXPECT_THAT(m.Error(), HasSubstr("gate_proj.pre_quant_scale: F32 [16], 32 factors are wanted"));
}

}  // namespace
}  // namespace halfbyte::quant
