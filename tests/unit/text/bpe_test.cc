// BPE against the plainest way to write it, and its speed on hostile pieces.
#include "text/bpe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <random>
#include <thread>

#include "text_data.h"

namespace halfbyte::text {
namespace {

struct Model {
  std::vector<std::string> tokens;
  std::vector<std::pair<std::string, std::string>> merges;

  // Letters, U+2581, and random merges of what is there.
  static Model Random(std::mt19937& random, int merges, bool join_words) {
    Model m;
    m.tokens = {"a", "b", "c", "\u2581"};
    for (int i = 0; i < merges; ++i) {
      std::string left = m.tokens[random() % m.tokens.size()], right = m.tokens[random() % m.tokens.size()];
      if (!join_words && right.starts_with("\u2581") && !(left + right).ends_with("\u2581")) continue;
      if (!join_words && right.find("\u2581") != right.npos && left.find_first_of("abc") != left.npos) continue;
      if (left.size() + right.size() > 12) continue;
      m.merges.emplace_back(left, right);
      if (std::find(m.tokens.begin(), m.tokens.end(), left + right) == m.tokens.end()) m.tokens.push_back(left + right);
    }
    return m;
  }
  Bpe Build() const {
    Vocabulary vocabulary;
    for (size_t i = 0; i < tokens.size(); ++i) vocabulary.Add(tokens[i], static_cast<int32_t>(i));
    Bpe bpe(std::move(vocabulary), {});
    for (const auto& [left, right] : merges) EXPECT_TRUE(bpe.AddMerge(left, right));
    bpe.Finish();
    return bpe;
  }
  // Looks through the whole list for the best merge, each time.
  std::vector<std::string> Slowly(std::vector<std::string> symbols) const {
    std::map<std::pair<std::string, std::string>, size_t> ranks;
    for (size_t i = 0; i < merges.size(); ++i) ranks[merges[i]] = i;  // the later of two equal ones counts
    for (;;) {
      size_t best = SIZE_MAX, at = 0;
      for (size_t i = 0; i + 1 < symbols.size(); ++i) {
        auto found = ranks.find({symbols[i], symbols[i + 1]});
        if (found != ranks.end() && found->second < best) { best = found->second; at = i; }
      }
      if (best == SIZE_MAX) return symbols;
      symbols[at] += symbols[at + 1];
      symbols.erase(symbols.begin() + static_cast<ptrdiff_t>(at) + 1);
    }
  }
};

TEST(Bpe, EqualsThePlainestForm) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    Model model = Model::Random(random, 2 + static_cast<int>(random() % 40), round % 2 == 0);
    Bpe bpe = model.Build();
    BpeScratch scratch;
    for (size_t length : {1u, 2u, 7u, 30u, 47u, 48u, 49u, 200u}) {
      std::string piece;
      std::vector<std::string> symbols;
      for (size_t i = 0; i < length; ++i) symbols.push_back(model.tokens[random() % 4]), piece += symbols.back();
      std::vector<int32_t> ids;
      bpe.Encode(piece, scratch, ids);
      bpe.Encode(piece, scratch, ids);  // from the cache
      std::vector<std::string> got, want = model.Slowly(symbols);
      for (int32_t id : ids) got.emplace_back(bpe.vocabulary().Token(id));
      std::vector<std::string> twice = want;
      twice.insert(twice.end(), want.begin(), want.end());
      ASSERT_EQ(got, twice) << piece;
    }
  }
}

TEST(Bpe, LongPiecesTakeNoQuadraticTime) {
  ByteTokenizer b;
  std::string run = "a";
  for (int i = 0; i < 6; ++i) { b.merges.emplace_back(run, run); run += run; }
  b.merges.emplace_back(" ", " ");
  Tokenizer tokenizer = b.Build();
  auto start = std::chrono::steady_clock::now();
  std::vector<int32_t> ids = tokenizer.Encode(std::string(1'000'003, 'a'), false);
  EXPECT_EQ(ids.size(), 1'000'003u / 64 + 2);  // 64 letters a token; of the 3 that are left two are joined
  EXPECT_EQ(tokenizer.Encode(std::string(1'000'000, ' '), false).size(), 500'000u);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST(Bpe, ThreadsShareATokenizer) {
  Tokenizer tokenizer = Tokenizer::FromJson(*TokenizerJson("demo")).value();
  auto rows = ReferenceRows("demo.encode.jsonl");
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (const base::Json& row : rows)
        wrong +=
            tokenizer.Encode(row.Find("text")->as_string(), row.Find("add_special_tokens")->as_bool()) != Ids(*row.Find("ids"));
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace halfbyte::text
