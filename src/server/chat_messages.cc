#include "server/chat_messages.h"

namespace halfbyte::server {
namespace {

constexpr size_t kMaxMessages = 100000;

// Content that is an array of parts; false: an error was told.
bool JoinParts(Fields& f, const base::Json& parts, const std::string& where, std::string& text) {
  for (const base::Json& part : parts.as_array()) {
    const base::Json* type = part.Find("type");
    const base::Json* piece = part.Find("text");
    if (type && type->is_string() && type->as_string() != "text" && type->as_string() != "refusal") {
      f.Fail(where, base::StrCat("holds a part of type \"", type->as_string().substr(0, 40), "\"; only text is supported"));
      return false;
    }
    if (!piece) piece = part.Find("refusal");
    if (!piece || !piece->is_string()) {
      f.Fail(where, "parts are objects with a \"type\" and a string \"text\"");
      return false;
    }
    if (!text.empty()) text += '\n';
    text += piece->as_string();
  }
  return true;
}

void ReadToolCalls(Fields& f, base::Json& calls, const std::string& where) {
  if (!calls.is_array()) return f.Fail(where, "an array is wanted");
  for (base::Json& call : calls.as_array()) {
    base::Json* function = call.Find("function");
    const base::Json* name = function ? function->Find("name") : nullptr;
    if (!name || !name->is_string()) return f.Fail(where, "entries are objects with function.name and function.arguments");
    base::Json* arguments = function->Find("arguments");
    if (!arguments || !arguments->is_string()) continue;
    auto parsed = arguments->as_string().empty() ? base::Result<base::Json>(base::Json::MakeObject()) : base::Json::Parse(arguments->as_string());
    if (!parsed) return f.Fail(where, base::StrCat("function.arguments is not JSON: ", parsed.error().message()));
    *arguments = std::move(*parsed);
  }
}

void ReadMessage(Fields& f, base::Json& m, const std::string& where) {
  if (!m.is_object()) return f.Fail(where, base::StrCat("has type ", m.type_name(), ", an object is wanted"));
  const base::Json* role = m.Find("role");
  if (!role || !role->is_string()) return f.Fail(where + ".role", "a string is wanted");
  static const std::set<std::string, std::less<>> kRoles{"system", "developer", "user", "assistant", "tool", "function"};
  if (!kRoles.count(role->as_string())) return f.Fail(where + ".role", base::StrCat("is \"", role->as_string().substr(0, 40), "\"; system, developer, user, assistant or tool is wanted"));
  if (role->as_string() == "developer") m.Set("role", "system");  // OpenAI's newer name for it; templates know the older one
  base::Json* calls = m.Find("tool_calls");
  const bool has_calls = calls && calls->is_array() && !calls->as_array().empty();
  if (calls && !calls->is_null()) ReadToolCalls(f, *calls, where + ".tool_calls");
  base::Json* content = m.Find("content");
  if (!content || content->is_null()) {
    if (role->as_string() != "assistant") return f.Fail(where + ".content", "is missing");
    if (!has_calls) m.Set("content", "");
    else if (!content) m.Set("content", base::Json());
    return;
  }
  if (content->is_string()) return;
  if (!content->is_array()) return f.Fail(where + ".content", base::StrCat("has type ", content->type_name(), ", a string or an array of text parts is wanted"));
  std::string text;
  if (JoinParts(f, *content, where + ".content", text)) *content = base::Json(std::move(text));
}

}  // namespace

base::Json ReadMessages(Fields& f) {
  const base::Json* given = f.Get("messages");
  if (!given) return f.Fail("messages", "is missing"), base::Json();
  if (!given->is_array()) return f.Fail("messages", base::StrCat("has type ", given->type_name(), ", an array is wanted")), base::Json();
  if (given->as_array().empty() || given->as_array().size() > kMaxMessages) return f.Fail("messages", "is empty or too long"), base::Json();
  base::Json messages = *given;
  for (size_t i = 0; i < messages.as_array().size() && !f.error(); ++i) ReadMessage(f, messages.as_array()[i], base::StrCat("messages[", i, "]"));
  return messages;
}

base::Json ReadTools(Fields& f) {
  const base::Json* tools = f.Get("tools");
  if (!tools) return {};
  if (!tools->is_array()) return f.Fail("tools", base::StrCat("has type ", tools->type_name(), ", an array is wanted")), base::Json();
  if (tools->as_array().empty()) return {};
  for (size_t i = 0; i < tools->as_array().size(); ++i) {
    const base::Json& tool = tools->as_array()[i];
    const base::Json *type = tool.Find("type"), *function = tool.Find("function");
    if (!type || !type->is_string() || type->as_string() != "function") return f.Fail(base::StrCat("tools[", i, "].type"), "\"function\" is wanted"), base::Json();
    const base::Json* name = function ? function->Find("name") : nullptr;
    if (!name || !name->is_string() || name->as_string().empty()) return f.Fail(base::StrCat("tools[", i, "].function.name"), "a string is wanted"), base::Json();
    const base::Json* parameters = function->Find("parameters");
    if (parameters && !parameters->is_null() && !parameters->is_object()) return f.Fail(base::StrCat("tools[", i, "].function.parameters"), "an object is wanted"), base::Json();
  }
  return *tools;
}

}  // namespace halfbyte::server
