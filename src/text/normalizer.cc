#include "text/normalizer.h"

#include "text/byte_level.h"
#include "text/component_json.h"
#include "text/normal_forms.h"
#include "text/split_pattern.h"
#include "text/unicode.h"

namespace halfbyte::text {
namespace {

using base::Json;
using base::Result;
using base::Status;

class NormalFormStep : public NormalizerStep {
 public:
  explicit NormalFormStep(NormalForm form) : form_(form) {}
  bool Apply(std::string_view text, std::string& out) const override { return ToNormalForm(form_, text, out); }

 private:
  NormalForm form_;
};

class PrependStep : public NormalizerStep {
 public:
  explicit PrependStep(std::string prefix) : prefix_(std::move(prefix)) {}
  bool Apply(std::string_view text, std::string& out) const override {
    if (text.empty()) return false;
    out = prefix_;
    out += text;
    return true;
  }

 private:
  std::string prefix_;
};

class ReplaceStep : public NormalizerStep {
 public:
  ReplaceStep(SplitPattern pattern, std::string content) : pattern_(std::move(pattern)), content_(std::move(content)) {}
  bool Apply(std::string_view text, std::string& out) const override {
    bool changed = false;
    out.clear();
    pattern_.Walk(text, [&](size_t begin, size_t end, bool is_match) {
      changed |= is_match;
      if (is_match) out += content_;
      else out += text.substr(begin, end - begin);
    });
    return changed;
  }

 private:
  SplitPattern pattern_;
  std::string content_;
};

class StripStep : public NormalizerStep {
 public:
  StripStep(bool left, bool right) : left_(left), right_(right) {}
  bool Apply(std::string_view text, std::string& out) const override {
    std::string_view kept = text;
    while (left_ && !kept.empty()) {
      Decoded d = DecodeValid(kept.data());
      if (!IsWhitespace(d.code)) break;
      kept.remove_prefix(d.size);
    }
    while (right_ && !kept.empty()) {
      Decoded d = DecodeBefore(kept.data() + kept.size());
      if (!IsWhitespace(d.code)) break;
      kept.remove_suffix(d.size);
    }
    if (kept.size() == text.size()) return false;
    out = kept;
    return true;
  }

 private:
  bool left_, right_;
};

// A step that looks at one character at a time and appends what becomes of it.
template <void (*kMap)(std::string& out, char32_t code)>
class CharacterStep : public NormalizerStep {
 public:
  bool Apply(std::string_view text, std::string& out) const override {
    out.clear();
    out.reserve(text.size());
    for (const char *p = text.data(), *end = p + text.size(); p < end;) {
      Decoded d = DecodeValid(p);
      p += d.size;
      kMap(out, d.code);
    }
    return out != text;
  }
};

void DropAccent(std::string& out, char32_t code) {
  if (!IsMark(code) || !IsInUnicode9(code)) AppendUtf8(out, code);
}

// The clean-up of SentencePiece's nmt rules: control characters go, characters that act as blanks become one.
void CleanNmt(std::string& out, char32_t c) {
  bool control = (c >= 0x1 && c <= 0x8) || c == 0xB || (c >= 0xE && c <= 0x1F) || c == 0x7F || c == 0x8F || c == 0x9F;
  bool blank = c == 0x9 || c == 0xA || c == 0xC || c == 0xD || c == 0x1680 || (c >= 0x200B && c <= 0x200F) || c == 0x2028 ||
               c == 0x2029 || c == 0x2581 || c == 0xFEFF || c == 0xFFFD;
  if (control) return;
  AppendUtf8(out, blank ? U' ' : c);
}

// BERT's clean-up, one after the other as its options say.
void CleanBert(std::string& out, char32_t c) {
  bool blank = c == '\t' || c == '\n' || c == '\r';
  bool other = CategoryOf(c) >= Category::kCc && CategoryOf(c) <= Category::kCo;
  if (c == 0 || c == 0xFFFD || (other && !blank)) return;
  AppendUtf8(out, blank || IsWhitespace(c) ? U' ' : c);
}
void SpaceIdeograph(std::string& out, char32_t c) {
  bool ideograph = (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) ||
                   (c >= 0x2A700 && c <= 0x2B73F) || (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
                   (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
  if (ideograph) out.push_back(' ');
  AppendUtf8(out, c);
  if (ideograph) out.push_back(' ');
}
void DropNonspacing(std::string& out, char32_t c) { if (CategoryOf(c) != Category::kMn) AppendUtf8(out, c); }

class ByteCharsStep : public NormalizerStep {
 public:
  bool Apply(std::string_view text, std::string& out) const override {
    out = BytesToChars(text);
    return out != text;
  }
};

using Steps = std::vector<std::shared_ptr<const NormalizerStep>>;

template <typename Step, typename... Arguments>
void Append(Steps& steps, Arguments&&... arguments) {
  steps.push_back(std::make_shared<Step>(std::forward<Arguments>(arguments)...));
}
template <typename Step, typename... Arguments>
Status AddStep(Steps& steps, Arguments&&... arguments) {
  Append<Step>(steps, std::forward<Arguments>(arguments)...);
  return {};
}

Status AddBert(const Json& json, Steps& steps) {
  HB_ASSIGN_OR_RETURN(bool clean, json.GetBoolOr("clean_text", true));
  HB_ASSIGN_OR_RETURN(bool ideographs, json.GetBoolOr("handle_chinese_chars", true));
  HB_ASSIGN_OR_RETURN(bool lowercase, json.GetBoolOr("lowercase", true));
  HB_ASSIGN_OR_RETURN(bool strip_accents, json.GetBoolOr("strip_accents", lowercase));
  if (clean) Append<CharacterStep<CleanBert>>(steps);
  if (ideographs) Append<CharacterStep<SpaceIdeograph>>(steps);
  if (strip_accents) {
    Append<NormalFormStep>(steps, NormalForm::kNfd);
    Append<CharacterStep<DropNonspacing>>(steps);
  }
  if (lowercase) Append<CharacterStep<AppendLowercase>>(steps);
  return {};
}

Status Add(const Json& json, Steps& steps, int depth) {
  HB_ASSIGN_OR_RETURN(std::string type, ComponentType(json, depth));
  if (type == "Sequence")
    return ForEachComponent(json, "normalizers", [&](const Json& part) { return Add(part, steps, depth + 1); });
  if (type == "NFC") return AddStep<NormalFormStep>(steps, NormalForm::kNfc);
  if (type == "NFD") return AddStep<NormalFormStep>(steps, NormalForm::kNfd);
  if (type == "NFKC") return AddStep<NormalFormStep>(steps, NormalForm::kNfkc);
  if (type == "NFKD") return AddStep<NormalFormStep>(steps, NormalForm::kNfkd);
  if (type == "Lowercase") return AddStep<CharacterStep<AppendLowercase>>(steps);
  if (type == "StripAccents") return AddStep<CharacterStep<DropAccent>>(steps);
  if (type == "Nmt") return AddStep<CharacterStep<CleanNmt>>(steps);
  if (type == "ByteLevel") return AddStep<ByteCharsStep>(steps);
  if (type == "BertNormalizer") return AddBert(json, steps);
  if (type == "Prepend") {
    HB_ASSIGN_OR_RETURN(std::string prefix, json.GetString("prepend"));
    return AddStep<PrependStep>(steps, std::move(prefix));
  }
  if (type == "Replace") {
    HB_ASSIGN_OR_RETURN(SplitPattern pattern, PatternFromJson(json));
    HB_ASSIGN_OR_RETURN(std::string content, json.GetString("content"));
    return AddStep<ReplaceStep>(steps, std::move(pattern), std::move(content));
  }
  if (type == "Strip") {
    HB_ASSIGN_OR_RETURN(bool left, json.GetBoolOr("strip_left", true));
    HB_ASSIGN_OR_RETURN(bool right, json.GetBoolOr("strip_right", true));
    return AddStep<StripStep>(steps, left, right);
  }
  return UnknownComponent("normalizer", type);
}

}  // namespace

Result<Normalizer> Normalizer::FromJson(const Json* json) {
  Normalizer normalizer;
  if (json == nullptr || json->is_null()) return normalizer;
  if (auto status = Add(*json, normalizer.steps_, 0); !status) return base::Fail(std::move(status).error().At("\"normalizer\""));
  return normalizer;
}

std::string_view Normalizer::Apply(std::string_view text, std::string& buffer) const {
  std::string next;
  for (const auto& step : steps_) {
    if (!step->Apply(text, next)) continue;
    buffer.swap(next);
    text = buffer;
  }
  return text;
}

}  // namespace halfbyte::text
