#include "server/chat_text.h"

#include <algorithm>

namespace halfbyte::server {
namespace {

constexpr std::string_view kThink = "<think>", kEndThink = "</think>", kSpace = " \t\r\n";

std::string_view Trim(std::string_view s) {
  const size_t first = s.find_first_not_of(kSpace);
  return first == s.npos ? std::string_view() : s.substr(first, s.find_last_not_of(kSpace) - first + 1);
}

bool ParseJsonCall(std::string_view inside, std::vector<ToolCall>& calls) {
  auto parsed = base::Json::Parse(inside);
  if (!parsed || !parsed->is_object()) return false;
  const base::Json* name = parsed->Find("name");
  const base::Json* arguments = parsed->Find("arguments");
  if (!arguments) arguments = parsed->Find("parameters");
  if (!name || !name->is_string() || (arguments && !arguments->is_object() && !arguments->is_string())) return false;
  calls.push_back({name->as_string(), !arguments ? "{}" : arguments->is_string() ? arguments->as_string() : arguments->Dump()});
  return true;
}

// <function=NAME> <parameter=KEY> VALUE </parameter> ... </function>; a value that is JSON stays what it is, others are strings.
bool ParseFunctionCall(std::string_view inside, std::vector<ToolCall>& calls) {
  constexpr std::string_view kFunction = "<function=", kParameter = "<parameter=", kEnd = "</parameter>";
  size_t at = inside.find(kFunction);
  if (at == inside.npos) return false;
  const size_t name_end = inside.find('>', at);
  if (name_end == inside.npos) return false;
  ToolCall call{std::string(Trim(inside.substr(at + kFunction.size(), name_end - at - kFunction.size()))), ""};
  base::Json arguments = base::Json::MakeObject();
  for (at = inside.find(kParameter, name_end); at != inside.npos; at = inside.find(kParameter, at)) {
    const size_t key_end = inside.find('>', at), end = inside.find(kEnd, at);
    if (key_end == inside.npos || end == inside.npos || key_end > end) return false;
    const std::string_view value = Trim(inside.substr(key_end + 1, end - key_end - 1));
    auto json = base::Json::Parse(value);
    arguments.Set(Trim(inside.substr(at + kParameter.size(), key_end - at - kParameter.size())), json ? std::move(*json) : base::Json(value));
    at = end;
  }
  call.arguments = arguments.Dump();
  calls.push_back(std::move(call));
  return true;
}

bool ParseHermes(std::string_view inside, std::vector<ToolCall>& calls) {
  inside = Trim(inside);
  return inside.starts_with('{') ? ParseJsonCall(inside, calls) : ParseFunctionCall(inside, calls);
}

constexpr ToolFormat kToolFormats[] = {
    {"hermes", "<tool_call>", "</tool_call>", &ParseHermes},
};

// The longest end of `text` that `tag` starts with: it may become the tag.
size_t PartialTag(std::string_view text, std::string_view tag) {
  for (size_t n = std::min(text.size(), tag.size() - 1); n > 0; --n)
    if (text.substr(text.size() - n) == tag.substr(0, n)) return n;
  return 0;
}

}  // namespace

const ToolFormat* FindToolFormat(std::string_view name) {
  for (const ToolFormat& f : kToolFormats)
    if (f.name == name) return &f;
  return nullptr;
}

ChatText::ChatText(const Options& options)
    : options_(options), state_(!options.split_reasoning ? State::kContent : options.starts_in_reasoning ? State::kReasoning : State::kStart) {
  skip_space_ = state_ == State::kReasoning;
}

void ChatText::Content(ChatPart& part, std::string_view text) {
  if (skip_space_) {
    const size_t first = text.find_first_not_of(kSpace);
    if (first == text.npos) return;
    text.remove_prefix(first);
    skip_space_ = false;
  }
  part.content += text;
}

void ChatText::Reasoning(ChatPart& part, std::string_view text) {
  if (skip_space_) {
    const size_t first = text.find_first_not_of(kSpace);
    if (first == text.npos) return;
    text.remove_prefix(first);
    skip_space_ = false;
  }
  const size_t last = text.find_last_not_of(kSpace);
  if (last == text.npos) {
    space_ += text;
    return;
  }
  part.reasoning += space_;
  part.reasoning += text.substr(0, last + 1);
  space_ = text.substr(last + 1);
}

// Moves on by one tag, or shows what cannot be one; false: more text is needed.
bool ChatText::Step(ChatPart& part) {
  if (state_ == State::kStart) {
    const std::string_view text = held_;
    const size_t first = text.find_first_not_of(kSpace);
    const std::string_view rest = first == text.npos ? std::string_view() : text.substr(first);
    if (rest.size() < kThink.size() && kThink.starts_with(rest)) return false;
    state_ = rest.starts_with(kThink) ? State::kReasoning : State::kContent;
    skip_space_ = state_ == State::kReasoning;
    if (state_ == State::kReasoning) held_.erase(0, first + kThink.size());
    return true;
  }
  if (state_ == State::kContent && !options_.tools) {
    Content(part, held_);
    held_.clear();
    return false;
  }
  const std::string_view tag = state_ == State::kReasoning ? kEndThink : state_ == State::kContent ? options_.tools->open : options_.tools->close;
  const size_t at = held_.find(tag);
  if (at == held_.npos) {
    if (state_ == State::kCall) return false;
    const size_t sure = held_.size() - PartialTag(held_, tag);
    if (state_ == State::kReasoning) Reasoning(part, std::string_view(held_).substr(0, sure));
    else Content(part, std::string_view(held_).substr(0, sure));
    held_.erase(0, sure);
    return false;
  }
  const std::string before = held_.substr(0, at);
  held_.erase(0, at + tag.size());
  if (state_ == State::kReasoning) {
    Reasoning(part, before);
    space_.clear();
    state_ = State::kContent;
    skip_space_ = true;
  } else if (state_ == State::kContent) {
    Content(part, before);
    state_ = State::kCall;
  } else {
    if (!options_.tools->parse(before, part.calls)) part.content += base::StrCat(options_.tools->open, before, options_.tools->close);
    state_ = State::kContent;
    skip_space_ = true;
  }
  return true;
}

ChatPart ChatText::Push(std::string_view text) {
  ChatPart part;
  held_ += text;
  while (Step(part)) {}
  return part;
}

ChatPart ChatText::Finish() {
  ChatPart part;
  // A call whose closing tag the end token replaced is a call all the same.
  if (state_ == State::kCall && !options_.tools->parse(held_, part.calls)) part.content += base::StrCat(options_.tools->open, held_);
  if (state_ == State::kReasoning) Reasoning(part, held_);
  if (state_ == State::kContent || state_ == State::kStart) part.content += held_;
  held_.clear();
  return part;
}

}  // namespace halfbyte::server
