// Package wire defines the messages between a guest in another process and its host. The guest is
// CPython, a Go interpreter, or a compiled Go program. Python's end is written in Python: see
// package pykernel.
//
// Messages are frames of package frame. A guest sends requests and the host answers them by number.
// The host sends an [Order] for each snippet, and the guest concludes the snippet with a [Done].
//
// The guest is hostile: the host bounds and checks everything that it sends.
//
// This package is compiled into programs and container images, so it imports only
// the standard library.
package wire

import (
	"encoding/binary"
	"errors"
	"math"
)

// The kinds of frame, by sender.
const (
	KindOrder  = 'r' // host: an Order
	KindAnswer = 'a' // host: an Answer

	KindRequest = 'q' // guest: a Request
	KindDone    = 'd' // guest: Done
	KindBegun   = 'b' // guest: the mark of the order, before anything else about it
	KindReady   = 'y' // guest: ready for orders
	KindKeeper  = 'k' // guest: the process that keeps the state before the snippet, or 0
)

// MaxRequest bounds a request, in bytes. Go guests need only MaxGoRequest. MaxAnswer bounds an
// answer that a guest must accept.
const (
	MaxRequest   = 256 << 20
	MaxGoRequest = 32 << 20
	MaxAnswer    = 256 << 20
)

// NoAnswer is the number of a request that the host does not answer.
const NoAnswer = 0

// Mark is random bytes that identify messages belonging together.
type Mark [MarkSize]byte

// MarkSize is the length of a mark, in bytes.
const MarkSize = 16

// The flags of an order. The snippet's ordinal is in the bits from OrdinalShift up.
const (
	// FlagReseed: draw new randomness, because the guest is a copy.
	FlagReseed = 1
	// FlagConfigure: ask for the session's inputs and functions.
	FlagConfigure = 2
	// FlagExport and FlagImport: export or import a state instead of running a snippet.
	FlagExport = 4
	FlagImport = 8
	// FlagGo: the source is Go, in a guest that also runs other languages.
	FlagGo = 16

	OrdinalShift = 8
)

// How a snippet ended, as reported by Done.
const (
	CodeOK     = 0
	CodeRaised = 1
	CodeExited = 2
	// CodeRejected: the guest lacks what the snippet needs. It never ran.
	CodeRejected = 3
)

// ErrMessage reports a message that breaks the rules of this package.
var ErrMessage = errors.New("the guest broke the protocol")

// Order asks a guest to run a snippet.
type Order struct {
	// Flags are the flags of this package, with the snippet's ordinal in the bits above.
	Flags int
	// Save asks the guest to save its current state as one to return to.
	Save bool
	// Mark is random. The guest repeats it at the beginning and at the end of the snippet, so that
	// nothing left over from an earlier snippet counts as part of this one.
	Mark Mark
	// TakeOver is random, too. A keeper sends it, without a frame, when it takes over.
	TakeOver Mark
	// Source is the snippet.
	Source string
}

const orderHead = 4 + 1 + 2*MarkSize

// Append appends the payload of the order.
func (o *Order) Append(to []byte) []byte {
	to = binary.LittleEndian.AppendUint32( //nolint:gosec // it fits: see OrdinalShift
		to, uint32(o.Flags),
	)
	to = append(to, asByte(o.Save))
	to = append(to, o.Mark[:]...)
	to = append(to, o.TakeOver[:]...)

	return append(to, o.Source...)
}

// ParseOrder reads the payload of an order.
func ParseOrder(payload []byte) (Order, error) {
	if len(payload) < orderHead {
		return Order{}, ErrMessage
	}

	o := Order{Flags: int(binary.LittleEndian.Uint32(payload)), Save: payload[4] == 1}
	copy(o.Mark[:], payload[5:])
	copy(o.TakeOver[:], payload[5+MarkSize:])
	o.Source = string(payload[orderHead:])

	return o, nil
}

// Done reports how a snippet ended.
type Done struct {
	// Mark is the mark of the order. A snippet that forges messages does not know it.
	Mark Mark
	// Code is one of the codes of this package. Any other code is a lie.
	Code int
	// Peak is the peak memory of the guest in bytes, as reported by the guest.
	Peak int64
	// More is data specific to this kind of guest.
	More []byte
}

const doneHead = MarkSize + 4 + 8

// Append appends the payload.
func (d *Done) Append(to []byte) []byte {
	to = append(to, d.Mark[:]...)
	to = binary.LittleEndian.AppendUint32( //nolint:gosec // a small number
		to, uint32(int32(d.Code)),
	)
	to = binary.LittleEndian.AppendUint64(to, uint64(max(0, d.Peak))>>10)

	return append(to, d.More...)
}

// ParseDone reads the payload of a done frame.
func ParseDone(payload []byte) (Done, error) {
	if len(payload) < doneHead {
		return Done{}, ErrMessage
	}

	d := Done{More: payload[doneHead:]}
	copy(d.Mark[:], payload)
	numbers := payload[MarkSize:]
	d.Code = int( //nolint:gosec // two's complement is meant
		int32(binary.LittleEndian.Uint32(numbers)),
	)

	const most = math.MaxInt64 >> 10
	kibibytes := min(binary.LittleEndian.Uint64(numbers[4:]), most)
	d.Peak = int64(kibibytes) << 10 //nolint:gosec // bounded above

	return d, nil
}

// Request is a guest's request: an operation and its operands, which package session lists.
type Request struct {
	// Number is assigned by the guest, or NoAnswer for a request without an answer.
	Number uint32
	// Body starts with the byte of the operation.
	Body []byte
}

// AppendRequest appends the head of a request's payload. The body follows.
func AppendRequest(to []byte, number uint32) []byte {
	return binary.LittleEndian.AppendUint32(to, number)
}

// ParseRequest reads the payload of a request.
func ParseRequest(payload []byte) (Request, error) {
	if len(payload) < 5 {
		return Request{}, ErrMessage
	}

	return Request{binary.LittleEndian.Uint32(payload), payload[4:]}, nil
}

// Answer is the host's answer to a request.
type Answer struct {
	Number uint32
	// Failed means that Data is the text of an error.
	Failed bool
	Data   []byte
}

const answerHead = 4 + 1

// AppendAnswer appends the head of an answer's payload. The data follows.
func AppendAnswer(to []byte, number uint32, failed bool) []byte {
	return append(binary.LittleEndian.AppendUint32(to, number), asByte(failed))
}

// AnswerSize returns the size of an answer's payload with data bytes of data.
func AnswerSize(data int) int { return answerHead + data }

// ParseAnswer reads the payload of an answer.
func ParseAnswer(payload []byte) (Answer, error) {
	if len(payload) < answerHead {
		return Answer{}, ErrMessage
	}

	return Answer{binary.LittleEndian.Uint32(payload), payload[4] == 1, payload[answerHead:]}, nil
}

func asByte(b bool) byte {
	if b {
		return 1
	}
	return 0
}
