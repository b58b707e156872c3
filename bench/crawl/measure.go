package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum/bench/internal/program"
)

// A childProcessTask is the task of a child process, which gets it as JSON.
type childProcessTask struct {
	Crawler string // name of the crawler to run; empty: the process is the server
	Web     workload
	Address serverAddress
	Workers int    // simultaneous requests
	Dir     string // directory for the files of the crawl
	Spider  string // directory where npm has installed spider-rs; "": it is not installed
	Profile string // path of profiles, without their endings; "": no profiles
}

// childArg is the first argument of a child process. The second is its task.
const childArg = "child"

// runProcessTask runs the task in arg.
func runProcessTask(arg string) error {
	var p childProcessTask
	if err := json.Unmarshal([]byte(arg), &p); err != nil {
		return err
	}
	if p.Crawler == "" {
		return runServer(p)
	}
	for _, c := range crawlers() {
		if c.name == p.Crawler {
			return program.RunProfiled(p.Profile, func() error { return c.runCrawl(p) })
		}
	}
	return fmt.Errorf("unknown crawler %q", p.Crawler)
}

// A serverProcess is the server as a child process: see runServer for what it reads and writes.
type serverProcess struct {
	address serverAddress
	cmd     *exec.Cmd
	stdin   io.WriteCloser
	stdout  *bufio.Reader
}

// startServerProcess starts the server of a web, with a directory for its files, and returns when it
// listens.
func startServerProcess(w workload, dir string) (*serverProcess, error) {
	cmd, err := program.TaskCommand(childArg, childProcessTask{Web: w, Dir: dir})
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
	// The first line of output is the address.
	f := &serverProcess{cmd: cmd, stdin: ask, stdout: bufio.NewReader(out)}
	line, err := f.stdout.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &f.address)
	}
	return f, err
}

// takeRequestCounts returns the counts of requests since the last call.
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

// stop closes the input of the server, which ends it, and waits for it.
func (f *serverProcess) stop() error {
	f.stdin.Close()
	return f.cmd.Wait()
}

// runFigures are the figures of one run.
type runFigures struct {
	CPUSecondsPer1000Pages float64 // user and system time per 1,000 page requests
	PagesPerSecond         float64 // page requests per second
	PeakRSSMiB             float64 // 0 on systems other than Linux
	RequestsPerPage        float64 // page requests per page
	Server                 requestCounts
}

// measure runs the crawler in a process of its own, and checks the requests that the server saw.
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
	failed := cmd.Run()
	spent := time.Since(begin)
	// The figures count only if the crawl was complete. After a failure, too, the next crawl starts
	// with no counts.
	t, err := f.takeRequestCounts()
	if err = cmp.Or(failed, err); err == nil {
		err = c.checkRequests(p.Web, t)
	}
	if err != nil {
		return runFigures{}, fmt.Errorf("%s: %w", c.name, err)
	}
	state := cmd.ProcessState
	cpu := state.UserTime() + state.SystemTime()
	return runFigures{
		CPUSecondsPer1000Pages: cpu.Seconds() / float64(t.PageRequests) * 1000,
		PagesPerSecond:         float64(t.PageRequests) / spent.Seconds(),
		PeakRSSMiB:             peakRSS(state),
		RequestsPerPage:        float64(t.PageRequests) / float64(t.Distinct),
		Server:                 t,
	}, nil
}

// checkRequests returns an error unless the crawler requested each page, only once unless
// refetchesPages is set, the robots.txt of each host unless skipsRobots is set, and nothing else, and
// if pauses is set kept the delay of each host.
func (c crawler) checkRequests(w workload, t requestCounts) error {
	switch {
	case t.Distinct != w.numPages():
		return fmt.Errorf("the crawler requested %d pages, want %d", t.Distinct, w.numPages())
	case t.PageRequests != t.Distinct && !c.refetchesPages:
		return fmt.Errorf("the crawler requested %d pages with %d requests, want one request for each",
			t.Distinct, t.PageRequests)
	case t.NonexistentPages > 0:
		return fmt.Errorf("%d requests were for pages that do not exist", t.NonexistentPages)
	case t.ShortGaps > 0 && c.pauses:
		return fmt.Errorf("%d requests came before the delay of their host was over", t.ShortGaps)
	case t.HostsAskedForRobots != w.Hosts && !c.skipsRobots:
		return fmt.Errorf("the crawler requested the robots.txt of %d hosts, want %d", t.HostsAskedForRobots, w.Hosts)
	}
	return nil
}
