package session

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"sync"

	"github.com/rlmhq/rlm/tiers"
)

// AnsweredCall is a host call of a snippet that may have to run again, with the answer
// that it got.
type AnsweredCall struct {
	// Call is the SHA-256 of the function and its arguments, which may be long.
	Call  []byte      `json:"call"`
	Value tiers.Value `json:"value,omitempty"`
	Error string      `json:"error,omitempty"`
}

// replay keeps the host calls of a snippet, or answers those of one that runs again.
// It is safe for concurrent use.
type replay struct {
	// canonical takes out of a call what may differ when the same snippet makes it
	// again.
	canonical func([]byte) []byte

	mu      sync.Mutex // guards what follows
	made    []AnsweredCall
	kept    int64                     // bytes of all answers of the session
	left    map[string][]AnsweredCall // answers given before, nil if the snippet is new
	strayed bool                      // it asked for something that it had not asked for before
}

// newReplay returns a replay that answers what these calls were answered. The order
// of different calls does not matter: goroutines make them in any.
func newReplay(calls []AnsweredCall, canonical func([]byte) []byte) *replay {
	j := &replay{canonical: canonical, left: map[string][]AnsweredCall{}}
	for _, c := range calls {
		j.left[string(c.Call)] = append(j.left[string(c.Call)], c)
	}
	return j
}

func (j *replay) replays() bool { return j.left != nil }

// digest stands for a call: a call that is made again has the same.
func (j *replay) digest(c tiers.Call) []byte {
	body, err := json.Marshal([]any{c.Function, c.Args, c.Named})
	if err != nil {
		return nil // the arguments were decoded, so they encode
	}
	sum := sha256.Sum256(j.canonical(body))
	return sum[:]
}

// isFull reports whether the answers of the session take more than so many bytes.
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

// size is about what a call takes on the host, in bytes.
func (c AnsweredCall) size() int64 {
	const overhead = 128
	return overhead + int64(len(c.Value)+len(c.Error))
}

// answer finds the answer that a call got when its snippet first ran.
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
	if left[0].Error != "" {
		return nil, errors.New(left[0].Error)
	}
	return left[0].Value, nil
}
