"""What a sandbox adds to errors whose cause Python cannot name: a file that is a context, a
name that a flag would give, a shell that does not exist."""

import os
import posixpath

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


def install():
    """Makes os.system say why it ran nothing, where there is no shell."""
    stock = getattr(os, "system", None)
    if stock is None:
        return

    def system(command):
        status = stock(command)
        if status == 127 << 8 and not os.path.exists("/bin/sh"):
            output.stderr.write("note: os.system ran nothing, because this sandbox has no shell and no programs "
                                "but Python: use Python's own functions\n")
        return status

    system.__doc__ = stock.__doc__
    os.system = system
