#include "accepts.h"

namespace halfbyte::text {
namespace {

std::vector<std::string> Vocabulary() {
  std::vector<std::string> v = {""};  // 0: the end token, which stands for nothing
  for (int b = 1; b < 256; ++b) v.push_back(std::string(1, static_cast<char>(b)));
  for (const char* t : {"{\"", "\":", "\": ", "tr", "true", "true}", "ue", "}}", "abc", "a\"", "12", "123", "😀", "abc", "name", "{\"name\": \""}) v.push_back(t);
  return v;
}

TEST(TokenTrie, EveryTokenOnceInPreorderWithEqualOnesChained) {
  const std::vector<std::string> v = Vocabulary();
  const TokenTrie trie(v);
  std::vector<int> seen(v.size());
  std::string path;
  for (size_t i = 0; i < trie.nodes().size(); ++i) {
    const TokenTrie::Node& n = trie.nodes()[i];
    path.resize(n.depth);
    path.push_back(static_cast<char>(n.byte));
    EXPECT_GT(n.subtree_end, i);
    for (int32_t t = n.token; t >= 0; t = trie.same(t)) { EXPECT_EQ(v[static_cast<size_t>(t)], path); ++seen[static_cast<size_t>(t)]; }
  }
  for (size_t t = 0; t < v.size(); ++t) EXPECT_EQ(seen[t], v[t].empty() ? 0 : 1) << t;
}

// The mask must be what feeding each token on its own says.
TEST(GrammarAutomaton, MasksAgreeWithTryingEveryToken) {
  const std::vector<std::string> v = Vocabulary();
  auto trie = std::make_shared<TokenTrie>(v);
  for (const char* schema : {R"({"type":"object","properties":{"name":{"type":"string"},"ok":{"type":"boolean"}},"required":["name","ok"]})", R"({"type":"integer"})", "{}"}) {
    GrammarAutomaton a(*JsonSchemaGrammar(*base::Json::Parse(schema)), trie, {0});
    GrammarAutomaton other(*JsonSchemaGrammar(*base::Json::Parse(schema)), std::make_shared<TokenTrie>(std::vector<std::string>{}), {});
    uint64_t random = 99;
    for (int walk = 0; walk < 20; ++walk) {
      auto state = a.start(), plain = other.start();
      for (int step = 0; step < 60; ++step) {
        std::vector<uint64_t> mask;
        a.Allowed(state, mask);
        std::vector<int32_t> allowed;
        for (size_t t = 0; t < v.size(); ++t) {
          const bool bit = mask[t / 64] >> (t % 64) & 1;
          const bool want = t == 0 ? other.Complete(plain) : other.AfterBytes(plain, v[t]) != GrammarAutomaton::kDead;
          ASSERT_EQ(bit, want) << schema << " token " << v[t];
          if (bit) allowed.push_back(static_cast<int32_t>(t));
        }
        ASSERT_FALSE(allowed.empty());
        random = random * 6364136223846793005 + 1;
        const int32_t token = allowed[(random >> 33) % allowed.size()];
        state = a.After(state, token);
        ASSERT_NE(state, GrammarAutomaton::kDead);
        if (token == 0) break;
        plain = other.AfterBytes(plain, v[static_cast<size_t>(token)]);
      }
    }
  }
}

TEST(GrammarAutomaton, TheEndTokenComesWhereTheGrammarIsComplete) {
  auto a = std::make_shared<GrammarAutomaton>(*RegexGrammar("ab?"), std::make_shared<TokenTrie>(Vocabulary()), std::vector<int32_t>{0});
  GrammarMatcher m(a);
  EXPECT_FALSE(m.complete());
  EXPECT_EQ(m.Allowed()[0] & 1, 0u);
  EXPECT_TRUE(m.Accept('a'));
  EXPECT_TRUE(m.complete());
  EXPECT_EQ(m.Allowed()[0] & 1, 1u);
  EXPECT_TRUE(m.Accept('b'));
  std::vector<uint64_t> only_end(m.Allowed().size());
  only_end[0] = 1;
  EXPECT_EQ(std::vector<uint64_t>(m.Allowed().begin(), m.Allowed().end()), only_end);
  EXPECT_TRUE(m.Accept(0));
  EXPECT_FALSE(m.Accept('b'));
  EXPECT_FALSE(m.complete());
  for (const uint64_t word : m.Allowed()) EXPECT_EQ(word, 0u);
}

}  // namespace
}  // namespace halfbyte::text
