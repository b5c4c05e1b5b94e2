#include "text/decoder.h"

#include "text/component_json.h"
#include "text/decoder_steps.h"

namespace halfbyte::text {
namespace {

using base::Json;
using base::Result;
using base::Status;

Status Add(const Json& json, std::vector<DecoderStepPointer>& steps, int depth) {
  HB_ASSIGN_OR_RETURN(std::string type, ComponentType(json, depth));
  if (type == "Sequence") return ForEachComponent(json, "decoders", [&](const Json& part) { return Add(part, steps, depth + 1); });
  if (type == "ByteLevel") { steps.push_back(MakeByteLevelStep()); return {}; }
  if (type == "ByteFallback") { steps.push_back(MakeByteFallbackStep()); return {}; }
  if (type == "Fuse") { steps.push_back(MakeFuseStep()); return {}; }
  if (type == "Strip") {
    HB_ASSIGN_OR_RETURN(char32_t content, CharacterFromJson(json, "content", U' '));
    HB_ASSIGN_OR_RETURN(int64_t start, json.GetIntOr("start", 0));
    HB_ASSIGN_OR_RETURN(int64_t stop, json.GetIntOr("stop", 0));
    steps.push_back(MakeStripStep(content, start, stop));
    return {};
  }
  if (type == "Replace") {
    HB_ASSIGN_OR_RETURN(SplitPattern pattern, PatternFromJson(json));
    HB_ASSIGN_OR_RETURN(std::string content, json.GetString("content"));
    steps.push_back(MakeReplaceStep(std::move(pattern), std::move(content)));
    return {};
  }
  if (type == "Metaspace") {
    HB_ASSIGN_OR_RETURN(char32_t replacement, CharacterFromJson(json, "replacement", U'\u2581'));
    HB_ASSIGN_OR_RETURN(bool prefix, json.GetBoolOr("add_prefix_space", true));
    HB_ASSIGN_OR_RETURN(std::string scheme, json.GetStringOr("prepend_scheme", prefix ? "always" : "never"));
    steps.push_back(MakeMetaspaceStep(replacement, scheme != "never"));
    return {};
  }
  if (type == "WordPiece") {
    HB_ASSIGN_OR_RETURN(std::string prefix, json.GetStringOr("prefix", "##"));
    HB_ASSIGN_OR_RETURN(bool cleanup, json.GetBoolOr("cleanup", true));
    steps.push_back(MakeWordPieceStep(std::move(prefix), cleanup));
    return {};
  }
  if (type == "BPEDecoder") {
    HB_ASSIGN_OR_RETURN(std::string suffix, json.GetStringOr("suffix", "</w>"));
    steps.push_back(MakeBpeSuffixStep(std::move(suffix)));
    return {};
  }
  return UnknownComponent("decoder", type);
}

}  // namespace

void DecodeStream::Feed(size_t stage, std::string_view text) {
  if (stage == stages_.size()) { out_ += text; return; }
  auto next = [&](std::string_view part) { Feed(stage + 1, part); };
  stages_[stage]->Push(text, next);
}

void DecodeStream::Finish() {
  for (size_t stage = 0; stage < stages_.size(); ++stage) {
    auto next = [&](std::string_view part) { Feed(stage + 1, part); };
    stages_[stage]->Finish(next);
  }
}

Result<Decoder> Decoder::FromJson(const Json* json) {
  Decoder decoder;
  if (json == nullptr || json->is_null()) {
    decoder.steps_.push_back(MakeJoinStep());
    return decoder;
  }
  if (auto status = Add(*json, decoder.steps_, 0); !status) return base::Fail(std::move(status).error().At("\"decoder\""));
  return decoder;
}

DecodeStream Decoder::Start(bool eager) const {
  DecodeStream stream;
  StageOptions options{.fused = false, .eager = eager};
  for (const auto& step : steps_) {
    stream.stages_.push_back(step->Start(options));
    options.fused |= step->fuses();
  }
  return stream;
}

std::string Decoder::TokenBytes(std::string_view token) const {
  std::string text(token);
  bool fused = false;
  for (const auto& step : steps_) {
    if (step->MapToken(text, fused)) break;
    fused |= step->fuses();
  }
  return text;
}

}  // namespace halfbyte::text
