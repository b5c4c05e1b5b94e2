#include "text/unicode.h"

#include <gtest/gtest.h>

#include <chrono>

#include "text/normal_forms.h"

namespace halfbyte::text {
namespace {

TEST(Utf8, EveryCodePointThereAndBack) {
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    std::string text;
    AppendUtf8(text, c);
    ASSERT_TRUE(IsValidUtf8(text));
    ASSERT_EQ(DecodeValid(text.data()).code, c);
    ASSERT_EQ(DecodeBefore(text.data() + text.size()).code, c);
    ASSERT_EQ(StepUtf8(text).kind, Utf8Step::kCharacter);
    for (size_t cut = 1; cut < text.size(); ++cut) {
      Utf8Step step = StepUtf8(std::string_view(text).substr(0, cut));
      ASSERT_EQ(step.kind, Utf8Step::kIncomplete);
      ASSERT_EQ(step.size, cut);
    }
  }
}

// Unicode 16.0, section 3.9, tables 3-8 to 3-11: one U+FFFD for each maximal subpart.
TEST(Utf8, ReplacementOfInvalidParts) {
  const std::string r(kReplacementCharacter);
  auto times = [&](int n) { std::string s; while (n-- > 0) s += r; return s; };
  EXPECT_EQ(ReplaceInvalidUtf8("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41"), times(8) + "A");
  EXPECT_EQ(ReplaceInvalidUtf8("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41"), times(8) + "A");
  EXPECT_EQ(ReplaceInvalidUtf8("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42"), times(5) + "A" + times(2) + "B");
  EXPECT_EQ(ReplaceInvalidUtf8("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"), times(4) + "A");
  EXPECT_FALSE(IsValidUtf8(std::string(100, 'a') + "\xC3"));
  EXPECT_TRUE(IsValidUtf8(std::string(100, 'a') + "\u00E9" + std::string(100, 'b')));
}

TEST(NormalForms, LongRunsOfMarksTakeNoQuadraticTime) {
  // Classes fall from mark to mark, the worst case for a sort that swaps neighbours.
  std::string text = "a", out;
  for (int i = 0; i < 200'000; ++i) text += i % 2 ? "\u0334" : "\u0315";
  auto start = std::chrono::steady_clock::now();
  ASSERT_TRUE(ToNormalForm(NormalForm::kNfc, text, out));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
  EXPECT_EQ(out.size(), text.size());
  EXPECT_EQ(out.substr(0, 5), "a\u0334\u0334");
}

TEST(NormalForms, OnlyChangedPartsAreTouched) {
  std::string out = "kept";
  EXPECT_FALSE(ToNormalForm(NormalForm::kNfc, "plain, na\u00EFve, \u1EBF \uAC01 \u4F60", out));
  EXPECT_EQ(out, "kept");
  ASSERT_TRUE(ToNormalForm(NormalForm::kNfc, "x e\u0301\u4F60e\u0301 y \u212B z", out));
  EXPECT_EQ(out, "x \u00E9\u4F60\u00E9 y \u00C5 z");
  ASSERT_TRUE(ToNormalForm(NormalForm::kNfkd, "\uFB01\uAC01 \u00E9", out));
  EXPECT_EQ(out, "fi\u1100\u1161\u11A8 e\u0301");
}

}  // namespace
}  // namespace halfbyte::text
