// The values that templates compute with: Python's None, bool, int, float, str, tuple, list, dict, range, iterators and
// functions, plus jinja's undefined.
//
// A Value is 32 bytes. Numbers live in it; everything else is a reference-counted Object of a Heap that belongs to one
// render. A string Value is a view: into a StringObject, or into the template or the context, which outlive the render, so
// taking a message's text or a slice of it copies nothing. Counts are not atomic: a Value never leaves its render's thread.
//
// Objects may form cycles (a macro is stored in the frame that it captures), so the Heap also lists them all and frees what
// is left when the render ends. It counts bytes and steps, and refuses beyond its limits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace halfbyte::text::jinja {

// Python's int is unbounded; 128 bits hold every JSON integer, and more than that is an OverflowError.
__extension__ typedef __int128 Int;

class Heap;
class Value;

class Object {
 public:
  // `bytes`: what to count for the object and what it owns.
  Object(Heap& heap, size_t bytes);
  virtual ~Object();
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  // Drops references to other objects; called before the last ones of a render are freed together.
  virtual void Clear() {}
  Heap& heap() const { return *heap_; }

 protected:
  void Charge(size_t more);  // for an object that grows after it was made

 private:
  friend class Heap;
  friend class Value;
  uint32_t references_ = 0;
  size_t bytes_;
  Heap* heap_;
  Object* previous_;
  Object* next_;
};

class Heap {
 public:
  Heap(size_t limit, int64_t max_steps) : limit_(limit), max_steps_(max_steps) {}
  ~Heap();
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;
  // Throws if `more` bytes would pass the limit; call it before building something large.
  void CheckRoom(size_t more) const;
  size_t used() const { return used_; }
  // Counts work; throws past the limit. Here rather than in Runtime because comparing the keys of a dict must count, too.
  void Step(int64_t count = 1) {
    steps_ += count;
    if (steps_ > max_steps_) FailSteps();
  }
  int64_t steps() const { return steps_; }

 private:
  friend class Object;
  friend class Value;
  // Frees an object whose count fell to zero, without recursing through what it held: a list nested a million deep is legal.
  void Free(Object* object);
  [[noreturn]] void FailSteps() const;

  size_t limit_, used_ = 0;
  int64_t max_steps_, steps_ = 0;
  Object* first_ = nullptr;
  std::vector<Object*> doomed_;
  bool freeing_ = false;
};

class Value {
 public:
  enum class Kind : uint8_t {
    kMissing,  // no value at all: an unset variable's slot, an argument that was not given
    kUndefined, kNone, kBool, kInt, kFloat, kString, kTuple, kList, kDict, kRange, kView, kIterator, kNamespace, kCallable,
    kLoop, kCycler, kSelf,
    kFrame,  // a function's variables; templates never see one
  };

  Value() = default;  // missing
  Value(const Value& other) : kind_(other.kind_), markup_(other.markup_), object_(other.object_), data_(other.data_) { Hold(); }
  Value(Value&& other) noexcept : kind_(other.kind_), markup_(other.markup_), object_(other.object_), data_(other.data_) {
    other.kind_ = Kind::kMissing;
    other.object_ = nullptr;
  }
  Value& operator=(const Value& other) { Value copy(other); Swap(copy); return *this; }
  Value& operator=(Value&& other) noexcept { Value moved(std::move(other)); Swap(moved); return *this; }
  ~Value() { Release(); }

  static Value None() { return Value(Kind::kNone); }
  static Value Bool(bool b) { Value v(Kind::kBool); v.data_.integer = b; return v; }
  static Value Integer(Int i) { Value v(Kind::kInt); v.data_.integer = i; return v; }
  static Value Float(double d) { Value v(Kind::kFloat); v.data_.real = d; return v; }
  // A view of text that outlives the render (template source, context, a literal).
  static Value Borrowed(std::string_view s) { Value v(Kind::kString); v.data_.text = {s.data(), s.size()}; return v; }
  static Value String(Heap& heap, std::string s);
  // A part of a string Value, sharing its owner.
  Value Part(std::string_view part) const { Value v(*this); v.data_.text = {part.data(), part.size()}; return v; }
  static Value Of(Kind kind, Object* object) { Value v(kind); v.object_ = object; v.Hold(); return v; }

  Kind kind() const { return kind_; }
  bool is(Kind k) const { return kind_ == k; }
  bool is_missing() const { return kind_ == Kind::kMissing; }
  bool is_undefined() const { return kind_ == Kind::kUndefined; }
  bool is_none() const { return kind_ == Kind::kNone; }
  bool is_string() const { return kind_ == Kind::kString; }
  bool is_integral() const { return kind_ == Kind::kInt || kind_ == Kind::kBool; }
  bool is_number() const { return is_integral() || kind_ == Kind::kFloat; }
  bool is_sequence() const { return kind_ == Kind::kList || kind_ == Kind::kTuple; }

  bool boolean() const { return data_.integer != 0; }
  Int integer() const { return data_.integer; }  // of an int or a bool
  double real() const { return data_.real; }
  double AsDouble() const { return is_integral() ? static_cast<double>(data_.integer) : data_.real; }
  std::string_view text() const { return {data_.text.data, data_.text.size}; }
  // A string that came out of |safe or |escape (Markup in Python); only strings carry the mark.
  bool is_markup() const { return markup_; }
  Value WithMarkup(bool markup) const { Value v(*this); v.markup_ = markup; return v; }

  Object* object() const { return object_; }
  template <typename T>
  T& As() const { return *static_cast<T*>(object_); }

 private:
  explicit Value(Kind kind) : kind_(kind) {}
  void Hold() const { if (object_ != nullptr) ++object_->references_; }
  void Release() { if (object_ != nullptr && --object_->references_ == 0) object_->heap_->Free(object_); }
  void Swap(Value& other) noexcept {
    std::swap(kind_, other.kind_);
    std::swap(markup_, other.markup_);
    std::swap(object_, other.object_);
    std::swap(data_, other.data_);
  }

  Kind kind_ = Kind::kMissing;
  bool markup_ = false;
  Object* object_ = nullptr;
  union {
    Int integer = 0;
    double real;
    struct { const char* data; size_t size; } text;
  } data_;
};
static_assert(sizeof(Value) == 32);

}  // namespace halfbyte::text::jinja
