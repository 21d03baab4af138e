package tools

import (
	"fmt"
	"strings"

	"github.com/rlmhq/rlm/internal/snippet/protocol"
	"github.com/rlmhq/rlm/internal/text/lazyregexp"
)

// maxName bounds the name of a server, a tool or a parameter, in bytes.
const maxName = 60

// busy contains names that snippets use for other purposes, mostly modules. A server with such a
// name gets a suffix, because `import time` would hide the server time.
var busy = wordSet(`abc array ast asyncio base64 bisect bytes calendar collections context copy csv
	datetime decimal dict difflib email enum filter float fnmatch fractions functools glob gzip hash
	hashlib heapq help html http id input int io itertools json list logging map math max min mimetypes
	numpy object open operator os pandas pathlib pickle platform pprint print queue random range re
	secrets set shutil slice socket sqlite3 statistics str string struct subprocess sum sys tarfile
	tempfile textwrap threading time tools traceback tuple type types typing unicodedata urllib uuid
	warnings xml zip zipfile zlib`)

func wordSet(text string) map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(text) {
		set[word] = true
	}
	return set
}

var notInNames = lazyregexp.New(`[^A-Za-z0-9_]+`)

// makeName makes a unique Python identifier from a name. It adds the suffix if Python or the
// protocol uses the name.
func makeName(name, suffix string, taken map[string]bool) string {
	name = strings.Trim(notInNames.ReplaceAllString(name, "_"), "_")
	name = name[:min(len(name), maxName)]
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		name = strings.TrimPrefix(suffix, "_") + "_" + name
	}
	if protocol.CheckName(name) != nil {
		name += suffix
	}

	free := name
	for n := 2; taken[free]; n++ {
		free = fmt.Sprintf("%s_%d", name, n)
	}
	taken[free] = true
	return free
}
