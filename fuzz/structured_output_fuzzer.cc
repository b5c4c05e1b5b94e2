// Regular expressions (first byte 'r') and JSON schemas (anything else) from clients: refused with a message, or a grammar whose masks never lead to a dead
// end; what a schema's grammar lets through is JSON.
#include "base/check.h"
#include "base/json.h"
#include "text/grammar_automaton.h"
#include "text/grammar_regex.h"
#include "text/json_schema.h"

namespace {

using namespace halfbyte;

std::shared_ptr<const text::TokenTrie> Bytes() {
  std::vector<std::string> tokens = {""};
  for (int b = 0; b < 256; ++b) tokens.push_back(std::string(1, static_cast<char>(b)));
  for (const char* t : {"{\"", "\":", "true", "ab", "12", "\\u00", "\"}"}) tokens.push_back(t);
  return std::make_shared<text::TokenTrie>(tokens);
}

// A random walk over allowed tokens; the text where it ends with the end token (0), else nothing.
std::string Walk(text::GrammarAutomaton& automaton, const text::TokenTrie& trie, uint64_t seed) {
  std::string text;
  std::vector<uint64_t> mask;
  auto state = automaton.start();
  for (int step = 0; state != text::GrammarAutomaton::kDead && step < 40; ++step) {
    automaton.Allowed(state, mask);
    std::vector<int32_t> allowed;
    for (int64_t t = 0; t < trie.vocab(); ++t)
      if (mask[static_cast<size_t>(t) / 64] >> (t % 64) & 1) allowed.push_back(static_cast<int32_t>(t));
    HB_CHECK(!allowed.empty() || automaton.overflowed(), "a dead end after \"", text, "\"");
    if (allowed.empty()) return "";
    seed = seed * 6364136223846793005 + 1442695040888963407;
    const int32_t token = allowed[(seed >> 33) % allowed.size()];
    if (token == 0) {
      HB_CHECK(automaton.Complete(state));
      return text;
    }
    text += trie.bytes(token);
    state = automaton.After(state, token);
    HB_CHECK(state != text::GrammarAutomaton::kDead || automaton.overflowed(), "an allowed token was refused after \"", text, "\"");
  }
  return "";
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto trie = Bytes();
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const bool regex = !input.empty() && input[0] == 'r';
  base::Result<text::Grammar> grammar = base::Fail(base::ErrorCode::kInvalidArgument, "");
  if (regex) {
    grammar = text::RegexGrammar(input.substr(1));
  } else {
    const auto json = base::Json::Parse(input);
    if (!json) return 0;
    grammar = text::JsonSchemaGrammar(*json);
  }
  if (!grammar) {
    HB_CHECK(!grammar.error().message().empty());
    return 0;
  }
  text::GrammarAutomaton automaton(std::move(*grammar), trie, {0});
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    const std::string text = Walk(automaton, *trie, seed);
    if (!regex && !text.empty()) HB_CHECK(base::Json::Parse(text, {.allow_duplicate_keys = true}), "not JSON: ", text);
  }
  return 0;
}
