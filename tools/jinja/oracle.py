"""The Jinja environment that transformers builds for chat templates, from Python's own jinja2: what the engine is compared with.

Needs jinja2 3.1 (PyPI). See differential.py.
"""
import datetime
import json

import jinja2
import jinja2.ext
import jinja2.sandbox
from jinja2 import nodes
from jinja2.utils import Namespace


class Generation(jinja2.ext.Extension):
    """{% generation %} marks what the assistant wrote; it renders its body."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return nodes.CallBlock(self.call_method("_render"), [], [], body).set_lineno(line)

    def _render(self, caller):
        return caller()


class ChatNamespace(Namespace):
    """Refuses names that begin with an underscore."""

    def __init__(*args, **kwargs):
        self, args = args[0], args[1:]
        Namespace.__init__(self)
        for name, value in dict(*args, **kwargs).items():
            self[name] = value

    def __setitem__(self, name, value):
        if isinstance(name, str) and name.startswith("_"):
            raise jinja2.exceptions.SecurityError(f"Chat templates cannot store underscore-prefixed attributes, got {name!r}")
        Namespace.__setitem__(self, name, value)


def environment(now=None):
    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    def strftime_now(format):
        return (now or datetime.datetime.now()).strftime(format)

    env = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = strftime_now
    env.globals["namespace"] = ChatNamespace
    return env


def render(template, context, now=None):
    """{"rendered": text} or {"error": text}."""
    try:
        clock = datetime.datetime.fromisoformat(now) if now else None
        text = environment(clock).from_string(template).render(**json.loads(json.dumps(context)))
        text.encode()  # lone surrogates are an error
        return {"rendered": text}
    except Exception as e:  # whatever Python raises is a refusal
        return {"error": f"{type(e).__name__}: {e}"}
