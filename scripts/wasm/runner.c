/*
 * The reactor around CPython: what the host can call in the guest, and the
 * built-in module _rlm with which the guest calls the host.
 *
 * The host never re-enters the guest. A call leaves its reply pending with the
 * host and returns the reply's length; the guest then allocates the object the
 * reply belongs in and has the host write straight into it.
 */
#define PY_SSIZE_T_CLEAN
#define Py_BUILD_CORE 1
#include <Python.h>
#include "internal/pycore_ast.h"
#include "internal/pycore_ceval.h"
#include "internal/pycore_compile.h"
#include "internal/pycore_parser.h"
#include "internal/pycore_pyarena.h"
#include "internal/pycore_unicodeobject.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT(name) __attribute__((export_name(name), used))
#define IMPORT(name) __attribute__((import_module("rlm"), import_name(name)))

/* ---- what the host offers ---------------------------------------------- */

IMPORT("call") extern int64_t host_call(const void *request, int32_t len);
IMPORT("take") extern void host_take(void *dst, int32_t len);
IMPORT("yield") extern void host_yield(void);
IMPORT("switch") extern void host_switch(const void *thread, void *stack_top);

/* Only instrumented code calls host_yield, and that code does not exist yet
 * when the linker looks. This reference keeps the import alive until then. */
__attribute__((used)) static void (*const keep_yield)(void) = host_yield;

enum { REPLY_ERROR = 1 << 0, REPLY_ASCII = 1 << 1 };

typedef struct {
    uint32_t len;
    uint32_t flags;
} reply_t;

/* ---- the module _rlm ----------------------------------------------------- */

static PyObject *host_error;   /* the exception _rlm.HostError */
static PyObject *run_callable; /* what set_run registered */

static void
discard_reply(void)
{
    host_take(NULL, 0);
}

static void
take_into(void *dst, uint32_t len)
{
    if (len == 0) {
        discard_reply(); /* dst may be a shared empty object */
    }
    else {
        host_take(dst, (int32_t)len);
    }
}

/* Hands len bytes to the host. Fails, with an exception, only if one of the
 * two lengths does not fit the ABI. */
static int
ask(const void *data, Py_ssize_t len, reply_t *reply)
{
    if ((int64_t)len > INT32_MAX) {
        PyErr_SetString(PyExc_OverflowError, "request is too large");
        return -1;
    }
    uint64_t packed = (uint64_t)host_call(data, (int32_t)len);
    reply->len = (uint32_t)packed;
    reply->flags = (uint32_t)(packed >> 32);
    if (reply->len > INT32_MAX) {
        discard_reply();
        PyErr_SetString(PyExc_OverflowError, "reply is too large");
        return -1;
    }
    return 0;
}

static int
ask_encoded(PyObject *text, reply_t *reply)
{
    PyObject *bytes = PyUnicode_AsEncodedString(text, "utf-8", "surrogateescape");
    if (bytes == NULL) {
        return -1;
    }
    int rc = ask(PyBytes_AS_STRING(bytes), PyBytes_GET_SIZE(bytes), reply);
    Py_DECREF(bytes);
    return rc;
}

static int
ask_str(PyObject *text, reply_t *reply)
{
    Py_ssize_t len;
    const char *utf8 = PyUnicode_AsUTF8AndSize(text, &len);
    if (utf8 != NULL) {
        return ask(utf8, len, reply);
    }
    if (!PyErr_ExceptionMatches(PyExc_UnicodeEncodeError)) {
        return -1;
    }
    PyErr_Clear(); /* lone surrogates: bytes that came in escaped go out again */
    return ask_encoded(text, reply);
}

static int
ask_buffer(PyObject *obj, reply_t *reply)
{
    Py_buffer view;
    if (PyObject_GetBuffer(obj, &view, PyBUF_SIMPLE) < 0) {
        return -1;
    }
    int rc = ask(view.buf, view.len, reply);
    PyBuffer_Release(&view);
    return rc;
}

static int
ask_object(PyObject *obj, reply_t *reply)
{
    return PyUnicode_Check(obj) ? ask_str(obj, reply) : ask_buffer(obj, reply);
}

static PyObject *
take_bytes(uint32_t len)
{
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)len);
    if (bytes == NULL) {
        discard_reply();
        return NULL;
    }
    take_into(PyBytes_AS_STRING(bytes), len);
    return bytes;
}

/* An ASCII reply needs no decoding: the host writes the characters themselves. */
static PyObject *
take_ascii(uint32_t len)
{
    PyObject *text = PyUnicode_New((Py_ssize_t)len, 127);
    if (text == NULL) {
        discard_reply();
        return NULL;
    }
    take_into(len ? PyUnicode_1BYTE_DATA(text) : NULL, len);
    return text;
}

static PyObject *
take_str(const reply_t *reply)
{
    if (reply->flags & REPLY_ASCII) {
        return take_ascii(reply->len);
    }
    PyObject *bytes = take_bytes(reply->len);
    if (bytes == NULL) {
        return NULL;
    }
    PyObject *text = PyUnicode_DecodeUTF8(
        PyBytes_AS_STRING(bytes), PyBytes_GET_SIZE(bytes), "surrogateescape");
    Py_DECREF(bytes);
    return text;
}

static void
raise_host_error(const reply_t *reply)
{
    PyObject *text = take_str(reply);
    if (text != NULL) {
        PyErr_SetObject(host_error, text);
        Py_DECREF(text);
    }
}

static PyObject *
rlm_call(PyObject *Py_UNUSED(module), PyObject *request)
{
    reply_t reply;
    if (ask_object(request, &reply) < 0) {
        return NULL;
    }
    if (reply.flags & REPLY_ERROR) {
        raise_host_error(&reply);
        return NULL;
    }
    return take_bytes(reply.len);
}

static PyObject *
rlm_call_str(PyObject *Py_UNUSED(module), PyObject *request)
{
    reply_t reply;
    if (ask_object(request, &reply) < 0) {
        return NULL;
    }
    if (reply.flags & REPLY_ERROR) {
        raise_host_error(&reply);
        return NULL;
    }
    return take_str(&reply);
}

static PyObject *
rlm_set_run(PyObject *Py_UNUSED(module), PyObject *callable)
{
    if (!PyCallable_Check(callable)) {
        PyErr_SetString(PyExc_TypeError, "set_run() needs a callable");
        return NULL;
    }
    Py_XSETREF(run_callable, Py_NewRef(callable));
    Py_RETURN_NONE;
}

/* keep_value turns a trailing expression into an assignment to name, so that
 * the value can be echoed. Doing it here spares the detour over syntax trees of
 * Python objects, which would take longer than a small snippet. */
static int keep_value(mod_ty module, PyObject *name, PyArena *arena) {
    asdl_stmt_seq *body = module->v.Module.body;
    Py_ssize_t length = asdl_seq_LEN(body);
    if (length == 0)
        return 0;
    stmt_ty last = asdl_seq_GET(body, length - 1);
    if (last->kind != Expr_kind)
        return 0;
    asdl_expr_seq *targets = _Py_asdl_expr_seq_new(1, arena);
    if (targets == NULL || _PyArena_AddPyObject(arena, Py_NewRef(name)) < 0)
        return -1;
    expr_ty target = _PyAST_Name(name, Store, last->lineno, last->col_offset,
                                 last->end_lineno, last->end_col_offset, arena);
    if (target == NULL)
        return -1;
    asdl_seq_SET(targets, 0, target);
    stmt_ty kept = _PyAST_Assign(targets, last->v.Expr.value, NULL, last->lineno,
                                 last->col_offset, last->end_lineno,
                                 last->end_col_offset, arena);
    if (kept == NULL)
        return -1;
    asdl_seq_SET(body, length - 1, kept);
    return 0;
}

static PyObject *compile_in(PyArena *arena, const char *source,
                            PyObject *file, PyObject *name) {
    PyCompilerFlags flags = _PyCompilerFlags_INIT;
    flags.cf_flags = PyCF_SOURCE_IS_UTF8 | PyCF_IGNORE_COOKIE |
                     PyCF_ALLOW_TOP_LEVEL_AWAIT;
    mod_ty module =
        _PyParser_ASTFromString(source, file, Py_file_input, &flags, arena);
    if (module == NULL || keep_value(module, name, arena) < 0)
        return NULL;
    return (PyObject *)_PyAST_Compile(module, file, &flags, -1, arena);
}

static PyObject *rlm_compile(PyObject *module, PyObject *args) {
    PyObject *source, *file, *name;
    if (!PyArg_ParseTuple(args, "UUU:compile", &source, &file, &name))
        return NULL;
    Py_ssize_t length;
    const char *text = PyUnicode_AsUTF8AndSize(source, &length);
    if (text == NULL)
        return NULL;
    if (strlen(text) != (size_t)length) {
        PyErr_SetString(PyExc_SyntaxError,
                        "source code string cannot contain null bytes");
        return NULL;
    }
    PyArena *arena = _PyArena_New();
    if (arena == NULL)
        return NULL;
    PyObject *code = compile_in(arena, text, file, name);
    _PyArena_Free(arena);
    return code;
}

/* ---- texts that lie where the host maps a file ----------------------------- */

/* A str whose characters belong to the host's mapping. An instance of a subclass
 * is not compact: its characters lie behind a pointer. So CPython's own code does
 * everything with it, and nothing is copied. */
typedef struct {
    PyUnicodeObject text;
    PyObject *info;    /* the host's description */
    Py_ssize_t offset; /* of the first character in the host's text */
} text_object;

enum { VIEW = 1 << 20 }; /* longer slices share the mapping */

/* A str ends with a NUL, up to which int and compile read its UTF-8 form. Another
 * character follows a part. So CPython encodes a part if it wants this form. */
static PyObject *
make_text(PyTypeObject *type, PyObject *info, Py_ssize_t offset, char *data,
          Py_ssize_t length, int kind, int ascii)
{
    text_object *self = (text_object *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    PyASCIIObject *base = &self->text._base._base;
    base->length = length;
    base->hash = -1;
    base->state.kind = (unsigned int)kind;
    base->state.ascii = ascii != 0;
    self->text.data.any = data;
    if (ascii && data[length] == 0) {
        self->text._base.utf8 = data;
        self->text._base.utf8_length = length;
    }
    self->info = Py_NewRef(info);
    self->offset = offset;
    return (PyObject *)self;
}

static void
text_dealloc(PyObject *self)
{
    text_object *text = (text_object *)self;
    if (text->text._base.utf8 == text->text.data.any) {
        text->text._base.utf8 = NULL;
    }
    text->text.data.any = NULL; /* the mapping stays */
    Py_CLEAR(text->info);
    PyUnicode_Type.tp_dealloc(self);
}

/* Type(x) makes a plain str of x: only the host can make one of these. */
static PyObject *
text_new(PyTypeObject *Py_UNUSED(type), PyObject *args, PyObject *kwargs)
{
    return PyUnicode_Type.tp_new(&PyUnicode_Type, args, kwargs);
}

static PyObject *
text_str(PyObject *self)
{
    return Py_NewRef(self); /* str would copy it */
}

/* Reports whether bytes.fromhex might take a digit behind a part that ends here: of an
 * odd number of digits it reads one more. */
static int
may_be_hex(const char *end)
{
    if (!Py_ISXDIGIT(end[0]) || !Py_ISXDIGIT(end[-1])) {
        return 0;
    }
    for (int i = 2; i <= 64; i++) {
        if (!Py_ISXDIGIT(end[-i]) && !Py_ISSPACE(end[-i])) {
            return 0;
        }
    }
    return 1;
}

/* The characters from start to end. A part is a view only if a str of its own
 * would have the same form: CPython compares strings of different forms as
 * different. */
static PyObject *
text_part(PyObject *self, Py_ssize_t start, Py_ssize_t end)
{
    text_object *text = (text_object *)self;
    if (start == 0 && end == PyUnicode_GET_LENGTH(self)) {
        return Py_NewRef(self);
    }
    int kind = PyUnicode_KIND(self), ascii = PyUnicode_IS_ASCII(self);
    if (end - start > VIEW) {
        Py_UCS4 widest = _PyUnicode_FindMaxChar(self, start, end);
        int needs = widest < 0x100 ? 1 : widest < 0x10000 ? 2 : 4;
        char *data = PyUnicode_DATA(self);
        if (needs == kind && (widest < 0x80) == ascii && !(ascii && may_be_hex(data + end))) {
            return make_text(Py_TYPE(self), text->info, text->offset + start,
                             data + (size_t)start * kind, end - start, kind, ascii);
        }
    }
    return PyUnicode_Substring(self, start, end);
}

static PyObject *
text_subscript(PyObject *self, PyObject *key)
{
    if (PySlice_Check(key)) {
        Py_ssize_t start, stop, step;
        if (PySlice_Unpack(key, &start, &stop, &step) < 0) {
            return NULL;
        }
        Py_ssize_t count =
            PySlice_AdjustIndices(PyUnicode_GET_LENGTH(self), &start, &stop, step);
        if (step == 1 && count > 0) {
            return text_part(self, start, start + count);
        }
    }
    return PyUnicode_Type.tp_as_mapping->mp_subscript(self, key);
}

static PyMappingMethods text_mapping = {.mp_subscript = text_subscript};

static PyMemberDef text_members[] = {
    {"_info", Py_T_OBJECT_EX, offsetof(text_object, info), Py_READONLY, NULL},
    {"_a", Py_T_PYSSIZET, offsetof(text_object, offset), Py_READONLY, NULL},
    {NULL},
};

static PyTypeObject text_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "_rlm.Text",
    .tp_basicsize = sizeof(text_object),
    .tp_base = &PyUnicode_Type,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_new = text_new,
    .tp_dealloc = text_dealloc,
    .tp_str = text_str,
    .tp_as_mapping = &text_mapping,
    .tp_members = text_members,
};

static PyObject *
rlm_text(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyTypeObject *type;
    PyObject *info;
    unsigned long address;
    Py_ssize_t length;
    int kind, ascii;
    if (!PyArg_ParseTuple(args, "O!Oknip:text", &PyType_Type, &type, &info, &address,
                          &length, &kind, &ascii)) {
        return NULL;
    }
    uint64_t end = (uint64_t)address + ((uint64_t)length + 1) * (uint64_t)kind;
    uint64_t size = (uint64_t)__builtin_wasm_memory_size(0) << 16;
    if (!PyType_IsSubtype(type, &text_type) || length < 1 || address == 0 || end > size
        || (kind != 1 && kind != 2 && kind != 4) || (ascii && kind != 1)) {
        PyErr_SetString(PyExc_ValueError, "no text lies there");
        return NULL;
    }
    /* A class made by Python looks items up by name, since ours differ from those of
     * str by key only. By index they are the same. */
    type->tp_as_sequence->sq_item = PyUnicode_Type.tp_as_sequence->sq_item;
    return make_text(type, info, 0, (char *)address, length, kind, ascii);
}

/* ---- threads ---------------------------------------------------------------- */

/* A thread of Python that runs on a stack of its own. One thread runs at a time:
 * another one runs only after switch(), and the host resumes it where it called
 * switch() itself. So nothing here needs a lock. The host reads the first words. */
typedef struct {
    uintptr_t *eval_breaker; /* where it raises KeyboardInterrupt in this thread */
    PyObject **async_exc;
    PyThreadState *state;
    PyObject *run; /* called in the thread; returns the thread to resume at its end */
    char *stack;
} thread_t;

enum { THREAD_STACK = 512 * 1024, MAIN_STACK = 8 * 1024 * 1024 };

static const uint64_t canary = 0x52c1a3b6f0e49d87; /* at the end of each stack */

static thread_t *ended; /* its memory is freed by the next one that runs */

static void
free_thread(thread_t *thread)
{
    Py_XDECREF(thread->run);
    free(thread->stack);
    free(thread);
}

static thread_t *
new_thread(PyObject *run)
{
    thread_t *thread = calloc(1, sizeof *thread);
    if (thread == NULL || (thread->stack = malloc(THREAD_STACK)) == NULL
        || (thread->state = PyThreadState_New(PyInterpreterState_Get())) == NULL) {
        if (thread != NULL) {
            free_thread(thread);
        }
        return NULL;
    }
    memcpy(thread->stack, &canary, sizeof canary);
    PyThreadState *state = thread->state;
    state->c_recursion_remaining = Py_C_RECURSION_LIMIT / (MAIN_STACK / THREAD_STACK);
    thread->eval_breaker = &state->eval_breaker;
    thread->async_exc = &state->async_exc;
    thread->run = Py_NewRef(run);
    return thread;
}

static PyObject *
rlm_thread(PyObject *Py_UNUSED(module), PyObject *run)
{
    thread_t *thread = new_thread(run);
    return thread == NULL ? PyErr_NoMemory() : PyLong_FromVoidPtr(thread);
}

static void
leave_thread(const thread_t *next)
{
    host_switch(next, next == NULL ? NULL : next->stack + THREAD_STACK);
}

/* The interpreter's limit on C recursion keeps a thread within its stack. Should
 * it not, other data is overwritten, and nothing in this memory can be trusted. */
static void
check_stack(const thread_t *thread)
{
    if (thread != NULL && memcmp(thread->stack, &canary, sizeof canary) != 0) {
        __builtin_trap();
    }
}

static thread_t *running; /* NULL for the main thread */

static PyObject *
rlm_switch(PyObject *Py_UNUSED(module), PyObject *arg)
{
    thread_t *next = PyLong_AsVoidPtr(arg);
    if (next == NULL && PyErr_Occurred()) {
        return NULL;
    }
    thread_t *self = running;
    check_stack(self);
    PyThreadState *state = PyEval_SaveThread();
    leave_thread(next);
    running = self;
    if (ended != NULL) {
        thread_t *thread = ended;
        ended = NULL;
        thread->run = NULL;
        free_thread(thread);
    }
    PyEval_RestoreThread(state);
    Py_RETURN_NONE;
}

/* The host calls this on the stack of a new thread, and resumes the returned one. */
EXPORT("thread") thread_t *
rlm_run_thread(thread_t *self)
{
    running = self;
    PyEval_RestoreThread(self->state);
    PyObject *result = PyObject_CallNoArgs(self->run);
    thread_t *next = result == NULL ? NULL : PyLong_AsVoidPtr(result);
    if (PyErr_Occurred()) {
        PyErr_WriteUnraisable(self->run);
    }
    Py_XDECREF(result);
    Py_CLEAR(self->run);
    PyThreadState_Clear(self->state);
    PyThreadState_DeleteCurrent();
    check_stack(self);
    ended = self;
    return next;
}

static PyMethodDef rlm_methods[] = {
    {"call", rlm_call, METH_O,
     "call(request, /) -> bytes\n\nAsk the host; request is a str or bytes-like."},
    {"call_str", rlm_call_str, METH_O,
     "call_str(request, /) -> str\n\nAsk the host for text."},
    {"compile", rlm_compile, METH_VARARGS,
     "compile(source, filename, name, /) -> code\n\nCompile a snippet; the value "
     "of a trailing expression is assigned to name."},
    {"text", rlm_text, METH_VARARGS,
     "text(type, info, address, length, kind, ascii, /) -> str\n\nThe text that the "
     "host has mapped at address, kind bytes a character, with a NUL after it."},
    {"thread", rlm_thread, METH_O,
     "thread(run, /) -> int\n\nMake a thread. It calls run() when it is first switched "
     "to, and run() returns the thread that goes on at its end."},
    {"switch", rlm_switch, METH_O,
     "switch(thread, /)\n\nLet another thread run, 0 for the main one, until one of "
     "them switches back."},
    {"set_run", rlm_set_run, METH_O,
     "set_run(callable, /)\n\nSay what runs a snippet: callable(source, flags) -> int."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef rlm_module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_rlm",
    .m_doc = "The way from the sandbox to its host.",
    .m_size = -1,
    .m_methods = rlm_methods,
};

static PyObject *
init_rlm(void)
{
    PyObject *module = PyModule_Create(&rlm_module);
    if (module == NULL) {
        return NULL;
    }
    host_error = PyErr_NewExceptionWithDoc(
        "_rlm.HostError", "The host refused a call or failed at it.",
        PyExc_RuntimeError, NULL);
    if (host_error == NULL
        || PyModule_AddObjectRef(module, "HostError", host_error) < 0
        || PyModule_AddType(module, &text_type) < 0) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}

/* ---- starting CPython ---------------------------------------------------- */

extern const struct _frozen stdlib_frozen[]; /* made by freeze.py */

static int
failed(PyStatus status)
{
    if (!PyStatus_Exception(status)) {
        return 0;
    }
    const char *why = status.err_msg ? status.err_msg : "exit requested";
    fprintf(stderr, "init: %s\n", why);
    fflush(stderr);
    return 1;
}

static int
preinitialize(void)
{
    PyPreConfig config;
    PyPreConfig_InitIsolatedConfig(&config);
    config.utf8_mode = 1;
    return failed(Py_PreInitialize(&config)) ? -1 : 0;
}

/* There is no file system: these only have to be sane strings. */
static int
set_paths(PyConfig *config)
{
    struct {
        wchar_t **field;
        const wchar_t *value;
    } paths[] = {
        {&config->program_name, L"python"},
        {&config->executable, L""},
        {&config->base_executable, L""},
        {&config->prefix, L"/"},
        {&config->exec_prefix, L"/"},
        {&config->base_prefix, L"/"},
        {&config->base_exec_prefix, L"/"},
        {&config->stdlib_dir, L"/lib"},
        {&config->platlibdir, L"lib"},
    };
    for (size_t i = 0; i < Py_ARRAY_LENGTH(paths); i++) {
        if (failed(PyConfig_SetString(config, paths[i].field, paths[i].value))) {
            return -1;
        }
    }
    config->module_search_paths_set = 1; /* and empty: everything is frozen */
    return 0;
}

static void
set_options(PyConfig *config)
{
    config->use_frozen_modules = 1; /* there are no others */
    config->site_import = 0;
    config->user_site_directory = 0;
    config->write_bytecode = 0;
    config->install_signal_handlers = 0;
    config->faulthandler = 0;
    config->parse_argv = 0;
    config->pathconfig_warnings = 0;
    /* All sandboxes are copies of one image, so hashes are the same in all of
     * them anyway; a fixed seed makes the image reproducible. */
    config->use_hash_seed = 1;
    config->hash_seed = 0;
}

static int
initialize(void)
{
    PyConfig config;
    PyConfig_InitIsolatedConfig(&config);
    set_options(&config);
    int rc = set_paths(&config);
    if (rc == 0 && failed(Py_InitializeFromConfig(&config))) {
        rc = -1;
    }
    PyConfig_Clear(&config);
    return rc;
}

EXPORT("init") int32_t
rlm_init(void)
{
    if (preinitialize() < 0) {
        return -1;
    }
    if (PyImport_AppendInittab("_rlm", init_rlm) < 0) {
        fputs("init: out of memory\n", stderr);
        return -2;
    }
    PyImport_FrozenModules = stdlib_frozen;
    return initialize() < 0 ? -3 : 0;
}

/* ---- running Python ------------------------------------------------------ */

/* Prints the current exception and clears it. PyErr_Print will not do: it ends
 * the process on SystemExit. */
static int32_t
report_error(void)
{
    PyObject *exc = PyErr_GetRaisedException();
    if (exc != NULL) {
        PyErr_DisplayException(exc);
        Py_DECREF(exc);
    }
    PyErr_Clear();
    return -1;
}

static PyObject *
compile_boot(const char *source, int32_t len)
{
    if (memchr(source, 0, (size_t)len) != NULL) {
        PyErr_SetString(PyExc_SyntaxError, "source code cannot contain null bytes");
        return NULL;
    }
    char *text = malloc((size_t)len + 1); /* the compiler wants a C string */
    if (text == NULL) {
        return PyErr_NoMemory();
    }
    memcpy(text, source, (size_t)len);
    text[len] = 0;
    PyCompilerFlags flags = _PyCompilerFlags_INIT;
    flags.cf_flags = PyCF_SOURCE_IS_UTF8 | PyCF_IGNORE_COOKIE;
    PyObject *code =
        Py_CompileStringExFlags(text, "<boot>", Py_file_input, &flags, -1);
    free(text);
    return code;
}

static PyObject *
boot_globals(void)
{
    PyObject *globals = PyDict_New();
    PyObject *name = PyUnicode_FromString("__boot__");
    if (globals == NULL || name == NULL
        || PyDict_SetItemString(globals, "__builtins__", PyEval_GetBuiltins()) < 0
        || PyDict_SetItemString(globals, "__name__", name) < 0) {
        Py_CLEAR(globals);
    }
    Py_XDECREF(name);
    return globals;
}

static PyObject *
eval_boot(PyObject *code)
{
    PyObject *globals = boot_globals();
    if (globals == NULL) {
        return NULL;
    }
    PyObject *result = PyEval_EvalCode(code, globals, globals);
    Py_DECREF(globals);
    return result;
}

EXPORT("boot") int32_t
rlm_boot(const char *source, int32_t len)
{
    PyObject *code = compile_boot(source, len);
    if (code == NULL) {
        return report_error();
    }
    PyObject *result = eval_boot(code);
    Py_DECREF(code);
    if (result == NULL) {
        return report_error();
    }
    Py_DECREF(result);
    return 0;
}

static PyObject *
call_run(const char *source, int32_t len, int32_t flags)
{
    if (run_callable == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "nothing is registered to run snippets");
        return NULL;
    }
    PyObject *text = PyUnicode_DecodeUTF8(source, len, "surrogateescape");
    if (text == NULL) {
        return NULL;
    }
    PyObject *callable = Py_NewRef(run_callable); /* it may register another */
    PyObject *result = PyObject_CallFunction(callable, "Ni", text, (int)flags);
    Py_DECREF(callable);
    return result;
}

static int32_t
run_result(PyObject *result)
{
    if (!PyLong_Check(result)) {
        PyErr_Format(PyExc_TypeError, "the runner returned %T, not int", result);
        return -1;
    }
    long value = PyLong_AsLong(result);
    if (value < 0 && !PyErr_Occurred()) {
        PyErr_SetString(PyExc_ValueError, "the runner returned a negative int");
    }
    return value < 0 ? -1 : (int32_t)value;
}

EXPORT("run") int32_t
rlm_run(const char *source, int32_t len, int32_t flags)
{
    PyObject *result = call_run(source, len, flags);
    if (result == NULL) {
        return report_error();
    }
    int32_t rc = run_result(result);
    Py_DECREF(result); /* may run code, too: check for errors only after it */
    return PyErr_Occurred() ? report_error() : rc;
}

/* ---- memory for the host ------------------------------------------------- */

/* Most snippets fit here, which saves an allocation and two calls each. */
static char input_buffer[64 * 1024];

EXPORT("input") char *
rlm_input(void)
{
    return input_buffer;
}

EXPORT("input_size") int32_t
rlm_input_size(void)
{
    return (int32_t)sizeof input_buffer;
}

EXPORT("alloc") void *
rlm_alloc(int32_t len)
{
    return malloc((size_t)(uint32_t)len);
}

EXPORT("free") void
rlm_free(void *block)
{
    free(block);
}

/* ---- before a snapshot --------------------------------------------------- */

static void
flush_stream(const char *name)
{
    PyObject *stream = PySys_GetObject(name); /* borrowed */
    if (stream == NULL || stream == Py_None) {
        return;
    }
    Py_INCREF(stream);
    Py_XDECREF(PyObject_CallMethod(stream, "flush", NULL));
    Py_DECREF(stream);
    PyErr_Clear();
}

static void
freeze_objects(void)
{
    PyObject *gc = PyImport_ImportModule("gc");
    if (gc != NULL) {
        Py_XDECREF(PyObject_CallMethod(gc, "freeze", NULL));
        Py_DECREF(gc);
    }
    PyErr_Clear();
}

/* Leaves nothing unwritten and nothing for a collector to touch, so that
 * copies of the memory share as many of its pages as possible. */
EXPORT("settle") void
rlm_settle(void)
{
    flush_stream("stdout");
    flush_stream("stderr");
    fflush(NULL);
    PyGC_Collect();
    freeze_objects();
}

/* ---- interrupting without entering the guest ------------------------------ */

/* The host raises KeyboardInterrupt in a running guest by writing these words
 * into its memory; the last one lets it grant a fresh C recursion budget. */
EXPORT("words") uint32_t *
rlm_words(void)
{
    static uint32_t words[5];
    PyThreadState *thread = PyThreadState_Get();
    words[0] = (uint32_t)(uintptr_t)&thread->eval_breaker;
    words[1] = _PY_ASYNC_EXCEPTION_BIT;
    words[2] = (uint32_t)(uintptr_t)&thread->async_exc;
    words[3] = (uint32_t)(uintptr_t)PyExc_KeyboardInterrupt;
    words[4] = (uint32_t)(uintptr_t)&thread->c_recursion_remaining;
    return words;
}
