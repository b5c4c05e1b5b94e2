// The hand-written scanners against the regular expressions they stand for, on random text.
#include "text/split_pattern.h"

#include <gtest/gtest.h>

#include <chrono>
#include <random>

#include "text_data.h"
#include "text/unicode.h"

namespace halfbyte::text {
namespace {

const char* const kPatterns[] = {
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
    (R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"),
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
    ("[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|"
    "\\s*[\r\n]+|\\s+(?!\\S)|\\s+"),
    R"(\p{N}{1,3})",
    "[一-龥\u3040-ゟ゠-ヿ]+",
};

// Characters that the patterns tell apart come often; the rest of Unicode now and then.
std::string RandomText(std::mt19937& random) {
  static const std::u32string kTelling =
      U"  "
      U"\t\n\r\n\u00A0\u3000\u2028\u0085abcXYZsStTmMdDrelvLL''''\u2019019\u00B2\u0663\u2167.,!-/"
      U"_()<|>$+^`\u00E9\u00C9\u01C5\u02B0\u00AA\u4E00\u9FA5\u9FA6\u3042\u30A2"
      U"\u30FB\u0301\u0903\u0940\u20DD\u017F\u212A\u05D0\u0E01\u200B\u200D\uFEFF\u0000\u001F\u007F\uFFFD\U0001F600\U0001F3FD"
      U"\U00010D50\U00016EA0\uE000\u0378";
  std::string text;
  for (size_t i = random() % 24; i > 0; --i) {
    char32_t code = random() % 12 == 0 ? static_cast<char32_t>(random() % 0x110000) : kTelling[random() % kTelling.size()];
    if (code >= 0xD800 && code < 0xE000) code = U'x';
    for (size_t repeat = random() % 8 == 0 ? random() % 5 : 1; repeat > 0; --repeat) AppendUtf8(text, code);
  }
  return text;
}

template <typename Pattern>
std::string Cuts(const Pattern& pattern, const std::string& text) {
  std::string out;
  pattern.Walk(text,
               [&](size_t begin, size_t end, bool is_match) { out += base::StrCat(begin, "-", end, is_match ? "m " : " "); });
  return out;
}

TEST(SplitPattern, ScannersEqualTheirExpressions) {
  for (const char* text : kPatterns) {
    ASSERT_NE(FindScanner(text), nullptr) << text;
    auto scanner = SplitPattern::FromRegex(text);
    auto regex = Regex::Compile(text);
    ASSERT_TRUE(scanner && regex) << text;
    std::mt19937 random(5);
    for (int round = 0; round < 20000; ++round) {
      std::string sample = RandomText(random);
      ASSERT_EQ(Cuts(*scanner, sample), Cuts(*regex, sample)) << text << "\n of " << base::Json(sample).Dump();
    }
  }
}

TEST(SplitPattern, EveryCodePointAloneAndBetweenLetters) {
  for (const char* text : kPatterns) {
    auto scanner = SplitPattern::FromRegex(text);
    auto regex = Regex::Compile(text);
    std::string all;
    for (char32_t c = 0; c < 0x30000; ++c) {
      if (c >= 0xD800 && c < 0xE000) continue;
      all += c % 2 ? "x" : " X";
      AppendUtf8(all, c);
      AppendUtf8(all, c);
      all += c % 3 ? "1\n" : ".'s";
    }
    ASSERT_EQ(Cuts(*scanner, all), Cuts(*regex, all)) << text;
  }
}

TEST(SplitPattern, HostileTextsTakeLinearTime) {
  std::string parts[] = {std::string(1'000'000, 'a'), std::string(1'000'000, ' '), std::string(1'000'000, '\n'),
                         std::string(1'000'000, '\''), std::string(1'000'000, '1')};
  std::string mixed, marks;
  for (int i = 0; i < 300'000; ++i) mixed += i % 1000 ? " " : " \nx";
  for (int i = 0; i < 300'000; ++i) marks += "\u0301";
  for (const char* text : kPatterns) {
    auto scanner = SplitPattern::FromRegex(text);
    auto start = std::chrono::steady_clock::now();
    for (const std::string& part : parts) (void)Cuts(*scanner, part);
    (void)Cuts(*scanner, mixed);
    (void)Cuts(*scanner, marks);
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20)) << text;  // quadratic would be hours
  }
}

TEST(SplitPattern, Literal) {
  EXPECT_EQ(Cuts(*SplitPattern::FromLiteral("ab"), "ababxab"), "0-2m 2-4m 4-5 5-7m ");
  EXPECT_EQ(Cuts(*SplitPattern::FromLiteral("\\p{N}"), "12"), "0-2 ");
  EXPECT_EQ(Cuts(*SplitPattern::FromLiteral(""), "é"), "0-0m 0-2 2-2m ");
}

}  // namespace
}  // namespace halfbyte::text
