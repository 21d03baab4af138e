package docker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// The labels by which the reaper finds the containers of dead programs.
const (
	labelTier     = "rlm.tier"
	labelOwner    = "rlm.owner"
	labelDeadline = "rlm.deadline"
	labelRecipe   = "rlm.recipe"
	labelGo       = "rlm.go"
	labelSession  = "rlm.label." // prefix of the session's labels
)

// lifetime is the age at which a container of another machine is considered abandoned, because this
// machine cannot check whether its program is still alive.
const lifetime = 24 * time.Hour

func (t *tier) labels() map[string]string {
	return map[string]string{
		labelTier: Name, labelOwner: owner(os.Getpid()),
		labelDeadline: strconv.FormatInt(time.Now().Add(lifetime).Unix(), 10),
	}
}

// owner names a process of this machine uniquely since the machine booted. Process numbers are
// reused, so the name includes the start time. Without /proc, the unknown parts are empty.
func owner(pid int) string {
	return fmt.Sprintf("%s/%d/%s", machine(), pid, startOf(pid))
}

// machine returns a hash that names this machine, its boot and the process namespace, in
// which process numbers are unique.
func machine() string {
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id") // not available everywhere
	host, _ := os.Hostname()                                  // as above
	space, _ := os.Readlink("/proc/self/ns/pid")              // as above
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%s", boot, host, space))
	return hex.EncodeToString(sum[:8])
}

// startOf returns the start time of a process in the kernel's ticks, or "" if the process is gone.
func startOf(pid int) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	// The process's name is in parentheses and may itself contain parentheses.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	const start = 19 // the 22nd field of the line
	if len(fields) <= start {
		return ""
	}

	return fields[start]
}

// abandoned reports whether the program that owns a container is gone.
func abandoned(labels map[string]string, now time.Time) bool {
	if deadline, err := strconv.ParseInt(labels[labelDeadline], 10, 64); err == nil &&
		now.Unix() > deadline {
		where, _, _ := strings.Cut(labels[labelOwner], "/")
		if where != machine() {
			return true
		}
	}

	parts := strings.Split(labels[labelOwner], "/")
	if len(parts) != 3 || parts[0] != machine() || parts[2] == "" {
		return false
	}
	pid, err := strconv.Atoi(parts[1])
	return err == nil && startOf(pid) != parts[2]
}

// removeAbandoned removes the containers of dead programs and returns their number.
func (t *tier) removeAbandoned(ctx context.Context) (int, error) {
	if t.broken != nil {
		return 0, t.broken
	}
	found, err := t.docker.List(ctx, map[string]string{labelTier: Name})
	if err != nil {
		return 0, err
	}

	var errs []error
	removed := 0
	for _, c := range found {
		if !abandoned(c.Labels, time.Now()) {
			continue
		}
		if err := t.docker.Remove(ctx, c.ID); err != nil {
			errs = append(errs, err)
			continue
		}

		removed++
	}

	return removed, errors.Join(errs...)
}

// sweepOnce removes abandoned containers before the first container of this tier.
func (t *tier) sweepOnce(ctx context.Context) {
	t.mu.Lock()
	swept := t.swept
	t.swept = true
	t.mu.Unlock()
	if swept {
		return
	}

	removed, err := t.removeAbandoned(ctx)
	if err != nil {
		t.options.Log.Warn("cannot remove all abandoned containers", "error", err)
	}
	if removed > 0 {
		t.options.Log.Info("removed abandoned containers", "containers", removed)
	}
}

// leave records a container for removeLeft.
func (t *tier) leave(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.left[id] = struct{}{}
}

// removeLeft tries again to remove the containers that could not be removed.
func (t *tier) removeLeft(ctx context.Context) error {
	t.mu.Lock()
	left := t.left
	t.left = map[string]struct{}{}
	t.mu.Unlock()
	var errs []error
	for id := range left {
		own, cancel := context.WithTimeout(ctx, endTimeout)
		if err := t.docker.Remove(own, id); err != nil {
			t.leave(id)
			errs = append(errs, err)
		}
		cancel()
	}

	return errors.Join(errs...)
}
