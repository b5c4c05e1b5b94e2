#include "text/tokenizer_file.h"

#include <algorithm>
#include <string>
#include <vector>

#include "text/json_cursor.h"
#include "text/unicode.h"

namespace halfbyte::text {
namespace {

using base::ErrorCode;
using base::Fail;
using base::Result;
using base::Status;

// The members of an object as unparsed text, each key once.
using Members = std::vector<std::pair<std::string, std::string_view>>;

Status SplitObject(JsonCursor& cursor, Members& members) {
  return cursor.Object([&](std::string_view key) -> Status {
    for (const auto& m : members) if (m.first == key) return cursor.Bad(base::StrCat("the key \"", key, "\" appears twice"));
    std::string name(key);
    HB_ASSIGN_OR_RETURN(std::string_view value, cursor.Skip());
    members.emplace_back(std::move(name), value);
    return {};
  });
}

std::string_view Take(Members& members, std::string_view key) {
  auto at = std::find_if(members.begin(), members.end(), [&](const auto& m) { return m.first == key; });
  if (at == members.end()) return {};
  std::string_view value = at->second;
  members.erase(at);
  return value;
}

Result<base::Json> ParseMembers(const Members& members) {
  base::Json out = base::Json::MakeObject();
  for (const auto& [key, text] : members) {
    HB_ASSIGN_OR_RETURN_AT(base::Json value, base::Json::Parse(text), base::StrCat("\"", key, "\""));
    out.as_object().emplace_back(key, std::move(value));
  }
  return out;
}

Status ReadVocabulary(std::string_view text, Vocabulary& vocabulary) {
  // A row like "Ġhello": 12345, has some 20 bytes; too small a guess only costs a few moves.
  vocabulary.Reserve(text.size() / 20, text.size() / 2);
  JsonCursor cursor(text);
  HB_RETURN_IF_ERROR(cursor.Object([&](std::string_view token) -> Status {
    HB_ASSIGN_OR_RETURN(int64_t id, cursor.Integer());
    if (id < 0 || id > Vocabulary::kMaxId)
      return cursor.Bad(base::StrCat("the token id ", id, " is not between 0 and ", Vocabulary::kMaxId));
    if (vocabulary.Has(static_cast<int32_t>(id)))
      return cursor.Bad(base::StrCat("the id ", id, " belongs to two tokens, \"", vocabulary.Token(static_cast<int32_t>(id)), "\" and \"", token, "\""));
    if (!vocabulary.Add(token, static_cast<int32_t>(id)))
      return cursor.Bad(base::StrCat("the token \"", token, "\" appears twice"));
    return {};
  }));
  return cursor.End();
}

}  // namespace

Result<TokenizerFile> ReadTokenizerFile(std::string_view tokenizer_json) {
  if (tokenizer_json.size() > kLargestTokenizerFile) return Fail(ErrorCode::kBadFile, "larger than ", kLargestTokenizerFile, " bytes");
  if (!IsValidUtf8(tokenizer_json)) return Fail(ErrorCode::kBadFile, "not UTF-8");
  TokenizerFile file;
  JsonCursor cursor(tokenizer_json);
  Members top, model;
  HB_RETURN_IF_ERROR(SplitObject(cursor, top));
  HB_RETURN_IF_ERROR(cursor.End());
  std::string_view model_text = Take(top, "model");
  if (model_text.empty()) return Fail(ErrorCode::kBadFile, "\"model\" is missing: this is no tokenizer.json");
  JsonCursor model_cursor(model_text);
  HB_RETURN_IF_ERROR(SplitObject(model_cursor, model));
  std::string_view vocabulary = Take(model, "vocab");
  file.merges = Take(model, "merges");
  HB_ASSIGN_OR_RETURN(file.settings, ParseMembers(top));
  HB_ASSIGN_OR_RETURN_AT(file.model, ParseMembers(model), "\"model\"");

  // Before the vocabulary, whose form depends on it. Files of the first years have no "type" for BPE.
  HB_ASSIGN_OR_RETURN_AT(std::string type, file.model.GetStringOr("type", file.merges.empty() ? "?" : "BPE"), "\"model\"");
  if (type != "BPE") return Fail(ErrorCode::kUnsupported, "the model type ", type, " is not supported, only BPE is");
  if (vocabulary.empty()) return Fail(ErrorCode::kBadFile, "\"model\": \"vocab\" is missing");
  if (auto status = ReadVocabulary(vocabulary, file.vocabulary); !status) return Fail(std::move(status).error().At("\"vocab\""));
  if (file.merges.empty()) return Fail(ErrorCode::kBadFile, "\"model\": \"merges\" is missing; every text would fall into single characters");
  return file;
}

Status ReadMerges(std::string_view merges, Bpe& model) {
  if (merges.empty()) return {};
  model.ReserveMerges(merges.size() / 48);  // a compact row has some 30 bytes, an indented one twice that
  JsonCursor cursor(merges);
  std::string left_buffer, right_buffer;
  HB_RETURN_IF_ERROR(cursor.Array([&]() -> Status {
    if (cursor.Peek() == '"') {
      HB_ASSIGN_OR_RETURN(std::string_view both, cursor.String(left_buffer));
      if (both.starts_with("#version")) return {};
      size_t space = both.find(' ');
      if (space == both.npos || both.find(' ', space + 1) != both.npos)
        return cursor.Bad("a merge is two tokens with a space between");
      return model.AddMerge(both.substr(0, space), both.substr(space + 1));
    }
    std::string_view part[2];
    int parts = 0;
    HB_RETURN_IF_ERROR(cursor.Array([&]() -> Status {
      if (parts == 2) return cursor.Bad("a merge is two tokens");
      HB_ASSIGN_OR_RETURN(part[parts], cursor.String(parts == 0 ? left_buffer : right_buffer));
      ++parts;
      return {};
    }));
    if (parts != 2) return cursor.Bad("a merge is two tokens");
    return model.AddMerge(part[0], part[1]);
  }));
  HB_RETURN_IF_ERROR(cursor.End());
  model.Finish();
  return {};
}

}  // namespace halfbyte::text
