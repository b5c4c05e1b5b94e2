// What --quantization means: names, the table of `auto`.
#include "quant/mode.h"

#include <gtest/gtest.h>

namespace halfbyte::quant {
namespace {

QuantMode Auto(AutoFacts facts) { return *ResolveMode("auto", facts); }

TEST(Mode, TheTableOfAuto) {
  EXPECT_EQ(Auto({.device = "cpu", .has_experts = true}), QuantMode::kW4A16);
  EXPECT_EQ(Auto({.device = "cpu", .has_experts = true, .cpu_has_amx = true}), QuantMode::kW4A16);
  EXPECT_EQ(Auto({.device = "cpu", .has_experts = true, .serialized_nvfp4 = true}), QuantMode::kW4A16);
  EXPECT_EQ(Auto({.device = "cuda", .has_experts = true}), QuantMode::kW4A16);
  EXPECT_EQ(Auto({.device = "reference", .has_experts = true}), QuantMode::kW4A16);
  for (const char* device : {"cpu", "cuda", "reference"}) EXPECT_EQ(Auto({.device = device}), QuantMode::kNone);
}

TEST(Mode, NamesAreFoundAndOthersListed) {
  for (const char* name : {"none", "w4a16", "w4a8", "nvfp4_online", "modelopt_fp4"}) EXPECT_EQ(ModeName(*ResolveMode(name, {.device = "cpu", .has_experts = true})), name);
  const auto unknown = ResolveMode("w4a4", {.device = "cpu"});
  ASSERT_FALSE(unknown.has_value());
  EXPECT_NE(unknown.error().ToString().find("nvfp4_online"), std::string::npos);
  EXPECT_FALSE(ResolveMode("w4a8", {.device = "cuda"}).has_value());
}

}  // namespace
}  // namespace halfbyte::quant
