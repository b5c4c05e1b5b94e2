// What a chat model's text means: thinking, content, tool calls. Works on pieces as they come; a tag is recognised wherever it is cut.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"

namespace halfbyte::server {

struct ToolCall {
  std::string name;
  std::string arguments;  // JSON text, as OpenAI has it
};

// How a family writes tool calls: between two tags, with a parser for what stands there. Adding one is a line in kToolFormats (chat_text.cc).
struct ToolFormat {
  std::string_view name;
  std::string_view open, close;
  // Appends calls; false: that was no call, show it as text.
  bool (*parse)(std::string_view inside, std::vector<ToolCall>& calls);
};
// null: no such name. "hermes": Qwen's and Hermes' {"name", "arguments"} objects, and Qwen3-Coder's <function=..> form, which has the same tags.
const ToolFormat* FindToolFormat(std::string_view name);

struct ChatPart {
  std::string reasoning, content;
  std::vector<ToolCall> calls;
};

class ChatText {
 public:
  struct Options {
    bool split_reasoning = true;         // <think> ... </think>
    bool starts_in_reasoning = false;    // the prompt ended with <think>
    const ToolFormat* tools = nullptr;   // null: no tools were given
  };
  explicit ChatText(const Options& options);

  ChatPart Push(std::string_view text);
  ChatPart Finish();  // what was held back; a call that never ended is content

 private:
  enum class State { kStart, kReasoning, kContent, kCall };
  bool Step(ChatPart& part);
  void Content(ChatPart& part, std::string_view text);
  void Reasoning(ChatPart& part, std::string_view text);

  const Options options_;
  State state_;
  std::string held_;
  std::string space_;               // white space at the end of the thinking so far: shown only when more follows
  bool skip_space_ = true;          // white space right after a tag is dropped
};

}  // namespace halfbyte::server
