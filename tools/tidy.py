#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Style ratchet: tidy.py [ROOT]. Prints one line per finding, `path:line: rule: what`, and exits with 1 if any.

Rules: spdx, file-length, function-length, whitespace, line-length, banned-word, private-word, comment-beginning,
include-direction, foreign-header, listed-in-cmake, missing-path, defined-elsewhere, public-comment. A line is excused
by a comment `tidy: allow(<rule>) <why>` on it or on the line above it.
"""
import ast
import io
import os
import re
import subprocess
import sys
import tokenize

LINES_PER_FILE = 600
LINES_PER_FUNCTION = 70
COLUMNS = 120

CPP = (".cpp", ".hpp", ".h", ".cc")
SCRIPTS = (".py", ".sh", ".cmake", "CMakeLists.txt")
TEXT = CPP + SCRIPTS + (".md", ".txt", ".json", ".in")
SKIPPED_FOLDERS = {".git", "build", "__pycache__", ".cache"}

# Banned in C++: (where, pattern, also in comments, why).
BANNED = [
    ("", re.compile(r"\b(TODO|FIXME|XXX)\b"), True, "finish it or leave it out"),
    ("", re.compile(r"\bthread_local\b"), False, "all state hangs off a Runtime"),
    ("", re.compile(r"(?<!asm )(?<!__asm__ )\bvolatile\b"), False, "use std::atomic"),
    ("tests/", re.compile(r"\b(sleep_for|sleep_until|usleep|nanosleep) ?\("), False, "wait for the event itself"),
]

# Identifiers that only this project understood, and the field's word for each.
RENAMED = {
    "watched": "observed, polled", "crowded": "shared_by_threads", "attended": "needs_entry_scope",
    "objections": "blocked_by", "given_up": "window_failed, abandoned", "one_thread": "wrong_thread",
    "door": "window_mutex", "absence": "window_unlock_guard", "last_near": "last_handler_target",
    "last_far": "last_fabric_target",
    "dice": "rng_state, rng", "owe": "defer_ack", "pay": "take_pending_acks", "owed": "pending_acks",
    "nonsense": "malformed_reason", "refuse": "reject_malformed, reject", "protest": "malformed_notice",
    "knocks": "missed_reservations", "look_for_others": "poll_occasionally", "leave_library": "stop_serving",
    "heard_out": "goodbye_deadline_passed", "bury": "mark_dead", "bury_other_nodes": "mark_other_nodes_dead",
    "blame": "set_last_failed", "surroundings": "platform", "companion": "helper_thread", "weather": "fault_model",
    "landlord": "segment_provider", "meeting": "sim_boot", "bond": "connection_state", "doubtful": "unresolved",
    "greeter": "connection_manager", "letter": "collective_message", "circle": "barrier_state",
    "seat": "barrier_handle", "inlet": "incoming_word", "outlet": "outgoing_word", "homecoming": "migration_reply",
    "bring_home": "migrate_to_cpu", "wants_home": "prefers_cpu", "rent": "benefit", "price": "migration_cost",
    "home_run": "local_streak", "debt": "excess_locks", "lateness": "excess_locks", "in_vain": "failed_attempt",
    "told": "notified, reported", "ask": "request", "settle": "take_reply, finish", "leave": "release, finalize, exit",
    "lost": "failed, dead", "stay": "keep_request", "welcome": "accept, may_migrate", "come": "arrived",
    "promise": "reserve_delivery", "promised": "reserved", "again": "repeat", "offer": "word_grant",
    "work": "progress, advance", "place": "slot, element, offset", "claim": "lock_in_transition",
    "prospect": "delivery_guarantee", "wait_for_ranks": "wait", "wait_unrung": "wait",
}
PRIVATE_WORD = re.compile(r"\b(" + "|".join(RENAMED) + r")\b")

# A comment begins with the thing it names; only a question may begin with one of these.
TRAILING_BEGINNING = re.compile(r"(who|what|of|whose)(?!\S)")
SENTENCE_BEGINNING = re.compile(r"(?:\A\s*|\n\s*\n|[.:;?!]\s+)(Who|What|Of|Whose)(?!\S)(?![^.?]*\?)")
MARKERS = re.compile(r"^\s*(/[/*!<]+|#!?|\*(?=\s|$))|\s\*+/$|SPDX-License-Identifier.*|\\file$", re.MULTILINE)

# Texts for users are in plain English: short sentences with a subject and a verb.
FOR_USERS = ("include/rma/", "README.md", "docs/guide/", "docs/coming-from.md", "src/core/settings.cpp",
             "src/api/raise.cpp", "tools/rmarun_options.cpp", "tools/rma_sim_options.cpp", "tools/rma_info.cpp",
             "tools/rma_tune.cpp")
UNCLEAR = [
    (re.compile(r"\btoo([.;:,)\"]|$)"), "a trailing 'too'; write 'also' before the verb"),
    (re.compile(r"(^|[.:;] |\(|\")(Who|Whoever|who) (?!\w+\?)"), "'who' as a subject; name it: a rank, a thread"),
    (re.compile(r"\b(is|are|was|were) over([.;:,)]| all the same| then|$)"), "'over' for ended"),
    (re.compile(r"\b(is|are|was|were|gets?) told\b"), "reports, gets an error, learns of: what happens"),
]

# A layer may include itself and any lower number. `core` is the base that all may include; `runtime` holds the shared
# records (runtime, team) beside `xfer`, which fills them, and owns what `p2p` and `coll` make of them; `api` implements
# the public API on all of them.
LAYERS = {"core": 0, "boot": 1, "fabric": 2, "channel": 3, "datatype": 3, "window": 5, "runtime": 5,
          "xfer": 5, "sync": 6, "p2p": 6, "coll": 7, "api": 8, "aggregator": 9, "mpi_job": 9, "armci": 10, "mpi": 10}
# Headers of other libraries that stay in their own folders.
FOREIGN = [
    (re.compile(r"(infiniband|rdma)/"), "src/fabric/verbs/"),
    (re.compile(r"(ucp|uct|ucs|ucm)/"), "src/fabric/ucx/"),
    (re.compile(r"pmix"), "src/boot/"),
]
FOREIGN_FREE = ("tests/", "perf/peers/", "tools/")
NOT_IN_PUBLIC_HEADERS = re.compile(r"(boost|fmt|CLI|openssl)/|hwloc")

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
ALLOW = re.compile(r"tidy: allow\(([a-z-]+)\)")
COMMENT_OR_LITERAL = re.compile(
    r'R"(?P<delim>[^ ()\\\t\n]*)\((?:.|\n)*?\)(?P=delim)"'
    r'|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'"
    r"|//[^\n]*"
    r"|/\*(?:.|\n)*?\*/")
TYPE_OR_NAMESPACE = re.compile(
    r"^(inline\s+|export\s+)*(template\b.*[>)]\s*)*(namespace|class|struct|union|enum|extern|concept)\b", re.DOTALL)
INITIALIZER_LIST = re.compile(r"\)[^()]*[^:]:[^:]", re.DOTALL)


class Source:
    """One file, and what was found in it."""

    def __init__(self, root, path):
        self.path = path
        with open(os.path.join(root, path), encoding="utf-8", errors="replace", newline="") as file:
            self.text = file.read()
        self.lines = self.text.split("\n")
        self.findings = []

    def is_cpp(self):
        return self.path.endswith(CPP)

    def is_code(self):
        return self.path.endswith(CPP + SCRIPTS) or self.text.startswith("#!")

    def report(self, line, rule, what):
        nearby = self.lines[max(0, line - 2):line]
        if not any(rule in ALLOW.findall(text) for text in nearby):
            self.findings.append((line, rule, what))


def without_comments(text):
    """The code with comments and the insides of literals blanked; line numbers stay."""
    def blank(match):
        found = match.group(0)
        lines = "\n" * found.count("\n")
        return lines if found.startswith(("//", "/*")) else '""' + lines
    return COMMENT_OR_LITERAL.sub(blank, text)


def without_preprocessor(code):
    """The code with directives blanked; line numbers stay."""
    return re.sub(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", lambda match: "\n" * match.group(0).count("\n"), code,
                  flags=re.MULTILINE)


def closing_brace(code, opening):
    depth = 0
    for position in range(opening, len(code)):
        if code[position] == "{":
            depth += 1
        elif code[position] == "}":
            depth -= 1
            if depth == 0:
                return position
    return len(code) - 1


def functions(code):
    """Yields (first line, last line) of every function body outside other functions; `code` has no comments."""
    header_start = 0
    position = 0
    while position < len(code):
        char = code[position]
        if char in ";}":
            header_start = position + 1
        elif char == "{":
            header = re.sub(r"^(\s|(public|private|protected)\s*:)*", "", code[header_start:position])
            if TYPE_OR_NAMESPACE.match(header):
                header_start = position + 1
            else:
                end = closing_brace(code, position)
                in_initializers = INITIALIZER_LIST.search(header) and re.search(r"[\w>]$", header)
                if not in_initializers:
                    if "(" in header:
                        first = code.count("\n", 0, position - len(header)) + 1
                        yield first, code.count("\n", 0, end) + 1
                    header_start = end + 1
                position = end
        position += 1


def check_text(source):
    if source.text and not source.text.endswith("\n"):
        source.report(len(source.lines), "whitespace", "no newline at the end of the file")
    for number, line in enumerate(source.lines, 1):
        if "\t" in line and source.path != "debian/rules":  # a recipe of make begins with one
            source.report(number, "whitespace", "tab")
        if line != line.rstrip():
            source.report(number, "whitespace", "trailing space")
        if source.is_code() and len(line) > COLUMNS:
            source.report(number, "line-length", f"{len(line)} columns, {COLUMNS} allowed")
    if source.is_code():
        if not any("SPDX-License-Identifier: Apache-2.0" in line for line in source.lines[:3]):
            source.report(1, "spdx", "no SPDX-License-Identifier line in the first three lines")
        length = len(source.lines) - 1
        if length > LINES_PER_FILE:
            source.report(1, "file-length", f"{length} lines, {LINES_PER_FILE} allowed")


def check_function_lengths(source, code):
    spans = []
    if source.is_cpp():
        spans = functions(without_preprocessor(code))
    elif source.path.endswith(".py"):
        spans = [(node.lineno, node.end_lineno) for node in ast.walk(ast.parse(source.text))
                 if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    for first, last in spans:
        length = last - first + 1
        if length > LINES_PER_FUNCTION:
            source.report(first, "function-length", f"{length} lines, {LINES_PER_FUNCTION} allowed")


def check_banned_words(source, code):
    for where, pattern, in_comments, why in BANNED:
        if source.path.startswith(where):
            for number, line in enumerate((source.text if in_comments else code).split("\n"), 1):
                if match := pattern.search(line):
                    source.report(number, "banned-word", f"{match.group(0)}: {why}")


def check_private_words(source, code):
    if source.path.startswith(("src/", "include/")):
        for number, line in enumerate(code.split("\n"), 1):
            if match := PRIVATE_WORD.search(line):
                source.report(number, "private-word", f"{match.group(0)}: say {RENAMED[match.group(0)]}")


def comments(source):
    """Yields (line, column, text with its marker) of the comments of C++ and Python, and of other scripts those that
    begin a line."""
    if source.is_cpp():
        for match in COMMENT_OR_LITERAL.finditer(source.text):
            if match.group(0).startswith(("//", "/*")):
                before = source.text[:match.start()]
                yield before.count("\n") + 1, len(before) - before.rfind("\n") - 1, match.group(0)
    elif source.path.endswith(".py") or "python" in source.lines[0]:
        for token in tokenize.generate_tokens(io.StringIO(source.text).readline):
            if token.type == tokenize.COMMENT:
                yield *token.start, token.string
    else:
        for number, line in enumerate(source.lines, 1):
            if line.lstrip().startswith("#"):
                yield number, line.index("#"), line.lstrip()


def comment_blocks(source):
    """Yields (line, whether code stands before it, text) of every comment. A comment that begins its line belongs to
    the one above it when both have one marker and column. Lines without a sentence are empty."""
    block, expected = None, None
    for line, begin, text in comments(source):
        words = MARKERS.sub("", text).strip(" ")
        marker = re.match(r"[/#!<*]*", text).group(0)
        has_code = bool(source.lines[line - 1][:begin].strip())
        if block and not has_code and (line, begin, marker) == expected:
            block[2] += "\n" + words
        else:
            if block:
                yield tuple(block)
            block = [line, has_code, words]
        expected = (line + text.count("\n") + 1, begin, marker)
    if block:
        yield tuple(block)


def check_comment_beginnings(source):
    if not source.path.startswith(("src/", "include/", "perf/", "tools/", "examples/", "tests/")):
        return
    for line, has_code, text in comment_blocks(source):
        if has_code and (match := TRAILING_BEGINNING.match(text)):
            source.report(line, "comment-beginning", f"'{match.group(0)}': begin with the noun for what stands here")
        for match in SENTENCE_BEGINNING.finditer(text):
            at = line + text.count("\n", 0, match.start(1))
            source.report(at, "comment-beginning", f"'{match.group(1)}': begin with the noun for the thing it names")


def check_language(source):
    if not source.path.startswith(FOR_USERS):
        return
    for number, line in enumerate(source.lines, 1):
        for pattern, why in UNCLEAR:
            if pattern.search(line):
                source.report(number, "language", why)


def layer_of(path):
    return path.split("/")[0] if path.split("/")[0] in LAYERS else None


def sibling_fabrics(path, included):
    """One fabric may not know another; but the nodes of the simulator are made of shared memory, and `messaged` is what
    fabrics of messages have in common."""
    mine, theirs = path.split("/"), included.split("/")
    siblings = mine[:2] == ["src", "fabric"] and len(mine) > 3 and len(theirs) > 2 and mine[2] != theirs[1]
    return siblings and theirs[1] != "messaged" and (mine[2], theirs[1]) != ("sim", "shm")


def include_error(path, included):
    """Why this file may not include that internal header, or None."""
    target = layer_of(included)
    if target is None:
        return None
    if path.startswith(("include/", "examples/", "perf/")):
        return "only the public API may be used here"
    if not path.startswith("src/"):
        return None
    layer = layer_of(path[len("src/"):])
    if layer in ("armci", "mpi", "mpi_job") and target not in (layer, "mpi_job"):
        return f"{layer} uses the public API only"
    if {layer, target} <= {"window", "runtime", "xfer"} or {layer, target} in ({"runtime", "coll"}, {"runtime", "p2p"}):
        return None
    if layer != "fabric" and included.startswith("fabric/sim/"):
        return "nothing above the fabrics may know of the simulator"
    if layer is None or layer == target:
        return "one fabric may not know another" if layer == "fabric" and sibling_fabrics(path, included) else None
    return None if LAYERS[target] < LAYERS[layer] else f"{layer} may not include {target}"


def check_includes(source):
    for number, line in enumerate(source.lines, 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        included = match.group(2)
        if error := include_error(source.path, included):
            source.report(number, "include-direction", f"{included}: {error}")
        if source.path.startswith("include/") and NOT_IN_PUBLIC_HEADERS.match(included):
            source.report(number, "foreign-header", f"{included} in a public header")
        for pattern, home in FOREIGN:
            if match.group(1) == "<" and pattern.match(included) and not source.path.startswith((home, *FOREIGN_FREE)):
                source.report(number, "foreign-header", f"{included} outside {home}")


FREE_FUNCTION = r"^(?=\S)(?:\[\[nodiscard\]\] )?[\w:<>,&* ]+?[ &*](\w+)\([^;{}]*\)(?: noexcept)?"
DECLARATION = re.compile(FREE_FUNCTION + ";", re.MULTILINE)
DEFINITION = re.compile(FREE_FUNCTION + r" \{", re.MULTILINE)


def check_defined_where_declared(sources):
    """A function that a layer's header declares is defined in that layer: calls go down, and nothing is smuggled up."""
    defined = {}
    for source in sources:
        layer = layer_of(source.path[len("src/"):]) if source.path.startswith("src/") else None
        if layer and source.path.endswith(".cpp"):
            for name in DEFINITION.findall(without_comments(source.text)):
                defined.setdefault(name, set()).add(layer)
    for source in sources:
        layer = layer_of(source.path[len("src/"):]) if source.path.startswith("src/") else None
        if not layer or not source.path.endswith(".hpp"):
            continue
        code = without_comments(source.text)
        for match in DECLARATION.finditer(code):
            layers = defined.get(match.group(1), set())
            if layers and layer not in layers:
                line = code.count("\n", 0, match.start()) + 1
                source.report(line, "defined-elsewhere", f"{match.group(1)} is defined in {', '.join(sorted(layers))}")


def check_listed_in_cmake(source, cmake_files):
    if not (source.path.startswith("src/") and source.path.endswith(".cpp")):
        return
    folder = os.path.dirname(source.path)
    while folder:
        listed = cmake_files.get(folder + "/CMakeLists.txt", "")
        name = re.escape(os.path.relpath(source.path, folder))
        if re.search(rf"(?<![\w./-]){name}(?![\w.-])", listed):
            return
        folder = os.path.dirname(folder)
    source.report(1, "listed-in-cmake", "no CMakeLists.txt names this file: it is never compiled")


NO_DECLARATION = re.compile(r"[{}#]|//|friend |using |template\b|requires\b|static_assert|namespace|"
                            r"(class|struct) \w+;|[\w&<> ]*\b\w+(<\w+>)?::\w+\([^;]*[^;]$")
NEEDS_NO_WORDS = re.compile(r"~|.*= (delete|default);|(explicit )?(\w+)\((const )?\2\s?&|\w+& operator=\(")
OPENS_SCOPE = re.compile(r"(template\b.*> )?(class|struct|enum|union)\b[^}]*\{$")


def uncommented(lines):
    """Yields (line, text) of public declarations in a header that no comment stands for. A comment stands for all of
    its indentation until the next empty line there."""
    scopes = [[0, True]]  # indentation, whether it is public
    commented = set()
    is_hidden = False
    for number, line in enumerate(lines, 1):
        text = line.strip()
        indent = len(line) - len(text) if text else 0
        if "namespace detail" in line:
            is_hidden = not line.startswith("}")
        if is_hidden:
            continue
        if not text:
            following = next((each for each in lines[number:] if each), "")
            commented = {at for at in commented if at < len(following) - len(following.lstrip())}
            continue
        while indent < scopes[-1][0] and text not in ("public:", "private:", "protected:"):
            scopes.pop()
        if text in ("public:", "private:", "protected:"):
            scopes[-1][1] = text == "public:"
        elif indent != scopes[-1][0]:
            continue
        elif text.startswith("///"):
            commented.add(indent)
        elif OPENS_SCOPE.match(text):
            scopes.append([indent + 2, not text.startswith("class")])
        elif all(public for _, public in scopes) and indent not in commented and "///<" not in text:
            if not NO_DECLARATION.match(text) and not NEEDS_NO_WORDS.match(text):
                yield number, text


def check_public_comments(source):
    if not re.fullmatch(r"include/rma/\w+\.hpp", source.path):
        return
    for number, text in uncommented(source.lines):
        source.report(number, "public-comment", f"no comment says what this is: {text}")
    for number, line in enumerate(source.lines, 1):
        begins = number == 1 or not source.lines[number - 2].lstrip().startswith("///")
        if begins and re.match(r" */// The same\b", line):
            source.report(number, "public-comment", "'The same' as what? Name the thing")


PATH_IN_TEXT = re.compile(
    r"(?<![\w/.-])(?:src|include|tests|perf|examples|tools|docs)/[\w/.-]+\.(?:hpp|cpp|py|c|h|md)\b")


def check_paths_in_documents(source, root):
    for number, line in enumerate(source.text.split("\n"), 1):
        for path in PATH_IN_TEXT.findall(line):
            if "NAME" not in path and not os.path.exists(os.path.join(root, path)):
                source.report(number, "missing-path", f"{path} does not exist")


def check(source, cmake_files, root):
    code = without_comments(source.text) if source.is_cpp() else source.text
    check_text(source)
    check_language(source)
    check_function_lengths(source, code)
    if source.path.endswith(".md"):
        check_paths_in_documents(source, root)
    if source.is_code():
        check_comment_beginnings(source)
    if source.is_cpp():
        check_banned_words(source, code)
        check_private_words(source, code)
        check_includes(source)
        check_listed_in_cmake(source, cmake_files)
        check_public_comments(source)
    return source.findings


def files_below(root):
    """What git tracks or would track; without git, everything outside build folders."""
    listing = None
    if os.path.exists(os.path.join(root, ".git")):
        try:
            listing = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard", "-z"],
                                     capture_output=True, text=True, check=True).stdout.split("\0")
        except (OSError, subprocess.CalledProcessError):
            pass
    if listing is None:
        listing = []
        for folder, folders, names in os.walk(root):
            folders[:] = [name for name in folders if name not in SKIPPED_FOLDERS]
            listing += [os.path.relpath(os.path.join(folder, name), root) for name in names]
    return sorted(path for path in set(listing) if path and os.path.isfile(os.path.join(root, path)))


def is_checked(root, path):
    if path.endswith(TEXT):
        return True
    if os.path.splitext(path)[1]:
        return False
    with open(os.path.join(root, path), "rb") as file:
        return file.read(2) == b"#!"


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
    sources = [Source(root, path) for path in files_below(root) if is_checked(root, path)]
    cmake_files = {source.path: source.text for source in sources if source.path.endswith("CMakeLists.txt")}
    check_defined_where_declared(sources)
    count = 0
    for source in sources:
        for line, rule, what in sorted(check(source, cmake_files, root)):
            print(f"{source.path}:{line}: {rule}: {what}")
            count += 1
    print(f"tidy: {count} findings in {len(sources)} files")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
