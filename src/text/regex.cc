#include "text/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/log.h"
#include "text/regex_translate.h"

namespace halfbyte::text {
namespace {

// PCRE2 wants working memory that one thread uses at a time. One small match block (only the whole match is read, groups are not) and
// one growing JIT stack a thread serve every pattern.
struct ThreadMemory {
  pcre2_match_data* match = pcre2_match_data_create(1, nullptr);
  pcre2_match_context* context = pcre2_match_context_create(nullptr);
  pcre2_jit_stack* stack = nullptr;

  ThreadMemory() { pcre2_set_match_limit(context, Regex::kMatchLimit); }
  ~ThreadMemory() {
    pcre2_match_data_free(match);
    pcre2_match_context_free(context);
    pcre2_jit_stack_free(stack);
  }
  // The JIT starts on 32 KiB of the machine stack, enough for every published pattern; groups that repeat over a long text want more.
  void GrowStack() {
    if (stack != nullptr) return;
    stack = pcre2_jit_stack_create(64 * 1024, 64 * 1024 * 1024, nullptr);
    pcre2_jit_stack_assign(context, nullptr, stack);
  }
};

ThreadMemory& Memory() {
  thread_local ThreadMemory memory;
  return memory;
}

}  // namespace

struct Regex::Code {
  pcre2_code* pattern = nullptr;
  ~Code() { pcre2_code_free(pattern); }
};

base::Result<Regex> Regex::Compile(std::string_view pattern) {
  // Written-out classes make a pattern some hundred times longer; published ones have a few hundred bytes.
  constexpr size_t kLongest = 16384;
  if (pattern.size() > kLongest)
    return base::Fail(base::ErrorCode::kUnsupported, "a regular expression of ", pattern.size(), " bytes (at most ", kLongest,
                      ")");
  HB_ASSIGN_OR_RETURN(std::string translated, TranslateRegex(pattern));
  return CompileTranslated(translated, pattern);
}

base::Result<Regex> Regex::CompileLiteral(std::string_view text) { return CompileTranslated(EscapeRegex(text), text); }

base::Result<Regex> Regex::CompileTranslated(std::string_view translated, std::string_view original) {
  int error = 0;
  PCRE2_SIZE at = 0;
  pcre2_compile_context* context = pcre2_compile_context_create(nullptr);
  pcre2_set_newline(context, PCRE2_NEWLINE_LF);
  auto code = std::make_shared<Code>();
  code->pattern = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                                PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NO_UTF_CHECK, &error, &at, context);
  pcre2_compile_context_free(context);
  if (code->pattern == nullptr) {
    PCRE2_UCHAR message[256];
    pcre2_get_error_message(error, message, sizeof message);
    return base::Fail(base::ErrorCode::kBadFile, "the regular expression ", original.substr(0, 200), " cannot be compiled: ",
                      reinterpret_cast<const char*>(message));
  }
  // Without JIT (a machine that forbids writable code) the interpreter gives the same matches more slowly.
  pcre2_jit_compile(code->pattern, PCRE2_JIT_COMPLETE);
  Regex regex;
  regex.code_ = std::move(code);
  return regex;
}

bool Regex::Search(std::string_view text, size_t from, Match* match) const {
  ThreadMemory& memory = Memory();
  auto run = [&](uint32_t options) {
    return pcre2_match(code_->pattern, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from, PCRE2_NO_UTF_CHECK | options,
                       memory.match, memory.context);
  };
  int status = run(0);
  if (status == PCRE2_ERROR_JIT_STACKLIMIT) { memory.GrowStack(); status = run(0); }
  if (status == PCRE2_ERROR_JIT_STACKLIMIT) status = run(PCRE2_NO_JIT);  // the interpreter keeps its stack on the heap
  if (status < 0) {
    if (status != PCRE2_ERROR_NOMATCH)
      base::LogWarning("a tokenizer's regular expression gave up on a text of ", text.size(), " bytes (PCRE2 error ", status,
                       ")");
    return false;
  }
  const PCRE2_SIZE* bounds = pcre2_get_ovector_pointer(memory.match);
  *match = {bounds[0], bounds[1]};
  return true;
}

size_t Regex::NextCharacter(std::string_view text, size_t at) {
  ++at;
  while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) ++at;
  return at;
}

}  // namespace halfbyte::text
