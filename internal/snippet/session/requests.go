package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/internal/machine/zones"
	"github.com/rlmhq/rlm/internal/snippet/hostcall"
	"github.com/rlmhq/rlm/internal/snippet/session/wire"
	"github.com/rlmhq/rlm/internal/text/quantity"
	"github.com/rlmhq/rlm/tiers"
)

// Handle answers one request of the guest. It does not keep the request's bytes.
//
// The first byte of a request names the operation. Operands are decimal numbers with
// commas between them; a last operand may be arbitrary bytes. Offsets count
// characters.
//
//	o<fd><bytes>                         write to stdout (1) or stderr (2)
//	h<text>                              the last expression's value, which follows the output
//	a<kind>\0<type>\0<bytes>             keep an artefact -> its description, see artefacts.go
//	c<name>\0<json>                      call a host function: [args, named] -> value
//	s<name>\0<json>                      start one -> its number
//	w<ms>                                wait for calls, -1: forever -> [[number, ok, value], ...]
//	x<number>                            cancel a started call
//	z<microseconds>                      sleep
//	f<json>                              FINAL: {"value", "name"}
//	e<json>                              the exception that left the snippet
//	v<json>                              the snippets' variables: [[name, kind], ...]
//	i                                    the session's inputs and functions
//	j<input>                             a JSON input
//	dl<input>                            a directory's [[path, size], ...]
//	do<input>,<path>                     open a file of it -> a text's description
//	ts<text>,<a>,<b>                     characters [a, b)
//	tb<text>,<a>,<b>                     bytes [a, b), by byte offset
//	tf|tr|tc<text>,<a>,<b>,<needle>      find, rfind, count in [a, b)
//	tp<text>,<a>,<b>,<kind>,<sep>        number of parts
//	tl<text>,<a>,<b>,<kind>,<i>,<j>,<sep>  places of the parts i to j-1
//	tx<text>,<a>,<b>,<from>,<n>,<re2>    up to n matches -> [next, [[start, end, ...], ...]]
//	ti<text>                             a text's description
//	td<text>                             the sections of a document -> [[title, start], ...]
//	tm<text>                             map characters -> {"place", "chars", "width", "ascii"}
//	tg<text>,<a>,<b>,<from>,<n>,<re2>    runs of lines with matches -> [next, [[start, end], ...]]
//	tq<text>,<page>,<dpi>                draw a page -> parts that are missing, a line feed, a PNG
//	tu<text>,<a>,<b>,<kind>,<sep>        counts of equal parts, see tallyrequests.go
//	tn<text>,<a>,<b>,<line>,             the next lines, see rowrequests.go
//	tj<text>,<a>,<b>,<line>,             the next rows of JSON Lines, see rowrequests.go
//	tv<text>,<a>,<b>,<line>,<n>,<limit>,<dialect>  up to n rows of CSV
//	tw<text>,<a>,<b>,                    the kind of table in the text
//	r<what>                              the tier lacks something the snippet needs -> 1: stop
//	p<size>, then p<piece>               give a state: see state.go
//	g<from>,<n>                          at most n bytes of the state to take
//	l<json>                              the values that could not move
//	k<name>                              a time zone's data; without a name, one name per line
//	m                                    the paths of all files of the session's packages
//	m<path>                              one of these files
//	u                                    the seed of the snippet's randomness, empty for none
//	n, n., n!                            a variable begins, ended, was interrupted: see state.go
func (a *Accounts) Handle(request []byte) Reply {
	if len(request) == 0 || len(request) > wire.MaxRequest {
		return fail(errRequest)
	}

	if a.tape != nil && isTaped(request[0]) {
		return a.tape.answer(request, func() Reply { return a.handle(request) })
	}
	return a.handle(request)
}

func (a *Accounts) handle(request []byte) Reply {
	operation, body := request[0], request[1:]
	switch operation {
	case 'o':
		return a.takeOutput(body)
	case 'h':
		return a.takeEcho(body)
	case 'a':
		return a.takeArtefact(body)
	case 'c':
		return a.call(body)
	case 's':
		return a.startCall(body)
	case 'w':
		return a.waitForCalls(body)
	case 'x':
		return a.cancelCall(body)
	case 'z':
		return a.sleep(body)
	case 'f':
		return a.takeFinal(body)
	case 'e':
		return a.takeException(body)
	case 'v':
		return a.takeVariables(body)
	case 'i':
		return a.describe()
	case 'j':
		return a.value(body)
	case 'd':
		return a.directory(body)
	case 't':
		return a.text(body)
	case 'p', 'g', 'l', 'n':
		return a.moveState(operation, body)
	case 'r':
		return a.noteMissing(body)
	case 'u':
		return Reply{Data: a.seed}
	case 'k':
		return readZone(string(body))
	case 'm':
		return a.readPackages(string(body))
	}
	return fail(errRequest)
}

// moveState handles a request about a state that is moving in or out.
func (a *Accounts) moveState(operation byte, body []byte) Reply {
	switch operation {
	case 'p':
		return a.takeState(body)
	case 'g':
		return a.giveState(body)
	case 'l':
		return a.takeLeft(body)
	}
	return a.nextVariable(body)
}

// Reply is the answer to one request.
type Reply struct {
	// Data is the answer, or the error message if Failed.
	Data   []byte
	Failed bool
	// ASCII means that Data is known to be ASCII.
	ASCII bool

	text *bigtext.Text // if Data is in a mapping: the text of which it is a part
}

func valueReply(value tiers.Value, err error) Reply {
	if err != nil {
		return fail(err)
	}
	return Reply{Data: value, ASCII: isASCII(value)}
}

// CopyTo copies the answer to dst, which must have the length of Data. It returns an error if Data
// is in a mapped file that was truncated.
func (r Reply) CopyTo(dst []byte) error {
	if r.text == nil {
		copy(dst, r.Data)
		return nil
	}
	return bigtext.Guard(r.text, func() { copy(dst, r.Data) })
}

func ok(s string) Reply { return Reply{Data: []byte(s), ASCII: true} }

func okInt(n int64) Reply { return Reply{Data: strconv.AppendInt(nil, n, 10), ASCII: true} }

func okJSON(v any) Reply {
	data, err := json.Marshal(v)
	if err != nil {
		return fail(fmt.Errorf("cannot encode an answer: %w", err))
	}
	return Reply{Data: data, ASCII: isASCII(data)}
}

func fail(err error) Reply { return Reply{Data: []byte(err.Error()), Failed: true} }

func isASCII(b []byte) bool {
	for _, c := range b {
		if c >= 0x80 {
			return false
		}
	}
	return true
}

var (
	errRequest   = errors.New("cannot parse the request to the host")
	errNoMapping = errors.New("this sandbox has no place for the characters of a text")
	errShort     = errors.New("the characters of a short text have no place: ask for its parts")
)

var comma = []byte{','}

// cutNumbers cuts n leading decimal operands from b. more means that another operand follows the
// last number.
func cutNumbers(b []byte, n int, more bool) (numbers []int64, rest []byte, err error) {
	numbers = make([]int64, 0, n)
	for i := range n {
		field, after, found := bytes.Cut(b, comma)
		if !found && (more || i < n-1) {
			return nil, nil, errRequest
		}
		if found && !more && i == n-1 {
			return nil, nil, errRequest
		}

		number, err := strconv.ParseInt(string(field), 10, 64)
		if err != nil {
			return nil, nil, errRequest
		}
		numbers, b = append(numbers, number), after
	}
	return numbers, b, nil
}

func (a *Accounts) takeOutput(body []byte) Reply {
	if len(body) == 0 || body[0] != '1' && body[0] != '2' {
		return fail(errRequest)
	}

	a.slot.Pause() // the caller's writer may block
	defer a.resumeSlot()
	a.output.write(int(body[0]-'1'), body[1:])
	return Reply{ASCII: true}
}

// takeEcho records the value of the last expression, which is part of the output.
func (a *Accounts) takeEcho(text []byte) Reply {
	a.slot.Pause() // the caller's writer may block
	defer a.resumeSlot()

	a.output.echo(text)
	return Reply{ASCII: true}
}

// readZone returns a time zone's data, or the names of all zones.
func readZone(name string) Reply {
	if name == "" {
		return ok(strings.Join(zones.Names(), "\n"))
	}
	data, err := zones.Read(name)
	if err != nil {
		return fail(err)
	}
	return Reply{Data: data}
}

// readPackages returns a file of the session's packages, or the paths of all files.
func (a *Accounts) readPackages(name string) Reply {
	if a.packages == nil {
		return fail(errRequest)
	}
	if name == "" {
		return okJSON(a.packages.Files())
	}
	data, err := a.packages.Read(name) // charged to the snippet's time
	if err != nil {
		return fail(err)
	}
	return Reply{Data: data}
}

// maxMissing bounds the name of a module or other requirement that a tier lacks, in bytes.
const maxMissing = 200

// noteMissing records that the snippet needs a module, or something else, that its tier lacks. The
// answer "1" makes the guest stop.
func (a *Accounts) noteMissing(body []byte) Reply {
	if !a.rejectable || len(body) == 0 || len(body) > maxMissing {
		return ok("0")
	}

	if a.missing == "" {
		a.missing = string(body)
	}
	return ok("1")
}

func (a *Accounts) takeFinal(body []byte) Reply {
	if weight := hostcall.Weigh(body); int64(weight) > a.cfg.Limits.Memory {
		return fail(fmt.Errorf("the value for FINAL would take %s on the host, more than %s: "+
			"pass less", quantity.IBytes(weight),
			quantity.IBytes(a.cfg.Limits.Memory)))
	}
	var f struct {
		Value json.RawMessage `json:"value"`
		Name  string          `json:"name"`
	}
	if err := json.Unmarshal(body, &f); err != nil || f.Value == nil {
		return fail(errRequest)
	}

	if a.final == nil {
		a.final = &tiers.Final{Value: f.Value, Name: f.Name}
	}
	return Reply{ASCII: true}
}

// maxException bounds a guest's description of an exception, in bytes.
const maxException = 16 << 20

func (a *Accounts) takeException(body []byte) Reply {
	if len(body) > maxException {
		return fail(errRequest)
	}
	var e exception
	if err := json.Unmarshal(body, &e); err != nil {
		return fail(errRequest)
	}

	a.raised = &e
	return Reply{ASCII: true}
}

// Bounds on a guest's list of its variables.
const (
	maxVariables    = 300
	maxVariableName = 200 // bytes
)

// takeVariables records the list of the session's variables.
func (a *Accounts) takeVariables(body []byte) Reply {
	if hostcall.CountValues(body, 2) > 4*maxVariables || len(body) > maxException {
		return fail(errRequest)
	}
	var list [][2]string
	if json.Unmarshal(body, &list) != nil || len(list) > maxVariables {
		return fail(errRequest)
	}

	a.variables = make([]tiers.Variable, 0, len(list))
	for _, v := range list {
		if len(v[0]) > maxVariableName || len(v[1]) > maxVariableName {
			return fail(errRequest)
		}
		a.variables = append(a.variables, tiers.Variable{Name: v[0], Kind: v[1]})
	}
	return Reply{ASCII: true}
}
