package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum/bench/internal/program"
)

// A childProcessTask is one process's work, as it is handed to it.
type childProcessTask struct {
	Crawler string // empty: the server
	Web     webSize
	Address string // of the server
	Workers int    // requests at a time
	Dir     string // for what the crawl leaves
	Spider  string // directory with spider-rs, as npm installs it; "" for none
	Profile string // file for a CPU profile; "" for none
}

// childArg is the first argument of a process that gets a plan as its second.
const childArg = "child"

// runProcessTask does the work of a plan.
func runProcessTask(arg string) error {
	var p childProcessTask
	if err := json.Unmarshal([]byte(arg), &p); err != nil {
		return err
	}
	if p.Crawler == "" {
		return runServer(p.Web)
	}
	for _, c := range crawlers() {
		if c.name == p.Crawler {
			return program.RunProfiled(p.Profile, func() error { return c.runCrawl(p) })
		}
	}
	return fmt.Errorf("there is no crawler %q", p.Crawler)
}

// A serverProcess is the server's process, seen from outside.
type serverProcess struct {
	address string
	cmd     *exec.Cmd
	stdin   io.WriteCloser
	stdout  *bufio.Reader
}

func startServerProcess(w webSize) (*serverProcess, error) {
	cmd, err := program.TaskCommand(childArg, childProcessTask{Web: w})
	if err != nil {
		return nil, err
	}
	ask, err := cmd.StdinPipe()
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
	f := &serverProcess{cmd: cmd, stdin: ask, stdout: bufio.NewReader(out)}
	line, err := f.stdout.ReadString('\n')
	f.address = strings.TrimSpace(line)
	return f, err
}

// takeRequestCounts returns what the server was asked for since it was last asked.
func (f *serverProcess) takeRequestCounts() (t requestCounts, err error) {
	if _, err := io.WriteString(f.stdin, "\n"); err != nil {
		return t, err
	}
	line, err := f.stdout.ReadBytes('\n')
	if err != nil {
		return t, err
	}
	return t, json.Unmarshal(line, &t)
}

// stop ends the process.
func (f *serverProcess) stop() error {
	f.stdin.Close()
	return f.cmd.Wait()
}

// runFigures are those of one run.
type runFigures struct {
	CPUSecondsPer1000Pages float64 // seconds, user and system, for 1,000 pages asked
	PagesPerSecond         float64 // pages asked a second
	PeakRSSMiB             float64 // peak, MiB; 0 if the system is not Linux
	RequestsPerPage        float64 // requests for each page
}

// measure runs a crawler in a process of its own, and checks what the server saw.
func (c crawler) measure(p childProcessTask, f *serverProcess) (runFigures, error) {
	p.Crawler, p.Address = c.name, f.address
	if p.Profile != "" {
		p.Profile = filepath.Join(p.Profile, strings.NewReplacer(" ", "-", "/", "-").Replace(c.name))
	}
	start := func() (*exec.Cmd, error) { return program.TaskCommand(childArg, p) }
	if c.command != nil {
		start = func() (*exec.Cmd, error) { return c.command(p) }
	}
	cmd, err := start()
	if err != nil {
		return runFigures{}, fmt.Errorf("%s: %w", c.name, err)
	}
	begin := time.Now()
	if err := cmd.Run(); err != nil {
		return runFigures{}, fmt.Errorf("%s: %w", c.name, err)
	}
	spent := time.Since(begin)
	t, err := f.takeRequestCounts()
	if err == nil {
		err = c.checkRequests(p.Web, t)
	}
	if err != nil {
		return runFigures{}, fmt.Errorf("%s: %w", c.name, err)
	}
	state := cmd.ProcessState
	cpu := state.UserTime() + state.SystemTime()
	return runFigures{
		CPUSecondsPer1000Pages: cpu.Seconds() / float64(t.PageRequests) * 1000, PagesPerSecond: float64(t.PageRequests) / spent.Seconds(),
		PeakRSSMiB:      peakRSS(state),
		RequestsPerPage: float64(t.PageRequests) / float64(t.Distinct),
	}, nil
}

// checkRequests returns what a crawler did wrong: it must have asked for each page, once
// unless it is known not to, and for nothing else but robots.txt.
func (c crawler) checkRequests(w webSize, t requestCounts) error {
	switch {
	case t.Distinct != w.numPages():
		return fmt.Errorf("%d pages were asked for, want %d", t.Distinct, w.numPages())
	case t.PageRequests != t.Distinct && !c.refetchesPages:
		return fmt.Errorf("%d pages were asked for in %d requests, want each once", t.Distinct, t.PageRequests)
	case t.NonexistentPages > 0:
		return fmt.Errorf("%d requests were for pages that are not", t.NonexistentPages)
	case t.HostsAskedForRobots != w.Hosts && !c.skipsRobots:
		return fmt.Errorf("robots.txt of %d hosts was asked for, want %d", t.HostsAskedForRobots, w.Hosts)
	}
	return nil
}
