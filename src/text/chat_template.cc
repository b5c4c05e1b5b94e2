#include "text/chat_template.h"

#include "text/chat_template_files.h"

namespace halfbyte::text {
namespace {

namespace fs = std::filesystem;
using base::ErrorCode;
using base::Fail;
using base::Json;

constexpr size_t kMaxTemplate = 4u << 20;

// Marks the end of the last message while it is rendered. The space tells whether the template trims what it is given.
constexpr std::string_view kMark = "CONTINUE_FINAL_MESSAGE_TAG ";

std::string_view WithoutSpaceAtEnd(std::string_view s) {
  size_t end = s.find_last_not_of(" \t\n\r\f\v");
  return s.substr(0, end == s.npos ? 0 : end + 1);
}

// Puts the mark behind the text of the last message: its content, or the last part of it that has a text.
base::Status MarkFinalMessage(Json& messages) {
  if (!messages.is_array() || messages.as_array().empty()) {
    return Fail(ErrorCode::kInvalidArgument, "continue_final_message needs a message");
  }
  Json* content = messages.as_array().back().Find("content");
  if (content != nullptr && content->is_array()) {
    Json::Array& parts = content->as_array();
    Json* text = nullptr;
    for (auto part = parts.rbegin(); part != parts.rend() && text == nullptr; ++part) text = part->Find("text");
    content = text;
  }
  if (content == nullptr || !content->is_string()) {
    return Fail(ErrorCode::kInvalidArgument, "continue_final_message: the final message has no text to continue");
  }
  *content = Json(content->as_string() + std::string(kMark));
  return {};
}

base::Result<std::string> CutAtMark(std::string text) {
  std::string_view mark = WithoutSpaceAtEnd(kMark);
  size_t at = text.rfind(mark);
  if (at == text.npos) {
    return Fail(ErrorCode::kInvalidArgument,
                "continue_final_message: the chat template does not show the final message's text as it is");
  }
  bool trimmed = text.compare(at, kMark.size(), kMark) != 0;
  text.resize(at);
  if (trimmed) text.resize(WithoutSpaceAtEnd(text).size());
  return text;
}

// The options in `extra`, and the rest of it.
struct Extra {
  bool continue_final_message = false;
  std::optional<JinjaTime> now;
  Json::Object variables;
};

base::Result<Extra> ReadExtra(const Json& extra) {
  Extra out;
  if (extra.is_null()) return out;
  if (!extra.is_object()) return Fail(ErrorCode::kInvalidArgument, "\"extra\" is a ", extra.type_name(), ", an object is wanted");
  HB_ASSIGN_OR_RETURN(out.continue_final_message, extra.GetBoolOr("continue_final_message", false));
  if (const Json* now = extra.Find("now"); now != nullptr && !now->is_null()) {
    HB_ASSIGN_OR_RETURN(std::string text, extra.GetString("now"));
    HB_ASSIGN_OR_RETURN(out.now, JinjaTime::Parse(text));
  }
  for (const auto& [name, value] : extra.as_object()) {
    if (name != "continue_final_message" && name != "now") out.variables.emplace_back(name, value);
  }
  return out;
}

}  // namespace

base::Status ChatTemplate::AddTemplates(const Json& chat_template) {
  auto add = [&](const std::string& name, const std::string& source) -> base::Status {
    HB_ASSIGN_OR_RETURN_AT(JinjaTemplate parsed, JinjaTemplate::Parse(source), base::StrCat("chat template \"", name, "\""));
    templates_.insert_or_assign(name, std::move(parsed));
    return {};
  };
  if (chat_template.is_string()) return add("default", chat_template.as_string());
  if (!chat_template.is_array()) {
    return Fail(ErrorCode::kBadFile, "\"chat_template\" is a ", chat_template.type_name(), ", a string or a list is wanted");
  }
  for (const Json& entry : chat_template.as_array()) {
    HB_ASSIGN_OR_RETURN(std::string name, entry.GetString("name"));
    HB_ASSIGN_OR_RETURN(std::string source, entry.GetString("template"));
    HB_RETURN_IF_ERROR(add(name, source));
  }
  return {};
}

base::Result<std::optional<ChatTemplate>> ChatTemplate::FromFolder(const fs::path& folder) {
  HB_ASSIGN_OR_RETURN(Json config, ReadFolderJson(folder, "tokenizer_config.json"));
  HB_ASSIGN_OR_RETURN(std::optional<std::string> source, ReadFolderFile(folder, "chat_template.jinja", kMaxTemplate));
  ChatTemplate chat;
  HB_ASSIGN_OR_RETURN(chat.special_tokens_, ReadSpecialTokens(folder, config));
  if (source) {
    if (auto status = chat.AddTemplates(Json(std::move(*source))); !status) {
      return Fail(std::move(status).error().At((folder / "chat_template.jinja").string()));
    }
    return chat;
  }
  const Json* chat_template = config.Find("chat_template");
  if (chat_template == nullptr || chat_template->is_null()) return std::nullopt;
  if (auto status = chat.AddTemplates(*chat_template); !status) {
    return Fail(std::move(status).error().At((folder / "tokenizer_config.json").string()));
  }
  if (chat.templates_.empty()) return std::nullopt;
  return chat;
}

base::Result<ChatTemplate> ChatTemplate::FromFile(const fs::path& file, const fs::path& folder) {
  HB_ASSIGN_OR_RETURN(std::optional<std::string> source, ReadSmallFile(file, kMaxTemplate));
  if (!source) return Fail(ErrorCode::kNotFound, "chat template ", file.string(), ": no such file");
  ChatTemplate chat;
  if (!folder.empty()) {
    HB_ASSIGN_OR_RETURN(Json config, ReadFolderJson(folder, "tokenizer_config.json"));
    HB_ASSIGN_OR_RETURN(chat.special_tokens_, ReadSpecialTokens(folder, config));
  }
  if (auto status = chat.AddTemplates(Json(std::move(*source))); !status) {
    return Fail(std::move(status).error().At(file.string()));
  }
  return chat;
}

base::Result<const JinjaTemplate*> ChatTemplate::Choose(bool with_tools) const {
  if (with_tools) {
    if (auto it = templates_.find("tool_use"); it != templates_.end()) return &it->second;
  }
  if (auto it = templates_.find("default"); it != templates_.end()) return &it->second;
  std::string names;
  for (const auto& entry : templates_) names += (names.empty() ? "\"" : ", \"") + entry.first + "\"";
  return Fail(ErrorCode::kUnsupported, "the model has the chat templates ", names, " and no \"default\"");
}

base::Result<std::string> ChatTemplate::Render(const Json& messages, const Json& tools, bool add_generation_prompt,
                                               const Json& extra, const JinjaLimits& limits) const {
  HB_ASSIGN_OR_RETURN(Extra options, ReadExtra(extra));
  if (options.continue_final_message && add_generation_prompt) {
    return Fail(ErrorCode::kInvalidArgument, "continue_final_message and add_generation_prompt contradict each other");
  }
  HB_ASSIGN_OR_RETURN(const JinjaTemplate* chosen, Choose(!tools.is_null()));
  Json context = special_tokens_;
  context.Set("messages", messages);
  context.Set("tools", tools);
  context.Set("documents", Json());
  context.Set("add_generation_prompt", add_generation_prompt);
  if (options.continue_final_message) HB_RETURN_IF_ERROR(MarkFinalMessage(*context.Find("messages")));
  for (auto& [name, value] : options.variables) context.Set(name, std::move(value));
  HB_ASSIGN_OR_RETURN_AT(std::string text, chosen->Render(context, {.limits = limits, .now = options.now}), "chat template");
  return options.continue_final_message ? CutAtMark(std::move(text)) : std::move(text);
}

}  // namespace halfbyte::text
