// The steps a decoder can have; decoder.cc reads them from JSON.
#pragma once

#include <memory>
#include <string>

#include "text/decoder.h"
#include "text/split_pattern.h"

namespace halfbyte::text {

using DecoderStepPointer = std::shared_ptr<const DecoderStep>;

// Characters of the byte-level alphabet become bytes, all bytes together become text with U+FFFD for each maximal invalid part. Fuses.
DecoderStepPointer MakeByteLevelStep();
// Tokens "<0xE4>" are bytes. A run of them that is not valid UTF-8 as a whole becomes one U+FFFD for each byte.
DecoderStepPointer MakeByteFallbackStep();
DecoderStepPointer MakeFuseStep();
// Takes up to `start` characters `content` from the front of each token and up to `stop` from its end.
DecoderStepPointer MakeStripStep(char32_t content, int64_t start, int64_t stop);
DecoderStepPointer MakeReplaceStep(SplitPattern pattern, std::string content);
// `replacement` becomes a blank; in the first token it vanishes where the text had got a prefix.
DecoderStepPointer MakeMetaspaceStep(char32_t replacement, bool drop_first);
// Tokens that begin with the prefix ("##") are joined to the one before, others get a blank.
DecoderStepPointer MakeWordPieceStep(std::string prefix, bool cleanup);
// The suffix ("</w>") becomes a blank, but not in the last token.
DecoderStepPointer MakeBpeSuffixStep(std::string suffix);
DecoderStepPointer MakeJoinStep();  // blanks between tokens: no decoder at all

}  // namespace halfbyte::text
