"""What a C++ source defines, found without a compiler: enough for checks of our own sources, which are
formatted by clang-format and compile."""

import bisect
import re

_TOKEN = re.compile(
    r'//[^\n]*|/\*.*?\*/|^[ \t]*\#[^\n]*(?:\\\n[^\n]*)*|R"(\w*)\((?:.|\n)*?\)\1"|"(?:\\.|[^"\\\n])*"'
    r"|(?<!\w)'(?:\\.|[^'\\\n])+'|[A-Za-z_]\w*|::|\n|[^\s]", re.DOTALL | re.MULTILINE)
_NAME = re.compile(r"[A-Za-z_]\w*$")
_TYPE_WORDS = ("class", "struct", "union", "enum")


def _tokens(text):
    """(token, offset) without comments, directives and line feeds."""
    for match in _TOKEN.finditer(text):
        token = match.group(0)
        if token != "\n" and not token.startswith(("//", "/*")) and not token.lstrip().startswith("#"):
            yield token, match.start()


def _head_name(head):
    """The name of the type that `head`, the tokens before a brace, defines; None if it defines none."""
    depth = 0
    words = []
    for token in head:
        depth += (token in "(<") - (token in ")>")
        if depth == 0 and token not in ")>":
            words.append(token)
    if "(" in head and words and words[0] not in _TYPE_WORDS + ("template",):
        return None
    kinds = [i for i, word in enumerate(words) if word in _TYPE_WORDS]
    if not kinds or "=" in words:
        return None
    name = None
    specialised = False
    for word in words[kinds[0] + 1:]:
        if word == ":":
            break
        if word == "::":
            continue
        if _NAME.match(word) and word not in _TYPE_WORDS + ("final", "alignas"):
            name = word if name is None or word.isupper() else name + "::" + word
    if head and ">" in head and head[-1] == ">":
        specialised = True
    return None if specialised else name


def _scopes(text):
    """Yields (kind, name, path, offset of head, offset of the closing brace) for each braced scope; kind
    is namespace, type or body, and path the kinds and names of what is around it."""
    stack = []
    head, start = [], None
    parens = 0
    for token, offset in _tokens(text):
        if token in "([":
            parens += 1
        elif token in ")]":
            parens -= 1
        if token == "{" and parens == 0:
            if head and head[0] == "namespace":
                stack.append(("namespace", "".join(head[1:]), start))
            elif (not stack or stack[-1][0] != "body") and (name := _head_name(head)):
                stack.append(("type", name, start))
            else:
                stack.append(("body", head, start if start is not None else offset))
            head, start = [], None
            continue
        if token == "}" and parens == 0:
            if stack:
                kind, name, begin = stack.pop()
                yield kind, name, list(stack), begin, offset
            head, start = [], None
            continue
        if token == ";" and parens == 0:
            head, start = [], None
            continue
        if start is None:
            start = offset
        head.append(token)


def types(text):
    """Qualified names of the types that are defined at the scope of a namespace that has a name."""
    found = set()
    for kind, name, path, _, _ in _scopes(text):
        if kind != "type" or any(k != "namespace" or not n for k, n, _ in path):
            continue
        found.add("::".join([*(n for _, n, _ in path), name]))
    return found


def functions(text):
    """(first line, lines, name) of each function with a body, methods in a class included."""
    starts = [m.end() for m in re.finditer("\n", text)]

    def line_of(offset):
        return bisect.bisect_right(starts, offset) + 1

    for kind, head, path, begin, end in _scopes(text):
        if kind != "body" or any(k == "body" for k, _, _ in path) or "(" not in head:
            continue
        before = head[:head.index("(")]
        if not before or not _NAME.match(before[-1]) or "=" in before:
            continue
        yield line_of(begin), line_of(end) - line_of(begin) + 1, before[-1]
