// Templates as a stranger's model might bring them: the input is a template and, after a zero byte, the JSON of its context.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/json.h"
#include "text/jinja.h"

namespace {

using halfbyte::base::Json;
using halfbyte::text::JinjaRenderOptions;
using halfbyte::text::JinjaTemplate;
using halfbyte::text::JinjaTime;

constexpr const char* kContext = R"({
  "i": 7, "x": 2.5, "t": true, "none_": null, "s": "  Hello, World!\n", "name": "wörld ß 😀", "l": [3, 1, 2],
  "ls": ["pear", "Apple", "fig"], "d": {"b": 1, "a": "x", "c": {"k": [1, {"z": null}]}}, "pairs": [["k1", 1], ["k2", 2]],
  "rows": [{"n": "a", "v": 3}, {"n": "B", "v": 1}],
  "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi <think>x</think>"},
               {"role": "assistant", "content": null, "tool_calls": [{"function": {"name": "f", "arguments": {"p": 1}}}]}]})";

const JinjaRenderOptions& Options() {
  static const JinjaRenderOptions options = [] {
    JinjaRenderOptions o;
    o.limits.max_steps = 50'000;
    o.limits.max_output = 1u << 20;
    o.limits.max_memory = 16u << 20;
    o.now = *JinjaTime::Parse("2025-07-04T12:34:56");
    return o;
  }();
  return options;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string text(reinterpret_cast<const char*>(data), size), context = kContext;
  if (size_t zero = text.find('\0'); zero != text.npos) {
    context = text.substr(zero + 1);
    text.resize(zero);
  }
  auto variables = Json::Parse(context);
  if (!variables || !variables->is_object()) return 0;
  auto parsed = JinjaTemplate::Parse(text);
  if (!parsed) return 0;
  auto first = parsed->Render(*variables, Options());
  // A parsed template keeps nothing of a render: the second gives the same.
  auto second = parsed->Render(*variables, Options());
  if (first.has_value() != second.has_value() || (first && *first != *second)) std::abort();
  return 0;
}
