// The callables and iterators that hold a piece of the template: macros, loop(...), self.block(), filtered loops.
#pragma once

#include "text/jinja_interpreter.h"

namespace halfbyte::text::jinja {

// `name` is empty for the caller of a {% call %}; `frame` holds the variables around the definition.
Value MakeMacro(Interpreter& in, const MacroSignature& macro, std::string_view name, const Value& frame);
Value MakeLoopRecursion(Interpreter& in, const ForStatement& loop, const Value& outer);
Value MakeFilteredIterator(Interpreter& in, const ForStatement& loop, const Value& frame, const Value& iterable);
Value MakeSelf(Interpreter& in);

// ns.name = v. A name with a leading underscore is a SecurityError, as in transformers.
void SetNamespaceItem(const Value& ns, const Value& name, const Value& v);

}  // namespace halfbyte::text::jinja
