package workers

import (
	"time"

	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/internal/snippet/jsonrpc"
	"github.com/rlmhq/rlm/tiers"
)

// These are the methods that the parent calls, and those that the worker calls.
const (
	methodHello   = "hello"
	methodPing    = "ping"
	methodOpen    = "open"
	methodRun     = "run"
	methodStop    = "stop" // a notification
	methodFork    = "fork"
	methodExtend  = "extend"
	methodPause   = "pause"
	methodResume  = "resume" // a notification
	methodSave    = "save"
	methodExport  = "export"
	methodImport  = "import"
	methodCollect = "collect"
	methodClose   = "close"

	methodCall   = "call"
	methodText   = "text"
	methodOutput = "output" // a notification
	methodPart   = "part"   // a notification
)

// token identifies files that were sent for a message. Zero means none.
type token uint64

// none is an answer without fields.
type none struct{}

type ofSession struct {
	Session int64 `json:"session"`
}

// helloParams are the parameters of the first request, which is sent once.
type helloParams struct {
	Tier   string `json:"tier"`
	Engine string `json:"engine"`
	// Garbage is approximately the number of bytes of garbage that the worker may keep in addition
	// to the usual amount.
	Garbage uint64 `json:"garbage"`
}

// limits is the wire format of tiers.Limits, with times in nanoseconds.
type limits struct {
	Wall            int64  `json:"wall"`
	Active          int64  `json:"active"`
	Memory          int64  `json:"memory"`
	Output          int64  `json:"output"`
	HostCalls       int    `json:"host_calls"`
	HostCallsAtOnce int    `json:"host_calls_at_once"`
	Fuel            uint64 `json:"fuel"`
}

func encodeLimits(l tiers.Limits) limits {
	return limits{
		int64(l.Wall), int64(l.Active), l.Memory, l.Output, l.HostCalls, l.HostCallsAtOnce, l.Fuel,
	}
}

func (l limits) decode() tiers.Limits {
	return tiers.Limits{
		Wall: time.Duration(l.Wall), Active: time.Duration(l.Active), Memory: l.Memory, Output: l.Output,
		HostCalls: l.HostCalls, HostCallsAtOnce: l.HostCallsAtOnce, Fuel: l.Fuel,
	}
}

type openParams struct {
	ofSession
	Language      tiers.Language   `json:"language,omitempty"`
	Limits        limits           `json:"limits"`
	Functions     []functionParams `json:"functions"`
	Inputs        []inputParams    `json:"inputs"`
	Deterministic bool             `json:"deterministic,omitempty"`
	Out           bool             `json:"out,omitempty"`
	HasHost       bool             `json:"has_host,omitempty"`
	// Packages is a zip archive.
	Packages token `json:"packages,omitempty"`
}

// functionParams is the wire format of a tiers.Function.
type functionParams struct {
	Name  string `json:"name"`
	Doc   string `json:"doc,omitempty"`
	Value []byte `json:"value,omitempty"`
	Timed bool   `json:"timed,omitempty"`
}

func encodeFunctions(list []tiers.Function) []functionParams {
	all := []functionParams{}
	for _, f := range list {
		all = append(all, functionParams{f.Name, f.Doc, f.Value, f.Timed})
	}
	return all
}

func decodeFunctions(list []functionParams) []tiers.Function {
	var all []tiers.Function
	for _, f := range list {
		all = append(all, tiers.Function{Name: f.Name, Doc: f.Doc, Value: f.Value, Timed: f.Timed})
	}
	return all
}

// inputParams is the wire format of a tiers.Input.
type inputParams struct {
	Name     string      `json:"name"`
	Variable string      `json:"variable,omitempty"`
	Text     *textParams `json:"text,omitempty"`
	// Dir is a file that contains a listing as JSON.
	Dir token `json:"dir,omitempty"`
	// Value is a file that contains JSON.
	Value token `json:"value,omitempty"`
}

// textParams describes a text. Its file and the file of the original are sent with the token.
type textParams struct {
	bigtext.Handed
	Files    token           `json:"files"`
	Original *bigtext.Handed `json:"original,omitempty"`
}

// listing lists a directory. Names are bytes, because not all names are UTF-8.
type listing struct {
	Names [][]byte
	Sizes []int64
}

type extendParams struct {
	ofSession
	Functions []functionParams `json:"functions"`
	Inputs    []inputParams    `json:"inputs"`
}

type runParams struct {
	ofSession
	Language   tiers.Language `json:"language"`
	Source     []byte         `json:"source"`
	Rejectable bool           `json:"rejectable,omitempty"`
	Seed       []byte         `json:"seed,omitempty"`
	Began      time.Time      `json:"began,omitzero"`
	Stream     bool           `json:"stream,omitempty"`
	Taped      bool           `json:"taped,omitempty"` // see session.Tape.Order
	Tape       []byte         `json:"tape,omitempty"`
}

// pauseParams identifies a pause of a snippet. The number increases within a session.
type pauseParams struct {
	ofSession
	Number int `json:"number"`
}

type forkParams struct {
	ofSession
	As int64 `json:"as"`
}

// stateParams is a tiers.State whose data is in the file of the token, or in the scratch file.
type stateParams struct {
	ofSession
	Language tiers.Language `json:"language"`
	Format   string         `json:"format"`
	From     string         `json:"from"`
	Snippet  int            `json:"snippet"`
	Left     []tiers.Left   `json:"left"`
	Bytes    int64          `json:"bytes"`
	Data     token          `json:"data,omitempty"`
	// Pages is a file with the pages of an interpreter; Data then lacks their values.
	Pages token `json:"pages,omitempty"`
}

type reportResult struct {
	Moved   int          `json:"moved"`
	Left    []tiers.Left `json:"left"`
	Exact   bool         `json:"exact,omitempty"`
	Inexact string       `json:"inexact,omitempty"`
}

// saveParams requests the pages of an interpreter, in a file.
type saveParams struct {
	ofSession
	File token `json:"file"`
}

// saveResult contains the data that belongs to the pages.
type saveResult struct {
	Head []byte `json:"head"`
}

type collectResult struct {
	Bytes int64  `json:"bytes"` // size of the tar stream in the scratch file
	Lost  string `json:"lost"`
}

type callParams struct {
	ofSession
	Function string            `json:"function"`
	Args     [][]byte          `json:"args"`
	Named    map[string][]byte `json:"named"`
	Snippet  int               `json:"snippet"`
	Ordinal  int               `json:"ordinal"`
}

type callResult struct {
	Value []byte `json:"value"`
}

// textRequest requests a text of an input: the input itself, a file in a directory, the rows of a
// table, or the picture of a page.
type textRequest struct {
	ofSession
	Input int    `json:"input"`
	File  []byte `json:"file,omitempty"`
	Bytes bool   `json:"bytes,omitempty"`
	Table *int   `json:"table,omitempty"`
	Page  *int   `json:"page,omitempty"`
	DPI   int    `json:"dpi,omitempty"` // of the picture
}

type textResult struct {
	Text textParams `json:"text"`
}

type outputParams struct {
	ofSession
	IsError bool   `json:"is_error,omitempty"`
	IsEcho  bool   `json:"is_echo,omitempty"`
	Data    []byte `json:"data"`
}

// details are the data of an error.
type details struct {
	// Kind is "rejected", "broken" or empty.
	Kind    string        `json:"kind,omitempty"`
	Tier    string        `json:"tier,omitempty"`
	Missing string        `json:"missing,omitempty"`
	Reason  string        `json:"reason,omitempty"`
	Effects tiers.Effects `json:"effects,omitempty"`
	Lost    *tiers.Loss   `json:"lost,omitempty"`
}

const (
	kindRejected = "rejected"
	kindBroken   = "broken"
)

func failed(format string, args ...any) error {
	return jsonrpc.NewError(jsonrpc.CodeServer, nil, format, args...)
}
