# Libraries change themselves when they are used. A move names none of that.
import argparse, asyncio, base64, calendar, codecs, collections, concurrent.futures, configparser, copy, csv, dataclasses
import datetime, decimal, difflib, email.message, enum, fnmatch, fractions, functools, gc, glob, hashlib, heapq, html.parser
import inspect, io, itertools, json, linecache, locale, logging, math, mimetypes, operator, os, pathlib, pickle, platform
import pprint, queue, random, re, secrets, shutil, statistics, string, struct, sys, tempfile, textwrap, threading, time
import traceback, types, typing, unicodedata, unittest, urllib.parse, uuid, warnings, weakref, xml.etree.ElementTree as ET, zlib

print(re.sub("a+", "b", "caat"), datetime.datetime.strptime("2020", "%Y").year, fnmatch.fnmatch("a", "?"))
print(mimetypes.guess_type("x.html"), urllib.parse.urlparse("http://a/b?c=d").netloc, ET.fromstring("<a/>").tag)
print("a".encode("utf-16-le"), "a".encode("idna"), codecs.lookup("cp1252").name, calendar.month(2024, 2)[:13].strip())
path, cache, inited, name, registry = "/x", {}, True, "n", []


class Node:
    _cache, _instance = {}, None

    def __init__(self):
        self.path, self._map = 1, {}


with concurrent.futures.ThreadPoolExecutor() as pool:
    print(list(pool.map(abs, [-1])))
logging.getLogger("libraries").debug("quiet")
inspect.getmodule(json.dumps), typing.get_type_hints(Node), platform.machine()
argparse.ArgumentParser(prog="p").parse_args([])
copy.deepcopy([1]), pickle.dumps(Node()), uuid.uuid4(), random.random(), secrets.token_hex(2), tempfile.gettempprefix()
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    warnings.warn("quiet")
# --- the next snippet ---
async def later(n):
    await asyncio.sleep(0)
    return n


async def both():
    return await asyncio.gather(later(1), later(2))


print(asyncio.run(both()), len(cache))
# --- the next snippet ---
print(pool.submit is not None, Node().path, path, re.findall(r"\w", "ab"), asyncio.run(later(4)))
