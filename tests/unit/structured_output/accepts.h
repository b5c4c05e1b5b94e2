// Runs whole texts through a grammar, a byte at a time.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>

#include "base/json.h"
#include "text/grammar_automaton.h"
#include "text/grammar_regex.h"
#include "text/json_grammar.h"
#include "text/json_schema.h"

namespace halfbyte::text {

class Texts {
 public:
  explicit Texts(base::Result<Grammar> grammar) {
    EXPECT_TRUE(grammar) << grammar.error().ToString();
    if (grammar) automaton_ = std::make_unique<GrammarAutomaton>(std::move(*grammar), std::make_shared<TokenTrie>(std::vector<std::string>{}), std::vector<int32_t>{});
  }
  static Texts Schema(std::string_view schema) { return Texts(JsonSchemaGrammar(*base::Json::Parse(schema))); }
  static Texts Regex(std::string_view pattern) { return Texts(RegexGrammar(pattern)); }

  bool Takes(std::string_view text) {
    if (!automaton_) return false;
    const auto state = automaton_->AfterBytes(automaton_->start(), text);
    return state != GrammarAutomaton::kDead && automaton_->Complete(state);
  }
  // A beginning of something that it takes.
  bool Begins(std::string_view text) { return automaton_ && automaton_->AfterBytes(automaton_->start(), text) != GrammarAutomaton::kDead; }
  // Some text that it takes: at every place one of the bytes that may come, chosen by `seed`; stops where it may.
  std::string Sample(uint64_t seed, size_t longest = 4000) {
    std::string text;
    auto state = automaton_->start();
    while (text.size() < longest) {
      seed = seed * 6364136223846793005 + 1442695040888963407;
      std::string next;
      for (int b = 0; b < 256; ++b) {
        const char byte = static_cast<char>(b);
        if (automaton_->AfterBytes(state, std::string_view(&byte, 1)) != GrammarAutomaton::kDead) next.push_back(byte);
      }
      const bool complete = automaton_->Complete(state);
      if (next.empty() || (complete && (seed >> 60) % 4 == 0)) return complete ? text : "";
      text.push_back(next[(seed >> 33) % next.size()]);
      state = automaton_->AfterBytes(state, std::string_view(&text.back(), 1));
    }
    return "";
  }

 private:
  std::unique_ptr<GrammarAutomaton> automaton_;
};

}  // namespace halfbyte::text
