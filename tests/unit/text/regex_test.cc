#include "text/regex.h"

#include <gtest/gtest.h>

#include "text/code_set.h"
#include "text/regex_translate.h"
#include "text_data.h"

namespace halfbyte::text {
namespace {

// The code points that a pattern for one character matches, as "[first,last]...".
std::string MatchedRanges(const Regex& regex) {
  std::string all;
  for (char32_t c = 0; c < 0x110000; ++c) if (c < 0xD800 || c > 0xDFFF) AppendUtf8(all, c);
  CodeSet set;
  regex.Walk(all, [&](size_t begin, size_t end, bool is_match) {
    if (!is_match) return;
    Decoded d = DecodeValid(all.data() + begin);
    EXPECT_EQ(begin + d.size, end);
    set.Add(d.code, d.code);
  });
  std::string out;
  for (const CodeRange& r : set.ranges())
    out += base::StrCat("[", static_cast<uint32_t>(r.first), ",", static_cast<uint32_t>(r.last), "]");
  return out;
}

TEST(Regex, ClassesFollowUnicode16) {
  auto rows = ReferenceRows("unicode_classes.jsonl");
  ASSERT_GE(rows.size(), 19u);
  for (const base::Json& row : rows) {
    auto regex = Regex::Compile(row.Find("class")->as_string());
    ASSERT_TRUE(regex) << regex.error().ToString();
    std::string want;
    for (const base::Json& r : row.Find("ranges")->as_array())
      want += base::StrCat("[", r.as_array()[0].as_int(), ",", r.as_array()[1].as_int(), "]");
    EXPECT_EQ(MatchedRanges(*regex), want) << row.Find("class")->as_string();
  }
}

TEST(Regex, RefusesWhatItCannotTranslateByName) {
  for (auto [pattern, what] : {std::pair("a\\Gb", "\\G"),
                               {"(?x) a b", "option"},
                               {"\\p{Klingon}", "Klingon"},
                               {"(?~abc)", "option"},
                               {"\\g<1>", "\\g"},
                               {"(*UTF)a", "(*"},
                               {"a(?i)b|c", "middle"},
                               {"[a", "open"},
                               {"(a", "open"},
                               {"a)", "unmatched"},
                               {"*a", "quantifier"},
                               {"[[:nope:]]", "nope"},
                               {"\\xD", ""},
                               {"[z-a]", "backwards"}}) {
    auto regex = Regex::Compile(pattern);
    if (std::string_view(what).empty()) { EXPECT_TRUE(regex) << pattern; continue; }
    ASSERT_FALSE(regex) << pattern;
    EXPECT_NE(regex.error().ToString().find(what), std::string::npos) << regex.error().ToString();
  }
}

TEST(Regex, SyntaxErrorsOfPcreAreErrors) {
  EXPECT_FALSE(Regex::Compile("(?<=a+)b"));       // no fixed length
  EXPECT_FALSE(Regex::Compile("a{2,1}"));
  EXPECT_FALSE(Regex::Compile(std::string(20000, 'a')));
  EXPECT_FALSE(Regex::Compile("\xFF"));
}

TEST(Regex, EmptyMatchesEnd) {
  auto regex = Regex::Compile("x*");
  std::string out;
  regex->Walk("axxé",
              [&](size_t begin, size_t end, bool is_match) { out += base::StrCat(begin, "-", end, is_match ? "m " : " "); });
  EXPECT_EQ(out, "0-0m 0-1 1-3m 3-5 5-5m ");
}

TEST(Regex, ExponentialPatternsGiveUp) {
  auto regex = Regex::Compile("(a+)+$");
  Regex::Match match{};
  EXPECT_FALSE(regex->Search(std::string(60, 'a') + "b", 0, &match));
}

TEST(Regex, LongTextsNeedNoStack) {
  auto regex = Regex::Compile("(?:a|b)*c");
  std::string text(3'000'000, 'a');
  Regex::Match match{};
  EXPECT_TRUE(regex->Search(text + "c", 0, &match));
  EXPECT_EQ(match.end, text.size() + 1);
}

TEST(CodeSet, Algebra) {
  CodeSet a;
  a.Add('a', 'f'); a.Add('c', 'h'); a.Add('z', 'z');
  ASSERT_EQ(a.ranges().size(), 2u);
  EXPECT_TRUE(a.Contains('h') && a.Contains('z') && !a.Contains('i'));
  CodeSet not_a = a.Complement();
  EXPECT_TRUE(!not_a.Contains('b') && not_a.Contains('i') && not_a.Contains(0x10FFFF) && not_a.Contains(0) &&
              !not_a.Contains(0xD800));
  a.IntersectWith(not_a);
  EXPECT_TRUE(a.ranges().empty());
}

}  // namespace
}  // namespace halfbyte::text
