// JSON Schema as a grammar (response_format json_schema, tool parameters).
//
// Fails closed: a keyword that this cannot honour is kUnsupported with its path, never ignored. Honoured: type (one or several), enum, const, properties,
// required, additionalProperties, items, prefixItems, minItems, maxItems, minLength, maxLength, pattern, format (date, time, date-time, uuid, ipv4),
// minimum, maximum, exclusiveMinimum, exclusiveMaximum (integers; numbers with whole bounds), anyOf, oneOf (where its alternatives differ in type or in a
// constant), allOf of one, $ref into this document, $defs, definitions. Annotations (title, description, default, examples, ...) say nothing about
// the value and are skipped.
//
// What comes out always satisfies the schema, but not every value that satisfies it can come: properties come in the order in which the schema lists them,
// further properties only where it lists none, blanks and numbers as json_grammar.h says, and a schema that has no `type` is taken to mean the type that its other keywords
// are about.
#pragma once

#include "base/json.h"
#include "base/result.h"
#include "text/grammar.h"

namespace halfbyte::text {

// Rule 0 of the grammar is the value.
base::Result<Grammar> JsonSchemaGrammar(const base::Json& schema);

}  // namespace halfbyte::text
