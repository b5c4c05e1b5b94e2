// Cases T1 to T13 and T17 of spec/numerics-and-formats.md section 7, with its Errata, for the producers implemented here: ModelOpt
// (dynamic, static, four-over-six), FlashInfer's exact plain form (with gs = 2688/amax that is TransformerEngine's), the load-time form.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "numerics/fp8_dequantizer.h"
#include "numerics/mxfp4_cast.h"
#include "numerics/weight_quantizer.h"
#include "unit/numerics/test_matrices.h"

namespace halfbyte::numerics {
namespace {

using namespace test;

std::string Modelopt(const std::vector<float>& x, float ws2) { return Text(QuantizeBlockModelopt(BlockInput(x.data(), 16), ws2)); }
std::string Plain(const std::vector<float>& x, float gs) { return Text(QuantizeBlockPlain(BlockInput(x.data(), 16), gs)); }

TEST(NumericsCase, T1Ties) {
  const std::vector<float> x = {6, .25f, .75f, 1.25f, 1.75f, 2.5f, 3.5f, 5, -.25f, -.75f, -1.25f, -1.75f, -2.5f, -3.5f, -5, -0.0f};
  EXPECT_EQ(Modelopt(x, 1), "38 702244668AACCEE0");
  EXPECT_EQ(Plain(x, 1), "38 702244668AACCEE8");
}

TEST(NumericsCase, T2Ws2Flavours) {
  struct Row { uint16_t amax; uint32_t cpu, cuda, te_encode; };
  for (Row r : {Row{0x3F80, 0x39C30C31, 0x39C30C31, 0x45280000}, Row{0x3D24, 0x3779E79E, 0x3779E79F, 0x47831F38},
                Row{0x3DBA, 0x380DB6DB, 0x380DB6DC, 0x46E739CE}, Row{0x3DC4, 0x38155555, 0x38155556, 0x46DB6DB7},
                Row{0x3D73, 0x37B92492, 0x37B92493, 0x4730FCD7}, Row{0x3F51, 0x399F3CF4, 0x399F3CF4, 0x454DC7A8},
                Row{0x4528, 0x3F800000, 0x3F800000, 0x3F800000}}) {
    const float amax = Bf16Hex(r.amax);
    EXPECT_EQ(Bits(ModeloptWs2(amax, Flavour::kCpu)), r.cpu);
    EXPECT_EQ(Bits(ModeloptWs2(amax, Flavour::kCuda)), r.cuda);
    EXPECT_EQ(Bits(OnlineWs2(amax)), r.cpu);
    EXPECT_EQ(Bits(k2688 / amax), r.te_encode);
  }
  EXPECT_EQ(Bits(ModeloptWs2(1536, Flavour::kCpu, 256)), 0x3F800000u);
  EXPECT_EQ(Bits(ModeloptWs2(Bf16Hex(0x3D73), Flavour::kCuda, 256)), 0x38220000u);
  EXPECT_EQ(Bits(ModeloptWs2(Bf16Hex(0x3D73), Flavour::kCpu, 256)), 0x38220000u);  // Errata 8
  // Section 2.1: the mantissas of BF16 for which the flavours differ, always by one unit in the last place.
  std::vector<int> differ;
  for (int m = 0; m < 128; ++m) {
    const float amax = Bf16Hex(static_cast<uint16_t>(0x3F80 | m));
    const uint32_t cpu = Bits(ModeloptWs2(amax, Flavour::kCpu)), cuda = Bits(ModeloptWs2(amax, Flavour::kCuda));
    if (cpu != cuda) differ.push_back(m);
    EXPECT_LE(cuda - cpu, 1u);
  }
  EXPECT_EQ(differ, (std::vector<int>{4, 7, 12, 15, 17, 20, 25, 28, 33, 36, 38, 42, 53, 58, 63, 68, 74, 79, 84, 89, 95, 100, 105, 110, 115, 116, 121, 126}));
  int fp16 = 0;
  for (int m = 0; m < 1024; ++m) {
    const float amax = FromBits(0x3F800000u | (m << 13));
    fp16 += ModeloptWs2(amax, Flavour::kCpu) != ModeloptWs2(amax, Flavour::kCuda);
  }
  EXPECT_EQ(fp16, 222);
}

TEST(NumericsCase, T3ZeroBlock) {
  const std::vector<float> zero(16, 0.0f);
  const BlockInput in(zero.data(), 16);
  EXPECT_EQ(Modelopt(zero, 1), "38 0000000000000000");
  EXPECT_EQ(Text(QuantizeBlockModeloptStatic(in, 0.0593f, 1, 448, Flavour::kCuda)), "7E 0000000000000000");
  EXPECT_EQ(Text(QuantizeBlockModeloptStatic(in, 2688, 1, 448, Flavour::kCuda)), "38 0000000000000000");
  EXPECT_EQ(Plain(zero, 1), "00 0000000000000000");
  EXPECT_EQ(Text(QuantizeBlockFourOverSix(in, 1, ErrorNorm::kMse, ErrorForm::kScaled)), "00 0000000000000000");
}

// (-1)^i * a * (16-i)/16, rounded to BF16.
std::vector<float> Ramp(float a) {
  std::vector<float> x;
  for (int i = 0; i < 16; ++i) x.push_back(RoundToBf16((i % 2 ? -1 : 1) * a * static_cast<float>(16 - i) / 16));
  return x;
}

TEST(NumericsCase, T4Underflow) {
  EXPECT_EQ(Modelopt(Ramp(6 * 0x1p-11f), 1), "01 3B3A2A2A29191908");
  EXPECT_EQ(Plain(Ramp(6 * 0x1p-11f), 1), "00 7F7F7F7F7F7F7F7F");
  EXPECT_EQ(Modelopt(Ramp(6 * 0x1p-10f), 1), "01 5D5C4C4B3B2A2918");
  EXPECT_EQ(Plain(Ramp(6 * 0x1p-10f), 1), "00 7F7F7F7F7F7F7F7F");
  EXPECT_EQ(Modelopt(Ramp(6 * 0x1p-7f), 1), "04 7F7E6E6D5D4C3A29");
  EXPECT_EQ(Plain(Ramp(6 * 0x1p-7f), 1), "04 7F7E6E6D5D4C3A29");
}

TEST(NumericsCase, T5Overflow) {
  EXPECT_EQ(Modelopt(Ramp(3008), 1), "7E 7F7F7E6E5D5C3B29");
  EXPECT_EQ(Plain(Ramp(3008), 1), "7E 7F7F7E6E5D5C3B29");
}

// Blocks of T6 to T10 under ModelOpt (CUDA and CPU), and the exact plain form with gs = 2688/amax and gs = 1/ws2(CUDA).
void CheckBlock(uint16_t amax_bits, const std::string& hex, const std::string& cuda, const std::string& cpu, const std::string& te,
                const std::string& flashinfer) {
  const float amax = Bf16Hex(amax_bits);
  const std::vector<float> x = Bf16Values(hex);
  const float ws2 = ModeloptWs2(amax, Flavour::kCuda);
  EXPECT_EQ(Modelopt(x, ws2), cuda);
  if (!cpu.empty()) {
    EXPECT_EQ(Modelopt(x, ModeloptWs2(amax, Flavour::kCpu)), cpu);
  }
  if (!te.empty()) {
    EXPECT_EQ(Plain(x, k2688 / amax), te);
  }
  if (!flashinfer.empty()) {
    EXPECT_EQ(Plain(x, 1.0f / ws2), flashinfer);
  }
}

TEST(NumericsCase, T6FlavourFlipsAScale) {
  const std::string block = "3D1A BB6B 3B83 3BEC 3D21 BAB9 BC92 3C5C 3BDB 3C50 BB90 BC15 3CF2 BAAC 3890 BC37";
  CheckBlock(0x3DC4, block, "73 791278D4249B680C", "74 791278D4249B680B", "74 791278D4249B680B", "73 791278D4249B680C");
  const std::vector<float> x = Bf16Values(block);
  const float amax = Bf16Hex(0x3DC4);
  EXPECT_EQ(Text(QuantizeBlockModeloptStatic(BlockInput(x.data(), 16), amax, ModeloptWs2(amax, Flavour::kCuda), 448, Flavour::kCuda)),
            "74 791278D4249B680B");
}

TEST(NumericsCase, T7FlavourFlipsACode) {
  const std::string block = "3C5E 3D0B BC3A 3BF4 BD02 3CAC 3C55 BACA 3CF7 3CC3 3B1A BC35 BD21 3B66 BC45 BB86";
  CheckBlock(0x3DBA, block, "74 47B2E548661BF1C9", "74 47C2E548661BF1C9", "", "");
  const std::vector<float> x = Bf16Values(block);
  const float amax = Bf16Hex(0x3DBA);
  for (auto [flavour, codes] : {std::pair(Flavour::kCpu, "47C2"), std::pair(Flavour::kCuda, "47B2")}) {  // Errata 8
    const Nvfp4Block b = QuantizeBlockModeloptStatic(BlockInput(x.data(), 16), amax, ModeloptWs2(amax, flavour), 448, flavour);
    EXPECT_EQ(CodeDigits(b).substr(0, 4), codes);
  }
}

TEST(NumericsCase, T8DivideOrMultiply) {
  CheckBlock(0x3DB4, "3D16 BB4A BD34 BAD2 3C3E BC3D 3A56 BB64 3C89 3B3A 3C44 BCE2 3CE2 BC4F 3D00 B9A2", "76 69F83B09413E6B68", "",
             "76 79F83B09413E6B68", "76 79F83B09413E6B68");
}

TEST(NumericsCase, T9OthersAgree) {
  CheckBlock(0x3DD0, "BCA8 3D01 BA1E 3D23 3C59 BD2F BC9D BD5C 3CC2 3D4E BCD0 3CB4 BCC6 BC7E 3D02 3C90", "77 C5863ECF57D4DB54", "",
             "77 C5863ECF57D4DB54", "77 C5863ECF57D4DB54");
}

TEST(NumericsCase, T10Fp32Producers) {
  CheckBlock(0x3E00, "BD15 BC92 3C43 BB68 BC9B 3C07 BCB2 BB8C BCA4 3D7C 3D26 3A8C 3C3C BC4F BCF5 BC22", "76 DB29C2C9C7602ADA",
             "76 DB29C2C9C7602ADA", "76 DB29C2C9C7602ADA", "76 DB29C2C9C7602ADA");
}

std::string CandidateText(const Candidate& c) { return Text(PackBlock(c.codes, c.scale)); }

// amax of the tensor 1536, M = 256, so gs = 1. SSE and SAE of (6, 4), the picks under MSE and MAE, and the candidates' bytes.
struct FourOverSixRow {
  std::vector<float> x;
  double sse6, sse4, sae6, sae4;
  std::string picks, text6, text4;
};

void CheckFourOverSix(const FourOverSixRow& row) {
  const BlockInput in(row.x.data(), 16);
  const FourOverSix mse = EvaluateFourOverSix(in, 1, ErrorNorm::kMse, ErrorForm::kScaled);
  const FourOverSix mae = EvaluateFourOverSix(in, 1, ErrorNorm::kMae, ErrorForm::kScaled);
  EXPECT_EQ(std::string(mse.PicksFour() ? "4" : "6") + (mae.PicksFour() ? "4" : "6"), row.picks);
  EXPECT_NEAR(mse.six.error, row.sse6, 2e-5 * std::max(1.0, row.sse6));
  EXPECT_NEAR(mse.four.error, row.sse4, 2e-5 * std::max(1.0, row.sse4));
  if (row.sae6 >= 0) {
    EXPECT_NEAR(mae.six.error, row.sae6, 2e-5 * std::max(1.0, row.sae6));
  }
  if (row.sae4 >= 0) {
    EXPECT_NEAR(mae.four.error, row.sae4, 2e-5 * std::max(1.0, row.sae4));
  }
  if (!row.text6.empty()) {
    EXPECT_EQ(CandidateText(mse.six), row.text6);
  }
  if (!row.text4.empty()) {
    EXPECT_EQ(CandidateText(mse.four), row.text4);
  }
  // With gs = 1 the two error forms are the same computation; ModelOpt's own search picks alike on these blocks.
  const FourOverSix value_form = EvaluateFourOverSix(in, 1, ErrorNorm::kMse, ErrorForm::kValue);
  EXPECT_EQ(value_form.six.error, mse.six.error);
  EXPECT_EQ(value_form.four.error, mse.four.error);
  const Nvfp4Block modelopt = QuantizeBlockModeloptFourOverSix(in, 1536, 1, Flavour::kCuda);
  EXPECT_EQ(modelopt.scale, mse.PicksFour() ? mse.four.scale : mse.six.scale);
}

TEST(NumericsCase, T11FourOverSix) {
  CheckFourOverSix({{6, 5, 5, 5, -5, -5, 4.75f, 1, 0, 2, -3, .5f, 5, -4.5f, 4.5f, 1.5f}, 7.0625, 1.75, 7.75, 4.0, "44",
                    "38 7666EE6204D16E63", "3C 6555DD5103C15D52"});
  CheckFourOverSix({{6, 4, 3, 2, 1.5f, 1, .5f, 0, -6, -4, -3, -2, -1.5f, -1, -.5f, -0.0f}, 0, .875, -1, -1, "66", "38 76543210FEDCBA98", ""});
  CheckFourOverSix({{6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 0, 0, 0, 0, "66", "38 7000000000000000", ""});
  CheckFourOverSix({{4, 3, 2, 1.5f, 1, .5f, 0, 0, -4, -3, -2, -1, 0, 0, 0, 0}, .20605, 0, -1, -1, "44", "", "38 65432100EDCA0000"});
  CheckFourOverSix({Bf16Values("BFEC 4088 3FF6 BFD8 3FEE 3FAF C02C BF4B 4042 BFB2 C065 3F0A 3F35 C00E BE3D BFDF"), .790444, .681985,
                    2.82324, 2.91895, "46", "33 D75C54EA6CF22D9D", "38 C64B43DA5BE11C8B"});
  CheckFourOverSix({Bf16Values("3FFF 4014 BEC9 BFA0 4049 C039 3F76 4011 3F03 3F53 BFD2 BF9A 3E52 3FF0 C017 BE4C"), .491631, .504814,
                    2.24219, 2.20313, "64", "30 66AC7F4623DC16E9", "35 459B6E2512CB14D8"});
}

TEST(NumericsCase, T12Mxfp4Cast) {
  // Four blocks of 32 with exponents -3, -8, -20, -21 (the last is out of range); codes 0..15 twice, and sixes in the last.
  std::vector<uint8_t> e8m0 = {127 - 3, 127 - 8, 127 - 20, 127 - 21}, codes(64), out(64), scales(8);
  for (int b = 0; b < 3; ++b) for (int j = 0; j < 16; ++j) codes[b * 16 + j] = PackE2m1(static_cast<uint8_t>(2 * j % 16), static_cast<uint8_t>((2 * j + 1) % 16));
  for (int j = 0; j < 16; ++j) codes[48 + j] = 0x77;
  const std::optional<int> k_max = MxMaxExponent(e8m0);
  EXPECT_EQ(k_max, -3);
  const float ws2 = MxWs2(k_max);
  EXPECT_EQ(Bits(ws2), 0x3A000000u);
  const MxCastResult result = CastMxfp4(codes.data(), e8m0.data(), 1, 128, k_max, out.data(), scales.data());
  EXPECT_EQ(result.requantized, 1);
  EXPECT_EQ(result.nan_scales, 0);
  EXPECT_EQ(scales, (std::vector<uint8_t>{0x78, 0x78, 0x50, 0x50, 0x01, 0x01, 0x01, 0x01}));
  EXPECT_EQ(out[4], 0x90);  // the pair 8, 9: -0 becomes +0, its neighbour stays
  for (int j = 0; j < 16; ++j) EXPECT_EQ(out[48 + j], 0x55);  // Errata 8: 6 * 2^-21 under the clamped scale is code 5
  std::vector<float> before(128), after(128);
  DecodeMxfp4(codes.data(), e8m0.data(), 1, 128, before.data());
  DecodeMatrix(out.data(), scales.data(), ws2, 1, 128, after.data());
  EXPECT_EQ(before, after);  // 6 * 2^-21 = 3 * 2^-20: here even the requantized block keeps its value
}

TEST(NumericsCase, T12Mxfp4CastOfEveryExponent) {
  for (int byte = 1; byte < 255; ++byte) {
    for (int below = 0; below <= 17 && byte - below >= 1; ++below) {
      const std::vector<uint8_t> e8m0 = {static_cast<uint8_t>(byte), static_cast<uint8_t>(byte - below)};
      std::vector<uint8_t> codes(32, 0xF1), out(32), scales(4);
      const std::optional<int> k_max = MxMaxExponent(e8m0);
      const MxCastResult result = CastMxfp4(codes.data(), e8m0.data(), 1, 64, k_max, out.data(), scales.data());
      EXPECT_EQ(result.requantized, 0);
      EXPECT_EQ(out, codes);
      std::vector<float> before(64), after(64);
      DecodeMxfp4(codes.data(), e8m0.data(), 1, 64, before.data());
      DecodeMatrix(out.data(), scales.data(), MxWs2(k_max), 1, 64, after.data());
      ASSERT_EQ(before, after) << byte << " " << below;
    }
  }
  // All blocks zero, and a NaN scale.
  std::vector<uint8_t> e8m0 = {0, 255}, codes(32, 0), out(32, 0xAA), scales(4);
  const MxCastResult result = CastMxfp4(codes.data(), e8m0.data(), 1, 32, MxMaxExponent({e8m0.data(), 1}), out.data(), scales.data());
  EXPECT_EQ(result.requantized, 0);
  EXPECT_EQ(scales[0], 0x38);
  EXPECT_EQ(out[0], 0);
  EXPECT_EQ(CastMxfp4(codes.data(), e8m0.data(), 1, 64, {}, out.data(), scales.data()).nan_scales, 1);
}

TEST(NumericsCase, T13Fp8SourceThroughBf16) {
  const std::vector<uint8_t> bytes = {0x68, 0xF1, 0x72, 0xE8, 0xEB, 0xD8, 0x61, 0xE6, 0x6C, 0x69, 0xF2, 0x71, 0xDE, 0x6D, 0xE2, 0xE8};
  const float scale_inv = FromBits(0x39434DFA);
  std::vector<float> x(16), rounded;
  DequantizeFp8(bytes.data(), tensor::DType::kF8E4M3, 16, Fp8PerTensor(&scale_inv, 1, 16), 0, 1, x.data());
  for (float v : x) rounded.push_back(RoundToBf16(v));
  const float ws2 = ModeloptWs2(0.400390625f, Flavour::kCuda);
  EXPECT_EQ(Bits(ws2), 0x391C30C3u);
  EXPECT_EQ(Modelopt(rounded, ws2), "60 4F7CD93C65F7A6BC");
  EXPECT_EQ(Modelopt(x, ws2), "60 5F7DD93C65F7A6BD");
}

struct Hashes {
  uint64_t codes, scales;
  bool operator==(const Hashes&) const = default;
};

Hashes Quantized(const WeightContract& contract, float ws2) {
  const std::vector<float> w = T17Matrix();
  std::vector<uint8_t> codes(w.size() / 2), scales(w.size() / 16);
  QuantizeMatrix(contract, w.data(), kT17Rows, kT17Cols, {Amax(w).amax, ws2}, codes.data(), scales.data());
  return {Fnv(codes), Fnv(scales)};
}

void ExpectT17(const WeightContract& contract, uint32_t ws2_bits, uint64_t codes, uint64_t scales) {
  const GlobalScale scale = GlobalScaleFor(contract, Amax(T17Matrix()).amax);
  EXPECT_EQ(Bits(scale.ws2), ws2_bits);
  const Hashes got = Quantized(contract, scale.ws2);
  EXPECT_EQ(got.codes, codes) << std::hex << got.codes;
  EXPECT_EQ(got.scales, scales) << std::hex << got.scales;
}

TEST(NumericsCase, T17FirstElements) {
  const std::vector<float> w = T17Matrix();
  EXPECT_EQ(std::vector<float>(w.begin(), w.begin() + 8), Bf16Values("3D73 BB60 3C67 BCF6 3A65 3AAD 3900 BBEB"));
}
TEST(NumericsCase, T17ModeloptCuda) { ExpectT17(WeightContract::Modelopt(Flavour::kCuda), 0x37B92493, 0x93371A1DC9AE84B2, 0x223347E2F81A6800); }
TEST(NumericsCase, T17ModeloptCpu) { ExpectT17(WeightContract::Modelopt(Flavour::kCpu), 0x37B92492, 0xE2684682A05DEEC0, 0x223347E2F81A6800); }
TEST(NumericsCase, T17ModeloptStaticCuda) { ExpectT17(WeightContract::ModeloptStatic(Flavour::kCuda), 0x37B92493, 0x93371A1DC9AE84B2, 0x6A4E1DB58D13FF32); }
TEST(NumericsCase, T17ModeloptStaticCpu) { ExpectT17(WeightContract::ModeloptStatic(Flavour::kCpu), 0x37B92492, 0xE2684682A05DEEC0, 0x6A4E1DB58D13FF32); }
TEST(NumericsCase, T17ModeloptFourOverSix) { ExpectT17(WeightContract::ModeloptFourOverSix(Flavour::kCuda), 0x38220000, 0xFDF01EEFF1C1D046, 0xA0351B21273E47C1); }

TEST(NumericsCase, T17ExactPlain) {
  const float amax = Amax(T17Matrix()).amax;
  // TransformerEngine's and FlashInfer's rows differ in gs only; QuantizeBlock divides 1/ws2, so gs is given as its inverse here.
  const std::vector<float> w = T17Matrix();
  for (auto [gs, codes, scales] : {std::tuple(k2688 / amax, uint64_t{0xFE891197D7A85D30}, uint64_t{0xD7344DAF82EB7149}),
                                   std::tuple(1.0f / ModeloptWs2(amax, Flavour::kCuda), uint64_t{0x041FD15A09975E82}, uint64_t{0xD7344DAF82EB7149})}) {
    std::vector<uint8_t> c, s;
    for (size_t b = 0; b < w.size() / 16; ++b) {
      const Nvfp4Block block = QuantizeBlockPlain(BlockInput(w.data() + b * 16, 16), gs);
      c.insert(c.end(), block.codes.begin(), block.codes.end());
      s.push_back(block.scale);
    }
    EXPECT_EQ(Fnv(c), codes);
    EXPECT_EQ(Fnv(s), scales);
  }
}

// Reference README, "Quantizer fingerprints" (also Errata 9).
TEST(Fingerprint, WeightsUnderTheLoadTimeContract) {
  ExpectT17(WeightContract::Online(), 0x37B92492, 0xA303C58CBE448861, 0x76C9BCB24AF0C7DC);
  const std::vector<float> w = T17Matrix();
  int fours = 0;
  for (size_t b = 0; b < w.size() / 16; ++b) {
    const BlockInput in(w.data() + b * 16, 16);
    fours += BlockAmax(in) > 0 && EvaluateFourOverSix(in, 1.0f / OnlineWs2(Amax(w).amax), ErrorNorm::kMse, ErrorForm::kScaled).PicksFour();
  }
  EXPECT_EQ(fours, 375);
}

TEST(Fingerprint, LargeMatrix) {
  const std::vector<float> w = T17Values(4096);
  std::vector<uint8_t> codes(w.size() / 2), scales(w.size() / 16);
  QuantizeMatrix(WeightContract::Online(), w.data(), 4096, kT17Cols, GlobalScaleFor(WeightContract::Online(), Amax(w).amax), codes.data(), scales.data());
  EXPECT_EQ(Fnv(codes), kLargeOnlineCodes);
  EXPECT_EQ(Fnv(scales), kLargeOnlineScales);
}

}  // namespace
}  // namespace halfbyte::numerics
