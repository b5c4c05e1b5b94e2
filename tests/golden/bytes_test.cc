// Expert bytes as they come out of the load pipeline against every stored digest of the load-time contract. (tests/unit/numerics
// compares the quantizer alone; here readers, pairing, FP8 dequantization and the fast kernels stand in between.)
#include <gtest/gtest.h>
#include <openssl/evp.h>

#include <fstream>
#include <sstream>

#include "golden/golden_models.h"
#include "support/recording_sink.h"

namespace halfbyte::golden {
namespace {

std::string Digest(const void* data, size_t bytes) {
  unsigned char hash[32];
  unsigned int length = 0;
  EVP_Digest(data, bytes, hash, &length, EVP_sha256(), nullptr);
  std::string out;
  for (int i = 0; i < 8; ++i) out += {"0123456789abcdef"[hash[i] >> 4], "0123456789abcdef"[hash[i] & 15]};
  return out;
}

class Bytes : public testing::TestWithParam<std::string> {};

TEST_P(Bytes, EveryStoredDigest) {
  HB_FOLDER_OR_SKIP(folder, GetParam());
  std::ifstream in(folder / "nvfp4_sha256.json");
  std::stringstream text;
  text << in.rdbuf();
  const auto table = base::Json::Parse(text.str());
  ASSERT_TRUE(table) << folder;
  ASSERT_EQ(table->Find("columns")->as_array()[0].as_string(), "online");

  model::LoadSettings settings;
  settings.quantization = "w4a16";
  const auto prepared = model::Prepare(folder, settings, "cpu");
  ASSERT_TRUE(prepared) << prepared.error().ToString();
  test::RecordingSink sink;
  const auto stats = quant::RunLoad(*prepared->files, prepared->plan, sink, {});
  ASSERT_TRUE(stats) << stats.error().ToString();

  std::map<std::string, std::string> have;
  for (const quant::PlannedMatrix& m : prepared->plan.matrices) {
    if (!checkpoint::IsExpertRole(m.source.id.role)) continue;
    const test::RecordedMatrix& r = sink.matrices.at(m.source.id);
    const std::string& name = m.source.weight->name;
    have[name] = Digest(r.elements.data(), r.elements.size());
    have[name + "_scale"] = Digest(r.block_scales.data(), r.block_scales.size());
    have[name + "_scale_2"] = Digest(r.outer.data(), r.outer.size() * sizeof(float));
  }
  std::map<std::string, std::string> want;
  for (const auto& [name, digests] : table->Find("tensors")->as_object()) want[name] = digests.as_array()[0].as_string();
  EXPECT_EQ(have, want);
}

std::vector<std::string> WithDigests() {
  std::vector<std::string> names = MoeModels();
  for (const std::string& n : Fp8Models()) names.push_back(n);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Golden, Bytes, testing::ValuesIn(WithDigests()), [](const auto& p) { std::string n = p.param; std::replace(n.begin(), n.end(), '-', '_'); return n; });

}  // namespace
}  // namespace halfbyte::golden
