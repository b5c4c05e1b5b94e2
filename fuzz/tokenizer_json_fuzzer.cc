// tokenizer.json: whatever is accepted encodes any text to ids of the vocabulary and decodes them to valid UTF-8, streamed or whole.
#include "base/check.h"
#include "base/log.h"
#include "text/streaming_detokenizer.h"
#include "text/unicode.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace halfbyte;
  base::SetLogLevel(base::LogLevel::kOff);
  auto tokenizer = text::Tokenizer::FromJson({reinterpret_cast<const char*>(data), size});
  if (!tokenizer) {
    (void)tokenizer.error().ToString();
    return 0;
  }
  for (std::string_view sample : {"", " ", "a", "ab  c\n", "It's 12 caf\u00e9 e\u0301 \u4f60\u2581<s>",
                                  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\xFF"}) {
    std::vector<int32_t> ids = tokenizer->Encode(sample, true);
    for (int32_t id : ids) {
      // A template may name ids that the vocabulary lacks; they show as nothing.
      HB_CHECK(id >= 0);
      (void)tokenizer->TokenBytes(id);
      (void)tokenizer->TokenToId(tokenizer->IdToToken(id));
    }
    HB_CHECK(text::IsValidUtf8(tokenizer->Decode(ids, false)));
    text::StreamingDetokenizer stream(*tokenizer, true);
    for (int32_t id : ids) HB_CHECK(text::IsValidUtf8(stream.Push(id)));
    HB_CHECK(text::IsValidUtf8(stream.Flush()));
  }
  return 0;
}
