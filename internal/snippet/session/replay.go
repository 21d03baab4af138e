package session

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"sync"

	"github.com/rlmhq/rlm/tiers"
)

// AnsweredCall is a host call of a snippet that may have to be repeated, with the answer to the
// call.
type AnsweredCall struct {
	// Call is the SHA-256 of the function and its arguments, which may be long.
	Call  []byte      `json:"call"`
	Value tiers.Value `json:"value,omitempty"`
	Error string      `json:"error,omitempty"`
}

// replay records the host calls of a snippet, or answers those of a repeated one. It is safe for
// concurrent use.
type replay struct {
	// canonical removes from a call the parts that may differ when the same snippet repeats it.
	canonical func([]byte) []byte

	mu      sync.Mutex // guards the fields below
	made    []AnsweredCall
	kept    int64                     // bytes of all answers in the session
	left    map[string][]AnsweredCall // recorded answers, nil if the snippet is new
	strayed bool                      // it made a call that it did not make in the first run
}

// newReplay returns a replay that repeats the answers to these calls. The order of different calls
// does not matter, because goroutines make them in any order.
func newReplay(calls []AnsweredCall, canonical func([]byte) []byte) *replay {
	j := &replay{canonical: canonical, left: map[string][]AnsweredCall{}}
	for _, c := range calls {
		j.left[string(c.Call)] = append(j.left[string(c.Call)], c)
	}
	return j
}

func (j *replay) replays() bool { return j.left != nil }

// digest identifies a call; a repeated call has the same digest.
func (j *replay) digest(c tiers.Call) []byte {
	body, err := json.Marshal([]any{c.Function, c.Args, c.Named})
	if err != nil {
		return nil // the arguments were decoded, so they can be encoded
	}
	sum := sha256.Sum256(j.canonical(body))
	return sum[:]
}

// isFull reports whether the session's answers occupy more than most bytes.
func (j *replay) isFull(most int64) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.kept > most
}

func (j *replay) record(call tiers.Call, value tiers.Value, err error) {
	c := AnsweredCall{Call: j.digest(call), Value: value}
	if err != nil {
		c.Value, c.Error = nil, err.Error()
	}

	j.mu.Lock()
	defer j.mu.Unlock()
	j.made = append(j.made, c)
	j.kept += c.size()
}

// size returns the approximate memory of a call on the host, in bytes.
func (c AnsweredCall) size() int64 {
	const overhead = 128
	return overhead + int64(len(c.Value)+len(c.Error))
}

// answer returns the answer to a call from the snippet's first run.
func (j *replay) answer(call tiers.Call) (tiers.Value, error) {
	key := string(j.digest(call))

	j.mu.Lock()
	defer j.mu.Unlock()
	left := j.left[key]
	if len(left) == 0 {
		j.strayed = true
		return nil, errors.New("this call was not made in the first run")
	}

	j.left[key] = left[1:]
	j.made = append(j.made, left[0])
	j.kept += left[0].size()
	if left[0].Error != "" {
		return nil, errors.New(left[0].Error)
	}
	return left[0].Value, nil
}

// countLeft returns the number of recorded answers that the repeated snippet has not requested.
func (j *replay) countLeft() (n int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, calls := range j.left {
		n += len(calls)
	}
	return n
}
