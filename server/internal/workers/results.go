package workers

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rlmhq/rlm/internal/snippet/session"
	"github.com/rlmhq/rlm/tiers"
)

// result is the wire format of a tiers.Result. Long strings and artefacts are sent before it, as
// parts.
type result struct {
	Status    tiers.Status        `json:"status"`
	Stdout    []byte              `json:"stdout,omitempty"`
	Stderr    []byte              `json:"stderr,omitempty"`
	Echo      []byte              `json:"echo,omitempty"`
	Dropped   int64               `json:"dropped,omitempty"`
	Final     *final              `json:"final,omitempty"`
	Exception *exception          `json:"exception,omitempty"`
	Limit     tiers.Limit         `json:"limit,omitempty"`
	Usage     usage               `json:"usage"`
	Enforced  []tiers.Enforcement `json:"enforced,omitempty"` // only with the first result of a session
	Lost      *tiers.Loss         `json:"lost,omitempty"`
	Variables []tiers.Variable    `json:"variables"`
	Tape      *session.TapeReport `json:"tape,omitempty"`
}

type final struct {
	Value []byte `json:"value"`
	Name  string `json:"name,omitempty"`
}

type exception struct {
	Type      []byte `json:"type"`
	Message   []byte `json:"message"`
	Traceback []byte `json:"traceback"`
	ExitCode  int    `json:"exit_code,omitempty"`
}

// usage is the wire format of a tiers.Usage, with times in nanoseconds.
type usage struct {
	Wall       int64  `json:"wall"`
	Active     int64  `json:"active"`
	HostWait   int64  `json:"host_wait"`
	Idle       int64  `json:"idle"`
	Fuel       uint64 `json:"fuel"`
	PeakMemory int64  `json:"peak_memory"`
	HostCalls  int    `json:"host_calls"`
	Output     int64  `json:"output"`
}

// part is a piece of a result that is too long for its message.
type part struct {
	ofSession
	// Of names the field, by one of the constants below. Artefacts also have a name and a type.
	Of   string `json:"of"`
	Name string `json:"name,omitempty"`
	Type string `json:"type,omitempty"`
	Data []byte `json:"data"`
}

const (
	partStdout   = "stdout"
	partStderr   = "stderr"
	partEcho     = "echo"
	partFinal    = "final"
	partArtefact = "artefact"
)

// pieceBytes is the maximum size of a piece, and of a field that is not sent in pieces.
const pieceBytes = 4 << 20

// encodeResult sends the long parts, and returns the rest.
func encodeResult(r *tiers.Result, tape *session.Tape, send func(part) error) (*result, error) {
	out := &result{
		Status: r.Status, Dropped: r.Dropped, Limit: r.Limit, Enforced: r.Enforced, Lost: r.Lost,
		Variables: r.Variables, Tape: tape.Report(),
		Usage: usage{
			int64(r.Usage.Wall), int64(r.Usage.Active), int64(r.Usage.HostWait), int64(r.Usage.Idle),
			r.Usage.Fuel, r.Usage.PeakMemory, r.Usage.HostCalls, r.Usage.OutputBytes,
		},
	}

	if x := r.Exception; x != nil {
		out.Exception = &exception{[]byte(x.Type), []byte(x.Message), []byte(x.Traceback), x.ExitCode}
	}
	if r.Final != nil {
		out.Final = &final{r.Final.Value, r.Final.Name}
		if err := shorten(&out.Final.Value, partFinal, send); err != nil {
			return nil, err
		}
	}

	out.Stdout, out.Stderr, out.Echo = []byte(r.Stdout), []byte(r.Stderr), []byte(r.Echo)
	for _, one := range []struct {
		of   string
		data *[]byte
	}{{partStdout, &out.Stdout}, {partStderr, &out.Stderr}, {partEcho, &out.Echo}} {
		if err := shorten(one.data, one.of, send); err != nil {
			return nil, err
		}
	}

	for _, a := range r.Artefacts {
		if err := sendPieces(part{Of: partArtefact, Name: a.Name, Type: a.Type}, a.Data, send); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// shorten sends a long field in pieces, and empties it.
func shorten(data *[]byte, of string, send func(part) error) error {
	if len(*data) <= pieceBytes {
		return nil
	}
	err := sendPieces(part{Of: of}, *data, send)
	*data = nil
	return err
}

func sendPieces(p part, data []byte, send func(part) error) error {
	for first := true; first || len(data) > 0; first = false {
		n := min(len(data), pieceBytes)
		p.Data, data = data[:n], data[n:]
		if err := send(p); err != nil {
			return err
		}
	}
	return nil
}

// parts contains the received pieces of a result.
type parts struct {
	texts     map[string][]byte
	artefacts []tiers.Artefact
	left      int64 // bytes that may still arrive
	wrong     error
}

// Limits on a result, except its output.
const (
	maxArtefacts     = 64
	maxArtefactBytes = 64 << 20
	maxVariables     = 2000
	maxException     = 16 << 20 // bytes
	maxName          = 1000
	maxLost          = 100_000
)

// add adds a piece. The message with its bytes was already received, so add only counts them.
func (p *parts) add(one part) {
	p.left -= int64(len(one.Data)) + 100
	switch {
	case p.wrong != nil:
	case p.left < 0:
		p.wrong = errors.New("the result is longer than the limits allow")
	case one.Of != partArtefact:
		if !slices.Contains([]string{partStdout, partStderr, partEcho, partFinal}, one.Of) {
			p.wrong = errors.New("a part of the result has no place")
			return
		}
		if p.texts == nil {
			p.texts = map[string][]byte{}
		}
		p.texts[one.Of] = append(p.texts[one.Of], one.Data...)
	case len(one.Name) > maxName || len(one.Type) > maxName:
		p.wrong = errors.New("an artefact has a name that is too long")
	default:
		if n := len(p.artefacts); n > 0 && p.artefacts[n-1].Name == one.Name {
			p.artefacts[n-1].Data = append(p.artefacts[n-1].Data, one.Data...)
			return
		}
		if len(p.artefacts) == maxArtefacts {
			p.wrong = fmt.Errorf("the result has more than %d artefacts", maxArtefacts)
			return
		}
		p.artefacts = append(p.artefacts, tiers.Artefact{Name: one.Name, Type: one.Type, Data: one.Data})
	}
}

// partsFor returns empty parts that accept no more than the limits allow.
func partsFor(l tiers.Limits) *parts {
	return &parts{left: 2*l.Output + l.Memory + maxArtefactBytes + maxArtefacts*100}
}

var (
	statuses = []tiers.Status{
		tiers.StatusOK, tiers.StatusRaised, tiers.StatusExited, tiers.StatusLimit, tiers.StatusCrashed,
	}
	exceptional = []tiers.Status{tiers.StatusRaised, tiers.StatusExited, tiers.StatusCrashed}
	limitNames  = []tiers.Limit{
		"", tiers.LimitWall, tiers.LimitActive, tiers.LimitMemory, tiers.LimitOutput, tiers.LimitHostCalls,
		tiers.LimitFuel,
	}
	effects = []tiers.Effects{tiers.EffectsNeverRan, tiers.EffectsRan, tiers.EffectsUnknown}
)

// decode checks a result from a hostile worker, together with the parts before it.
func (r *result) decode(p *parts, l tiers.Limits) (tiers.Result, error) {
	texts := map[string][]byte{partStdout: r.Stdout, partStderr: r.Stderr, partEcho: r.Echo}
	if r.Final != nil {
		texts[partFinal] = r.Final.Value
	}
	for of, data := range p.texts {
		texts[of] = append(data, texts[of]...)
	}

	out := tiers.Result{
		Status: r.Status, Stdout: string(texts[partStdout]), Stderr: string(texts[partStderr]),
		Echo: string(texts[partEcho]), Artefacts: p.artefacts, Dropped: r.Dropped, Limit: r.Limit,
		Usage: r.Usage.decode(), Enforced: r.Enforced, Lost: r.Lost, Variables: r.Variables,
	}
	if r.Final != nil {
		out.Final = &tiers.Final{Value: texts[partFinal], Name: r.Final.Name}
	}

	if x := r.Exception; x != nil {
		out.Exception = &tiers.Exception{
			Type: string(x.Type), Message: string(x.Message), Traceback: string(x.Traceback), ExitCode: x.ExitCode,
		}
	}
	err := errors.Join(p.wrong, checkResult(&out, l))
	return out, err
}

func (u usage) decode() tiers.Usage {
	return tiers.Usage{
		Wall: time.Duration(u.Wall), Active: time.Duration(u.Active), HostWait: time.Duration(u.HostWait),
		Idle: time.Duration(u.Idle), Fuel: u.Fuel, PeakMemory: u.PeakMemory, HostCalls: u.HostCalls,
		OutputBytes: u.Output,
	}
}

// checkResult checks that a result keeps the promises of every tier.
func checkResult(r *tiers.Result, l tiers.Limits) error {
	u := r.Usage
	hasException := r.Exception != nil
	needsException := slices.Contains(exceptional, r.Status)

	switch {
	case !slices.Contains(statuses, r.Status) || !slices.Contains(limitNames, r.Limit):
		return fmt.Errorf("the status %.40q or the limit %.40q is unknown", r.Status, r.Limit)
	case r.Status == tiers.StatusLimit && r.Limit == "":
		return errors.New("a limit fired that has no name")
	case r.Status == tiers.StatusOK && hasException, !hasException && needsException:
		return errors.New("the status does not fit the exception")
	case int64(len(r.Stdout)+len(r.Stderr)) > l.Output, r.Dropped < 0, len(r.Echo) > len(r.Stdout):
		return errors.New("the output is longer than its limit")
	case u.Wall < 0 || u.Active < 0 || u.HostWait < 0 || u.Idle < 0 || u.PeakMemory < 0 || u.HostCalls < 0:
		return errors.New("the usage is negative")
	case u.OutputBytes < 0 || (r.Dropped > 0) != (u.OutputBytes > int64(len(r.Stdout)+len(r.Stderr))):
		return errors.New("the output is not what was counted")
	case r.Final != nil && !json.Valid(r.Final.Value):
		return errors.New("the answer is not JSON")
	case hasException && len(r.Exception.Type)+len(r.Exception.Message)+len(r.Exception.Traceback) > maxException:
		return errors.New("the exception is too long")
	case slices.ContainsFunc(r.Variables, func(v tiers.Variable) bool { return len(v.Name)+len(v.Kind) > maxName }):
		return errors.New("a variable has a name that is too long")
	case len(r.Variables) > maxVariables || len(r.Enforced) > len(limitNames):
		return errors.New("the result has too many entries")
	}

	for _, e := range r.Enforced {
		if !slices.Contains(limitNames, e.Limit) || len(e.Value)+len(e.Mechanism) > maxName {
			return errors.New("an enforcement is not one")
		}
	}
	return checkLoss(r.Lost)
}

func checkLoss(lost *tiers.Loss) error {
	if lost == nil {
		return nil
	}
	if len(lost.Snippets) == 0 || len(lost.Snippets) > maxLost || len(lost.Reason) > maxName || lost.Reason == "" {
		return errors.New("the loss is not described")
	}
	return nil
}
