#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""doxygen_filter.py FILE: the header, or page of the guide, as Doxygen is to read it. A comment stands for all
declarations until the next empty line or comment, as in the headers; its headings (Shape, Completes, Errors ...) become
paragraphs. What is said of all `try_` forms at the top of window.hpp is said at each of them, and of what moves.
Protected members, which are for the library's own classes, and friends are left out."""
import re
import sys

HEADING = re.compile(r"^( *///) (Shape|Completes|Memory|Units|Errors|Threads|Cost|Source|See|Example)  +")
OTHER = re.compile(r"\s*(public|private|using)\b|}  // namespace")
SCOPE = re.compile(r"\s*(template\b.*>\s*)?(requires\b.*\s)?(class|struct|enum|namespace|concept|union) ")

TRY_FORM = re.compile(r"\s*(template <.*?>\s+)?(requires.*?\s+)?(\[\[nodiscard\]\] )?(static )?"
                      r"status (try_\w+|\w+_nothrow)\(")
MOVE = re.compile(r"\s*(\w+)(& operator=)?\((\w+)&& \w+\) noexcept")


def is_comment(line):
    return re.match(r" *///(?!<)", line) is not None


def indentation(line):
    return len(line) - len(line.lstrip())


def opens_scope(lines, at):
    """Whether the declaration there has members with comments of their own."""
    return SCOPE.match(" ".join(lines[at:at + 3])) is not None


def end_of_group(lines, at, depth):
    while at < len(lines):
        line = lines[at]
        if not line.strip() or is_comment(line) or indentation(line) < depth or OTHER.match(line):
            return at
        at += 1
    return at


def uncommented(lines, at):
    """A line of code that no comment stands for."""
    line = lines[at]
    continues = at > 0 and re.match(r"\s*(template|requires)\b", lines[at - 1])
    if not continues and TRY_FORM.match(" ".join(lines[at:at + 3])):
        yield " " * indentation(line) + "/// Without `try_` or `_nothrow` it throws; this form returns the status."
    elif (moved := MOVE.match(line)) and moved.group(1) == moved.group(3):
        yield " " * indentation(line) + "/// Moves; the other one is empty then."
    yield line


def members(lines):
    """Of a group: after its comment and the first declaration, forms that return a status."""
    first = next((at for at, line in enumerate(lines) if not is_comment(line)), len(lines))
    yield from lines[:first + 1]
    for at in range(first + 1, len(lines)):
        yield from uncommented(lines, at)


def public_of(lines):
    """Without protected parts of classes, and without friends and their comments."""
    protected, advance, friend, comment = False, False, False, []
    for line in lines:
        if re.match(r" *(public|private|protected):|};", line):
            protected = line.strip() == "protected:"
        advance = "their comments are below" in line or (advance and line.strip() != "")
        hidden = protected or advance
        friend = friend or re.match(r" +friend ", line) is not None
        if friend:
            comment = []
        elif is_comment(line) and not hidden:
            comment.append(line)
        elif not hidden:
            yield from [*comment, line]
            comment = []
        friend = friend and ";" not in line


def grouped(lines):
    at = 0
    while at < len(lines):
        line = lines[at]
        if not is_comment(line) or "\\file" in line:
            yield from uncommented(lines, at)
            at += 1
            continue
        first = at
        while at < len(lines) and is_comment(lines[at]):
            at += 1
        if at == len(lines) or not lines[at].strip() or opens_scope(lines, at):
            yield from lines[first:at]
            continue
        depth = indentation(lines[at])
        end = end_of_group(lines, at, depth)
        yield " " * depth + "///@{"
        yield from members(lines[first:end])
        yield " " * depth + "///@}"
        at = end


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        text = file.read()
    if sys.argv[1].endswith(".md"):
        print(re.sub(r"\[([^\]]*)\]\(\.\./[^)]*\.md(#[^)]*)?\)", r"\1", text))  # pages that are not of the reference
        return
    lines = list(public_of(text.splitlines()))
    for line in grouped(lines):
        found = HEADING.match(line)
        if found:
            print(f"{found.group(1)}\n{found.group(1)} \\par {found.group(2)}\n{found.group(1)} {line[found.end():]}")
        else:
            print(line)


if __name__ == "__main__":
    main()
