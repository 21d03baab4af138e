package relay

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// usageEvery is the interval between two measurements of the program.
const usageEvery = 20 * time.Millisecond

// tick is the kernel's unit of processor time, on all systems supported by package syscall.
const tick = 10 * time.Millisecond

// usage sends the used resources, either always or only if they have grown.
func (r *relay) usage(always bool) {
	now := Usage{CPUNanos: computed(), PeakMemory: peak(r.pid)}
	r.mu.Lock()
	// For a process that has ended, the values are 0.
	now.PeakMemory = max(
		now.PeakMemory, r.last.PeakMemory,
	)
	news := now.CPUNanos != r.last.CPUNanos
	r.last = now
	r.mu.Unlock()
	if news || always {
		r.send(KindUsage, now)
	}
}

// computed returns the processor time of all processes behind the wall except this one, including
// processes that have ended and been reaped. It returns 0 for an unknown time if the wall has no
// process namespace, because /proc then also lists foreign processes.
func computed() int64 {
	if os.Getpid() != 1 && os.Getppid() != 1 {
		return 0
	}

	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0
	}

	self := os.Getpid()
	var sum int64
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			continue // the process has ended
		}

		own, waited := times(text)
		if pid != self {
			sum += own
		}
		sum += waited
	}
	return sum * int64(tick)
}

// times returns the ticks of a process and of its reaped children, from a line of
// /proc/PID/stat.
func times(stat []byte) (own, waited int64) {
	// The name is in parentheses and may contain parentheses itself.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	const user = 11 // the 14th field overall
	if len(fields) < user+4 {
		return 0, 0
	}
	var numbers [4]int64
	for i := range numbers {
		numbers[i], _ = strconv.ParseInt(string(fields[user+i]), 10, 64) // written by the kernel
	}

	return numbers[0] + numbers[1], numbers[2] + numbers[3]
}

// peak returns a process's peak memory use in bytes, or 0 if it has ended.
func peak(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			// The value comes from the kernel.
			kib, _ := strconv.ParseInt(
				strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64,
			)
			return kib << 10
		}
	}

	return 0
}
