// A Jinja template, as chat templates use the language: parsed once, rendered many times, from any thread.
//
// The language is that of jinja2 3.1's ImmutableSandboxedEnvironment as transformers sets it up: trim_blocks, lstrip_blocks,
// loop controls, {% generation %}, tojson = json.dumps, raise_exception, strftime_now, a namespace that refuses names with a
// leading underscore. Values behave as Python's do. docs/chat-templates.md lists what is there and what is not.
//
// A template comes with a model and its context comes with a request, so neither is trusted: every render is bounded in
// steps, output, memory and depth, and there is no way from a template to files, the network or the program's own state.
#pragma once

#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"

namespace halfbyte::text {

struct JinjaLimits {
  int64_t max_steps = 20'000'000;   // about a second; a chat of 100 messages takes some 10,000
  size_t max_output = 64u << 20;    // bytes of rendered text, that of unfinished macros and blocks included
  size_t max_memory = 256u << 20;   // bytes of values alive at a time
  int max_depth = 1000;             // nested evaluation: expressions, blocks and macro calls together
};

struct JinjaOptions {
  bool trim_blocks = true;             // the newline after a block tag is dropped
  bool lstrip_blocks = true;           // white space before a block tag that begins its line is dropped
  bool keep_trailing_newline = false;
  size_t max_source = 4u << 20;        // bytes of template text
};

// The clock that strftime_now shows: local time without a zone, as datetime.now() in Python.
struct JinjaTime {
  std::tm fields{};
  int microsecond = 0;
  // "2025-07-04", "2025-07-04T12:34:56", "2025-07-04 12:34:56.789"; a zone ("Z", "+02:00") is read over.
  static base::Result<JinjaTime> Parse(std::string_view iso);
  static JinjaTime Now();
};

struct JinjaRenderOptions {
  JinjaLimits limits;
  std::optional<JinjaTime> now;  // none: the clock at the call
};

// Error codes:
//   Parse   kBadFile          the text is not a template: syntax, unknown filter, nested too deeply
//   Render  kInvalidArgument  the template called raise_exception; message() is exactly its text, for the user who sent the chat
//           kUnsupported      an operation failed on this context: "UndefinedError: 'x' is undefined", "TypeError: ..."
//           kOutOfMemory      a limit was reached
// Every error has the context "template line N".
class JinjaTemplate {
 public:
  static base::Result<JinjaTemplate> Parse(std::string source) { return Parse(std::move(source), JinjaOptions{}); }
  static base::Result<JinjaTemplate> Parse(std::string source, const JinjaOptions& options);

  // `context` is an object: its members are the template's variables.
  base::Result<std::string> Render(const base::Json& context) const { return Render(context, JinjaRenderOptions{}); }
  base::Result<std::string> Render(const base::Json& context, const JinjaRenderOptions& options) const;

 private:
  struct Program;
  explicit JinjaTemplate(std::shared_ptr<const Program> program) : program_(std::move(program)) {}
  std::shared_ptr<const Program> program_;
};

}  // namespace halfbyte::text
