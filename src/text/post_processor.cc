#include "text/post_processor.h"

#include <string>

#include "text/component_json.h"
#include "text/vocabulary.h"

namespace halfbyte::text {

using base::ErrorCode;
using base::Fail;
using base::Json;
using base::Result;
using base::Status;

namespace {

Result<int32_t> TokenId(const Json& json) {
  if (!json.is_int() || json.as_int() < 0 || json.as_int() > Vocabulary::kMaxId)
    return Fail(ErrorCode::kBadFile, "a token id is wanted, not ", json.Dump());
  return static_cast<int32_t>(json.as_int());
}

// The ids of one entry of "special_tokens": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}, a map by name or a list.
Result<std::vector<int32_t>> SpecialIds(const Json& json, const std::string& name) {
  const Json* all = json.Find("special_tokens");
  const Json* entry = all != nullptr ? all->Find(name) : nullptr;
  if (all != nullptr && all->is_array()) {
    for (const Json& e : all->as_array()) if (const Json* id = e.Find("id"); id != nullptr && *id == Json(name)) entry = &e;
  }
  const Json* ids = entry != nullptr ? entry->Find("ids") : nullptr;
  if (ids == nullptr || !ids->is_array())
    return Fail(ErrorCode::kBadFile, "the template uses ", name, ", which \"special_tokens\" does not define");
  std::vector<int32_t> out;
  for (const Json& id : ids->as_array()) { HB_ASSIGN_OR_RETURN(out.emplace_back(), TokenId(id)); }
  return out;
}

// The name of a special token in the template, or "" for the text itself. Pieces are objects, or strings like "<s>:0" and "$A".
Result<std::string> PieceName(const Json& piece) {
  if (piece.is_string()) {
    std::string name = piece.as_string();
    if (name.starts_with('$')) return std::string();
    if (size_t colon = name.rfind(':'); colon != name.npos && colon > 0) name.resize(colon);
    return name;
  }
  if (piece.Find("Sequence") != nullptr) return std::string();
  if (const Json* special = piece.Find("SpecialToken")) return special->GetString("id");
  return Fail(ErrorCode::kBadFile, "an unknown piece in a template: ", piece.Dump());
}

}  // namespace

Result<PostProcessor::Frame> PostProcessor::Template(const Json& json) {
  const Json* pieces = json.Find("single");
  if (pieces == nullptr || !pieces->is_array())
    return Fail(ErrorCode::kBadFile, "a TemplateProcessing without the list \"single\"");
  Frame frame;
  bool text_seen = false;
  for (const Json& piece : pieces->as_array()) {
    HB_ASSIGN_OR_RETURN(std::string name, PieceName(piece));
    if (name.empty()) {
      if (text_seen) return Fail(ErrorCode::kUnsupported, "a template that repeats the text");
      text_seen = true;
      continue;
    }
    HB_ASSIGN_OR_RETURN(std::vector<int32_t> ids, SpecialIds(json, name));
    std::vector<int32_t>& side = text_seen ? frame.after : frame.before;
    side.insert(side.end(), ids.begin(), ids.end());
  }
  if (!text_seen) return Fail(ErrorCode::kUnsupported, "a template without the text");
  return frame;
}

Status PostProcessor::Add(const Json& json, std::vector<Frame>& frames, int depth) {
  HB_ASSIGN_OR_RETURN(std::string type, ComponentType(json, depth));
  if (type == "Sequence")
    return ForEachComponent(json, "processors", [&](const Json& part) { return Add(part, frames, depth + 1); });
  if (type == "ByteLevel") return {};
  if (type == "TemplateProcessing") {
    HB_ASSIGN_OR_RETURN(frames.emplace_back(), Template(json));
    return {};
  }
  if (type == "BertProcessing" || type == "RobertaProcessing") {
    Frame frame;
    for (bool first : {true, false}) {
      const Json* pair = json.Find(first ? "cls" : "sep");  // ["[CLS]", 101]
      if (pair == nullptr || !pair->is_array() || pair->as_array().size() != 2)
        return Fail(ErrorCode::kBadFile, type, " without \"cls\" or \"sep\"");
      HB_ASSIGN_OR_RETURN((first ? frame.before : frame.after).emplace_back(), TokenId(pair->as_array()[1]));
    }
    frames.push_back(std::move(frame));
    return {};
  }
  return UnknownComponent("post-processor", type);
}

Result<PostProcessor> PostProcessor::FromJson(const Json* json) {
  PostProcessor processor;
  if (json == nullptr || json->is_null()) return processor;
  if (auto status = Add(*json, processor.frames_, 0); !status) return Fail(std::move(status).error().At("\"post_processor\""));
  return processor;
}

void PostProcessor::Apply(std::vector<int32_t>& ids) const {
  for (const Frame& frame : frames_) {
    ids.insert(ids.begin(), frame.before.begin(), frame.before.end());
    ids.insert(ids.end(), frame.after.begin(), frame.after.end());
  }
}

}  // namespace halfbyte::text
