// A model's chat template: finds it in a Hugging Face folder and renders conversations as transformers' apply_chat_template
// does, for the messages as they are (transformers 5 also rewrites messages before it renders; this does not).
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "base/json.h"
#include "base/result.h"
#include "text/jinja.h"

namespace halfbyte::text {

class ChatTemplate {
 public:
  // chat_template.jinja, else "chat_template" in tokenizer_config.json: one template, or a list of {"name", "template"}, of
  // which "tool_use" is taken when there are tools and else "default". None where the folder has no template. A template that
  // does not parse is an error (kBadFile), never a silent fall-back to another format.
  //
  // Only regular files that lie in the folder are read (or, where it is a snapshot of a Hugging Face cache, in its blobs/).
  static base::Result<std::optional<ChatTemplate>> FromFolder(const std::filesystem::path& folder);

  // The template in a file of the user's choice (--chat-template), with the special tokens of the model's folder; an empty
  // `folder` means none.
  static base::Result<ChatTemplate> FromFile(const std::filesystem::path& file, const std::filesystem::path& folder);

  // `messages` is an array of objects; `tools` an array or null. The template sees them as `messages` and `tools`, besides
  // `documents` (none), `add_generation_prompt`, the special tokens (bos_token, eos_token, ...) and the members of `extra`,
  // which may hide any of the others. Two members of `extra` are no variables:
  //   continue_final_message   true: the text ends where the last message's content ends, so that the model goes on with it;
  //                            not together with add_generation_prompt
  //   now                      an ISO time, the clock of strftime_now
  // Errors are JinjaTemplate::Render's, and kInvalidArgument for arguments that contradict each other. The text may begin with
  // a BOS token that the template writes: encode it without adding special tokens.
  base::Result<std::string> Render(const base::Json& messages, const base::Json& tools, bool add_generation_prompt,
                                   const base::Json& extra, const JinjaLimits& limits = {}) const;

  // "bos_token" -> "<s>", as the template sees them.
  const base::Json& special_tokens() const { return special_tokens_; }

 private:
  base::Status AddTemplates(const base::Json& chat_template);
  base::Result<const JinjaTemplate*> Choose(bool with_tools) const;

  std::map<std::string, JinjaTemplate> templates_;  // by name; a single one is "default"
  base::Json special_tokens_ = base::Json::MakeObject();
};

}  // namespace halfbyte::text
