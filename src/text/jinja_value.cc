#include "text/jinja_value.h"

#include <algorithm>

#include "text/jinja_error.h"
#include "text/jinja_objects.h"

namespace halfbyte::text::jinja {

Object::Object(Heap& heap, size_t bytes) : bytes_(bytes), heap_(&heap), previous_(nullptr), next_(heap.first_) {
  heap.CheckRoom(bytes);
  if (next_ != nullptr) next_->previous_ = this;
  heap.first_ = this;
  heap.used_ += bytes;
}

Object::~Object() {
  if (previous_ != nullptr) previous_->next_ = next_;
  else heap_->first_ = next_;
  if (next_ != nullptr) next_->previous_ = previous_;
  heap_->used_ -= bytes_;
}

void Object::Charge(size_t more) {
  heap_->CheckRoom(more);
  bytes_ += more;
  heap_->used_ += more;
}

void Heap::CheckRoom(size_t more) const {
  if (more > limit_ || used_ > limit_ - more) FailLimit("the template needs more than ", limit_, " bytes of memory");
}

void Heap::FailSteps() const { FailLimit("the template takes more than ", max_steps_, " steps"); }

void Heap::Free(Object* object) {
  doomed_.push_back(object);
  if (freeing_) return;
  freeing_ = true;
  while (!doomed_.empty()) {
    Object* next = doomed_.back();
    doomed_.pop_back();
    delete next;  // may doom more
  }
  freeing_ = false;
}

Heap::~Heap() {
  // What is left is cycles. Hold everything while the references between the objects are dropped, then free.
  for (Object* o = first_; o != nullptr; o = o->next_) ++o->references_;
  for (Object* o = first_; o != nullptr; o = o->next_) o->Clear();
  while (first_ != nullptr) delete first_;
}

Value Value::String(Heap& heap, std::string s) {
  auto* object = new StringObject(heap, std::move(s));
  Value v = Of(Kind::kString, object);
  v.data_.text = {object->text.data(), object->text.size()};
  return v;
}

}  // namespace halfbyte::text::jinja
