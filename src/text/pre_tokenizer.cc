#include "text/pre_tokenizer.h"

#include <optional>

#include "text/byte_level.h"
#include "text/component_json.h"
#include "text/split_pattern.h"
#include "text/unicode.h"

namespace halfbyte::text {
namespace {

using base::ErrorCode;
using base::Fail;
using base::Json;
using base::Result;
using base::Status;

// What becomes of the matches ("delimiters"): dropped, pieces of their own, or joined to a neighbour.
enum class Behavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

Result<Behavior> BehaviorFromJson(const Json& json, Behavior otherwise) {
  HB_ASSIGN_OR_RETURN(std::string name, json.GetStringOr("behavior", ""));
  if (name.empty()) return otherwise;
  if (name == "Removed") return Behavior::kRemoved;
  if (name == "Isolated") return Behavior::kIsolated;
  if (name == "MergedWithPrevious") return Behavior::kMergedWithPrevious;
  if (name == "MergedWithNext") return Behavior::kMergedWithNext;
  if (name == "Contiguous") return Behavior::kContiguous;
  return Fail(ErrorCode::kUnsupported, "the split behavior ", name, " is not supported");
}

// Cuts a piece into sub-pieces by begin and end.
class Cutter {
 public:
  Cutter(Piece piece, PieceSink sink) : piece_(piece), sink_(sink) {}
  void operator()(size_t begin, size_t end) const {
    if (begin < end) sink_({piece_.text.substr(begin, end - begin), piece_.at_start && begin == 0});
  }

 private:
  Piece piece_;
  PieceSink sink_;
};

// Walk is any Walk(text, on_part(begin, end, is_match)) as in SplitPattern.
template <typename Walk>
void SplitBy(Piece piece, Behavior behavior, bool invert, PieceSink sink, Walk walk) {
  Cutter cut(piece, sink);
  if (behavior == Behavior::kIsolated) { walk(piece.text, [&](size_t begin, size_t end, bool) { cut(begin, end); }); return; }
  if (behavior == Behavior::kRemoved) {
    walk(piece.text, [&](size_t begin, size_t end, bool is_match) { if (is_match == invert) cut(begin, end); });
    return;
  }
  // The others hold one open piece back. MergedWithPrevious: a first match closes the piece it ends. MergedWithNext: a match starts the
  // piece of what follows; of several matches in a row only the last does. Contiguous: neighbours of one kind stay together.
  size_t open = 0, open_end = 0;
  bool previous_match = false;
  walk(piece.text, [&](size_t begin, size_t end, bool matched) {
    bool is_match = matched != invert;
    bool joins = open != open_end && (behavior == Behavior::kContiguous           ? is_match == previous_match
                                      : behavior == Behavior::kMergedWithPrevious ? is_match && !previous_match
                                                                                  : previous_match && !is_match);
    if (!joins) { cut(open, open_end); open = begin; }
    open_end = end;
    previous_match = is_match;
  });
  cut(open, open_end);
}

class SplitStep : public PreTokenizerStep {
 public:
  SplitStep(SplitPattern pattern, Behavior behavior, bool invert)
      : pattern_(std::move(pattern)), behavior_(behavior), invert_(invert) {}
  void Run(Piece piece, PieceSink sink) const override {
    SplitBy(piece, behavior_, invert_, sink, [this](std::string_view text, auto on_part) { pattern_.Walk(text, on_part); });
  }

 private:
  SplitPattern pattern_;
  Behavior behavior_;
  bool invert_;
};

// Every character that satisfies the predicate is a match of its own.
template <typename Predicate>
class CharacterSplitStep : public PreTokenizerStep {
 public:
  CharacterSplitStep(Predicate predicate, Behavior behavior) : predicate_(predicate), behavior_(behavior) {}
  void Run(Piece piece, PieceSink sink) const override {
    SplitBy(piece, behavior_, false, sink, [this](std::string_view text, auto on_part) {
      size_t gap = 0;
      for (size_t at = 0; at < text.size();) {
        Decoded d = DecodeValid(text.data() + at);
        if (predicate_(d.code)) {
          if (gap < at) on_part(gap, at, false);
          on_part(at, at + d.size, true);
          gap = at + d.size;
        }
        at += d.size;
      }
      if (gap < text.size()) on_part(gap, text.size(), false);
    });
  }

 private:
  Predicate predicate_;
  Behavior behavior_;
};

// \w+|[^\w\s]+ : runs of word characters and runs of other characters; blanks vanish.
class WhitespaceStep : public PreTokenizerStep {
 public:
  void Run(Piece piece, PieceSink sink) const override {
    Cutter cut(piece, sink);
    size_t begin = 0;
    int kind = 0;
    for (size_t at = 0; at < piece.text.size();) {
      Decoded d = DecodeValid(piece.text.data() + at);
      int now = IsRustWord(d.code) ? 1 : IsWhitespace(d.code) ? 0 : 2;
      if (now != kind) {
        if (kind != 0) cut(begin, at);
        begin = at;
        kind = now;
      }
      at += d.size;
    }
    if (kind != 0) cut(begin, piece.text.size());
  }
};

class ByteLevelStep : public PreTokenizerStep {
 public:
  ByteLevelStep(bool add_prefix_space, std::optional<SplitPattern> pattern)
      : add_prefix_space_(add_prefix_space), pattern_(std::move(pattern)) {}
  void Run(Piece piece, PieceSink sink) const override {
    std::string with_space;
    if (add_prefix_space_ && !piece.text.starts_with(' ')) {
      with_space = base::StrCat(" ", piece.text);
      piece.text = with_space;
    }
    if (!pattern_) { sink(piece); return; }
    Cutter cut(piece, sink);
    pattern_->Walk(piece.text, [&](size_t begin, size_t end, bool) { cut(begin, end); });
  }

 private:
  bool add_prefix_space_;
  std::optional<SplitPattern> pattern_;
};

// Follows a ByteLevel step that is not the last one.
class ByteCharsStep : public PreTokenizerStep {
 public:
  void Run(Piece piece, PieceSink sink) const override { sink({BytesToChars(piece.text), piece.at_start}); }
};

class MetaspaceStep : public PreTokenizerStep {
 public:
  enum class Prepend { kAlways, kFirst, kNever };
  MetaspaceStep(char32_t replacement, Prepend prepend, bool split) : prepend_(prepend), split_(split) {
    AppendUtf8(mark_, replacement);
  }
  void Run(Piece piece, PieceSink sink) const override {
    std::string text;
    text.reserve(piece.text.size() * 2);
    for (char c : piece.text) if (c == ' ') text += mark_; else text.push_back(c);
    bool wanted = prepend_ == Prepend::kAlways || (prepend_ == Prepend::kFirst && piece.at_start);
    if (wanted && !text.starts_with(mark_)) text.insert(0, mark_);
    piece.text = text;
    if (!split_) { sink(piece); return; }
    Cutter cut(piece, sink);
    size_t begin = 0;
    for (size_t at = text.find(mark_); at != text.npos; at = text.find(mark_, at + mark_.size())) {
      cut(begin, at);
      begin = at;
    }
    cut(begin, text.size());
  }

 private:
  std::string mark_;
  Prepend prepend_;
  bool split_;
};

class FixedLengthStep : public PreTokenizerStep {
 public:
  explicit FixedLengthStep(int64_t length) : length_(length) {}
  void Run(Piece piece, PieceSink sink) const override {
    Cutter cut(piece, sink);
    size_t begin = 0, at = 0;
    for (int64_t n = 0; at < piece.text.size(); ++n) {
      if (n == length_) { cut(begin, at); begin = at; n = 0; }
      at += DecodeValid(piece.text.data() + at).size;
    }
    cut(begin, at);
  }

 private:
  int64_t length_;
};

using Steps = std::vector<std::shared_ptr<const PreTokenizerStep>>;

template <typename Predicate>
void AddCharacterSplit(Steps& steps, Predicate predicate, Behavior behavior) {
  steps.push_back(std::make_shared<CharacterSplitStep<Predicate>>(predicate, behavior));
}

Status AddSplit(const Json& json, Steps& steps) {
  HB_ASSIGN_OR_RETURN(SplitPattern pattern, PatternFromJson(json));
  HB_ASSIGN_OR_RETURN(Behavior behavior, BehaviorFromJson(json, Behavior::kRemoved));
  HB_ASSIGN_OR_RETURN(bool invert, json.GetBoolOr("invert", false));
  steps.push_back(std::make_shared<SplitStep>(std::move(pattern), behavior, invert));
  return {};
}

Status AddByteLevel(const Json& json, Steps& steps) {
  HB_ASSIGN_OR_RETURN(bool prefix, json.GetBoolOr("add_prefix_space", true));
  HB_ASSIGN_OR_RETURN(bool use_regex, json.GetBoolOr("use_regex", true));
  std::optional<SplitPattern> pattern;
  if (use_regex) {
    constexpr std::string_view kGpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
    HB_ASSIGN_OR_RETURN(pattern, SplitPattern::FromRegex(kGpt2));
  }
  if (prefix || pattern) steps.push_back(std::make_shared<ByteLevelStep>(prefix, std::move(pattern)));
  return {};
}

Status AddMetaspace(const Json& json, Steps& steps) {
  using Prepend = MetaspaceStep::Prepend;
  HB_ASSIGN_OR_RETURN(char32_t replacement, CharacterFromJson(json, "replacement", U'\u2581'));
  HB_ASSIGN_OR_RETURN(bool split, json.GetBoolOr("split", true));
  // Files written before prepend_scheme existed say the same with add_prefix_space.
  HB_ASSIGN_OR_RETURN(bool prefix, json.GetBoolOr("add_prefix_space", true));
  HB_ASSIGN_OR_RETURN(std::string scheme, json.GetStringOr("prepend_scheme", prefix ? "always" : "never"));
  if (scheme != "always" && scheme != "first" && scheme != "never")
    return Fail(ErrorCode::kUnsupported, "the prepend_scheme ", scheme, " is not supported");
  Prepend prepend = scheme == "always" ? Prepend::kAlways : scheme == "first" ? Prepend::kFirst : Prepend::kNever;
  steps.push_back(std::make_shared<MetaspaceStep>(replacement, prepend, split));
  return {};
}

Status Add(const Json& json, Steps& steps, bool* byte_level_last, int depth) {
  HB_ASSIGN_OR_RETURN(std::string type, ComponentType(json, depth));
  if (type == "Sequence")
    return ForEachComponent(json, "pretokenizers", [&](const Json& part) { return Add(part, steps, byte_level_last, depth + 1); });
  if (*byte_level_last) steps.push_back(std::make_shared<ByteCharsStep>());
  *byte_level_last = type == "ByteLevel";
  if (type == "ByteLevel") return AddByteLevel(json, steps);
  if (type == "Split") return AddSplit(json, steps);
  if (type == "Metaspace") return AddMetaspace(json, steps);
  if (type == "Whitespace") { steps.push_back(std::make_shared<WhitespaceStep>()); return {}; }
  if (type == "WhitespaceSplit") { AddCharacterSplit(steps, IsWhitespace, Behavior::kRemoved); return {}; }
  if (type == "BertPreTokenizer") {
    AddCharacterSplit(steps, IsWhitespace, Behavior::kRemoved);
    AddCharacterSplit(steps, IsBertPunctuation, Behavior::kIsolated);
    return {};
  }
  if (type == "Digits") {
    HB_ASSIGN_OR_RETURN(bool individual, json.GetBoolOr("individual_digits", false));
    AddCharacterSplit(steps, IsNumeric, individual ? Behavior::kIsolated : Behavior::kContiguous);
    return {};
  }
  if (type == "Punctuation") {
    HB_ASSIGN_OR_RETURN(Behavior behavior, BehaviorFromJson(json, Behavior::kIsolated));
    AddCharacterSplit(steps, IsBertPunctuation, behavior);
    return {};
  }
  if (type == "CharDelimiterSplit") {
    HB_ASSIGN_OR_RETURN(char32_t delimiter, CharacterFromJson(json, "delimiter", U' '));
    AddCharacterSplit(steps, [delimiter](char32_t c) { return c == delimiter; }, Behavior::kRemoved);
    return {};
  }
  if (type == "FixedLength") {
    HB_ASSIGN_OR_RETURN(int64_t length, json.GetIntOr("length", 5));
    if (length < 1) return Fail(ErrorCode::kBadFile, "a FixedLength of ", length);
    steps.push_back(std::make_shared<FixedLengthStep>(length));
    return {};
  }
  return UnknownComponent("pre-tokenizer", type);
}

}  // namespace

Result<PreTokenizer> PreTokenizer::FromJson(const Json* json) {
  PreTokenizer pre_tokenizer;
  if (json == nullptr || json->is_null()) return pre_tokenizer;
  auto status = Add(*json, pre_tokenizer.steps_, &pre_tokenizer.gives_bytes_, 0);
  if (!status) return Fail(std::move(status).error().At("\"pre_tokenizer\""));
  return pre_tokenizer;
}

void PreTokenizer::RunFrom(size_t step, Piece piece, PieceSink sink) const {
  if (piece.text.empty()) return;
  if (step == steps_.size()) { sink(piece); return; }
  auto to_next = [&](Piece part) { RunFrom(step + 1, part, sink); };
  steps_[step]->Run(piece, to_next);
}

}  // namespace halfbyte::text
