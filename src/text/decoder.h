// The "decoder" of a tokenizer.json: how token texts become the text that a reader sees.
//
// The reference runs each step over the list of all tokens. Here a step is a stage of a pipe that gets one token after the other and
// passes on what can no longer change, so that whole texts and streams go through the same code.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace halfbyte::text {

// Who receives what a stage passes on.
class TextSink {
 public:
  template <typename Function>
    requires(!std::is_same_v<std::remove_const_t<Function>, TextSink>)
  TextSink(Function& f)
      : object_(&f), call_([](void* object, std::string_view text) { (*static_cast<Function*>(object))(text); }) {}
  void operator()(std::string_view text) const { call_(object_, text); }

 private:
  void* object_;
  void (*call_)(void*, std::string_view);
};

// The state of one step in one stream.
class DecodeStage {
 public:
  virtual ~DecodeStage() = default;
  // The next token, or behind a step that fuses the next part of the only token.
  virtual void Push(std::string_view text, TextSink next) = 0;
  virtual void Finish(TextSink) {}
};

struct StageOptions {
  bool fused = false;  // a step before this one has made one token of all
  // Pass characters of byte tokens on as soon as they are complete, although a later byte token can still spoil the run they are in
  // (see ByteFallback in decoder_steps.cc). Streams do, whole texts do not.
  bool eager = false;
};

class DecoderStep {
 public:
  virtual ~DecoderStep() = default;
  virtual std::unique_ptr<DecodeStage> Start(StageOptions options) const = 0;
  virtual bool fuses() const { return false; }
  // What the step makes of one token inside a text, for TokenBytes; true where these are the final bytes.
  virtual bool MapToken(std::string& token, bool fused) const = 0;
};

// One text being decoded.
class DecodeStream {
 public:
  void Push(std::string_view token) { Feed(0, token); }
  void Finish();
  std::string Take() { return std::exchange(out_, {}); }

 private:
  friend class Decoder;
  void Feed(size_t stage, std::string_view text);
  std::vector<std::unique_ptr<DecodeStage>> stages_;
  std::string out_;
};

// Sequence, ByteLevel, Replace, ByteFallback, Fuse, Strip, Metaspace, WordPiece, BPEDecoder. Immutable.
class Decoder {
 public:
  // nullptr or null: tokens are joined by blanks. An unknown "type" is an error that names it.
  static base::Result<Decoder> FromJson(const base::Json* json);

  DecodeStream Start(bool eager) const;
  // The bytes that a token stands for inside a text: a byte of a character for "<0xE4>", " the" for "\u2581the" or "\u0120the".
  std::string TokenBytes(std::string_view token) const;

 private:
  std::vector<std::shared_ptr<const DecoderStep>> steps_;
};

}  // namespace halfbyte::text
