#include "text/jinja_loop.h"

#include "text/jinja_compare.h"
#include "text/jinja_text.h"

namespace halfbyte::text::jinja {
namespace {

LoopObject& Loop(const Value& self) { return self.As<LoopObject>(); }

constexpr Method kMethods[] = {
    {"cycle", [](Runtime&, const Value& self, const Arguments& a) { return Loop(self).Cycle(a); }},
    {"changed", [](Runtime&, const Value& self, const Arguments& a) { return Loop(self).Changed(a); }},
};

}  // namespace

LoopObject::LoopObject(Runtime& r, const Value& iterable, int64_t depth0, Value recurse)
    : Object(r.heap(), sizeof(LoopObject)), r_(r), iterable_(iterable), cursor_(std::in_place, r, iterable),
      recurse_(std::move(recurse)), depth0_(depth0) {}

void LoopObject::Clear() {
  iterable_ = recurse_ = before_ = current_ = after_ = last_changed_ = Value();
  cursor_.reset();
}

bool LoopObject::PeekNext() {
  if (!after_.is_missing()) return true;
  return cursor_->Next(after_);
}

bool LoopObject::Next(Value& item) {
  Value next;
  if (!after_.is_missing()) next = std::move(after_);
  else if (!cursor_->Next(next)) return false;
  ++index0_;
  before_ = std::move(current_);
  current_ = next;
  item = std::move(next);
  return true;
}

int64_t LoopObject::Length() {
  if (length_) return *length_;
  length_ = Size(iterable_);
  if (length_) return *length_;
  std::vector<Value> rest;
  for (Value v; cursor_->Next(v);) rest.push_back(std::move(v));
  length_ = static_cast<int64_t>(rest.size()) + index() + !after_.is_missing();
  cursor_.emplace(r_, r_.List(std::move(rest)));
  return *length_;
}

bool LoopObject::Attribute(const Value& self, std::string_view name, Value& out) {
  auto number = [&](int64_t n) { out = Value::Integer(n); return true; };
  if (name == "index") return number(index());
  if (name == "index0") return number(index0_);
  if (name == "first") { out = Value::Bool(index0_ == 0); return true; }
  if (name == "last") { out = Value::Bool(!PeekNext()); return true; }
  if (name == "length") return number(Length());
  if (name == "revindex") return number(Length() - index0_);
  if (name == "revindex0") return number(Length() - index());
  if (name == "depth") return number(depth0_ + 1);
  if (name == "depth0") return number(depth0_);
  if (name == "previtem") {
    out = index0_ == 0 ? MakeUndefined(r_.heap(), "there is no previous item") : before_;
    return true;
  }
  if (name == "nextitem") {
    out = PeekNext() ? after_ : MakeUndefined(r_.heap(), "there is no next item");
    return true;
  }
  for (const Method& m : kMethods) {
    if (name != m.name) continue;
    out = Value::Of(Value::Kind::kCallable, new MethodObject(r_.heap(), self, &m));
    return true;
  }
  return false;
}

Value LoopObject::Cycle(const Arguments& arguments) {
  if (arguments.positional.empty() || !arguments.keyword.empty()) Fail("TypeError", "no items for cycling given");
  return arguments.positional[static_cast<size_t>(index0_) % arguments.positional.size()];
}

Value LoopObject::Changed(const Arguments& arguments) {
  Value now = r_.Tuple(arguments.positional);
  if (!last_changed_.is_missing() && Equal(r_, last_changed_, now)) return Value::Bool(false);
  last_changed_ = std::move(now);
  return Value::Bool(true);
}

Value LoopObject::Call(const Arguments& arguments) {
  if (recurse_.is_missing()) Fail("TypeError", "The loop must have the 'recursive' marker to be called recursively.");
  if (arguments.positional.size() != 1 || !arguments.keyword.empty()) Fail("TypeError", "loop() takes exactly one argument");
  Arguments inner;
  inner.positional = {arguments.positional[0], Value::Integer(depth0_ + 1)};
  return recurse_.As<CallableObject>().Call(r_, inner);
}

}  // namespace halfbyte::text::jinja
