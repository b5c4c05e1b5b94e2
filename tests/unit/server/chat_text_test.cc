#include "server/chat_text.h"

#include <gtest/gtest.h>

namespace halfbyte::server {
namespace {

struct Whole {
  std::string reasoning, content, calls;
  friend bool operator==(const Whole&, const Whole&) = default;
};
std::ostream& operator<<(std::ostream& out, const Whole& w) { return out << "[" << w.reasoning << "] [" << w.content << "] " << w.calls; }

Whole Run(std::string_view text, const ChatText::Options& options, size_t cut) {
  ChatText chat(options);
  Whole whole;
  auto add = [&](const ChatPart& p) {
    whole.reasoning += p.reasoning;
    whole.content += p.content;
    for (const ToolCall& c : p.calls) whole.calls += c.name + c.arguments + ";";
  };
  for (size_t at = 0; at < text.size(); at += cut) add(chat.Push(text.substr(at, cut)));
  add(chat.Finish());
  return whole;
}

// The same however the text is cut.
void Expect(std::string_view text, const ChatText::Options& options, const Whole& want) {
  for (size_t cut : {1u, 2u, 3u, 5u, 7u, 11u, 1000u}) EXPECT_EQ(Run(text, options, cut), want) << "cut " << cut << ": " << text;
}

const ToolFormat* Tools() { return FindToolFormat("hermes"); }

TEST(ChatText, Thinking) {
  Expect("<think>\nhm, well\n</think>\n\nYes.", {}, {"hm, well", "Yes.", ""});
  Expect("  <think>x", {}, {"x", "", ""});
  Expect("hm\n</think>Yes", {.starts_in_reasoning = true}, {"hm", "Yes", ""});
  Expect("no tags < here <th", {}, {"", "no tags < here <th", ""});
  Expect("Say <think>x</think>", {}, {"", "Say <think>x</think>", ""});  // only at the beginning
  Expect("<think>a</think>b", {.split_reasoning = false}, {"", "<think>a</think>b", ""});
  Expect("<think>a </ b\n\nc</think>d", {}, {"a </ b\n\nc", "d", ""});
}

TEST(ChatText, ToolCalls) {
  const ChatText::Options o{.tools = Tools()};
  Expect("<tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\": [1, 2]}}\n</tool_call>", o, {"", "", "f{\"x\":[1,2]};"});
  Expect("Now: <tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>\n<tool_call>{\"name\":\"g\"}</tool_call>", o, {"", "Now: ", "f{};g{};"});
  Expect("<think>t</think><tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>", o, {"t", "", "f{};"});
  Expect("<tool_call>{\"name\":\"f\",\"arguments\":{}}", o, {"", "", "f{};"});                                  // the end token replaced the tag
  Expect("<tool_call>not json</tool_call>", o, {"", "<tool_call>not json</tool_call>", ""});                       // shown, not lost
  Expect("<tool_call>{\"nam", o, {"", "<tool_call>{\"nam", ""});
  Expect("a <tool_ call> <tool_call", o, {"", "a <tool_ call> <tool_call", ""});
  Expect("<tool_call>\n<function=f>\n<parameter=n>\n3\n</parameter>\n<parameter=s>\nhello\n</parameter>\n</function>\n</tool_call>", o, {"", "", "f{\"n\":3,\"s\":\"hello\"};"});
  Expect("<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>", {}, {"", "<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>", ""});
}

}  // namespace
}  // namespace halfbyte::server
