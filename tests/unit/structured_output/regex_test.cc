// Against std::regex (ECMAScript) on all short texts, and by hand where std::regex has no word for it.
#include <regex>

#include "accepts.h"

namespace halfbyte::text {
namespace {

TEST(GrammarRegex, AgreesWithTheStandardLibraryOnAllShortTexts) {
  const std::string alphabet = "ab1-.";
  std::vector<std::string> texts = {""};
  for (size_t i = 0; i < texts.size(); ++i)
    if (texts[i].size() < 5) for (const char c : alphabet) texts.push_back(texts[i] + c);
  for (const char* pattern : {"a", "ab*", "(ab)+", "a|b1", "(a|b)*1", "[ab]{2,3}", "[^a]", "\\d+", "\\w\\W", "a?b??", "(?:a|1)(b|-)*", "", "a{0}", "a{2}", "a{1,}", "\\.", "[.-]", "[a-b]*[-1]",
                              "((a|b)1?)*", "a+?b", "()a", "(|a)b", "[^\\d]+", "\\S{3}", "(a*)*b", "(1|a{2}){2}"}) {
    Texts mine = Texts::Regex(pattern);
    const std::regex theirs(pattern);
    for (const std::string& t : texts) ASSERT_EQ(mine.Takes(t), std::regex_match(t, theirs)) << pattern << " on \"" << t << "\"";
  }
}

TEST(GrammarRegex, CharactersAreCodePointsNotBytes) {
  EXPECT_TRUE(Texts::Regex(".").Takes("é"));
  EXPECT_TRUE(Texts::Regex("^.$").Takes("😀"));
  EXPECT_FALSE(Texts::Regex(".").Takes("\xC3"));
  EXPECT_TRUE(Texts::Regex(".").Begins("\xF0\x9F"));
  EXPECT_FALSE(Texts::Regex(".").Takes("\n"));
  EXPECT_FALSE(Texts::Regex(".").Begins("\xED\xA0")) << "a surrogate";
  EXPECT_FALSE(Texts::Regex(".").Begins("\xC0"));
  EXPECT_FALSE(Texts::Regex(".").Begins("\xF4\x90"));
  Texts greek = Texts::Regex("[α-ω]{3}");
  EXPECT_TRUE(greek.Takes("αβγ"));
  EXPECT_FALSE(greek.Takes("αβΓ"));
  EXPECT_TRUE(Texts::Regex("[^α]").Takes("β"));
  EXPECT_TRUE(Texts::Regex("\\u{1F600}\\x41\\u00e9").Takes("😀Aé"));
  // All code points of a range over every border of UTF-8's lengths.
  Texts range = Texts::Regex("[\\u007e-\\u{10001}]");
  for (const auto& [text, in] : std::vector<std::pair<std::string, bool>>{{"}", false}, {"~", true}, {"\x7f", true}, {"\xC2\x80", true}, {"\xDF\xBF", true}, {"\xE0\xA0\x80", true},
                                                                          {"\xEF\xBF\xBF", true}, {"\xF0\x90\x80\x81", true}, {"\xF0\x90\x80\x82", false}})
    EXPECT_EQ(range.Takes(text), in) << text;
}

TEST(GrammarRegex, AnchorsAtTheEndsAreTaken) {
  EXPECT_TRUE(Texts::Regex("^ab$").Takes("ab"));
  EXPECT_TRUE(Texts::Regex("^a|b$").Takes("b"));
  EXPECT_FALSE(Texts::Regex("^ab$").Takes("abc"));
}

TEST(GrammarRegex, WhatIsNotRegularOrNotKnownIsRefusedByName) {
  const auto refuse = [](const char* pattern, const char* what) {
    const auto g = RegexGrammar(pattern);
    ASSERT_FALSE(g) << pattern;
    EXPECT_NE(g.error().message().find(what), std::string::npos) << g.error().message();
  };
  refuse("\\bword", "\\b");
  refuse("(a)\\1", "\\1");
  refuse("(?=a)b", "look-ahead");
  refuse("(?<!a)b", "look-behind");
  refuse("\\p{L}", "\\p");
  refuse("a^b", "^ that is not");
  refuse("(a$)b", "$ that is not");
  refuse("(a", "without its )");
  refuse("a)", "unmatched )");
  refuse("[a", "without its ]");
  refuse("[b-a]", "out of order");
  refuse("[]", "no character");
  refuse("*a", "repetition of nothing");
  refuse("a**", "repetition of a repetition");
  refuse("a{3,2}", "below its beginning");
  refuse("a{x}", "{m,n}");
  refuse("a\\", "\\ at the end");
  refuse("\xFF", "UTF-8");
  refuse("a{999999}", "100000");
  refuse("((a{1000}){1000}){1000}", "too large");
  refuse(std::string(500, '(').c_str(), "nested deeper");
}

}  // namespace
}  // namespace halfbyte::text
