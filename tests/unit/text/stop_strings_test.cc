#include "text/stop_strings.h"

#include <gtest/gtest.h>

#include <random>

namespace halfbyte::text {
namespace {

// What has been passed on after each piece, and at the end.
std::vector<std::string> Deltas(std::vector<std::string> stop, const std::vector<std::string>& pieces) {
  StopStrings matcher(std::move(stop));
  std::vector<std::string> out;
  for (const std::string& piece : pieces) out.push_back(matcher.Push(piece));
  out.push_back(matcher.Flush());
  return out;
}
using Strings = std::vector<std::string>;

TEST(StopStrings, HoldsBackOnlyWhatMayBecomeOne) {
  EXPECT_EQ(Deltas({"\n\nUser:"}, {"a\n", "\n", "\nUs", "ed"}), (Strings{"a", "", "\n", "\n\nUsed", ""}));
  EXPECT_EQ(Deltas({"abab"}, {"aba", "c", "aba"}), (Strings{"", "abac", "", "aba"}));
  EXPECT_EQ(Deltas({}, {"abc", "d"}), (Strings{"abc", "d", ""}));
  EXPECT_EQ(Deltas({"", ""}, {"abc"}), (Strings{"abc", ""}));
}

TEST(StopStrings, NothingAfterTheFirst) {
  StopStrings matcher({"END", "\n"});
  EXPECT_EQ(matcher.Push("one EN"), "one ");
  EXPECT_FALSE(matcher.stopped());
  EXPECT_EQ(matcher.Push("D two\n"), "");
  EXPECT_TRUE(matcher.stopped());
  EXPECT_EQ(matcher.matched(), 0);
  EXPECT_EQ(matcher.Push("three"), "");
  EXPECT_EQ(matcher.Flush(), "");
}

TEST(StopStrings, TheOneCompleteFirstWins) {
  EXPECT_EQ(Deltas({"DEFGHIJ", "EF"}, {"ABCDEFGHIJ"}), (Strings{"ABCD", ""}));   // not "ABC": EF is complete earlier
  EXPECT_EQ(Deltas({"F", "DEF", "EF"}, {"ABCDEF"}), (Strings{"ABC", ""}));       // three at once: the earliest start
  EXPECT_EQ(Deltas({"DEFX", "EF"}, {"ABCD", "E", "G"}), (Strings{"ABC", "", "DEG", ""}));
}

TEST(StopStrings, CutsDoNotMatter) {
  std::mt19937 random(3);
  for (int round = 0; round < 5000; ++round) {
    auto word = [&](size_t longest) {
      std::string w;
      for (size_t i = 1 + random() % longest; i > 0; --i) w.push_back("abc"[random() % 3]);
      return w;
    };
    Strings stop;
    for (size_t i = random() % 4; i > 0; --i) stop.push_back(word(5));
    std::string text = word(30);

    // By definition: the stop string that ends first, and of those that end there the longest.
    std::string want = text;
    for (size_t end = 1; end <= text.size() && want.size() == text.size(); ++end)
      for (const std::string& s : stop)
        if (std::string_view(text).substr(0, end).ends_with(s)) want = text.substr(0, std::min(want.size(), end - s.size()));

    Strings pieces;
    for (size_t at = 0; at < text.size();) {
      size_t n = 1 + random() % 4;
      pieces.push_back(text.substr(at, n));
      at += n;
    }
    std::string got;
    for (const std::string& delta : Deltas(stop, pieces)) {
      got += delta;
      ASSERT_TRUE(want.starts_with(got));  // never more than the answer, at any time
    }
    ASSERT_EQ(got, want) << text;
  }
}

}  // namespace
}  // namespace halfbyte::text
