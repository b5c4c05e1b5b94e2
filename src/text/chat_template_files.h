// Reading the small files of a model's folder that say how its chats are written.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/json.h"
#include "base/result.h"

namespace halfbyte::text {

// A file's text; none where it does not exist. Anything but a regular file of at most `limit` bytes is an error.
base::Result<std::optional<std::string>> ReadSmallFile(const std::filesystem::path& file, size_t limit);

// The same for a file of a model's folder, which may be a link only within the folder or, in a Hugging Face cache, into the
// blobs/ beside snapshots/.
base::Result<std::optional<std::string>> ReadFolderFile(const std::filesystem::path& folder, const std::string& name,
                                                        size_t limit);

// ReadFolderFile parsed as a JSON object; an empty object where there is no such file. Bare NaN and Infinity are read, too.
base::Result<base::Json> ReadFolderJson(const std::filesystem::path& folder, const std::string& name);

// {"bos_token": "<s>", ...} from tokenizer_config.json, special_tokens_map.json filling what it lacks. Tokens are strings or
// objects with "content".
base::Result<base::Json> ReadSpecialTokens(const std::filesystem::path& folder, const base::Json& tokenizer_config);

}  // namespace halfbyte::text
