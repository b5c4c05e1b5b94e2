#include "text/jinja.h"

#include "text/jinja_error.h"
#include "text/jinja_interpreter.h"
#include "text/jinja_parser.h"
#include "text/jinja_scope.h"
#include "text/jinja_unicode.h"

namespace halfbyte::text {

using base::ErrorCode;

struct JinjaTemplate::Program {
  jinja::TemplateTree tree;
};

namespace {

base::Error ToError(jinja::TemplateError e, int line) {
  using Kind = jinja::TemplateError::Kind;
  static constexpr ErrorCode kCodes[] = {ErrorCode::kBadFile, ErrorCode::kInvalidArgument, ErrorCode::kUnsupported,
                                         ErrorCode::kOutOfMemory};
  static_assert(static_cast<int>(Kind::kLimit) == 3);
  int at = e.line != 0 ? e.line : line;
  return base::Error(kCodes[static_cast<int>(e.kind)], std::move(e.message)).At(base::StrCat("template line ", at));
}

}  // namespace

base::Result<JinjaTemplate> JinjaTemplate::Parse(std::string source, const JinjaOptions& options) {
  if (source.size() > options.max_source) {
    return base::Fail(ErrorCode::kBadFile, "the template has ", source.size(), " bytes, ", options.max_source, " are allowed");
  }
  if (!jinja::IsValidUtf8(source)) return base::Fail(ErrorCode::kBadFile, "the template is not valid UTF-8");
  try {
    auto program = std::make_shared<Program>();
    program->tree = jinja::ParseTemplate(jinja::Tokenize(source, options));
    jinja::ResolveNames(program->tree);
    return JinjaTemplate(std::move(program));
  } catch (jinja::TemplateError& e) {
    return base::Fail(ToError(std::move(e), 1));
  }
}

base::Result<std::string> JinjaTemplate::Render(const base::Json& context, const JinjaRenderOptions& options) const {
  jinja::Interpreter interpreter(program_->tree, context, options);
  try {
    return interpreter.Run();
  } catch (jinja::TemplateError& e) {
    return base::Fail(ToError(std::move(e), interpreter.line));
  } catch (const std::bad_alloc&) {
    return base::Fail(ErrorCode::kOutOfMemory, "no memory left while a template was rendered");
  }
}

}  // namespace halfbyte::text
