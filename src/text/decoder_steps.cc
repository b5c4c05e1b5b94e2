#include "text/decoder_steps.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "text/byte_level.h"
#include "text/unicode.h"

namespace halfbyte::text {
namespace {

using StagePointer = std::unique_ptr<DecodeStage>;

// A step whose stage turns each token into another, knowing only its place in the text.
template <typename Map>
class MapStage : public DecodeStage {
 public:
  MapStage(Map map, bool fused) : map_(std::move(map)), fused_(fused) {}
  void Push(std::string_view text, TextSink next) override {
    std::string token(text);
    map_(token, first_);
    first_ = fused_ && first_;  // parts of the only token are all in the first one
    next(token);
  }

 private:
  Map map_;
  bool fused_, first_ = true;
};
template <typename Map>
StagePointer MakeMapStage(Map map, bool fused) { return std::make_unique<MapStage<Map>>(std::move(map), fused); }

// Does nothing with whole tokens; the difference is in what follows.
class PassStage : public DecodeStage {
 public:
  void Push(std::string_view text, TextSink next) override { next(text); }
};

void ReplaceAll(std::string& text, std::string_view from, std::string_view to) {
  if (from.empty()) return;
  for (size_t at = text.find(from); at != text.npos; at = text.find(from, at + to.size())) text.replace(at, from.size(), to);
}

// ---- ByteLevel ----

class ByteLevelStage : public DecodeStage {
 public:
  void Push(std::string_view token, TextSink next) override {
    AppendTokenBytes(bytes_, token);
    Release(next, /*all=*/false);
  }
  void Finish(TextSink next) override { Release(next, true); }

 private:
  // Passes on what is decided: all but an incomplete character at the end.
  void Release(TextSink next, bool all) {
    std::string text;
    std::string_view rest = bytes_;
    while (!rest.empty()) {
      Utf8Step step = StepUtf8(rest);
      if (step.kind == Utf8Step::kIncomplete && !all) break;
      text += step.kind == Utf8Step::kCharacter ? rest.substr(0, step.size) : kReplacementCharacter;
      rest.remove_prefix(step.size);
    }
    bytes_.erase(0, bytes_.size() - rest.size());
    if (!text.empty()) next(text);
  }
  std::string bytes_;
};

class ByteLevelStep : public DecoderStep {
 public:
  StagePointer Start(StageOptions) const override { return std::make_unique<ByteLevelStage>(); }
  bool fuses() const override { return true; }
  bool MapToken(std::string& token, bool) const override {
    std::string bytes;
    AppendTokenBytes(bytes, token);
    token = std::move(bytes);
    return true;
  }
};

// ---- ByteFallback ----

std::optional<char> FallbackByte(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return std::nullopt;
  unsigned value = 0;
  auto [end, error] = std::from_chars(token.data() + 3, token.data() + 5, value, 16);
  if (error != std::errc() || end != token.data() + 5) return std::nullopt;
  return static_cast<char>(value);
}

// Whether a run is valid is known at its end only: after the bytes of "你", one more stray byte turns all four into U+FFFD. A stream
// that waited for the end would stand still through whole sentences of a script that the vocabulary lacks, so with `eager` a complete
// character goes out at once; only a run that turns bad afterwards then differs from the whole text, and no append-only stream could
// have known.
class ByteFallbackStage : public DecodeStage {
 public:
  explicit ByteFallbackStage(bool eager) : eager_(eager) {}
  void Push(std::string_view token, TextSink next) override {
    std::optional<char> byte = FallbackByte(token);
    if (!byte) { Finish(next); next(token); return; }
    run_.push_back(*byte);
    if (eager_) ReleaseCharacters(next);
  }
  void Finish(TextSink next) override {
    if (!run_.empty()) {
      if (!spoilt_ && IsValidUtf8(run_)) next(run_);
      else for (size_t i = 0; i < run_.size(); ++i) next(kReplacementCharacter);
    }
    run_.clear();
    spoilt_ = false;
  }

 private:
  void ReleaseCharacters(TextSink next) {
    while (!run_.empty()) {
      Utf8Step step = StepUtf8(run_);
      if (!spoilt_ && step.kind == Utf8Step::kIncomplete) return;
      spoilt_ |= step.kind == Utf8Step::kInvalid;
      if (spoilt_) for (size_t i = 0; i < run_.size(); ++i) next(kReplacementCharacter);
      else next(std::string_view(run_).substr(0, step.size));
      run_.erase(0, spoilt_ ? run_.size() : step.size);
    }
  }
  bool eager_, spoilt_ = false;
  std::string run_;
};

class ByteFallbackStep : public DecoderStep {
 public:
  StagePointer Start(StageOptions options) const override {
    if (options.fused) return std::make_unique<PassStage>();
    return std::make_unique<ByteFallbackStage>(options.eager);
  }
  bool MapToken(std::string& token, bool fused) const override {
    std::optional<char> byte = fused ? std::nullopt : FallbackByte(token);
    if (byte) token.assign(1, *byte);
    return byte.has_value();
  }
};

class FuseStep : public DecoderStep {
 public:
  StagePointer Start(StageOptions) const override { return std::make_unique<PassStage>(); }
  bool fuses() const override { return true; }
  bool MapToken(std::string&, bool) const override { return false; }
};

// ---- Strip ----

// Behind Fuse there is one long token: the front is stripped once, the end is held back until something else follows.
class FusedStripStage : public DecodeStage {
 public:
  FusedStripStage(std::string content, int64_t start, int64_t stop) : content_(std::move(content)), start_(start), stop_(stop) {}
  void Push(std::string_view text, TextSink next) override {
    while (start_ > 0 && text.starts_with(content_)) { text.remove_prefix(content_.size()); --start_; }
    if (text.empty()) return;
    start_ = 0;
    std::string_view body = text;
    int64_t tail = 0;
    while (tail < stop_ && body.ends_with(content_)) { body.remove_suffix(content_.size()); ++tail; }
    // Held characters go out when more follows than can be held.
    int64_t release = body.empty() ? std::max<int64_t>(0, held_ + tail - stop_) : held_;
    for (int64_t i = 0; i < release; ++i) next(content_);
    if (!body.empty()) next(body);
    held_ += tail - release;
  }

 private:
  std::string content_;
  int64_t start_, stop_, held_ = 0;
};

class StripStep : public DecoderStep {
 public:
  StripStep(char32_t content, int64_t start, int64_t stop) : start_(start), stop_(stop) { AppendUtf8(content_, content); }
  StagePointer Start(StageOptions options) const override {
    if (options.fused) return std::make_unique<FusedStripStage>(content_, start_, stop_);
    return MakeMapStage([this](std::string& token, bool) { Strip(token); }, false);
  }
  bool MapToken(std::string& token, bool fused) const override {
    if (!fused) Strip(token);
    return false;
  }

 private:
  void Strip(std::string& token) const {
    std::string_view text = token;
    for (int64_t i = 0; i < start_ && text.starts_with(content_); ++i) text.remove_prefix(content_.size());
    for (int64_t i = 0; i < stop_ && text.ends_with(content_); ++i) text.remove_suffix(content_.size());
    token = std::string(text);
  }
  std::string content_;
  int64_t start_, stop_;
};

// ---- Replace ----

// Behind Fuse a match may lie across parts, so the whole text is kept until the end; no published tokenizer does this.
class FusedReplaceStage : public DecodeStage {
 public:
  FusedReplaceStage(const SplitPattern& pattern, std::string content) : pattern_(pattern), content_(std::move(content)) {}
  void Push(std::string_view text, TextSink) override { text_ += text; }
  void Finish(TextSink next) override {
    pattern_.Walk(text_, [&](size_t begin, size_t end, bool is_match) {
      next(is_match ? std::string_view(content_) : std::string_view(text_).substr(begin, end - begin));
    });
    text_.clear();
  }

 private:
  SplitPattern pattern_;
  std::string content_, text_;
};

class ReplaceStep : public DecoderStep {
 public:
  ReplaceStep(SplitPattern pattern, std::string content) : pattern_(std::move(pattern)), content_(std::move(content)) {}
  StagePointer Start(StageOptions options) const override {
    if (options.fused) return std::make_unique<FusedReplaceStage>(pattern_, content_);
    return MakeMapStage([this](std::string& token, bool) { Replace(token); }, false);
  }
  bool MapToken(std::string& token, bool) const override { Replace(token); return false; }

 private:
  void Replace(std::string& token) const {
    std::string out;
    pattern_.Walk(token, [&](size_t begin, size_t end, bool is_match) {
      if (is_match) out += content_;
      else out.append(token, begin, end - begin);
    });
    token = std::move(out);
  }
  SplitPattern pattern_;
  std::string content_;
};

// ---- the small ones ----

class MetaspaceStep : public DecoderStep {
 public:
  MetaspaceStep(char32_t replacement, bool drop_first) : drop_first_(drop_first) { AppendUtf8(mark_, replacement); }
  StagePointer Start(StageOptions options) const override {
    return MakeMapStage([this](std::string& token, bool first) { ReplaceAll(token, mark_, first && drop_first_ ? "" : " "); },
                        options.fused);
  }
  bool MapToken(std::string& token, bool) const override { ReplaceAll(token, mark_, " "); return false; }

 private:
  std::string mark_;
  bool drop_first_;
};

class WordPieceStep : public DecoderStep {
 public:
  WordPieceStep(std::string prefix, bool cleanup) : prefix_(std::move(prefix)), cleanup_(cleanup) {}
  StagePointer Start(StageOptions options) const override {
    return MakeMapStage([this](std::string& token, bool first) { Map(token, first); }, options.fused);
  }
  bool MapToken(std::string& token, bool) const override { Map(token, false); return false; }

 private:
  void Map(std::string& token, bool first) const {
    if (!first && token.starts_with(prefix_)) token.erase(0, prefix_.size());
    else if (!first) token.insert(0, 1, ' ');
    if (!cleanup_) return;
    constexpr std::pair<std::string_view, std::string_view> kEnglish[] = {
        {" .", "."}, {" ?", "?"}, {" !", "!"}, {" ,", ","}, {" ' ", "'"}, {" n't", "n't"}, {" 'm", "'m"}, {" do not", " don't"},
        {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
    for (const auto& [from, to] : kEnglish) ReplaceAll(token, from, to);
  }
  std::string prefix_;
  bool cleanup_;
};

// Holds one token back: only the last one loses its suffix without a blank.
class BpeSuffixStage : public DecodeStage {
 public:
  explicit BpeSuffixStage(std::string suffix) : suffix_(std::move(suffix)) {}
  void Push(std::string_view text, TextSink next) override {
    Release(next, " ");
    held_ = text;
  }
  void Finish(TextSink next) override { Release(next, ""); }

 private:
  void Release(TextSink next, std::string_view replacement) {
    if (!held_) return;
    ReplaceAll(*held_, suffix_, replacement);
    next(*held_);
    held_.reset();
  }
  std::string suffix_;
  std::optional<std::string> held_;
};

class BpeSuffixStep : public DecoderStep {
 public:
  explicit BpeSuffixStep(std::string suffix) : suffix_(std::move(suffix)) {}
  StagePointer Start(StageOptions) const override { return std::make_unique<BpeSuffixStage>(suffix_); }
  bool MapToken(std::string& token, bool) const override { ReplaceAll(token, suffix_, " "); return false; }

 private:
  std::string suffix_;
};

class JoinStep : public DecoderStep {
 public:
  StagePointer Start(StageOptions options) const override {
    return MakeMapStage([](std::string& token, bool first) { if (!first) token.insert(0, 1, ' '); }, options.fused);
  }
  bool MapToken(std::string&, bool) const override { return false; }
};

}  // namespace

DecoderStepPointer MakeByteLevelStep() { return std::make_shared<ByteLevelStep>(); }
DecoderStepPointer MakeByteFallbackStep() { return std::make_shared<ByteFallbackStep>(); }
DecoderStepPointer MakeFuseStep() { return std::make_shared<FuseStep>(); }
DecoderStepPointer MakeStripStep(char32_t content, int64_t start, int64_t stop) {
  return std::make_shared<StripStep>(content, start, stop);
}
DecoderStepPointer MakeReplaceStep(SplitPattern pattern, std::string content) {
  return std::make_shared<ReplaceStep>(std::move(pattern), std::move(content));
}
DecoderStepPointer MakeMetaspaceStep(char32_t replacement, bool drop_first) {
  return std::make_shared<MetaspaceStep>(replacement, drop_first);
}
DecoderStepPointer MakeWordPieceStep(std::string prefix, bool cleanup) {
  return std::make_shared<WordPieceStep>(std::move(prefix), cleanup);
}
DecoderStepPointer MakeBpeSuffixStep(std::string suffix) { return std::make_shared<BpeSuffixStep>(std::move(suffix)); }
DecoderStepPointer MakeJoinStep() { return std::make_shared<JoinStep>(); }

}  // namespace halfbyte::text
