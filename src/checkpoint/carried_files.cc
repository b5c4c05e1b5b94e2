#include "checkpoint/carried_files.h"

#include <algorithm>

namespace halfbyte::checkpoint {
namespace {

constexpr uint64_t kMaxBytes = uint64_t{512} << 20;  // the largest tokenizer.json in use has 33 MB

constexpr std::string_view kNames[] = {
    "generation_config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "vocab.json", "vocab.txt", "merges.txt",
    "chat_template.json", "chat_template.jinja", "preprocessor_config.json", "processor_config.json", "video_preprocessor_config.json", "image_processor_config.json",
    "tekken.json", "params.json"};
constexpr std::string_view kBeginnings[] = {"LICENSE", "LICENCE", "NOTICE", "USE_POLICY", "COPYING"};
constexpr std::string_view kEndings[] = {".jinja", ".tiktoken", ".model", ".py", ".spm", ".bpe"};

}  // namespace

bool IsCarried(std::string_view name) {
  auto is = [&](std::string_view n) { return name == n; };
  auto begins = [&](std::string_view n) { return name.starts_with(n); };
  auto ends = [&](std::string_view n) { return name.ends_with(n); };
  return std::any_of(std::begin(kNames), std::end(kNames), is) || std::any_of(std::begin(kBeginnings), std::end(kBeginnings), begins) ||
         std::any_of(std::begin(kEndings), std::end(kEndings), ends);
}

base::Result<std::vector<std::string>> CarryFiles(const ModelFolder& from, SafetensorsWriter& to) {
  HB_ASSIGN_OR_RETURN(std::vector<std::string> names, from.List(""));
  std::erase_if(names, [](const std::string& name) { return !IsCarried(name); });
  for (const std::string& name : names) {
    HB_ASSIGN_OR_RETURN(const std::string content, from.ReadText(name, kMaxBytes));
    HB_RETURN_IF_ERROR(to.AddFile(name, content));
  }
  return names;
}

}  // namespace halfbyte::checkpoint
