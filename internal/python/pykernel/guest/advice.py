"""What a sandbox adds to errors whose cause Python cannot name: a file that is a context, a
name that a flag would give. It also names files that are lost with the sandbox."""

import itertools
import os
import posixpath

import _rlm

import output

# What gives the session a name that it lacks.
_GIVEN_BY = {
    **dict.fromkeys(("graph_query", "owl_query", "kg_bulk_export", "magma_view", "ephemeral_graph_query"),
                    "it exists in a session with a knowledge graph: pass --graph FILE"),
    "sql": "it exists in a session with a context that is a table, such as a .csv or .jsonl file",
}


def of(error, contexts):
    """Returns what to add to an error, None for nothing. contexts are the session's, by name."""
    if isinstance(error, NameError):
        return _GIVEN_BY.get(getattr(error, "name", None))
    if isinstance(error, FileNotFoundError) and isinstance(error.filename, str):
        return _of_path(error.filename, contexts)
    return None


def _of_path(path, contexts):
    """Says which context has the file that a snippet looked for."""
    wanted = posixpath.normpath(path)
    for name in sorted(contexts, key=lambda name: name != "context"):
        value = contexts[name]
        known = getattr(value, "name", None)
        if not isinstance(known, str):
            continue
        last = posixpath.basename(posixpath.normpath(known))
        is_folder = hasattr(value, "sizes")
        if posixpath.basename(wanted) == last:
            use = f"list({name}) has its files" if is_folder else f"{name} is its content, {name}.open() a file over it"
            return f"the host's files are not here, but {path} is the context {name}: {use}"
        below = wanted.removeprefix(last + "/")
        if is_folder and below in value:
            return f"the host's files are not here, but {path} is in a context: {name}[{below!r}] is its content"
    return None


has_out = False  # snippets have the folder for files
_FOLDER = "/sandbox"  # the working folder and home, in every tier with files
_NAMED = 3  # files that a note names
_SEEN = 1000  # files that the search for them looks at
_left = frozenset()  # the files in the folder of which the session knows
_walk = os.walk


def note_files():
    """Names the files that a snippet left in the working folder, which is lost with the sandbox. Each
    is named once. Temporary files are elsewhere."""
    global _left
    if not getattr(_rlm, "native", False) or _rlm.forked():
        return
    try:
        files = frozenset(itertools.islice(_list_files(), _SEEN))
        new = sorted(files - _left)
        _left = files
        if new:
            more = f" and {len(new) - _NAMED} more" if len(new) > _NAMED else ""
            flag = "" if has_out else " with --out FOLDER"
            output.stderr.write(f"note: {', '.join(new[:_NAMED])}{more} will be lost with the sandbox: "
                                f"write files to keep below /out{flag}\n")
    except Exception:
        pass  # the snippet has replaced a function of os


def _list_files():
    """Returns the files in the working folder, without those that programs keep for themselves."""
    for folder, folders, names in _walk(_FOLDER):
        folders[:] = [name for name in folders if not name.startswith(".") and name != "__pycache__"]
        for name in names:
            if not name.startswith("."):
                path = posixpath.relpath(posixpath.join(folder, name), _FOLDER)
                yield path if path.isprintable() else repr(path)
