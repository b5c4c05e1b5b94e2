// response_format, SGLang's json_schema and regex, vLLM's guided_*: what an answer must look like, as a constraint of the engine.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "server/fields.h"
#include "text/grammar_automaton.h"

namespace halfbyte::engine { class TokenConstraint; }

namespace halfbyte::server {

// Grammars over the model's vocabulary. Automata are kept by their text, since clients send the same schema with every request; thread-safe.
class Grammars {
 public:
  static constexpr size_t kKept = 16;

  // bytes[t]: of token t, empty for special ones; `ends`: the model's end tokens.
  Grammars(std::vector<std::string> bytes, std::vector<int32_t> ends);

  base::Result<std::shared_ptr<engine::TokenConstraint>> JsonObject();
  base::Result<std::shared_ptr<engine::TokenConstraint>> JsonSchema(const base::Json& schema);
  base::Result<std::shared_ptr<engine::TokenConstraint>> Regex(const std::string& pattern);

 private:
  template <typename Make>
  base::Result<std::shared_ptr<engine::TokenConstraint>> Get(const std::string& key, const Make& make);

  const std::shared_ptr<const text::TokenTrie> trie_;
  const std::vector<int32_t> ends_;
  std::mutex mutex_;
  std::list<std::pair<std::string, std::shared_ptr<text::GrammarAutomaton>>> kept_;  // guarded; latest first
};

struct Context;
// Reads response_format and its kin; null where the answer is free. Errors are told to `fields`.
std::shared_ptr<engine::TokenConstraint> ReadResponseFormat(Fields& fields, Context& context);
// SGLang's names inside sampling_params.
std::shared_ptr<engine::TokenConstraint> ReadSglangFormat(Fields& fields, Context& context);

}  // namespace halfbyte::server
