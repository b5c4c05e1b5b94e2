// The "pre_tokenizer" of a tokenizer.json: how a normalized text is divided into the pieces that become tokens separately.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace halfbyte::text {

// A piece, and whether it starts where the whole text starts (Metaspace's scheme "first" asks).
struct Piece { std::string_view text; bool at_start; };

// Who receives pieces: a reference to any callable void(Piece), which must outlive the call it is passed to.
class PieceSink {
 public:
  template <typename Function>
    requires(!std::is_same_v<std::remove_const_t<Function>, PieceSink>)
  PieceSink(Function& f) : object_(&f), call_([](void* object, Piece piece) { (*static_cast<Function*>(object))(piece); }) {}
  void operator()(Piece piece) const { call_(object_, piece); }

 private:
  void* object_;
  void (*call_)(void*, Piece);
};

class PreTokenizerStep {
 public:
  virtual ~PreTokenizerStep() = default;
  // Divides one piece; pieces that come out are not empty. Text in and out is valid UTF-8.
  virtual void Run(Piece piece, PieceSink sink) const = 0;
};

// Sequence, Split, ByteLevel, Metaspace, Digits, Punctuation, Whitespace, WhitespaceSplit, CharDelimiterSplit, BertPreTokenizer, FixedLength.
class PreTokenizer {
 public:
  // nullptr or null: the text is one piece. An unknown "type" is an error that names it.
  static base::Result<PreTokenizer> FromJson(const base::Json* json);

  void Run(Piece text, PieceSink sink) const { RunFrom(0, text, sink); }

  // The last step is ByteLevel: its pieces come out as raw bytes, the model maps them (Bpe::Options::bytes). A ByteLevel step that
  // others follow writes its characters out, as the reference does.
  bool gives_bytes() const { return gives_bytes_; }

 private:
  void RunFrom(size_t step, Piece piece, PieceSink sink) const;

  std::vector<std::shared_ptr<const PreTokenizerStep>> steps_;
  bool gives_bytes_ = false;
};

}  // namespace halfbyte::text
