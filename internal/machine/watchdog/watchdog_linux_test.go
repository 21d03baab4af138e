//go:build linux && (amd64 || arm64)

package watchdog

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// noStack is the value to which tests set the stack limit.
const noStack = 1<<63 + 7

// enterDeaf enters with words that no one reads, and stays inside until the watchdog has taken
// both.
func enterDeaf(t *testing.T) (limit uint64, fuel int64) {
	t.Helper()
	s, err := Take()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Free()
	fuel = 1000
	s.Watch(uintptr(unsafe.Pointer(&limit)), noStack, uintptr(unsafe.Pointer(&fuel)))
	s.Enter()
	for atomic.LoadUint64(&limit) == 0 || atomic.LoadInt64(&fuel) > 0 {
		runtime.Gosched()
	}
	s.Leave()
	Unwatch(uintptr(unsafe.Pointer(&limit)))
	return limit, fuel
}

func TestAGuestHasToLeave(t *testing.T) {
	for range 3 {
		limit, fuel := enterDeaf(t)
		if limit != noStack || fuel != 1000-takenFuel || Fuel(fuel) != 1000 {
			t.Errorf("limit %#x, fuel %d, in truth %d", limit, fuel, Fuel(fuel))
		}
	}
}

// TestAStayForgetsItsThread checks that the next user of a stay has no thread.
func TestAStayForgetsItsThread(t *testing.T) {
	s, err := Take()
	if err != nil {
		t.Fatal(err)
	}
	s.EnterOnThread()
	s.Leave()
	s.Free()
	enterDeaf(t) // the stay that was free last
}

// TestAThreadThatRestsIsNotBelieved checks that a guest whose thread is idle loses its stack
// eventually: Go may have moved the guest before it entered.
func TestAThreadThatRestsIsNotBelieved(t *testing.T) {
	var limit uint64
	s, err := Take()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Free()
	s.Watch(uintptr(unsafe.Pointer(&limit)), noStack, 0)
	s.enter(uint64(os.Getpid())) // the main thread
	for atomic.LoadUint64(&limit) == 0 {
		time.Sleep(10 * time.Millisecond)
	}
	s.Leave()
	Unwatch(uintptr(unsafe.Pointer(&limit)))
}

func TestFuelIsExact(t *testing.T) {
	for _, fuel := range []int64{0, 1, -1, -5000, 40_000, 1 << 60} {
		if Fuel(fuel) != fuel || Fuel(fuel-takenFuel) != fuel {
			t.Errorf("fuel %d: %d, once taken %d", fuel, Fuel(fuel), Fuel(fuel-takenFuel))
		}
	}
}

// TestTheWatchdogSleepsAndWakes checks that the watchdog wakes once a guest enters.
func TestTheWatchdogSleepsAndWakes(t *testing.T) {
	for range 2 {
		enterDeaf(t)
		for atomic.LoadUint32(&isAsleep) == 0 {
			time.Sleep(time.Millisecond)
		}
	}
}

// TestWaitingForAProcessorIsAllowed checks that a guest with a thread may wait.
func TestWaitingForAProcessorIsAllowed(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var limit uint64
	s, err := Take()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Free()
	s.Watch(uintptr(unsafe.Pointer(&limit)), noStack, 0)
	s.EnterOnThread()
	time.Sleep(200 * time.Millisecond)
	if atomic.LoadUint64(&limit) != 0 {
		t.Error("it had to leave, although it slept")
	}
	for atomic.LoadUint64(&limit) == 0 { //nolint:revive // it computes
	}
	s.Leave()
}

// TestAGuestWithAThreadLosesItsFuelFirst checks that the guest loses its stack only if it then
// continues to compute without leaving.
func TestAGuestWithAThreadLosesItsFuelFirst(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	limit, fuel := uint64(0), int64(1000)
	s, err := Take()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Free()
	s.Watch(uintptr(unsafe.Pointer(&limit)), noStack, uintptr(unsafe.Pointer(&fuel)))
	s.EnterOnThread()

	for atomic.LoadInt64(&fuel) > 0 {
		time.Sleep(time.Millisecond)
	}
	if atomic.LoadUint64(&limit) != 0 {
		t.Error("it lost its stack together with its fuel")
	}
	for atomic.LoadUint64(&limit) == 0 { //nolint:revive // it computes
	}

	s.Leave()
	Unwatch(uintptr(unsafe.Pointer(&limit)))
	if fuel != 1000-takenFuel {
		t.Errorf("the fuel is %d, and was taken more than once", fuel)
	}
}

// TestAGuestThatRestsLeavesSeldom checks a guest that is often idle: the host may do slow work on
// its behalf, for example allocate a larger stack.
func TestAGuestThatRestsLeavesSeldom(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var limit uint64
	s, err := Take()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Free()
	s.Watch(uintptr(unsafe.Pointer(&limit)), noStack, 0)
	s.EnterOnThread()
	for atomic.LoadUint64(&limit) == 0 { //nolint:revive // it computes
	}

	begun, times := time.Now(), int64(0)
	for times < 10 { // whenever a busy machine checks
		if atomic.SwapUint64(&limit, 0) != 0 {
			times++
		}
		time.Sleep(checkEvery / 5)
	}
	s.Leave()
	Unwatch(uintptr(unsafe.Pointer(&limit)))
	if most := int64(time.Since(begun))/(moreChecks*checkEvery) + 2; times > most {
		t.Errorf("it had to leave %d times, more than %d", times, most)
	}
}

// TestManyStays takes, uses and frees stays in many goroutines.
func TestManyStays(t *testing.T) {
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 2000 {
				s, err := Take()
				if err != nil {
					t.Error(err)
					return
				}
				word := new(uint64)
				s.Watch(uintptr(unsafe.Pointer(word)), noStack, 0)
				s.Enter()
				s.Leave()
				Unwatch(uintptr(unsafe.Pointer(word)))
				s.Free()
			}
		})
	}
	group.Wait()
}

const deafGuest = "RLM_TEST_DEAF_GUEST"

// TestAGuestThatNeverLeavesEndsTheProcess runs such a guest in a separate process.
func TestAGuestThatNeverLeavesEndsTheProcess(t *testing.T) {
	if os.Getenv(deafGuest) != "" {
		EndProcess(4, "rlm: a snippet holds the processor\n")
		s, err := Take()
		if err != nil {
			t.Fatal(err)
		}
		s.Enter()
		for {
			time.Sleep(time.Second)
		}
	}

	c := exec.Command(os.Args[0], "-test.run=^TestAGuestThatNeverLeavesEndsTheProcess$")
	c.Env = append(os.Environ(), deafGuest+"=1")
	out, err := c.CombinedOutput()
	if errors.Is(err, unix.ENOEXEC) {
		t.Skip("an emulator runs this test, and cannot start it again")
	}
	exit, isExit := errors.AsType[*exec.ExitError](err)
	if !isExit || exit.ExitCode() != 4 || !strings.Contains(string(out), "holds the processor") {
		t.Errorf("%v: %s", err, out)
	}
}
