// The methods of str, dict, list, tuple, int, float and range, and what of a type the sandbox hides.
#pragma once

#include "text/jinja_runtime.h"

namespace halfbyte::text::jinja {

// nullptr where the type has no such method.
const Method* FindStringMethod(std::string_view name);
const Method* FindContainerMethod(Value::Kind kind, std::string_view name);

// The method exists, but it would change its object: the immutable sandbox gives an unsafe undefined for it.
bool IsMutator(Value::Kind kind, std::string_view name);
// Names such as __class__ that every Python object has, undefined ones too; the sandbox never shows them.
bool IsObjectAttribute(std::string_view name);
// Those, and __len__, __globals__ and others that only some have.
bool IsInternalAttribute(std::string_view name);

}  // namespace halfbyte::text::jinja
