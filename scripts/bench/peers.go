package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rlmhq/rlm/images"
	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/tiers"
)

// A peer is an existing way to run Python. The table in the README compares peers.
type peer struct {
	name string
	// fresh creates a sandbox, runs the small snippet and removes the sandbox.
	fresh func() error
	// rounds is how often fresh is timed.
	rounds int
	// open starts a session that stays open.
	open func() (*live, error)
	// idle measures the memory of one idle sandbox, in bytes.
	idle func() (int64, error)
	// count is an expression that counts a word in the large text.
	count string
}

// live is a session of a peer. run returns the output of a snippet.
type live struct {
	run   func(code string) (string, error)
	close func() error
	pid   int
}

// peers measures the table in the README, which compares this project with alternatives.
func (b *bench) peers() error {
	all := []peer{b.ourselves(), b.dockerPeer(), b.pyodidePeer(), b.nativePeer()}
	rows := []struct {
		what    string
		measure func(peer) (string, error)
	}{
		{"`print(1+1)` in a new sandbox", b.timeFresh},
		{"new sandboxes per second", b.countFresh},
		{"memory of an idle sandbox", measureIdle},
		{"`print(1+1)` in a live session", timeLive},
		{"`fib(27)`, pure Python", timeFib},
		{"count a word in a file of 1 GiB, cached", timeCount},
	}

	head, line := "| |", "| --- |"
	for _, p := range all {
		head += " " + p.name + " |"
		line += " --- |"
	}
	table := head + "\n" + line + "\n"

	for _, row := range rows {
		table += "| " + row.what + " |"
		for _, p := range all {
			cell, err := row.measure(p)
			if err != nil {
				return fmt.Errorf("%s: %s: %w", p.name, row.what, err)
			}
			fmt.Fprintf(os.Stderr, "%s: %s: %s\n", p.name, row.what, cell)
			table += " " + cell + " |"
		}
		table += "\n"
	}

	fmt.Print(table)
	return nil
}

func (b *bench) timeFresh(p peer) (string, error) {
	took, err := median(p.rounds, p.fresh)
	return show(took), err
}

// countFresh creates sandboxes on both cores concurrently, for as long as three rounds of a slow
// peer take.
func (b *bench) countFresh(p peer) (string, error) {
	const atOnce, atLeast = 2, 4 * time.Second
	begun := time.Now()
	made := make([]int, atOnce)

	var group errgroup.Group
	for i := range atOnce {
		group.Go(func() error {
			for made[i] == 0 || time.Since(begun) < atLeast {
				if err := p.fresh(); err != nil {
					return err
				}
				made[i]++
			}
			return nil
		})
	}
	err := group.Wait()
	took := time.Since(begun).Seconds()

	total := 0
	for _, n := range made {
		total += n
	}
	return strconv.FormatFloat(roundTo2(float64(total)/took), 'f', -1, 64), err
}

func measureIdle(p peer) (string, error) {
	bytes, err := p.idle()
	return fmt.Sprintf("%.2g MiB", float64(bytes)/(1<<20)), err
}

func timeLive(p peer) (string, error) {
	s, err := p.open()
	if err != nil {
		return "", err
	}
	took, err := median(2000, func() error {
		out, err := s.run(small)
		if err == nil && out != "2\n" {
			err = fmt.Errorf("it printed %q", out)
		}
		return err
	})
	return show(took), errors.Join(err, s.close())
}

func timeFib(p peer) (string, error) {
	fib := programs[0]
	return timeInside(p, fib.setup+fmt.Sprintf(timing, fib.body))
}

// timeCount times the counting of a word in the text, or reports that the peer cannot hold the
// text.
func timeCount(p peer) (string, error) {
	return timeInside(p, "n = "+p.count+fmt.Sprintf(timing, "n = "+p.count))
}

// timeInside runs a program that measures itself and prints seconds.
func timeInside(p peer, program string) (string, error) {
	s, err := p.open()
	if err != nil {
		return "", err
	}
	out, err := s.run(program)
	err = errors.Join(err, s.close())
	if err != nil {
		return "", err
	}

	out = strings.TrimSpace(out)
	if strings.HasPrefix(out, "failed: ") {
		return out, nil
	}
	took, err := strconv.ParseFloat(out, 64)
	return show(time.Duration(took * float64(time.Second))), err
}

// show formats a time with two digits.
func show(took time.Duration) string {
	if took >= time.Second {
		return fmt.Sprintf("%.2g s", took.Seconds())
	}
	return fmt.Sprintf("%s ms", strconv.FormatFloat(
		roundTo2(float64(took)/float64(time.Millisecond)), 'f', -1, 64))
}

func roundTo2(x float64) float64 {
	y, _ := strconv.ParseFloat(fmt.Sprintf("%.2g", x), 64)
	return y
}

// searched is the word that all peers count in the text.
const searched = `"error"`

// ourselves returns tier wasm.
func (b *bench) ourselves() peer {
	return peer{
		name: "`rlm`, `tiers/wasm`", rounds: 400, fresh: b.once,
		count: "context.count(" + searched + ")",
		open: func() (*live, error) {
			text, err := bigtext.Open(b.text)
			if err != nil {
				return nil, err
			}
			s, err := b.tier.Open(b.ctx, tiers.Config{
				Inputs: []tiers.Input{{Name: b.text, Text: text}},
			})
			if err != nil {
				return nil, errors.Join(err, text.Close())
			}

			run := func(code string) (string, error) {
				r, err := s.Run(b.ctx, tiers.Job{Source: code})
				if err == nil && r.Status != tiers.StatusOK {
					err = fmt.Errorf("the snippet ended as %s", r.Status)
				}
				return r.Stdout, err
			}
			closeBoth := func() error { return errors.Join(s.Close(), text.Close()) }
			return &live{run: run, close: closeBoth}, nil
		},
		idle: b.measureSandbox,
	}
}

// nativePeer returns CPython without walls, with a process for each session.
func (b *bench) nativePeer() peer {
	return peer{
		name: "`python3`", rounds: 60, fresh: b.native,
		count: fmt.Sprintf("open(%q, encoding='utf-8').read().count(%s)", b.text, searched),
		open:  func() (*live, error) { return b.startPeer(b.python, "-I", "-S", peerScript("py")) },
		idle: func() (int64, error) {
			return measureProcesses(func() (*live, error) {
				return b.startPeer(b.python, "-I", "-S", peerScript("py"))
			}, func(s *live) ([]int, error) { return []int{s.pid}, nil })
		},
	}
}

// dockerPeer returns `docker run` of our Python image, with Docker's defaults.
func (b *bench) dockerPeer() peer {
	p := peer{name: "`docker run`", rounds: 15, fresh: b.dockerRun}
	p.count = fmt.Sprintf("open('/data/%s', encoding='utf-8').read().count(%s)",
		filepath.Base(b.text), searched)

	name := fmt.Sprintf("rlm-bench-%d", os.Getpid())
	p.open = func() (*live, error) {
		recipe, err := images.Find(images.Python)
		if err != nil {
			return nil, err
		}
		folder, err := filepath.Abs("scripts/bench/peers")
		if err != nil {
			return nil, err
		}
		return b.startPeer("docker", "run", "--rm", "-i", "--name", name,
			"-v", folder+":/peers:ro", "-v", b.text+":/data/"+filepath.Base(b.text)+":ro", // its folder may be private
			"--entrypoint", "/usr/bin/python3", recipe.Name, "-I", "-S", "/peers/peer.py")
	}

	// This adds the process of the container and the process that Docker keeps for each container.
	p.idle = func() (int64, error) {
		return measureProcesses(p.open, func(*live) ([]int, error) {
			out, err := exec.CommandContext(b.ctx, "docker", "inspect", "-f", "{{.State.Pid}}", name).Output()
			if err != nil {
				return nil, err
			}
			pid, err := strconv.Atoi(strings.TrimSpace(string(out)))
			if err != nil {
				return nil, err
			}
			parent, err := readParent(pid)
			return []int{pid, parent}, err
		})
	}
	return p
}

// pyodidePeer returns CPython for WebAssembly in Node, which must find the package pyodide in
// the folder b.pyodide.
func (b *bench) pyodidePeer() peer {
	start := func() (*live, error) { return b.startPeer("node", peerScript("mjs")) }
	spare := make(chan *live, 2) // Node processes that have loaded their code

	p := peer{name: "Pyodide in Node", rounds: 9}
	p.fresh = func() error {
		var s *live
		select {
		case s = <-spare:
		default:
			var err error
			if s, err = start(); err != nil {
				return err
			}
		}

		out, err := s.run(`{"fresh": "` + small + `"}`)
		if err == nil && out != "2\n" {
			err = fmt.Errorf("it printed %q", out)
		}
		spare <- s
		return err
	}
	p.open = func() (*live, error) {
		s, err := start()
		if err == nil {
			_, err = s.run(fmt.Sprintf(`{"show": %q}`, filepath.Dir(b.text)))
		}
		return s, err
	}
	p.count = fmt.Sprintf("open('/data/%s', encoding='utf-8').read().count(%s)",
		filepath.Base(b.text), searched)

	p.idle = func() (int64, error) {
		const alive = 5
		s, err := start()
		if err != nil {
			return 0, err
		}
		defer s.close() //nolint:errcheck // it has been measured

		if _, err := s.run(`{"keep": 1}`); err != nil {
			return 0, err
		}
		before, err := pssOf(s.pid)
		if err != nil {
			return 0, err
		}
		if _, err := s.run(fmt.Sprintf(`{"keep": %d}`, alive)); err != nil {
			return 0, err
		}
		after, err := pssOf(s.pid)
		return (after - before) / alive, err
	}
	return p
}

func peerScript(kind string) string {
	path, err := filepath.Abs("scripts/bench/peers/peer." + kind)
	if err != nil {
		return "scripts/bench/peers/peer." + kind
	}
	return path
}

// startPeer starts a process that reads snippets and writes their output. A snippet that begins
// with a brace is an order, which is sent unchanged.
func (b *bench) startPeer(program string, args ...string) (*live, error) {
	cmd := exec.CommandContext(b.ctx, program, args...)
	cmd.Stderr = os.Stderr
	cmd.Dir = b.pyodide
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}

	lines := bufio.NewReader(out)
	run := func(code string) (string, error) {
		order := []byte(code)
		if !strings.HasPrefix(code, "{") {
			if order, err = json.Marshal(code); err != nil {
				return "", err
			}
		}
		if _, err := fmt.Fprintf(in, "%s\n", order); err != nil {
			return "", err
		}

		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return "failed: the process ended", nil
		}
		var printed string
		if err == nil {
			err = json.Unmarshal(line, &printed)
		}
		return printed, err
	}

	closeAll := func() error {
		err := in.Close()
		_ = cmd.Wait() // the peer's work is done
		return err
	}
	return &live{run: run, close: closeAll, pid: cmd.Process.Pid}, nil
}

// measureProcesses returns the memory of a session's processes after a first snippet.
func measureProcesses(
	open func() (*live, error), find func(*live) ([]int, error),
) (int64, error) {
	s, err := open()
	if err != nil {
		return 0, err
	}
	defer s.close() //nolint:errcheck // it has been measured

	if _, err := s.run(small); err != nil {
		return 0, err
	}
	pids, err := find(s)
	if err != nil {
		return 0, err
	}

	var total int64
	for _, pid := range pids {
		bytes, err := pssOf(pid)
		if err != nil {
			return 0, err
		}
		total += bytes
	}
	return total, nil
}

// readParent returns the parent of a process.
func readParent(pid int) (int, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(status), "\nPPid:")
	line, _, _ := strings.Cut(rest, "\n")
	return strconv.Atoi(strings.TrimSpace(line))
}
